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

/// So many cards of ours, eth0 and on, and an address of the node in the network of each.
fn cards(count: u8) -> (Vec<CardNetwork>, Vec<SocketAddr>) {
    let network = |at: u8| CardNetwork {
        card: format!("eth{at}"),
        network: Ipv4Addr::new(10, 77 + at, 0, 0),
        prefix: 24,
    };
    let address = |at: u8| socket(&format!("10.{}.0.2:6440", 77 + at));
    ((0..count).map(network).collect(), (0..count).map(address).collect())
}

fn next_of(ways: &Ways, mut addresses: Vec<SocketAddr>) -> SocketAddr {
    ways.next(&mut addresses, &networks(), false).unwrap().remote
}

fn next(ways: &Ways) -> SocketAddr {
    next_of(ways, both())
}

/// A connection over the best way to one of these, and its far end.
fn connect(ways: &Ways, mut to: Vec<SocketAddr>) -> (Carrier, Carrier) {
    let (near, far) = memory::pair().unwrap();
    (ways.next(&mut to, &networks(), false).unwrap().taken(near), far)
}

fn fail(ways: &Ways, remote: SocketAddr) -> bool {
    ways.next(&mut vec![remote], &networks(), true).unwrap().failed()
}

/// How many connections go over each card.
fn told(ways: &Ways) -> Vec<(String, usize)> {
    ways.told().into_iter().map(|way| (way.card, way.connections)).collect()
}

#[test]
fn connections_of_one_session_are_spread_over_the_cards() {
    let ways = Ways::default();
    let connections: Vec<_> = (0..4).map(|_| connect(&ways, both())).collect();
    assert_eq!(told(&ways), [("eth0".to_owned(), 2), ("eth1".to_owned(), 2)]);
    drop(connections);
    assert!(ways.told().is_empty());
}

#[test]
fn connections_that_are_made_together_take_different_cards() {
    for count in [3, 4] {
        let (networks, addresses) = cards(count);
        let ways = Ways::default();
        let (near, _far) = memory::pair().unwrap();
        let _first = ways.next(&mut addresses.clone(), &networks, false).unwrap().taken(near);
        // Nobody is done before all have chosen.
        let all_chose = std::sync::Barrier::new(usize::from(count) - 1);
        let connections: Vec<_> = std::thread::scope(|scope| {
            let dial = || {
                let choice = ways.next(&mut addresses.clone(), &networks, true).unwrap();
                all_chose.wait();
                assert!(!choice.is_beside_another);
                let (near, far) = memory::pair().unwrap();
                (choice.taken(near), far)
            };
            let dialling: Vec<_> = (1..count).map(|_| scope.spawn(dial)).collect();
            dialling.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let mut over = told(&ways);
        over.sort();
        let one_each: Vec<_> = (0..count).map(|at| (format!("eth{at}"), 1)).collect();
        assert_eq!(over, one_each);
        drop(connections);
    }
}

#[test]
fn connection_beside_another_takes_a_card_that_has_none_and_an_address_of_no_card_last() {
    let ways = Ways::default();
    let _first = connect(&ways, both());
    let (same_card, of_no_card) = (socket("10.77.0.3:6440"), socket("172.17.0.1:6440"));
    let in_turn = |addresses: [SocketAddr; 4]| {
        let mut untried = addresses.to_vec();
        std::iter::from_fn(|| {
            let choice = ways.next(&mut untried, &networks(), true)?;
            Some((choice.remote, choice.is_beside_another))
        })
        .collect::<Vec<_>>()
    };
    let expected = [(both()[1], false), (same_card, true), (both()[0], true), (of_no_card, false)];
    assert_eq!(in_turn([of_no_card, same_card, both()[0], both()[1]]), expected);
    // One that was lost comes behind all of them.
    assert!(!fail(&ways, both()[1]));
    assert_eq!(in_turn([of_no_card, same_card, both()[0], both()[1]])[3], (both()[1], false));
    // Who has no connection yet is the node itself, wherever it answers.
    assert_eq!(next_of(&ways, vec![of_no_card, both()[1]]), of_no_card);
}

#[test]
fn what_is_dialled_in_vain_does_not_count_as_a_connection() {
    let ways = Ways::default();
    let choice = ways.next(&mut both(), &networks(), false).unwrap();
    assert_eq!((choice.remote, next(&ways)), (both()[0], both()[1]));
    assert!(ways.told().is_empty(), "it is not one yet");
    drop(choice);
    assert_eq!(next(&ways), both()[0]);
    // The others are tried in turn.
    let mut untried = both();
    let tried: Vec<_> =
        std::iter::from_fn(|| Some(ways.next(&mut untried, &networks(), false)?.remote)).collect();
    assert_eq!(tried, both());
}

#[test]
fn after_a_connection_broke_another_card_is_taken() {
    let ways = Ways::default();
    let (mut over_first, far) = connect(&ways, both());
    assert_eq!(next(&ways), both()[1], "where there is none yet");
    far.closer.close();
    assert!(!matches!(over_first.source.receive(), Ok(Some(_))));
    drop(over_first);
    assert_eq!(next(&ways), both()[1], "though none goes over either");
    let lost = Way { card: "eth0".to_owned(), remote: both()[0], connections: 0 };
    assert_eq!(ways.told(), [lost]);
    let _again = connect(&ways, vec![both()[0]]);
    assert_eq!(ways.told()[0].connections, 1);
}

#[test]
fn when_the_next_data_connection_is_tried_a_way_that_failed_is_still_lost() {
    let ways = Ways::default();
    drop(connect(&ways, vec![both()[0]]));
    assert!(fail(&ways, both()[0]), "there was a connection");
    let is_lost_after = |span: Duration| {
        let used = ways.lock();
        let at = used[0].lost.unwrap();
        used[0].is_lost(at + span)
    };
    // The core hears of the failure a little after it.
    assert!(is_lost_after(DATA_RETRY_AFTER + Duration::from_secs(5)));
    assert!(!is_lost_after(LOST_LIFE));
}

#[test]
fn a_connection_that_was_closed_at_our_end_is_not_lost_and_one_that_was_given_up_is() {
    for (gives_up, connections_left) in [(false, 2), (true, 1)] {
        let ways = Ways::default();
        let (mut carrier, _far) = connect(&ways, both());
        match gives_up {
            true => carrier.closer.abort(),
            false => carrier.closer.close(),
        }
        assert!(!matches!(carrier.source.receive(), Ok(Some(_))));
        assert_eq!(ways.count(&both(), &networks()), connections_left, "before it is dropped, too");
        assert!(!ways.next(&mut vec![both()[0]], &networks(), true).unwrap().is_beside_another);
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
    assert!(!fail(&ways, both()[1]), "nobody ever answered there");
    assert_eq!(ways.count(&all, &networks()), 1);
    assert!(ways.told().is_empty());
    let _connected = connect(&ways, vec![both()[1]]);
    assert_eq!(ways.count(&all, &networks()), 2);
    assert!(fail(&ways, both()[1]));
}

#[test]
fn an_address_is_in_the_network_that_its_first_bits_name() {
    let [first, second] = networks();
    assert!(first.has(both()[0].ip()) && !first.has(both()[1].ip()) && second.has(both()[1].ip()));
    assert!(!first.has("fe80::1".parse().unwrap()));
    let all = CardNetwork { prefix: 0, ..first };
    assert!(all.has(both()[1].ip()));
}
