//! The ways to a node over TLS: from one of our cards to an address that the node has in the same network.
//!
//! Each connection goes where the fewest are, and not where one was lost of late while there is another way. So several connections of one
//! session are spread over the cards, and who dials again after a card died does so over another one. What was closed at our end is not
//! lost, unless it was given up for its silence.

use super::ether::CardNetwork;
use bytes::Bytes;
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use wirefs_carrier::{Carrier, CarrierLost, Closer, FrameSource};

/// So long a way is left for the last where a connection over it broke.
const LOST_LIFE: Duration = Duration::from_secs(30);
/// And so long where nobody ever answered: it may be an address in a network of the same name that we have too.
const VAIN_LIFE: Duration = Duration::from_secs(120);
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
    /// There was a connection over it.
    has_worked: bool,
}

impl Used {
    fn is_lost(&self) -> bool {
        let life = if self.has_worked { LOST_LIFE } else { VAIN_LIFE };
        self.lost.is_some_and(|at| at.elapsed() < life)
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

    /// How many of our cards a connection to one of these addresses may go over, but those where one was lost of late.
    pub(super) fn count(&self, sockets: &[SocketAddr], networks: &[CardNetwork]) -> usize {
        let used = self.lock();
        let is_lost =
            |socket: &SocketAddr| used.iter().any(|used| used.way.remote == *socket && used.is_lost());
        let card = |socket: &SocketAddr| card_to(*socket, networks);
        let cards: BTreeSet<&str> =
            sockets.iter().filter(|socket| !is_lost(socket)).filter_map(card).collect();
        cards.len()
    }

    /// Whether connections go over it.
    pub(super) fn is_in_use(&self, remote: SocketAddr) -> bool {
        self.lock().iter().any(|used| used.way.remote == remote && used.way.connections > 0)
    }

    /// There is a connection to this address: hands it back with an eye on its end.
    pub(super) fn taken(&self, remote: SocketAddr, networks: &[CardNetwork], carrier: Carrier) -> Carrier {
        self.with(remote, networks, |known| {
            known.way.connections += 1;
            (known.lost, known.has_worked) = (None, true);
        });
        let Carrier { source, sink, closer, peer } = carrier;
        let watched =
            Watched { source, ways: self.clone(), remote, closer: closer.clone(), has_ended: false };
        Carrier { source: Box::new(watched), sink, closer, peer }
    }

    /// Nobody answers at this address; tells whether somebody did before.
    pub(super) fn failed(&self, remote: SocketAddr, networks: &[CardNetwork]) -> bool {
        self.with(remote, networks, |known| {
            known.lost = Some(Instant::now());
            known.has_worked
        })
    }

    fn with<R>(
        &self,
        remote: SocketAddr,
        networks: &[CardNetwork],
        change: impl FnOnce(&mut Used) -> R,
    ) -> R {
        let mut used = self.lock();
        if let Some(known) = used.iter_mut().find(|used| used.way.remote == remote) {
            return change(known);
        }
        if used.len() >= WAYS_MAX {
            used.retain(|used| used.way.connections > 0);
        }
        let card = card_to(remote, networks).unwrap_or_default().to_owned();
        let mut new = Used { way: Way { card, remote, connections: 0 }, lost: None, has_worked: false };
        let result = change(&mut new);
        used.push(new);
        result
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
        let is_told = |used: &&Used| used.way.connections > 0 || used.has_worked && used.is_lost();
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

/// Our card in whose network an address is.
fn card_to(remote: SocketAddr, networks: &[CardNetwork]) -> Option<&str> {
    networks.iter().find(|network| network.has(remote.ip())).map(|network| network.card.as_str())
}

/// A source of frames whose end is told.
struct Watched {
    source: Box<dyn FrameSource>,
    ways: Ways,
    remote: SocketAddr,
    closer: Closer,
    has_ended: bool,
}

impl Watched {
    /// At once, for who receives may dial again before it lets go of this.
    fn ends(&mut self, is_lost: bool) {
        if !std::mem::replace(&mut self.has_ended, true) {
            self.ways.ended(self.remote, is_lost);
        }
    }
}

impl FrameSource for Watched {
    fn receive(&mut self) -> Result<Option<Bytes>, CarrierLost> {
        let received = self.source.receive();
        if !matches!(received, Ok(Some(_))) {
            let is_lost = !self.closer.is_closed() || self.closer.is_given_up();
            self.ends(is_lost);
        }
        received
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.ends(false);
    }
}

#[cfg(test)]
mod tests;
