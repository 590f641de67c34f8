use super::*;
use std::io::Read;
use std::net::TcpListener;

/// Both ends of a connection.
fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (near, listener.accept().unwrap().0)
}

fn is_closed(far: &TcpStream) -> bool {
    far.set_nonblocking(true).unwrap();
    matches!((&*far).read(&mut [0]), Ok(0))
}

// S-180
#[test]
fn full_table_closes_the_oldest_of_the_greediest_host() {
    let table = PendingTable::new(4);
    let pairs: Vec<_> = (0..4).map(|_| pair()).collect();
    let hosts = ["a", "b", "b", "c"];
    let enter = |(host, (_, far)): (&str, &(TcpStream, TcpStream))| table.enter(host.to_owned(), Some(far));
    let mut slots: Vec<Slot> = hosts.into_iter().zip(&pairs).map(enter).collect();
    slots.push(table.enter("d".into(), None));
    let closed: Vec<bool> = pairs.iter().map(|(near, _)| is_closed(near)).collect();
    assert_eq!((closed, table.evicted()), (vec![false, true, false, false], 1));
    // Now each has one: the oldest goes.
    slots.push(table.enter("b".into(), None));
    let closed: Vec<bool> = pairs.iter().map(|(near, _)| is_closed(near)).collect();
    assert_eq!((closed, table.evicted()), (vec![true, true, false, false], 2));
}

// S-180
#[test]
fn flood_of_one_host_takes_no_place_of_another() {
    let table = PendingTable::new(8);
    let (near, far) = pair();
    let honest = table.enter("honest".into(), Some(&far));
    let flood: Vec<_> = (0..100).map(|_| pair()).collect();
    let slots: Vec<Slot> = flood.iter().map(|(_, far)| table.enter("flood".into(), Some(far))).collect();
    assert!(!is_closed(&near));
    assert_eq!(table.evicted(), 100 - 7);
    assert_eq!(table.state().entries.len(), 8);
    drop((honest, slots));
    assert_eq!(table.state().entries.len(), 0);
}
