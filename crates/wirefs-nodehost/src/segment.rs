//! The socket of a node: one for all its cards, which listens to the group on each segment.

use crate::sys;
use rustix::net::netdevice::name_to_index;
use rustix::net::sockopt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Where nodes announce themselves: an address of the range that every organisation may use within itself (RFC 2365).
const GROUP: Ipv4Addr = Ipv4Addr::new(239, 255, 64, 40);
/// Cards that are used, at most.
const CARDS_MAX: usize = 16;
/// No segment: what is sent there comes back, under the address of another card.
const LOOPBACK: &str = "lo";
/// The least wait that the system takes for one.
const WAIT_MIN: Duration = Duration::from_millis(1);

/// Why a node cannot be on a segment.
#[derive(Debug, thiserror::Error)]
pub enum SegmentError {
    /// The port is not free, or the address not this machine's.
    #[error("cannot listen for nodes on {listen} (UDP): {source}; choose another with --listen")]
    Bind {
        /// Where.
        listen: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
    /// There is no such card, or it has no address.
    #[error(
        "the network card {card} cannot be used: {source}; `ip -brief address` lists those that have one"
    )]
    Card {
        /// Its name.
        card: String,
        /// What the system says.
        source: io::Error,
    },
    /// The key does not sign.
    #[error("this node's key does not sign")]
    Key,
    /// No thread, no socket.
    #[error("the system has no room for a node: {0}")]
    System(#[from] io::Error),
}

/// A network card, by its number, and its address.
#[derive(Clone, Copy, Debug)]
struct Card {
    index: u32,
    address: Ipv4Addr,
}

/// The socket of a node.
#[derive(Debug)]
pub(super) struct Segment {
    socket: UdpSocket,
    cards: Vec<Card>,
    /// Who is heard; `None`: whoever can reach the socket.
    limits: Option<Limits>,
    /// Held while a card is chosen and sent by: the socket has one choice for all threads.
    choice: Mutex<()>,
}

/// Who is heard, where cards or an address were chosen. The socket listens on all, since the group is heard no other way.
#[derive(Debug)]
struct Limits {
    /// What is sent to this address.
    address: Option<Ipv4Addr>,
    /// Who was named by hand.
    peers: Vec<IpAddr>,
    /// Who is registered.
    registered: Mutex<Vec<IpAddr>>,
}

impl Limits {
    fn registered(&self) -> MutexGuard<'_, Vec<IpAddr>> {
        self.registered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Segment {
    /// Listens. On an address of the loopback there is no segment. Where cards are named, or an address, only what comes by
    /// these or from a peer is heard.
    pub(super) fn open(
        listen: SocketAddr,
        names: &[String],
        peers: &[SocketAddr],
    ) -> Result<Segment, SegmentError> {
        let has_segment = !listen.ip().is_loopback() && listen.is_ipv4();
        // Who binds to one address does not hear the group.
        let bound = match listen {
            SocketAddr::V4(listen) if has_segment => {
                SocketAddr::from(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, listen.port()))
            }
            listen => listen,
        };
        let socket = UdpSocket::bind(bound).map_err(|source| SegmentError::Bind { listen, source })?;
        let mut cards = if has_segment { find_cards(names)? } else { Vec::new() };
        if !listen.ip().is_unspecified() {
            cards.retain(|card| IpAddr::V4(card.address) == listen.ip());
        }
        for card in &cards {
            // A card without multicast still has its peers.
            let _joined = sockopt::set_ip_add_membership_with_ifindex(
                &socket,
                &GROUP,
                &Ipv4Addr::UNSPECIFIED,
                card.index,
            );
        }
        let address = match listen.ip() {
            IpAddr::V4(address) if !address.is_unspecified() => Some(address),
            IpAddr::V4(_) | IpAddr::V6(_) => None,
        };
        let is_limited = has_segment && (address.is_some() || !names.is_empty());
        let peers = peers.iter().map(|peer| peer.ip().to_canonical()).collect();
        let limits = is_limited.then(|| Limits { address, peers, registered: Mutex::default() });
        if limits.is_some() {
            sys::tell_cards(&socket)?;
        }
        Ok(Segment { socket, cards, limits, choice: Mutex::default() })
    }

