//! Exclusive sessions, at one server and with co-located servers.

use super::super::{ServeOptions, ServedPlace, Server};
use super::client::*;
use super::script::Script;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use wirefs_op::message::number::Tnumber;
use wirefs_op::message::version::{BootId, FEATURE_ALONE, FEATURE_LEASES, FEATURE_LEDGER, Tversion};
use wirefs_op::{Errno, NOTAG, Reply, Request, Tag};

const ALL: u64 = FEATURE_ALONE | FEATURE_LEASES | FEATURE_LEDGER;

/// Connects, attaches, and becomes the exclusive session.
fn exclusive(server: &Server, id: u8) -> Client {
    let client = Client::coming(server, id, ALL);
    client.enters();
    assert!(client.receive_alone().alone);
    client
}

/// The identity of a directory that no other test serves.
fn place() -> ServedPlace {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let inode = NEXT.fetch_add(1, Ordering::Relaxed);
    ServedPlace { device: u64::MAX - u64::from(std::process::id()), inode }
}

/// A further server of that directory.
fn serving(place: ServedPlace) -> (Server, Arc<Script>) {
    server_with(ServeOptions { place: Some(place), ..ServeOptions::new(BootId(5)) })
}

#[test]
fn new_client_attaches_once_the_exclusive_session_yields() {
    let (server, script) = server();
    let first = exclusive(&server, 1);
    let second = Client::coming(&server, 2, ALL);
    let told = first.receive_alone();
    assert!(!told.alone && second.has_nothing());
    assert_eq!(script.state(|state| state.attached.len()), 1);
    first.yield_exclusivity(&told);
    second.enters();
    assert!(second.learn(wirefs_op::Tag(1), b"f"));
}

#[test]
fn new_client_attaches_once_the_exclusive_session_ends() {
    let (server, _script) = server();
    let first = exclusive(&server, 1);
    let second = Client::coming(&server, 2, FEATURE_LEASES);
    let told = first.receive_alone();
    first.yield_exclusivity(&told);
    drop(first);
    second.enters();
}

#[test]
fn waiting_client_that_disconnects_leaves_no_state() {
    let (server, _script) = server();
    let first = exclusive(&server, 1);
    let second = Client::coming(&server, 2, 0);
    let told = first.receive_alone();
    drop(second);
    first.yield_exclusivity(&told);
    assert!(first.receive_alone().alone);
    await_status(&server, |status| status.clients.len() == 1);
}

#[test]
fn secondary_server_waits_until_the_exclusive_session_yields() {
    let place = place();
    let (here, _script) = serving(place);
    let first = exclusive(&here, 1);
    let (there, script) = serving(place);
    let second = Client::coming(&there, 2, ALL);
    let told = first.receive_alone();
    assert!(!told.alone && second.has_nothing() && script.state(|state| state.attached.is_empty()));
    first.yield_exclusivity(&told);
    second.enters();
    assert!(second.has_nothing());
}

#[test]
fn end_of_a_secondary_server_allows_an_exclusive_session() {
    let place = place();
    let (here, _script) = serving(place);
    let first = Client::coming(&here, 1, ALL);
    first.enters();
    assert!(first.receive_alone().alone);
    let (there, _there) = serving(place);
    let told = first.receive_alone();
    first.yield_exclusivity(&told);
    let second = Client::coming(&there, 2, 0);
    second.enters();
    there.stop();
    assert!(first.receive_alone().alone);
}

#[test]
fn secondary_server_takes_over_from_an_ended_primary() {
    let place = place();
    let (here, _script) = serving(place);
    let first = exclusive(&here, 1);
    let (there, _there) = serving(place);
    let second = Client::coming(&there, 2, ALL);
    assert!(!first.receive_alone().alone && second.has_nothing());
    drop(first);
    here.stop();
    second.enters();
    let (third, _third) = serving(place);
    Client::coming(&third, 3, ALL).enters();
}

#[test]
fn session_that_moves_to_another_server_does_not_wait_for_itself() {
    let place = place();
    let (here, _script) = serving(place);
    let old = exclusive(&here, 1);
    let (there, _there) = serving(place);
    assert!(!old.receive_alone().alone);
    // The old connection is open, but its client is gone.
    let new = Client::coming(&there, 1, ALL);
    new.enters();
}

