use super::*;
use std::net::Ipv4Addr;
use wirefs_carrier::memory;

fn socket(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

fn networks() -> [CardNetwork; 2] {
    [("eth0", [10, 77, 0, 0]), ("eth1", [10, 78, 0, 0])].map(|(card, network)| CardNetwork {
        card: card.to_owned(),
        network: Ipv4Addr::from(network),
        prefix: 24,
    })
}

fn both() -> Vec<SocketAddr> {
    vec![socket("10.77.0.2:6440"), socket("10.78.0.2:6440")]
}

#[test]
fn connections_of_one_session_are_spread_over_the_cards() {
    let ways = Ways::default();
    let mut connections = Vec::new();
    for _ in 0..4 {
        let first = ways.order(both())[0];
        let (near, far) = memory::pair().unwrap();
        connections.push((ways.taken(first, &networks(), near), far));
    }
    let told: Vec<_> = ways.told().into_iter().map(|way| (way.card, way.connections)).collect();
    assert_eq!(told, [("eth0".to_owned(), 2), ("eth1".to_owned(), 2)]);
    drop(connections);
    assert!(ways.told().is_empty());
}

#[test]
fn after_a_connection_broke_another_card_is_taken() {
    let ways = Ways::default();
    let (near, far) = memory::pair().unwrap();
    let mut over_first = ways.taken(both()[0], &networks(), near);
    assert_eq!(ways.order(both())[0], both()[1], "where there is none yet");
    far.closer.close();
    assert!(!matches!(over_first.source.receive(), Ok(Some(_))));
    drop(over_first);
    assert_eq!(ways.order(both())[0], both()[1], "though none goes over either");
    let lost = Way { card: "eth0".to_owned(), remote: both()[0], connections: 0 };
    assert_eq!(ways.told(), [lost]);
    let (near, _far) = memory::pair().unwrap();
    let _again = ways.taken(both()[0], &networks(), near);
    assert_eq!(ways.told()[0].connections, 1);
}

#[test]
fn an_address_is_in_the_network_that_its_first_bits_name() {
    let [first, second] = networks();
    assert!(first.has(both()[0].ip()) && !first.has(both()[1].ip()) && second.has(both()[1].ip()));
    assert!(!first.has("fe80::1".parse().unwrap()));
    let all = CardNetwork { prefix: 0, ..first };
    assert!(all.has(both()[1].ip()));
}
