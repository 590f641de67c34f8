//! The paths to a node over TLS: from one of our cards to an address of the node in the same network.
//!
//! A connection takes the path with the fewest connections, counting those being dialed. A path on which a connection
//! broke lately comes last. An additional connection prefers a card without a connection. So the connections of a
//! session are spread over the cards, and a redial after a card's failure takes another card. A connection that this
//! side closed is not a failure, unless it was aborted for silence.

use super::ether::CardNetwork;
use bytes::Bytes;
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use wirefs_carrier::{Carrier, CarrierLost, Closer, FrameSource};
use wirefs_client::DATA_RETRY_AFTER;

/// How long a path comes last after a connection broke: longer than the pause before the next data connection, which
/// would take the failed path first again. Then a single broken card would prevent all additional connections.
const LOST_LIFE: Duration = DATA_RETRY_AFTER.saturating_add(Duration::from_secs(10));
/// The same for a path that never worked: its address may be in another network with the same prefix as one of ours.
const UNREACHED_LIFE: Duration = Duration::from_secs(120);
/// The maximum number of remembered paths: a node has few addresses, but may claim any number.
const PATHS_MAX: usize = 32;

/// A path to a node, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsPath {
    /// Our card; empty if the address is in none of our networks.
    pub card: String,
    /// The node's address.
    pub remote: SocketAddr,
    /// The number of connections over the path. 0: the last one broke.
    pub connections: usize,
}

#[derive(Debug)]
struct PathUse {
    path: TlsPath,
    /// Connections being dialed: they count for the choice of paths, and are not reported.
    dialled: usize,
    lost: Option<Instant>,
    /// A connection over the path has worked.
    has_worked: bool,
}

impl PathUse {
    fn is_lost(&self, now: Instant) -> bool {
        let life = if self.has_worked { LOST_LIFE } else { UNREACHED_LIFE };
        self.lost.is_some_and(|at| now.saturating_duration_since(at) < life)
    }

    /// Connections over the path, including those being dialed.
    fn load(&self) -> usize {
        self.path.connections + self.dialled
    }
}

/// All used paths to one node.
#[derive(Clone, Debug, Default)]
pub(super) struct TlsPaths(Arc<Mutex<Vec<PathUse>>>);

impl TlsPaths {
    fn lock(&self) -> MutexGuard<'_, Vec<PathUse>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the best address out of the untried ones, which come best first. Its connection counts from now on, so
    /// that concurrent dials take other paths.
    pub(super) fn next(
        &self,
        untried: &mut Vec<SocketAddr>,
        networks: &[CardNetwork],
        is_additional: bool,
    ) -> Option<DialChoice> {
        let (now, mut used) = (Instant::now(), self.lock());
        let (at, _) = untried.iter().enumerate().min_by_key(|(_, socket)| {
            let known = used.iter().find(|used| used.path.remote == **socket);
            let (is_lost, load) = known.map(|used| (used.is_lost(now), used.load())).unwrap_or_default();
            // An additional connection is for a card without one; the first connection may use any address that
            // answers.
            let card = is_additional
                .then(|| (card_to(**socket, networks).is_none(), load_of_card(&used, **socket, networks)));
            (is_lost, card, load)
        })?;
        let remote = untried.remove(at);
        let has_other_connections = load_of_card(&used, remote, networks) > 0;
        begin(&mut used, remote, networks);
        drop(used);
        Some(DialChoice { paths: self.clone(), remote, has_other_connections })
    }

    /// Returns the number of our cards that lead to one of these addresses, without those of failed paths.
    pub(super) fn count(&self, sockets: &[SocketAddr], networks: &[CardNetwork]) -> usize {
        let (now, used) = (Instant::now(), self.lock());
        let is_lost =
            |socket: &SocketAddr| used.iter().any(|used| used.path.remote == *socket && used.is_lost(now));
        let card = |socket: &SocketAddr| card_to(*socket, networks);
        let cards: BTreeSet<&str> =
            sockets.iter().filter(|socket| !is_lost(socket)).filter_map(card).collect();
        cards.len()
    }

    fn ended(&self, remote: SocketAddr, is_lost: bool) {
        let mut used = self.lock();
        if let Some(known) = used.iter_mut().find(|used| used.path.remote == remote) {
            known.path.connections = known.path.connections.saturating_sub(1);
            known.lost = is_lost.then(Instant::now).or(known.lost);
        }
    }

