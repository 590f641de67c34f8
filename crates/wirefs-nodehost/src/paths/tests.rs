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

/// A number of cards named from eth0 on, and an address of the node in the network of each.
fn cards(count: u8) -> (Vec<CardNetwork>, Vec<SocketAddr>) {
    let network = |at: u8| CardNetwork {
        card: format!("eth{at}"),
        network: Ipv4Addr::new(10, 77 + at, 0, 0),
        prefix: 24,
    };
    let address = |at: u8| socket(&format!("10.{}.0.2:6440", 77 + at));
    ((0..count).map(network).collect(), (0..count).map(address).collect())
}

fn next_of(paths: &TlsPaths, mut addresses: Vec<SocketAddr>) -> SocketAddr {
    paths.next(&mut addresses, &networks(), false).unwrap().remote
}

fn next(paths: &TlsPaths) -> SocketAddr {
    next_of(paths, both())
}

/// A connection over the best path to one of these addresses, and its far end.
fn connect(paths: &TlsPaths, mut to: Vec<SocketAddr>) -> (Carrier, Carrier) {
    let (near, far) = memory::pair().unwrap();
    (paths.next(&mut to, &networks(), false).unwrap().established(near), far)
}

fn fail(paths: &TlsPaths, remote: SocketAddr) -> bool {
    paths.next(&mut vec![remote], &networks(), true).unwrap().failed()
}

/// The number of connections over each card.
fn connections_by_card(paths: &TlsPaths) -> Vec<(String, usize)> {
    paths.report().into_iter().map(|way| (way.card, way.connections)).collect()
}

#[test]
fn connections_of_one_session_are_spread_over_the_cards() {
    let paths = TlsPaths::default();
    let connections: Vec<_> = (0..4).map(|_| connect(&paths, both())).collect();
    assert_eq!(connections_by_card(&paths), [("eth0".to_owned(), 2), ("eth1".to_owned(), 2)]);
    drop(connections);
    assert!(paths.report().is_empty());
}

