use super::*;

const NEAR: Ipv4Addr = Ipv4Addr::LOCALHOST;
const OTHER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
/// Longer than any successful test.
const PATIENCE: Duration = Duration::from_secs(60);

/// A segment with one card, and a filter.
fn segment(card: u32, address: Option<Ipv4Addr>, peers: Vec<IpAddr>) -> Segment {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
    sys::report_cards(&socket).unwrap();
    let cards = vec![Card { index: card, address: NEAR }];
    Segment {
        socket,
        cards,
        filter: Some(PacketFilter { address, peers, registered: Mutex::default() }),
        choice: Mutex::default(),
    }
}

/// Whether each of two packets is accepted, sent from two addresses of the loopback.
fn accepted(segment: &Segment) -> [bool; 2] {
    let port = segment.port().unwrap();
    [NEAR, OTHER].map(|from| {
        let sender = UdpSocket::bind((from, 0)).unwrap();
        sender.send_to(b"packet", (from, port)).unwrap();
        let mut buffer = [0; 16];
        let heard = segment.receive(&mut buffer, PATIENCE);
        assert!(heard.is_none_or(|heard| heard == (sender.local_addr().unwrap(), 6)));
        heard.is_some()
    })
}

fn loopback() -> u32 {
    name_to_index(UdpSocket::bind((NEAR, 0)).unwrap(), LOOPBACK).unwrap()
}

#[test]
fn packets_of_a_chosen_card_only_are_accepted() {
    assert_eq!(accepted(&segment(loopback(), None, Vec::new())), [true, true]);
    assert_eq!(accepted(&segment(u32::MAX, None, Vec::new())), [false, false]);
}

#[test]
fn packets_of_peers_and_to_the_chosen_address_are_accepted_on_any_card() {
    assert_eq!(accepted(&segment(u32::MAX, None, vec![IpAddr::V4(OTHER)])), [false, true]);
    assert_eq!(accepted(&segment(u32::MAX, Some(NEAR), Vec::new())), [true, false]);
}
