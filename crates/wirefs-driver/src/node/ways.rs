//! The ways to a node over TLS: from one of our cards to an address that the node has in the same network.
//!
//! Each connection goes where the fewest are, and not where one was lost of late while there is another way. So several connections of one
//! session are spread over the cards, and who dials again after a card died does so over another one.

use super::ether::CardNetwork;
use bytes::Bytes;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use wirefs_carrier::{Carrier, CarrierLost, FrameSource};

/// So long a way is left for the last where a connection over it broke.
const LOST_LIFE: Duration = Duration::from_secs(30);
/// Ways that are remembered, at most: a node has few addresses, but may say what it likes.
const WAYS_MAX: usize = 32;

/// One way to a node, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Way {
    /// Our card; empty where the address is in none of our networks.
    pub card: String,
    /// The node's address.
    pub remote: SocketAddr,
    /// Connections that go over it. 0: the last one broke.
    pub connections: usize,
}

#[derive(Debug)]
struct Used {
    way: Way,
    lost: Option<Instant>,
}

impl Used {
    fn is_lost(&self) -> bool {
        self.lost.is_some_and(|at| at.elapsed() < LOST_LIFE)
    }
}

/// All ways to one node that were taken.
#[derive(Clone, Debug, Default)]
pub(super) struct Ways(Arc<Mutex<Vec<Used>>>);

impl Ways {
    fn lock(&self) -> MutexGuard<'_, Vec<Used>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Addresses of a node, the best first, in the order in which they are to be tried.
    pub(super) fn order(&self, mut sockets: Vec<SocketAddr>) -> Vec<SocketAddr> {
        let used = self.lock();
        sockets.sort_by_key(|socket| {
            let known = used.iter().find(|used| used.way.remote == *socket);
            known.map(|used| (used.is_lost(), used.way.connections)).unwrap_or_default()
        });
        sockets
    }

    /// There is a connection to this address: hands it back with an eye on its end.
    pub(super) fn taken(&self, remote: SocketAddr, networks: &[CardNetwork], carrier: Carrier) -> Carrier {
        let mut used = self.lock();
        match used.iter_mut().find(|used| used.way.remote == remote) {
            Some(known) => {
                known.way.connections += 1;
                known.lost = None;
            }
            None => {
                if used.len() >= WAYS_MAX {
                    used.retain(|used| used.way.connections > 0);
                }
                let network = networks.iter().find(|network| network.has(remote.ip()));
                let card = network.map(|network| network.card.clone()).unwrap_or_default();
                used.push(Used { way: Way { card, remote, connections: 1 }, lost: None });
            }
        }
        drop(used);
        let Carrier { source, sink, closer, peer } = carrier;
        let source = Box::new(Watched { source, ways: self.clone(), remote, is_lost: false });
        Carrier { source, sink, closer, peer }
    }

    fn ended(&self, remote: SocketAddr, is_lost: bool) {
        let mut used = self.lock();
        if let Some(known) = used.iter_mut().find(|used| used.way.remote == remote) {
            known.way.connections = known.way.connections.saturating_sub(1);
            known.lost = is_lost.then(Instant::now).or(known.lost);
        }
    }

    /// Those in use, and those where a connection broke of late, with our cards.
    pub(super) fn told(&self) -> Vec<Way> {
        let used = self.lock();
        let is_told = |used: &&Used| used.way.connections > 0 || used.is_lost();
        used.iter().filter(is_told).map(|used| used.way.clone()).collect()
    }
}

impl CardNetwork {
    /// Whether an address is in it.
    fn has(&self, address: IpAddr) -> bool {
        let IpAddr::V4(address) = address else { return false };
        let mask = u32::MAX.checked_shl(32 - u32::from(self.prefix.min(32))).unwrap_or(0);
        u32::from(address) & mask == u32::from(self.network) & mask
    }
}

/// A source of frames whose end is told.
struct Watched {
    source: Box<dyn FrameSource>,
    ways: Ways,
    remote: SocketAddr,
    is_lost: bool,
}

impl FrameSource for Watched {
    fn receive(&mut self) -> Result<Option<Bytes>, CarrierLost> {
        let received = self.source.receive();
        // A connection that was closed at our end for its silence ends like any other.
        self.is_lost |= !matches!(received, Ok(Some(_)));
        received
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.ways.ended(self.remote, self.is_lost);
    }
}

#[cfg(test)]
mod tests;
