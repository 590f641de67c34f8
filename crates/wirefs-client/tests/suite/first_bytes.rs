//! An open waits for the first bytes of its file and for no more; the rest is asked for right behind them.

use crate::alone::{Alone, got, stat};
use crate::config;
use crate::deeds::{READ, data, handle};
use crate::world::{STEADY, World};
use std::time::Duration;
use wirefs_client::call::{Answer, Call, CallId, Handle, ROOT, TreeNodeId};
use wirefs_op::limits::DATA_BYTES_MAX;
use wirefs_op::message::error::Rerror;
use wirefs_op::message::get::{GetMode, GotMode, Tget};
use wirefs_op::message::recall::RecallItem;
use wirefs_op::message::target::Fd;
use wirefs_op::{Errno, Kind, Reply, Request, Stat, Tag};

const BLOCK: u64 = DATA_BYTES_MAX as u64;
const SIZE: u64 = 100_000;

fn leased(ino: u64, version: u64, size: u64) -> Stat {
    Stat { version, leased: true, ..stat(ino, Kind::File, size) }
}

/// A file of which the attributes are known, and nothing else.
fn file(alone: &mut Alone, ino: u64, size: u64) -> TreeNodeId {
    let name = format!("file{ino}");
    let call = alone.call(Call::Lookup { parent: ROOT, name: name.as_bytes() });
    let tag = alone.next();
    let mode = GotMode::LAST.and(GotMode::MORE);
    alone.reply(tag, &got(mode, Some(leased(ino, 5, size)), b"")).unwrap();
    let Some(Answer::Entry(entry)) = alone.answer(call) else { panic!("it is there") };
    entry.node
}

fn asked(alone: &mut Alone) -> Vec<(Tag, Tget)> {
    let root = stat(1, Kind::Directory, 0).id;
    let get = |(tag, request)| match request {
        // The listing and the whole files beside it are those that nobody waits for.
        Request::Get(get) if get.target.id == Some(root) || get.mode.has(GetMode::WHOLE) => None,
        Request::Get(get) => Some((tag, get)),
        other => panic!("{other:?}"),
    };
    alone.asked.drain(..).filter_map(get).collect()
}

/// Opens it; tells what is asked for.
fn open(alone: &mut Alone, node: TreeNodeId) -> (CallId, Vec<(Tag, Tget)>) {
    let call = alone.call(Call::Open { node, how: READ });
    (call, asked(alone))
}

fn stretches(asked: &[(Tag, Tget)]) -> Vec<(u64, u64)> {
    asked.iter().map(|(_, get)| (get.offset, get.offset + u64::from(get.count))).collect()
}

fn byte(at: u64) -> u8 {
    (at / 251) as u8
}

/// All that a request asked for, of a file of this size.
fn answer(alone: &mut Alone, (tag, get): &(Tag, Tget), stat: Stat) {
    let end = stat.size.min(get.offset + u64::from(get.count));
    let bytes: Vec<u8> = (get.offset..end).map(byte).collect();
    let mode = GotMode::DATA.and(GotMode::LAST).and_if(end < stat.size, GotMode::MORE);
    let mut reply = got(mode, Some(stat), &bytes);
    if let Reply::Get(got) = &mut reply
        && get.mode.has(GetMode::MORE)
    {
        got.fd = Fd(3);
    }
    alone.reply(*tag, &reply).unwrap();
}

fn opened(alone: &Alone, call: CallId) -> Option<Handle> {
    alone.answer(call).map(|answer| handle(answer.clone()))
}

fn read(alone: &mut Alone, node: TreeNodeId, handle: Handle, offset: u64, count: u32) -> CallId {
    alone.call(Call::Read { node, handle, offset, count })
}

#[track_caller]
fn brought(alone: &Alone, call: CallId, offset: u64, end: u64) {
    let bytes = data(alone.answer(call).expect("it is answered").clone());
    assert!(bytes.iter().copied().eq((offset..end).map(byte)), "other bytes at {offset}");
}

/// S-35
#[test]
fn open_is_answered_with_the_first_bytes_and_reads_wait_for_their_own_alone() {
    let mut alone = Alone::leased();
    let node = file(&mut alone, 9, SIZE);
    let (call, gets) = open(&mut alone, node);
    assert_eq!(stretches(&gets), [(0, 8 << 10), (8 << 10, 16 << 10), (16 << 10, BLOCK)]);
    answer(&mut alone, &gets[0], leased(9, 5, SIZE));
    let handle = opened(&alone, call).expect("nothing else is waited for");
    let first = read(&mut alone, node, handle, 0, 8 << 10);
    brought(&alone, first, 0, 8 << 10);
    let second = read(&mut alone, node, handle, 0, 16 << 10);
    let third = read(&mut alone, node, handle, 0, BLOCK as u32);
    assert_eq!((alone.answer(second), alone.answer(third)), (None, None));
    answer(&mut alone, &gets[1], leased(9, 5, SIZE));
    brought(&alone, second, 0, 16 << 10);
    assert_eq!(alone.answer(third), None);
    answer(&mut alone, &gets[2], leased(9, 5, SIZE));
    brought(&alone, third, 0, SIZE);
    assert_eq!(asked(&mut alone), [], "nothing is asked for twice");
}

