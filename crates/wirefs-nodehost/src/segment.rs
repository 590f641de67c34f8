//! The socket of a node: one for all its cards, in the multicast group of each segment.

use crate::sys;
use rustix::net::netdevice::name_to_index;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType, sockopt};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The multicast group of nodes, in the range for use within an organization (RFC 2365).
pub(crate) const GROUP: Ipv4Addr = Ipv4Addr::new(239, 255, 64, 40);
/// The maximum number of cards.
const CARDS_MAX: usize = 16;
/// The loopback, which is no segment: a multicast packet there returns with the address of another card.
const LOOPBACK: &str = "lo";
/// The minimum timeout that the system accepts.
const WAIT_MIN: Duration = Duration::from_millis(1);

/// The reason why a node cannot use a segment.
#[derive(Debug, thiserror::Error)]
pub enum SegmentError {
    /// The port is in use, or the address belongs to another machine.
    #[error("cannot listen for nodes on {listen} (UDP): {source}; choose another with --listen")]
    Bind {
        /// The address.
        listen: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// The card does not exist, or has no address.
    #[error(
        "the network card {card} cannot be used: {source}; `ip -brief address` lists those that have one"
    )]
    Card {
        /// Its name.
        card: String,
        /// The system's error.
        source: io::Error,
    },
    /// The key cannot sign.
    #[error("this node's key does not sign")]
    Key,
    /// The system has no thread or socket left.
    #[error("the system has no room for a node: {0}")]
    System(#[from] io::Error),
}

/// A network card: its index and address.
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
    /// The filter of arriving packets; `None`: all are accepted.
    filter: Option<PacketFilter>,
    /// Held while a card is chosen and used: the socket has one choice for all threads.
    choice: Mutex<()>,
}

/// The accepted packets, where cards or an address were chosen. The socket itself must listen at all addresses, or it
/// would not receive multicast.
#[derive(Debug)]
struct PacketFilter {
    /// Packets to this address are accepted.
    address: Option<Ipv4Addr>,
    /// The addresses of peers named by the user.
    peers: Vec<IpAddr>,
    /// The addresses of registered nodes.
    registered: Mutex<Vec<IpAddr>>,
}

impl PacketFilter {
    fn registered(&self) -> MutexGuard<'_, Vec<IpAddr>> {
        self.registered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Segment {
    /// Opens the socket. On a loopback address there is no segment. If cards or an address are chosen, only packets
    /// over these and packets of peers are accepted.
    pub(super) fn open(
        listen: SocketAddr,
        names: &[String],
        peers: &[SocketAddr],
    ) -> Result<Segment, SegmentError> {
        let has_segment = !listen.ip().is_loopback() && listen.is_ipv4();
        // A socket bound to one address does not receive multicast.
        let bound = match listen {
            SocketAddr::V4(listen) if has_segment => {
                SocketAddr::from(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, listen.port()))
            }
            listen => listen,
        };
        let socket = UdpSocket::bind(bound).map_err(|source| SegmentError::Bind { listen, source })?;
        Segment::with_socket(socket, listen, names, peers)
    }

