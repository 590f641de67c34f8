//! Servers of a segment: a server answers queries, and a client asks.

use crate::invite::entropy;
use crate::segment::{GROUP, Segment, SegmentError};
use crate::sys;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};
use wirefs_node::discovery::{OFFER_BYTES_MAX, ServerOffer, read_server_query, server_query};

/// The UDP port of queries for servers.
const SERVERS_PORT: u16 = 6442;
/// The queries, in case some are lost.
const QUERIES: u32 = 3;
/// The maximum number of servers in an answer.
const SERVERS_MAX: usize = 256;
/// The maximum number of servers of one address, so that one machine does not fill the answer.
const SERVERS_PER_ADDRESS_MAX: usize = 16;
/// The pause after a failure of the socket.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// A server that answered. Anyone can answer, with any content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundServer {
    /// The address of the answer, with the port for TLS.
    pub address: SocketAddr,
    /// The answer.
    pub offer: ServerOffer,
}

/// Answers queries in a thread of its own: those of the segment of the card with the address `listens_at`, or of all
/// segments, if it is unspecified. Queries that were not sent to the multicast group, such as from another network, get
/// no answer.
///
/// # Errors
/// The socket cannot be used.
pub fn announce_server(offer: ServerOffer, listens_at: Ipv4Addr) -> Result<(), SegmentError> {
    let segment = Segment::open_shared(listens_at, SERVERS_PORT)?;
    sys::report_cards(segment.socket())?;
    let answer = move || {
        let mut buffer = [0; OFFER_BYTES_MAX + 1];
        loop {
            match sys::receive(segment.socket(), &mut buffer) {
                Ok((bytes, Some(arrival))) if arrival.to == GROUP && segment.has_card(arrival.card) => {
                    let query = buffer.get(..bytes).unwrap_or_default();
                    if let Some(nonce) = read_server_query(query) {
                        segment.send_to(arrival.from, &offer.encode(nonce));
                    }
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => std::thread::sleep(RETRY_PAUSE),
            }
        }
    };
    std::thread::Builder::new().name("wirefs-announce".into()).spawn(answer)?;
    Ok(())
}

/// Asks for the servers on the segments of these cards, all cards if there are none.
///
/// # Errors
/// A card cannot be used.
///
/// # Cost
/// Takes `wait`.
pub fn find_servers(cards: &[String], wait: Duration) -> Result<Vec<FoundServer>, SegmentError> {
    let segment = Segment::open(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)), cards, &[])?;
    let nonce = u64::from_le_bytes(entropy()?.first_chunk().copied().unwrap_or_default());
    let (started, mut found) = (Instant::now(), Vec::new());
    for number in 1..=QUERIES {
        segment.send_to_group(SERVERS_PORT, &server_query(nonce));
        let until = started + wait * number / QUERIES;
        let mut buffer = [0; OFFER_BYTES_MAX + 1];
        while let Some(left) = until.checked_duration_since(Instant::now()) {
            let Some((from, bytes)) = segment.receive(&mut buffer, left) else { continue };
            let answer = buffer.get(..bytes).unwrap_or_default();
            let Some(offer) = ServerOffer::read(nonce, answer) else { continue };
            let server = FoundServer { address: SocketAddr::new(from.ip(), offer.port), offer };
            if is_listed(&found, server.address) {
                found.push(server);
            }
        }
    }
    found.sort_by_key(|server| server.address);
    Ok(found)
}

/// Returns whether an answer with this address is a further server of the list.
fn is_listed(found: &[FoundServer], address: SocketAddr) -> bool {
    let of_machine = found.iter().filter(|known| known.address.ip() == address.ip()).count();
    found.len() < SERVERS_MAX
        && of_machine < SERVERS_PER_ADDRESS_MAX
        && found.iter().all(|known| known.address != address)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wirefs_node::NodeKey;

    /// S-178: one machine does not keep others off the list.
    #[test]
    fn machine_has_sixteen_servers_in_the_list() {
        let mut found = Vec::new();
        let mut add = |machine: u8, port: u16| {
            let address = SocketAddr::from(([10, 0, 0, machine], port));
            let is_new = is_listed(&found, address);
            if is_new {
                let host = "host".to_owned();
                let offer =
                    ServerOffer { port, key: NodeKey([1; 32]), host, exports: Vec::new(), has_more: false };
                found.push(FoundServer { address, offer });
            }
            is_new
        };
        assert!(add(1, 1) && !add(1, 1));
        assert_eq!((2..=1000).filter(|port| add(1, *port)).count(), SERVERS_PER_ADDRESS_MAX - 1);
        assert!(add(2, 1));
    }
}
