//! Who is alone, at one server and beside others of the same directory.

use super::super::{ServeOptions, ServedPlace, Server};
use super::client::*;
use super::script::Script;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use wirefs_op::message::number::Tnumber;
use wirefs_op::message::version::{BootId, FEATURE_ALONE, FEATURE_LEASES, FEATURE_LEDGER, Tversion};
use wirefs_op::{NOTAG, Reply, Request, Tag};

const ALL: u64 = FEATURE_ALONE | FEATURE_LEASES | FEATURE_LEDGER;

/// Comes, is let in, and is told that it is alone.
fn lone(server: &Server, id: u8) -> Client {
    let client = Client::coming(server, id, ALL);
    client.enters();
    assert!(client.receive_alone().alone);
    client
}

/// A directory that no other test serves.
fn place() -> ServedPlace {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let inode = NEXT.fetch_add(1, Ordering::Relaxed);
    ServedPlace { device: u64::MAX - u64::from(std::process::id()), inode }
}

/// Another server of that directory.
fn serving(place: ServedPlace) -> (Server, Arc<Script>) {
    server_with(ServeOptions { place: Some(place), ..ServeOptions::new(BootId(5)) })
}

#[test]
fn who_comes_is_let_in_by_whichever_thread_hears_that_the_other_has_given_way() {
    let (server, script) = server();
    let first = lone(&server, 1);
    let second = Client::coming(&server, 2, ALL);
    let told = first.receive_alone();
    assert!(!told.alone && second.has_nothing());
    assert_eq!(script.state(|state| state.attached.len()), 1);
    first.give_way(&told);
    second.enters();
    assert!(second.learn(wirefs_op::Tag(1), b"f"));
}

#[test]
fn who_comes_is_let_in_when_the_other_goes() {
    let (server, _script) = server();
    let first = lone(&server, 1);
    let second = Client::coming(&server, 2, FEATURE_LEASES);
    let told = first.receive_alone();
    first.give_way(&told);
    drop(first);
    second.enters();
}

#[test]
fn who_waits_and_goes_leaves_nothing_behind() {
    let (server, _script) = server();
    let first = lone(&server, 1);
    let second = Client::coming(&server, 2, 0);
    let told = first.receive_alone();
    drop(second);
    first.give_way(&told);
    assert!(first.receive_alone().alone);
    await_status(&server, |status| status.clients.len() == 1);
}

#[test]
fn server_that_comes_later_waits_until_the_lone_session_has_given_way() {
    let place = place();
    let (here, _script) = serving(place);
    let first = lone(&here, 1);
    let (there, script) = serving(place);
    let second = Client::coming(&there, 2, ALL);
    let told = first.receive_alone();
    assert!(!told.alone && second.has_nothing() && script.state(|state| state.attached.is_empty()));
    first.give_way(&told);
    second.enters();
    assert!(second.has_nothing());
}

#[test]
fn neighbour_that_has_ended_in_order_leaves_the_other_alone() {
    let place = place();
    let (here, _script) = serving(place);
    let first = Client::coming(&here, 1, ALL);
    first.enters();
    assert!(first.receive_alone().alone);
    let (there, _there) = serving(place);
    let told = first.receive_alone();
    first.give_way(&told);
    let second = Client::coming(&there, 2, 0);
    second.enters();
    there.stop();
    assert!(first.receive_alone().alone);
}

#[test]
fn server_goes_on_when_the_first_one_is_gone() {
    let place = place();
    let (here, _script) = serving(place);
    let first = lone(&here, 1);
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
fn session_that_comes_by_another_server_does_not_wait_for_itself() {
    let place = place();
    let (here, _script) = serving(place);
    let old = lone(&here, 1);
    let (there, _there) = serving(place);
    assert!(!old.receive_alone().alone);
    // The old connection stands, but nobody is at its other end any more.
    let new = Client::coming(&there, 1, ALL);
    new.enters();
}

#[test]
fn session_that_comes_by_another_server_finds_what_was_noted_of_it() {
    let place = place();
    let dir = std::env::temp_dir().join(format!("wirefs-moved-{}-{}", std::process::id(), place.inode));
    std::fs::create_dir_all(&dir).unwrap();
    let options =
        || ServeOptions { place: Some(place), ledger: Some(dir.clone()), ..ServeOptions::new(BootId(5)) };
    let (here, _script) = server_with(options());
    // It is not alone: the other has what was noted all the same.
    let old = Client::coming(&here, 1, FEATURE_LEDGER);
    old.enters();
    old.send(NOTAG, Request::Number(Tnumber { number: 1, answered: 1 }));
    assert!(matches!(old.call(Tag(1), put(b"f", 0, 3)), Reply::Put(_)));
    let (there, _there) = server_with(options());
    let new = Client::connect(&there);
    let Request::Version(hello) = version(1) else { unreachable!("version() is a Tversion") };
    let reply = new.call(NOTAG, Request::Version(Tversion { features: FEATURE_LEDGER, ..hello }));
    assert!(matches!(&reply, Reply::Version(answer) if answer.number == 2), "{reply:?}");
    old.until_closed();
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn nobody_is_alone_beside_another_server_of_the_same_directory() {
    let place = place();
    let ((here, _), (there, _there)) = (serving(place), serving(place));
    let (first, second) = (Client::coming(&here, 1, ALL), Client::coming(&there, 2, ALL));
    first.enters();
    second.enters();
    assert!(first.has_nothing() && second.has_nothing());
}

#[test]
fn servers_of_other_directories_do_not_know_of_each_other() {
    let ((here, _), (there, _there)) = (serving(place()), serving(place()));
    let (first, second) = (lone(&here, 1), lone(&there, 2));
    assert!(first.has_nothing() && second.has_nothing());
}