    /// Opens a socket whose port other processes may use too: each gets the multicast packets. On the segment of the
    /// card with this address; if it is unspecified, on all segments.
    pub(super) fn open_shared(address: Ipv4Addr, port: u16) -> Result<Segment, SegmentError> {
        let listen = SocketAddr::from((address, port));
        let bind = || {
            let socket =
                net::socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
            sockopt::set_socket_reuseaddr(&socket, true)?;
            net::bind(&socket, &SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)))?;
            Ok(UdpSocket::from(socket))
        };
        let socket = bind().map_err(|source: io::Error| SegmentError::Bind { listen, source })?;
        Segment::with_socket(socket, listen, &[], &[])
    }

    fn with_socket(
        socket: UdpSocket,
        listen: SocketAddr,
        names: &[String],
        peers: &[SocketAddr],
    ) -> Result<Segment, SegmentError> {
        let has_segment = !listen.ip().is_loopback() && listen.is_ipv4();
        let mut cards = if has_segment { find_cards(names)? } else { Vec::new() };
        if !listen.ip().is_unspecified() {
            cards.retain(|card| IpAddr::V4(card.address) == listen.ip());
        }
        for card in &cards {
            // A card without multicast still reaches the peers.
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
        let is_filtered = has_segment && (address.is_some() || !names.is_empty());
        let peers = peers.iter().map(|peer| peer.ip().to_canonical()).collect();
        let filter = is_filtered.then(|| PacketFilter { address, peers, registered: Mutex::default() });
        if filter.is_some() {
            sys::report_cards(&socket)?;
        }
        Ok(Segment { socket, cards, filter, choice: Mutex::default() })
    }

    /// Accepts packets of these registered nodes, in place of the previous ones.
    pub(super) fn set_registered(&self, registered: &[SocketAddr]) {
        if let Some(filter) = &self.filter {
            *filter.registered() = registered.iter().map(|peer| peer.ip().to_canonical()).collect();
        }
    }

    /// Returns whether a card is of this segment. The kernel delivers the packets of groups that others joined, too.
    pub(super) fn has_card(&self, index: u32) -> bool {
        self.cards.iter().any(|card| card.index == index)
    }

    pub(super) fn socket(&self) -> &UdpSocket {
        &self.socket
    }

    pub(super) fn port(&self) -> io::Result<u16> {
        self.socket.local_addr().map(|address| address.port())
    }

    pub(super) fn addresses(&self) -> Vec<IpAddr> {
        self.cards.iter().map(|card| IpAddr::V4(card.address)).collect()
    }

    /// Waits for a packet, at most `wait`. Truncates a packet that exceeds the buffer, which is longer than any valid
    /// one. `None` also for a packet that is not accepted.
    pub(super) fn receive(&self, buffer: &mut [u8], wait: Duration) -> Option<(SocketAddr, usize)> {
        self.socket.set_read_timeout(Some(wait.max(WAIT_MIN))).ok()?;
        let Some(filter) = &self.filter else {
            let (bytes, from) = self.socket.recv_from(buffer).ok()?;
            return Some((from, bytes));
        };
        let (bytes, arrival) = sys::receive(&self.socket, buffer).ok()?;
        let arrival = arrival?;
        let is_accepted = self.has_card(arrival.card)
            || filter.address == Some(arrival.to)
            || filter.peers.contains(&arrival.from.ip())
            || filter.registered().contains(&arrival.from.ip());
        is_accepted.then_some((arrival.from, bytes))
    }

    /// Sends to all nodes of each segment. A card that is down loses the packet.
    pub(super) fn send_to_all(&self, packet: &[u8]) {
        if let Ok(port) = self.port() {
            self.send_to_group(port, packet);
        }
    }

    /// The same, to another port.
    pub(super) fn send_to_group(&self, port: u16, packet: &[u8]) {
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

/// Sends further multicast packets over this card.
fn choose_card(socket: &UdpSocket, index: u32) -> rustix::io::Result<()> {
    let any = Ipv4Addr::UNSPECIFIED;
    sockopt::set_ip_multicast_if_with_ifindex(socket, &any, &any, index)
}

/// Returns the named cards, or all cards with an address except the loopback.
fn find_cards(names: &[String]) -> Result<Vec<Card>, SegmentError> {
    let failed = |card: &str, source| SegmentError::Card { card: card.to_owned(), source };
    if !names.is_empty() {
        return names.iter().map(|name| card(name).map_err(|source| failed(name, source))).collect();
    }
    // The table of this thread's network namespace; /sys may show another one.
    let table = std::fs::read_to_string("/proc/self/net/dev")?;
    let names = table.lines().filter_map(|line| line.split_once(':')).map(|(name, _)| name.trim());
    let cards = names.filter(|name| *name != LOOPBACK).filter_map(|name| card(name).ok());
    Ok(cards.take(CARDS_MAX).collect())
}

/// Returns a card with the address that it sends multicast from: the kernel's choice for a connected socket.
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
