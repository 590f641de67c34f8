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
fn a_connection_that_was_closed_at_our_end_is_not_lost_and_one_that_was_given_up_is() {
    for (gives_up, connections_left) in [(false, 2), (true, 1)] {
        let ways = Ways::default();
        let (near, _far) = memory::pair().unwrap();
        let mut carrier = ways.taken(both()[0], &networks(), near);
        match gives_up {
            true => carrier.closer.give_up(),
            false => carrier.closer.close(),
        }
        assert!(!matches!(carrier.source.receive(), Ok(Some(_))));
        assert_eq!(ways.count(&both(), &networks()), connections_left, "before it is dropped, too");
        assert!(!ways.is_in_use(both()[0]));
    }
}

#[test]
fn ways_are_counted_by_our_cards_and_without_those_that_fail() {
    let ways = Ways::default();
    let elsewhere = socket("192.168.7.7:6440");
    let second_address = socket("10.77.0.3:6440");
    let all = [both(), vec![elsewhere, second_address]].concat();
    assert_eq!(ways.count(&all, &networks()), 2);
    assert_eq!(ways.count(&[elsewhere], &networks()), 0);
    assert!(!ways.failed(both()[1], &networks()), "nobody ever answered there");
    assert_eq!(ways.count(&all, &networks()), 1);
    assert!(ways.told().is_empty());
    let (near, far) = memory::pair().unwrap();
    let _connected = ways.taken(both()[1], &networks(), near);
    assert_eq!(ways.count(&all, &networks()), 2);
    assert!(ways.failed(both()[1], &networks()));
    drop(far);
}

#[test]
fn an_address_is_in_the_network_that_its_first_bits_name() {
    let [first, second] = networks();
    assert!(first.has(both()[0].ip()) && !first.has(both()[1].ip()) && second.has(both()[1].ip()));
    assert!(!first.has("fe80::1".parse().unwrap()));
    let all = CardNetwork { prefix: 0, ..first };
    assert!(all.has(both()[1].ip()));
}