#[test]
fn session_that_moves_to_another_server_keeps_its_ledger() {
    let place = place();
    let dir = std::env::temp_dir().join(format!("wirefs-moved-{}-{}", std::process::id(), place.inode));
    std::fs::create_dir_all(&dir).unwrap();
    let options =
        || ServeOptions { place: Some(place), ledger: Some(dir.clone()), ..ServeOptions::new(BootId(5)) };
    let (here, _script) = server_with(options());
    // It is not exclusive, and the other server restores its ledger all the same.
    let old = Client::coming(&here, 1, FEATURE_LEDGER);
    old.enters();
    old.send(NOTAG, Request::Number(Tnumber { number: 1, answered: 1 }));
    assert!(matches!(old.call(Tag(1), put(b"f", 0, 3)), Reply::Put(_)));
    let (there, _there) = server_with(options());
    let new = Client::connect(&there);
    let reply = hello(&new, FEATURE_LEDGER);
    assert!(matches!(&reply, Reply::Version(answer) if answer.number == 2), "{reply:?}");
    old.until_closed();
    std::fs::remove_dir_all(&dir).unwrap();
}

/// Negotiates these features for session 1.
fn hello(client: &Client, features: u64) -> Reply {
    let Request::Version(hello) = version(1) else { unreachable!("version() is a Tversion") };
    client.call(NOTAG, Request::Version(Tversion { features, ..hello }))
}

// S-182
#[test]
fn another_key_at_a_co_located_server_does_not_end_the_session_of_its_owner() {
    let place = place();
    let dir = std::env::temp_dir().join(format!("wirefs-owned-{}-{}", std::process::id(), place.inode));
    std::fs::create_dir_all(&dir).unwrap();
    let options =
        || ServeOptions { place: Some(place), ledger: Some(dir.clone()), ..ServeOptions::new(BootId(5)) };
    let ((here, _script), owner_key) = (server_with(options()), [1; 32]);
    let owner = Client::with_key(&here, owner_key);
    assert!(matches!(hello(&owner, FEATURE_LEDGER), Reply::Version(_)));
    owner.send(Tag(0), attach(b""));
    owner.enters();
    owner.send(NOTAG, Request::Number(Tnumber { number: 1, answered: 1 }));
    assert!(matches!(owner.call(Tag(1), put(b"f", 0, 3)), Reply::Put(_)));
    let (there, _script) = server_with(options());
    for stranger in [Client::with_key(&there, [2; 32]), Client::connect(&there)] {
        let reply = hello(&stranger, FEATURE_LEDGER);
        let Reply::Error(error) = &reply else { panic!("{reply:?}") };
        assert_eq!(error.errno, Errno::NotPermitted);
        stranger.until_closed();
    }
    assert!(matches!(owner.call(Tag(2), stat(b"f")), Reply::Get(_)), "its owner notices nothing");
    let moved = Client::with_key(&there, owner_key);
    let reply = hello(&moved, FEATURE_LEDGER);
    assert!(matches!(&reply, Reply::Version(answer) if answer.number == 2), "{reply:?}");
    owner.until_closed();
    std::fs::remove_dir_all(&dir).unwrap();
}

// S-182
#[test]
fn another_key_that_waits_for_a_co_located_server_does_not_end_the_session_of_its_owner() {
    let place = place();
    let (here, _script) = serving(place);
    let owner = Client::with_key(&here, [1; 32]);
    assert!(matches!(hello(&owner, ALL), Reply::Version(_)));
    owner.send(Tag(0), attach(b""));
    owner.enters();
    assert!(owner.receive_alone().alone);
    let (there, _there) = serving(place);
    let told = owner.receive_alone();
    let stranger = Client::with_key(&there, [2; 32]);
    assert!(matches!(hello(&stranger, ALL), Reply::Version(_)));
    stranger.send(Tag(0), attach(b""));
    owner.yield_exclusivity(&told);
    // It is admitted as another session, after the primary has received that it waits.
    stranger.enters();
    assert!(matches!(owner.call(Tag(1), stat(b"f")), Reply::Get(_)));
}

#[test]
fn no_session_is_exclusive_at_a_co_located_server() {
    let place = place();
    let ((here, _), (there, _there)) = (serving(place), serving(place));
    // The other server admits clients once this one knows of it.
    let second = Client::coming(&there, 2, ALL);
    second.enters();
    let first = Client::coming(&here, 1, ALL);
    first.enters();
    assert!(first.has_nothing() && second.has_nothing());
}

#[test]
fn servers_of_other_directories_are_independent() {
    let ((here, _), (there, _there)) = (serving(place()), serving(place()));
    let (first, second) = (exclusive(&here, 1), exclusive(&there, 2));
    assert!(first.has_nothing() && second.has_nothing());
}