#[test]
fn what_follows_an_opening_may_come_before_it() {
    let mut alone = Alone::leased();
    let node = file(&mut alone, 9, SIZE);
    let (call, gets) = open(&mut alone, node);
    for get in gets.iter().rev() {
        assert_eq!(opened(&alone, call), None);
        answer(&mut alone, get, leased(9, 5, SIZE));
    }
    let handle = opened(&alone, call).unwrap();
    let all = read(&mut alone, node, handle, 0, BLOCK as u32);
    brought(&alone, all, 0, SIZE);
    assert_eq!(asked(&mut alone), []);
}

/// S-35
#[test]
fn small_file_and_one_over_a_fast_line_come_with_one_request() {
    let mut alone = Alone::leased();
    let small = file(&mut alone, 8, 16 << 10);
    assert_eq!(stretches(&open(&mut alone, small).1), [(0, BLOCK)]);
    let first = file(&mut alone, 9, BLOCK);
    let (_, gets) = open(&mut alone, first);
    assert_eq!(gets.len(), 3, "nothing was measured yet");
    for get in &gets {
        answer(&mut alone, get, leased(9, 5, BLOCK));
    }
    // Each answer takes 1 ms here.
    let second = file(&mut alone, 10, BLOCK);
    assert_eq!(stretches(&open(&mut alone, second).1), [(0, BLOCK)]);
    // What was measured long ago says nothing of the line as it is.
    alone.now = alone.now + Duration::from_secs(11);
    let third = file(&mut alone, 11, BLOCK);
    assert_eq!(open(&mut alone, third).1.len(), 3);
}

/// S-35
#[test]
fn file_that_is_opened_again_while_it_comes_is_not_asked_for_again() {
    let mut alone = Alone::leased();
    let node = file(&mut alone, 9, SIZE);
    let (call, gets) = open(&mut alone, node);
    answer(&mut alone, &gets[0], leased(9, 5, SIZE));
    let first = opened(&alone, call).unwrap();
    alone.call(Call::Release { node, handle: first, flock_owner: None });
    alone.asked.clear();
    let (call, again) = open(&mut alone, node);
    assert_eq!(again, []);
    let handle = opened(&alone, call).unwrap();
    let all = read(&mut alone, node, handle, 0, BLOCK as u32);
    assert_eq!(alone.answer(all), None);
    answer(&mut alone, &gets[1], leased(9, 5, SIZE));
    answer(&mut alone, &gets[2], leased(9, 5, SIZE));
    brought(&alone, all, 0, SIZE);
}

#[test]
fn what_cannot_be_had_by_its_name_any_more_is_asked_for_by_what_was_opened() {
    let mut alone = Alone::leased();
    let node = file(&mut alone, 9, SIZE);
    let (call, gets) = open(&mut alone, node);
    answer(&mut alone, &gets[0], leased(9, 5, SIZE));
    let handle = opened(&alone, call).unwrap();
    let all = read(&mut alone, node, handle, 0, BLOCK as u32);
    // A program at the server has put another file in its place.
    for (tag, _) in &gets[1..] {
        alone.reply(*tag, &Reply::Error(Rerror::from(Errno::Stale))).unwrap();
    }
    while alone.answer(all).is_none() {
        let anew = asked(&mut alone);
        assert!(!anew.is_empty() && anew.iter().all(|(_, get)| get.target.fd == Fd(3)), "{anew:?}");
        for get in &anew {
            answer(&mut alone, get, leased(9, 5, SIZE));
        }
    }
    brought(&alone, all, 0, SIZE);
}

#[test]
fn what_follows_an_opening_is_not_mixed_with_another_version() {
    let mut alone = Alone::leased();
    let node = file(&mut alone, 9, SIZE);
    let (call, gets) = open(&mut alone, node);
    answer(&mut alone, &gets[0], leased(9, 5, SIZE));
    let handle = opened(&alone, call).unwrap();
    let all = read(&mut alone, node, handle, 0, BLOCK as u32);
    alone.recall(1, vec![RecallItem { id: leased(9, 5, SIZE).id, name: None }]);
    for get in &gets[1..] {
        answer(&mut alone, get, leased(9, 6, SIZE));
    }
    let mut anew = asked(&mut alone);
    assert!(anew.iter().any(|(_, get)| get.offset == 0), "of version 5 nothing is left: {anew:?}");
    while let Some(get) = anew.pop() {
        answer(&mut alone, &get, leased(9, 6, SIZE));
        anew.extend(asked(&mut alone));
    }
    brought(&alone, all, 0, SIZE);
}

/// S-36
#[test]
fn opening_and_reading_a_block_takes_one_round_trip() {
    for (size, requests) in [(10_000, 1), (17_000, 3), (BLOCK as usize, 3), (300_000, 3)] {
        let mut world = World::new(1, config("lease"), 2, STEADY);
        world.file(0, ROOT, b"f", &vec![7; size]);
        world.pass(Duration::from_secs(2));
        let node = world.lookup(1, ROOT, b"f");
        let (began, before) = (world.now, world.seats[1].sent.len());
        let opened = handle(world.ask(1, Call::Open { node, how: READ }));
        assert!(world.now.since(began) <= Duration::from_millis(100), "{size}: one round trip");
        for offset in (0..size as u64).step_by(DATA_BYTES_MAX) {
            let read = Call::Read { node, handle: opened, offset, count: DATA_BYTES_MAX as u32 };
            assert!(data(world.ask(1, read)).iter().all(|byte| *byte == 7));
        }
        assert!(world.now.since(began) <= Duration::from_millis(100), "{size}: for all of it");
        let sent = &world.seats[1].sent[before..];
        assert!(sent.len() <= requests, "{size}: {sent:?}");
    }
}
