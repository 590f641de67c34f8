use super::*;

const NEAR: Ipv4Addr = Ipv4Addr::LOCALHOST;
const OTHER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
/// No test takes longer, unless it fails.
const PATIENCE: Duration = Duration::from_secs(60);

/// A segment that hears by this card, and what else is allowed.
fn segment(card: u32, address: Option<Ipv4Addr>, peers: Vec<IpAddr>) -> Segment {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
    sys::tell_cards(&socket).unwrap();
    let cards = vec![Card { index: card, address: NEAR }];
    Segment {
        socket,
        cards,
        limits: Some(Limits { address, peers, registered: Mutex::default() }),
        choice: Mutex::default(),
    }
}

/// Which of two packets is heard: the first is sent from one address of the loopback, the second from another.
fn heard(segment: &Segment) -> [bool; 2] {
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
fn packets_are_heard_that_come_by_a_chosen_card_and_no_others() {
    assert_eq!(heard(&segment(loopback(), None, Vec::new())), [true, true]);
    assert_eq!(heard(&segment(u32::MAX, None, Vec::new())), [false, false]);
}

#[test]
fn peers_and_what_is_sent_to_the_chosen_address_are_heard_by_any_card() {
    assert_eq!(heard(&segment(u32::MAX, None, vec![IpAddr::V4(OTHER)])), [false, true]);
    assert_eq!(heard(&segment(u32::MAX, Some(NEAR), Vec::new())), [true, false]);
}
