//! Lookups of one name that are under way at once: servers answer in any order.

use crate::alone::{Alone, got, stat};
use crate::deeds::{READ, create};
use std::time::Duration;
use wirefs_client::call::{Answer, Call, CallId, ROOT, TreeNodeId};
use wirefs_op::message::get::GotMode;
use wirefs_op::{Errno, Kind, Reply, Request};

fn found(ino: u64, kind: Kind) -> Reply {
    got(GotMode::LAST, Some(stat(ino, kind, 0)), &[])
}

fn absent() -> Reply {
    got(GotMode::LAST.and(GotMode::ABSENT), None, &[])
}

/// A lookup, and its request.
fn looks_up(alone: &mut Alone) -> (CallId, wirefs_op::Tag) {
    let call = alone.call(Call::Lookup { parent: ROOT, name: b"n" });
    (call, alone.next())
}

fn node(answer: Option<&Answer>) -> TreeNodeId {
    match answer {
        Some(Answer::Entry(entry)) => entry.node,
        other => panic!("no entry: {other:?}"),
    }
}

/// The first of two finds a thing of this kind; the second, which the server looked at before that was made, finds nothing.
fn is_made_between(kind: Kind) -> (Alone, TreeNodeId) {
    let mut alone = Alone::new();
    let (first, sooner) = looks_up(&mut alone);
    alone.now.0 += 1_000_000;
    let (second, later) = looks_up(&mut alone);
    alone.now.0 += 1_000_000;
    alone.reply(sooner, &found(7, kind)).unwrap();
    alone.now.0 += 1_000_000;
    alone.reply(later, &absent()).unwrap();
    assert!(matches!(alone.answer(second), Some(Answer::NoEntry(ttl)) if ttl.is_zero()));
    let node = node(alone.answer(first));
    (alone, node)
}

#[test]
fn a_directory_that_one_lookup_finds_and_one_beside_it_does_not_can_be_worked_in() {
    let (mut alone, dir) = is_made_between(Kind::Directory);
    let call = alone.call(create(dir, b"f"));
    assert_eq!(alone.answer(call), None, "it is the server that says whether it is there");
    assert!(alone.asked.iter().any(|(_, request)| matches!(request, Request::Put(_))), "{:?}", alone.asked);
}

#[test]
fn a_file_that_one_lookup_finds_and_one_beside_it_does_not_can_be_opened() {
    let (mut alone, file) = is_made_between(Kind::File);
    let call = alone.call(Call::Open { node: file, how: READ });
    assert!(!matches!(alone.answer(call), Some(Answer::Fail(_))), "{:?}", alone.answer(call));
}

#[test]
fn of_two_things_that_lookups_beside_each_other_find_the_one_that_is_there_is_asked_for() {
    let mut alone = Alone::new();
    let (first, sooner) = looks_up(&mut alone);
    alone.now.0 += 1_000_000;
    let (second, later) = looks_up(&mut alone);
    alone.now.0 += 1_000_000;
    alone.reply(sooner, &found(7, Kind::Directory)).unwrap();
    let made = node(alone.answer(first));
    alone.now.0 += 1_000_000;
    alone.reply(later, &found(6, Kind::Directory)).unwrap();
    assert_eq!(alone.answer(second), None);
    alone.now.0 += 1_000_000;
    let (tag, _) = alone.asked.pop_back().unwrap();
    alone.reply(tag, &found(7, Kind::Directory)).unwrap();
    assert_eq!(node(alone.answer(second)), made);
}

#[test]
fn a_name_that_is_gone_when_it_is_asked_for_after_it_was_found_is_gone() {
    let mut alone = Alone::new();
    let (first, tag) = looks_up(&mut alone);
    alone.reply(tag, &found(7, Kind::Directory)).unwrap();
    let dir = node(alone.answer(first));
    alone.now.0 += 3_600_000_000_000;
    let (_, tag) = looks_up(&mut alone);
    alone.now.0 += 1_000_000;
    alone.reply(tag, &absent()).unwrap();
    let call = alone.call(create(dir, b"f"));
    assert!(matches!(alone.answer(call), Some(Answer::Fail(_))));
}

// S-33
#[test]
fn a_directory_that_the_kernel_has_keeps_its_name_while_the_server_is_away() {
    for kind in [Kind::Directory, Kind::File] {
        let mut alone = Alone::new();
        let (call, tag) = looks_up(&mut alone);
        alone.reply(tag, &found(7, kind)).unwrap();
        let known = node(alone.answer(call));
        alone.lost();
        let waits = alone.call(Call::Lookup { parent: ROOT, name: b"n" });
        assert_eq!(alone.answer(waits), None);
        // Who knows that the server is away lets nobody wait.
        let given_up = alone.call(Call::Lookup { parent: ROOT, name: b"n" });
        let told = alone.client.unreachable(alone.now, given_up);
        let read = alone.call(Call::Getattr { node: known, handle: None });
        assert_eq!(alone.client.unreachable(alone.now, read), Answer::Fail(Errno::HostDown));
        alone.tick(Duration::from_secs(31));
        let at_once = alone.call(Call::Lookup { parent: ROOT, name: b"n" });
        let never_seen = alone.call(Call::Lookup { parent: ROOT, name: b"other" });
        let down = Some(&Answer::Fail(Errno::HostDown));
        assert_eq!(alone.answer(never_seen), down);
        for answer in [alone.answer(waits), alone.answer(at_once), Some(&told)] {
            if kind != Kind::Directory {
                assert_eq!(answer, down);
                continue;
            }
            let Some(Answer::Entry(entry)) = answer else { panic!("{answer:?}") };
            assert_eq!(
                (entry.node, entry.entry_ttl, entry.attr_ttl),
                (known, Duration::ZERO, Duration::ZERO)
            );
        }
        // The kernel lets go of it as often as it was told of it.
        let count = if kind == Kind::Directory { 4 } else { 1 };
        alone.call(Call::Forget { node: known, count });
        let gone = alone.call(Call::Lookup { parent: ROOT, name: b"n" });
        assert_eq!(alone.answer(gone), down);
    }
}