    /// Hears those who are registered, in place of those who were before.
    pub(super) fn hear(&self, registered: &[SocketAddr]) {
        if let Some(limits) = &self.limits {
            *limits.registered() = registered.iter().map(|peer| peer.ip().to_canonical()).collect();
        }
    }

    pub(super) fn port(&self) -> io::Result<u16> {
        self.socket.local_addr().map(|address| address.port())
    }

    pub(super) fn addresses(&self) -> Vec<IpAddr> {
        self.cards.iter().map(|card| IpAddr::V4(card.address)).collect()
    }

    /// Waits for a packet, at most so long; what does not fit the buffer is longer than any of ours. `None` for one that is
    /// not to be heard, too.
    pub(super) fn receive(&self, buffer: &mut [u8], wait: Duration) -> Option<(SocketAddr, usize)> {
        self.socket.set_read_timeout(Some(wait.max(WAIT_MIN))).ok()?;
        let Some(limits) = &self.limits else {
            let (bytes, from) = self.socket.recv_from(buffer).ok()?;
            return Some((from, bytes));
        };
        let (bytes, arrival) = sys::receive(&self.socket, buffer).ok()?;
        let arrival = arrival?;
        let is_heard = self.cards.iter().any(|card| card.index == arrival.card)
            || limits.address == Some(arrival.to)
            || limits.peers.contains(&arrival.from.ip())
            || limits.registered().contains(&arrival.from.ip());
        is_heard.then_some((arrival.from, bytes))
    }

    /// Sends to all on each segment. A card that is down loses it, as a bad cable would.
    pub(super) fn send_to_all(&self, packet: &[u8]) {
        let Ok(port) = self.port() else { return };
        let _chosen = self.choice.lock().unwrap_or_else(PoisonError::into_inner);
        for card in &self.cards {
            if choose_card(&self.socket, card.index).is_ok() {
                self.send_to(SocketAddr::from((GROUP, port)), packet);
            }
        }
    }

    pub(super) fn send_to(&self, to: SocketAddr, packet: &[u8]) {
        let _lost = self.socket.send_to(packet, to);
    }
}

/// Has multicast go out of this card.
fn choose_card(socket: &UdpSocket, index: u32) -> rustix::io::Result<()> {
    let any = Ipv4Addr::UNSPECIFIED;
    sockopt::set_ip_multicast_if_with_ifindex(socket, &any, &any, index)
}

/// The cards of these names, or all that have an address and are no loopback.
fn find_cards(names: &[String]) -> Result<Vec<Card>, SegmentError> {
    let failed = |card: &str, source| SegmentError::Card { card: card.to_owned(), source };
    if !names.is_empty() {
        return names.iter().map(|name| card(name).map_err(|source| failed(name, source))).collect();
    }
    // The table of this very network namespace; /sys may show another's.
    let table = std::fs::read_to_string("/proc/self/net/dev")?;
    let names = table.lines().filter_map(|line| line.split_once(':')).map(|(name, _)| name.trim());
    let cards = names.filter(|name| *name != LOOPBACK).filter_map(|name| card(name).ok());
    Ok(cards.take(CARDS_MAX).collect())
}

/// A card and the address that it sends multicast from: that is what the kernel says a socket has which is about to.
fn card(name: &str) -> io::Result<Card> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    let index = name_to_index(&socket, name)?;
    choose_card(&socket, index)?;
    socket.connect((GROUP, 1))?;
    match socket.local_addr()?.ip() {
        IpAddr::V4(address) if !address.is_unspecified() => Ok(Card { index, address }),
        IpAddr::V4(_) | IpAddr::V6(_) => Err(io::ErrorKind::AddrNotAvailable.into()),
    }
}

#[cfg(test)]
mod tests;
