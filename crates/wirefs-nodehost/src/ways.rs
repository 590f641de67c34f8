//! The ways to a node over TLS: from one of our cards to an address that the node has in the same network.
//!
//! Each connection goes where the fewest are, those counted that are being made, and not where one was lost of late while there is another
//! way; one beside another goes over a card that has none, while there is such a card. So several connections of one
//! session are spread over the cards, and who dials again after a card died does so over another one. What was closed at our end is not
//! lost, unless it was given up for its silence.

use super::ether::CardNetwork;
use bytes::Bytes;
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use wirefs_carrier::{Carrier, CarrierLost, Closer, FrameSource};
use wirefs_client::DATA_RETRY_AFTER;

/// So long a way is left for the last where a connection over it broke: longer than until the next data connection is tried, or that
/// would take it first again, and a card that is cut would keep all others from a second connection.
const LOST_LIFE: Duration = DATA_RETRY_AFTER.saturating_add(Duration::from_secs(10));
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
    /// Connections over it that are being made: they count for who chooses next, and are told to nobody.
    dialled: usize,
    lost: Option<Instant>,
    /// There was a connection over it.
    has_worked: bool,
}

impl Used {
    fn is_lost(&self, now: Instant) -> bool {
        let life = if self.has_worked { LOST_LIFE } else { VAIN_LIFE };
        self.lost.is_some_and(|at| now.saturating_duration_since(at) < life)
    }

    /// Connections over it, those that are being made among them.
    fn load(&self) -> usize {
        self.way.connections + self.dialled
    }
}

/// All ways to one node that were taken.
#[derive(Clone, Debug, Default)]
pub(super) struct Ways(Arc<Mutex<Vec<Used>>>);

impl Ways {
    fn lock(&self) -> MutexGuard<'_, Vec<Used>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the best of a node's addresses, which come the best first, out of those that are to be tried yet. A connection to it counts
    /// from then on: those that are made at the same time take others.
    pub(super) fn next(
        &self,
        untried: &mut Vec<SocketAddr>,
        networks: &[CardNetwork],
        is_beside: bool,
    ) -> Option<Choice> {
        let (now, mut used) = (Instant::now(), self.lock());
        let (at, _) = untried.iter().enumerate().min_by_key(|(_, socket)| {
            let known = used.iter().find(|used| used.way.remote == **socket);
            let (is_lost, load) = known.map(|used| (used.is_lost(now), used.load())).unwrap_or_default();
            // A connection beside another is there for a card that has none; the first one is made to whoever answers.
            let card = is_beside
                .then(|| (card_to(**socket, networks).is_none(), load_of_card(&used, **socket, networks)));
            (is_lost, card, load)
        })?;
        let remote = untried.remove(at);
        let is_beside_another = load_of_card(&used, remote, networks) > 0;
        begin(&mut used, remote, networks);
        drop(used);
        Some(Choice { ways: self.clone(), remote, is_beside_another })
    }

    /// How many of our cards a connection to one of these addresses may go over, but those where one was lost of late.
    pub(super) fn count(&self, sockets: &[SocketAddr], networks: &[CardNetwork]) -> usize {
        let (now, used) = (Instant::now(), self.lock());
        let is_lost =
            |socket: &SocketAddr| used.iter().any(|used| used.way.remote == *socket && used.is_lost(now));
        let card = |socket: &SocketAddr| card_to(*socket, networks);
        let cards: BTreeSet<&str> =
            sockets.iter().filter(|socket| !is_lost(socket)).filter_map(card).collect();
        cards.len()
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
        let (now, used) = (Instant::now(), self.lock());
        let is_told = |used: &&Used| used.way.connections > 0 || used.has_worked && used.is_lost(now);
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

/// A connection to this address is being made: the way is remembered.
fn begin(used: &mut Vec<Used>, remote: SocketAddr, networks: &[CardNetwork]) {
    if let Some(known) = used.iter_mut().find(|used| used.way.remote == remote) {
        known.dialled += 1;
        return;
    }
    if used.len() >= WAYS_MAX {
        used.retain(|used| used.load() > 0);
    }
    let card = card_to(remote, networks).unwrap_or_default().to_owned();
    let way = Way { card, remote, connections: 0 };
    used.push(Used { way, dialled: 1, lost: None, has_worked: false });
}

/// Connections over the card that leads to an address; where none of ours does, to that address.
fn load_of_card(used: &[Used], remote: SocketAddr, networks: &[CardNetwork]) -> usize {
    let card = card_to(remote, networks);
    let is_of_it = |used: &&Used| match card {
        Some(_) => card_to(used.way.remote, networks) == card,
        None => used.way.remote == remote,
    };
    used.iter().filter(is_of_it).map(Used::load).sum()
}

/// Our card in whose network an address is.
fn card_to(remote: SocketAddr, networks: &[CardNetwork]) -> Option<&str> {
    networks.iter().find(|network| network.has(remote.ip())).map(|network| network.card.as_str())
}

/// An address that is dialled, which counts as a connection until this is dropped.
pub(super) struct Choice {
    ways: Ways,
    /// It.
    pub(super) remote: SocketAddr,
    /// When it was chosen, other connections went over its card, or were being made.
    pub(super) is_beside_another: bool,
}

impl Choice {
    /// There is a connection: hands it back with an eye on its end.
    pub(super) fn taken(self, carrier: Carrier) -> Carrier {
        self.change(|used| {
            used.way.connections += 1;
            (used.lost, used.has_worked) = (None, true);
        });
        let Carrier { source, sink, closer, peer } = carrier;
        let (ways, remote) = (self.ways.clone(), self.remote);
        let watched = Watched { source, ways, remote, closer: closer.clone(), has_ended: false };
        Carrier { source: Box::new(watched), sink, closer, peer }
    }

    /// Nobody answers there; tells whether somebody did before.
    pub(super) fn failed(&self) -> bool {
        let mut has_worked = false;
        self.change(|used| {
            used.lost = Some(Instant::now());
            has_worked = used.has_worked;
        });
        has_worked
    }

    /// What counts is remembered.
    fn change(&self, change: impl FnOnce(&mut Used)) {
        if let Some(used) = self.ways.lock().iter_mut().find(|used| used.way.remote == self.remote) {
            change(used);
        }
    }
}

impl Drop for Choice {
    fn drop(&mut self) {
        self.change(|used| used.dialled = used.dialled.saturating_sub(1));
    }
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
