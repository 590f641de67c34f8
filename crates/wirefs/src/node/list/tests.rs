use super::*;

/// Returns a node with connections over TLS: our card, the address, the number of connections.
fn reached_by(ways: &[(&str, &str, usize)]) -> Listed {
    let ways = ways.iter().map(|(card, remote, connections)| CardConnections {
        card: (*card).to_owned(),
        remote: (*remote).to_owned(),
        connections: *connections,
    });
    Listed {
        name: "far".to_owned(),
        state: "alive".to_owned(),
        state_for_s: 1.0,
        own: false,
        name_taken: false,
        key: String::new(),
        incarnation: 1,
        addresses: Vec::new(),
        port: 6440,
        exports: Vec::new(),
        load: 0.0,
        free_bytes: 0,
        all_bytes: 0,
        cards: Vec::new(),
        via: Some("tcp+tls".to_owned()),
        paths: Vec::new(),
        ways: ways.collect(),
        no_ether: None,
        registry: None,
        turns: None,
    }
}

#[test]
fn cards_are_counted_instead_of_addresses() {
    let (near, near_too) = (("eth0", "10.77.0.2:6440", 1), ("eth0", "10.77.0.3:6440", 1));
    let (other, broken) = (("eth1", "10.78.0.2:6440", 2), ("eth1", "10.78.0.2:6440", 0));
    assert_eq!(reached_by(&[near]).via(), "tcp+tls");
    assert_eq!(reached_by(&[near, near_too]).via(), "tcp+tls");
    assert_eq!(reached_by(&[near, other]).via(), "tcp+tls 2/2");
    assert_eq!(reached_by(&[near, near_too, broken]).via(), "tcp+tls 1/2");
    let routed = [("", "192.168.7.7:6440", 1), ("", "192.168.8.7:6440", 1)];
    assert_eq!(reached_by(&routed).via(), "tcp+tls 2/2");
}
