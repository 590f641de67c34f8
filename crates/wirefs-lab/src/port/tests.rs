use super::*;
use std::collections::BTreeSet;
use std::net::TcpListener;

#[test]
fn a_server_listens_at_a_reserved_port_again_and_again() {
    let port = ReservedPort::unused().unwrap();
    let address = (Ipv4Addr::LOCALHOST, port.number());
    for _ in 0..2 {
        let server = TcpListener::bind(address).unwrap();
        let client = TcpStream::connect(address).unwrap();
        drop((server, client));
    }
}

#[test]
fn a_reserved_port_is_given_to_nobody_else() {
    // Ports of the system are few enough that a free one would be given out in so many draws.
    const DRAWS: usize = 40_000;
    let port = ReservedPort::unused().unwrap();
    let mut drawn = BTreeSet::new();
    for _ in 0..DRAWS {
        let other = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        drawn.insert(other.local_addr().unwrap().port());
    }
    assert!(!drawn.contains(&port.number()), "{} of {} ports", port.number(), drawn.len());
}