    /// Returns the paths in use, and those on which a connection broke lately.
    pub(super) fn report(&self) -> Vec<TlsPath> {
        let (now, used) = (Instant::now(), self.lock());
        let is_reported = |used: &&PathUse| used.path.connections > 0 || used.has_worked && used.is_lost(now);
        used.iter().filter(is_reported).map(|used| used.path.clone()).collect()
    }
}

impl CardNetwork {
    /// Returns whether an address is in the network.
    fn has(&self, address: IpAddr) -> bool {
        let IpAddr::V4(address) = address else { return false };
        let mask = u32::MAX.checked_shl(32 - u32::from(self.prefix.min(32))).unwrap_or(0);
        u32::from(address) & mask == u32::from(self.network) & mask
    }
}

/// Counts a connection to an address that is being dialed.
fn begin(used: &mut Vec<PathUse>, remote: SocketAddr, networks: &[CardNetwork]) {
    if let Some(known) = used.iter_mut().find(|used| used.path.remote == remote) {
        known.dialled += 1;
        return;
    }
    if used.len() >= PATHS_MAX {
        used.retain(|used| used.load() > 0);
    }
    let card = card_to(remote, networks).unwrap_or_default().to_owned();
    let path = TlsPath { card, remote, connections: 0 };
    used.push(PathUse { path, dialled: 1, lost: None, has_worked: false });
}

/// The connections over the card that leads to an address; without such a card, those to the address.
fn load_of_card(used: &[PathUse], remote: SocketAddr, networks: &[CardNetwork]) -> usize {
    let card = card_to(remote, networks);
    let is_of_it = |used: &&PathUse| match card {
        Some(_) => card_to(used.path.remote, networks) == card,
        None => used.path.remote == remote,
    };
    used.iter().filter(is_of_it).map(PathUse::load).sum()
}

/// Our card in whose network an address is.
fn card_to(remote: SocketAddr, networks: &[CardNetwork]) -> Option<&str> {
    networks.iter().find(|network| network.has(remote.ip())).map(|network| network.card.as_str())
}

/// An address being dialed, which counts as a connection until this is dropped.
pub(super) struct DialChoice {
    paths: TlsPaths,
    /// The address.
    pub(super) remote: SocketAddr,
    /// At the time of the choice, other connections used its card, or were being dialed over it.
    pub(super) has_other_connections: bool,
}

impl DialChoice {
    /// Wraps the source of an established connection, to notice its end.
    pub(super) fn established(self, carrier: Carrier) -> Carrier {
        self.change(|used| {
            used.path.connections += 1;
            (used.lost, used.has_worked) = (None, true);
        });
        let Carrier { source, sink, closer, peer } = carrier;
        let (paths, remote) = (self.paths.clone(), self.remote);
        let watched = Watched { source, paths, remote, closer: closer.clone(), has_ended: false };
        Carrier { source: Box::new(watched), sink, closer, peer }
    }

    /// Notes that the address does not answer. Returns whether it did before.
    pub(super) fn failed(&self) -> bool {
        let mut has_worked = false;
        self.change(|used| {
            used.lost = Some(Instant::now());
            has_worked = used.has_worked;
        });
        has_worked
    }

    /// Updates the path's state.
    fn change(&self, change: impl FnOnce(&mut PathUse)) {
        if let Some(used) = self.paths.lock().iter_mut().find(|used| used.path.remote == self.remote) {
            change(used);
        }
    }
}

impl Drop for DialChoice {
    fn drop(&mut self) {
        self.change(|used| used.dialled = used.dialled.saturating_sub(1));
    }
}

/// A source of frames that reports its end.
struct Watched {
    source: Box<dyn FrameSource>,
    paths: TlsPaths,
    remote: SocketAddr,
    closer: Closer,
    has_ended: bool,
}

impl Watched {
    /// Reports the end at once: the receiving thread may dial again before it drops the source.
    fn ends(&mut self, is_lost: bool) {
        if !std::mem::replace(&mut self.has_ended, true) {
            self.paths.ended(self.remote, is_lost);
        }
    }
}

impl FrameSource for Watched {
    fn receive(&mut self) -> Result<Option<Bytes>, CarrierLost> {
        let received = self.source.receive();
        if !matches!(received, Ok(Some(_))) {
            let is_lost = !self.closer.is_closed() || self.closer.is_aborted();
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