#[test]
fn concurrent_connections_take_different_cards() {
    for count in [3, 4] {
        let (networks, addresses) = cards(count);
        let paths = TlsPaths::default();
        let (near, _far) = memory::pair().unwrap();
        let _first = paths.next(&mut addresses.clone(), &networks, false).unwrap().established(near);
        // No dial ends before all have chosen.
        let all_chose = std::sync::Barrier::new(usize::from(count) - 1);
        let connections: Vec<_> = std::thread::scope(|scope| {
            let dial = || {
                let choice = paths.next(&mut addresses.clone(), &networks, true).unwrap();
                all_chose.wait();
                assert!(!choice.has_other_connections);
                let (near, far) = memory::pair().unwrap();
                (choice.established(near), far)
            };
            let dialling: Vec<_> = (1..count).map(|_| scope.spawn(dial)).collect();
            dialling.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let mut over = connections_by_card(&paths);
        over.sort();
        let one_each: Vec<_> = (0..count).map(|at| (format!("eth{at}"), 1)).collect();
        assert_eq!(over, one_each);
        drop(connections);
    }
}

#[test]
fn additional_connection_prefers_an_unused_card_and_takes_an_address_of_no_card_last() {
    let paths = TlsPaths::default();
    let _first = connect(&paths, both());
    let (same_card, of_no_card) = (socket("10.77.0.3:6440"), socket("172.17.0.1:6440"));
    let in_turn = |addresses: [SocketAddr; 4]| {
        let mut untried = addresses.to_vec();
        std::iter::from_fn(|| {
            let choice = paths.next(&mut untried, &networks(), true)?;
            Some((choice.remote, choice.has_other_connections))
        })
        .collect::<Vec<_>>()
    };
    let expected = [(both()[1], false), (same_card, true), (both()[0], true), (of_no_card, false)];
    assert_eq!(in_turn([of_no_card, same_card, both()[0], both()[1]]), expected);
    // A failed path comes last.
    assert!(!fail(&paths, both()[1]));
    assert_eq!(in_turn([of_no_card, same_card, both()[0], both()[1]])[3], (both()[1], false));
    // The first connection may use any address that answers.
    assert_eq!(next_of(&paths, vec![of_no_card, both()[1]]), of_no_card);
}

#[test]
fn failed_dial_does_not_count_as_a_connection() {
    let paths = TlsPaths::default();
    let choice = paths.next(&mut both(), &networks(), false).unwrap();
    assert_eq!((choice.remote, next(&paths)), (both()[0], both()[1]));
    assert!(paths.report().is_empty(), "not yet connected");
    drop(choice);
    assert_eq!(next(&paths), both()[0]);
    // The other paths are tried in turn.
    let mut untried = both();
    let tried: Vec<_> =
        std::iter::from_fn(|| Some(paths.next(&mut untried, &networks(), false)?.remote)).collect();
    assert_eq!(tried, both());
}

#[test]
fn connection_after_a_break_takes_another_card() {
    let paths = TlsPaths::default();
    let (mut over_first, far) = connect(&paths, both());
    assert_eq!(next(&paths), both()[1], "the unused card");
    far.closer.close();
    assert!(!matches!(over_first.source.receive(), Ok(Some(_))));
    drop(over_first);
    assert_eq!(next(&paths), both()[1], "though neither card is in use");
    let lost = TlsPath { card: "eth0".to_owned(), remote: both()[0], connections: 0 };
    assert_eq!(paths.report(), [lost]);
    let _again = connect(&paths, vec![both()[0]]);
    assert_eq!(paths.report()[0].connections, 1);
}

#[test]
fn failed_path_comes_last_when_the_next_data_connection_is_tried() {
    let paths = TlsPaths::default();
    drop(connect(&paths, vec![both()[0]]));
    assert!(fail(&paths, both()[0]), "there was a connection");
    let is_lost_after = |span: Duration| {
        let used = paths.lock();
        let at = used[0].lost.unwrap();
        used[0].is_lost(at + span)
    };
    // The core learns of the failure a little later.
    assert!(is_lost_after(DATA_RETRY_AFTER + Duration::from_secs(5)));
    assert!(!is_lost_after(LOST_LIFE));
}

#[test]
fn closed_connection_is_no_failure_and_an_aborted_one_is() {
    for (gives_up, connections_left) in [(false, 2), (true, 1)] {
        let paths = TlsPaths::default();
        let (mut carrier, _far) = connect(&paths, both());
        match gives_up {
            true => carrier.closer.abort(),
            false => carrier.closer.close(),
        }
        assert!(!matches!(carrier.source.receive(), Ok(Some(_))));
        assert_eq!(paths.count(&both(), &networks()), connections_left, "before it is dropped, too");
        assert!(!paths.next(&mut vec![both()[0]], &networks(), true).unwrap().has_other_connections);
    }
}

#[test]
fn path_count_is_that_of_our_cards_without_failed_paths() {
    let paths = TlsPaths::default();
    let elsewhere = socket("192.168.7.7:6440");
    let second_address = socket("10.77.0.3:6440");
    let all = [both(), vec![elsewhere, second_address]].concat();
    assert_eq!(paths.count(&all, &networks()), 2);
    assert_eq!(paths.count(&[elsewhere], &networks()), 0);
    assert!(!fail(&paths, both()[1]), "it has never answered");
    assert_eq!(paths.count(&all, &networks()), 1);
    assert!(paths.report().is_empty());
    let _connected = connect(&paths, vec![both()[1]]);
    assert_eq!(paths.count(&all, &networks()), 2);
    assert!(fail(&paths, both()[1]));
}

#[test]
fn address_is_in_the_network_of_its_prefix() {
    let [first, second] = networks();
    assert!(first.has(both()[0].ip()) && !first.has(both()[1].ip()) && second.has(both()[1].ip()));
    assert!(!first.has("fe80::1".parse().unwrap()));
    let all = CardNetwork { prefix: 0, ..first };
    assert!(all.has(both()[1].ip()));
}
