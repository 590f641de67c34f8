//! A server that lies: the client blames it or fails the call; it never panics and never keeps more than it asked for.

use crate::alone::{Alone, got, listing, stat};
use crate::deeds::{create, readdir};
use bytes::Bytes;
use wirefs_client::call::{Answer, Call, ROOT};
use wirefs_op::find_listing::{FindDirectory, FindWriter};
use wirefs_op::limits::DATA_BYTES_MAX;
use wirefs_op::message::find::{FindMode, Rfind};
use wirefs_op::message::flush::Rflush;
use wirefs_op::message::get::{GotMode, Rget};
use wirefs_op::message::ping::Rping;
use wirefs_op::message::put::Rput;
use wirefs_op::message::remove::Rremove;
use wirefs_op::message::target::{Fd, NOFD};
use wirefs_op::wire::Data;
use wirefs_op::{Errno, Kind, Reply, Tag, TreePath};
use wirefs_virtual::Dice;

#[test]
fn a_reply_to_no_request_is_the_servers_fault() {
    let mut alone = Alone::new();
    assert!(alone.reply(Tag(77), &Reply::Ping(Rping {})).is_err());
    alone.call(Call::Statfs { node: ROOT });
    let tag = alone.next();
    alone.reply(tag, &Reply::Ping(Rping {})).unwrap();
    assert!(alone.reply(tag, &Reply::Ping(Rping {})).is_err(), "the second reply to one request");
}

#[test]
fn a_reply_of_another_kind_fails_its_call() {
    let mut alone = Alone::new();
    let calls = [
        alone.call(Call::Lookup { parent: ROOT, name: b"f" }),
        alone.call(create(ROOT, b"g")),
        alone.call(Call::Unlink { parent: ROOT, name: b"h" }),
        alone.call(Call::Opendir { node: ROOT }),
        alone.call(Call::Statfs { node: ROOT }),
    ];
    for call in calls {
        let tag = alone.next();
        alone.reply(tag, &Reply::Flush(Rflush {})).unwrap();
        assert_eq!(alone.answer(call), Some(&Answer::Fail(Errno::Protocol)));
    }
    assert!(alone.client.is_settled());
}

#[test]
fn more_data_than_was_asked_for_is_blamed_and_not_kept() {
    let mut alone = Alone::new();
    let (node, handle) = alone.open(1 << 40);
    let call = alone.call(Call::Read { node, handle, offset: 1 << 30, count: 4096 });
    let tag = alone.next();
    let reply = got(GotMode::DATA.and(GotMode::LAST), Some(stat(9, Kind::File, 1 << 40)), &[1; 8192]);
    assert!(alone.reply(tag, &reply).is_err());
    assert_eq!(alone.answer(call), None, "the next connection may answer it");
    assert_eq!(alone.client.snapshot().cached_bytes, 0);
}

#[test]
fn names_listed_twice_and_entries_that_are_no_names_do_no_harm() {
    let mut alone = Alone::new();
    let call = alone.call(Call::Opendir { node: ROOT });
    let tag = alone.next();
    let piece = listing(&[b"a", b"a", b"b", b"a"], 10);
    alone
        .reply(tag, &got(GotMode::DATA.and(GotMode::LAST), Some(stat(1, Kind::Directory, 0)), &piece))
        .unwrap();
    let Some(Answer::Opened(handle, _)) = alone.answer(call).cloned() else { panic!() };
    let call = alone.call(readdir(ROOT, handle, 0));
    assert!(matches!(alone.answer(call), Some(Answer::Listing(_))));
    let call = alone.call(Call::Lookup { parent: ROOT, name: b"a" });
    assert!(matches!(alone.answer(call), Some(Answer::Entry(_))));
    let second = alone.call(Call::Lookup { parent: ROOT, name: b"c" });
    assert!(matches!(alone.answer(second), Some(Answer::NoEntry(_))));
}

#[test]
fn bytes_that_are_no_listing_fail_the_opendir() {
    let mut alone = Alone::new();
    let call = alone.call(Call::Opendir { node: ROOT });
    let tag = alone.next();
    alone.reply(tag, &got(GotMode::DATA.and(GotMode::LAST), None, &[9; 100])).unwrap();
    assert_eq!(alone.answer(call), Some(&Answer::Fail(Errno::Protocol)));
}

#[test]
fn random_replies_never_panic_and_answer_no_call_twice() {
    for seed in 0..300 {
        let mut dice = Dice::new(seed);
        let mut alone = Alone::new();
        let (node, handle) = alone.open(dice.one_of(&[0, 5, 300_000, u64::MAX]));
        for _ in 0..60 {
            match dice.below(9) {
                0 => {
                    alone.call(Call::Lookup { parent: ROOT, name: b"x" });
                }
                1 => {
                    alone.call(create(ROOT, b"y"));
                }
                2 => {
                    alone.call(Call::Opendir { node: ROOT });
                }
                3 => {
                    alone.call(Call::Read { node, handle, offset: dice.below(200_000), count: 70_000 });
                }
                4 => {
                    alone.call(Call::Getattr { node, handle: None });
                }
                5 => {
                    alone.call(Call::Unlink { parent: ROOT, name: b"f" });
                }
                6 => {
                    alone.call(Call::Link { node, parent: ROOT, name: b"l" });
                }
                _ => alone.now.0 += dice.below(2_000_000_000),
            }
            let Some((tag, _)) = alone.asked.front().cloned() else { continue };
            let reply = random_reply(&mut dice);
            let goes_on = |reply: &Reply| match reply {
                Reply::Get(got) => !got.mode.has(GotMode::LAST),
                Reply::Find(found) => !found.mode.has(FindMode::LAST),
                _ => false,
            };
            let last = !goes_on(&reply);
            if last || dice.chance(1, 4) {
                alone.asked.pop_front();
            }
            if alone.reply(tag, &reply).is_err() {
                break;
            }
        }
    }
}

fn random_reply(dice: &mut Dice) -> Reply {
    let kind = if dice.chance(1, 3) { Kind::Directory } else { Kind::File };
    let ino = dice.below(12);
    let mut about = stat(ino, kind, dice.one_of(&[0, 5, 200_000, u64::MAX]));
    about.version = dice.below(4);
    let about = dice.chance(3, 4).then_some(about);
    let data = match dice.below(4) {
        0 => Bytes::new(),
        1 => listing(&[b"a", b"x", b"a"], ino),
        _ => Bytes::from(vec![3; dice.below(DATA_BYTES_MAX as u64 + 1) as usize]),
    };
    match dice.below(7) {
        0 => Reply::Error(Errno::Stale.into()),
        1 => Reply::Remove(Rremove { dir: about }),
        2 => random_stream(dice),
        3 => Reply::Put(Rput { fd: Fd(3), count: 9, offset: u64::MAX, before: 3, stat: about, dir: None }),
        _ => Reply::Get(Rget {
            fd: if dice.chance(1, 2) { Fd(3) } else { NOFD },
            mode: GotMode(dice.below(64) as u16),
            stat: about,
            data: Data(data),
        }),
    }
}

/// Records of directories and entries in any order, or none.
fn random_stream(dice: &mut Dice) -> Reply {
    let mut writer = FindWriter::new(4096);
    for _ in 0..dice.below(6) {
        let ino = dice.below(12);
        if dice.chance(1, 2) {
            let names = [b"".as_slice(), b"x", b"a", b"a/b"];
            let path = TreePath::from_bytes(Bytes::from_static(dice.one_of(&names))).unwrap();
            let kind = if dice.chance(1, 2) { Kind::Directory } else { Kind::File };
            let (begins, ends) = (dice.chance(3, 4), dice.chance(3, 4));
            writer.directory(&FindDirectory { path, stat: stat(ino, kind, 0), begins, ends });
        } else if !writer.is_empty() {
            let kind = if dice.chance(1, 2) { Kind::Directory } else { Kind::File };
            let contents = (kind == Kind::File).then_some(b"hello".as_slice());
            writer.entry(dice.one_of(&[b"x".as_slice(), b"f", b"a"]), &stat(ino, kind, 5), contents);
        }
    }
    let mut data = writer.finish();
    if dice.chance(1, 8) {
        data.truncate(data.len() / 2);
    }
    let mode = if dice.chance(1, 2) { FindMode::LAST } else { FindMode::NONE };
    Reply::Find(Rfind { mode, data: Data(data) })
}

#[test]
fn a_listing_without_end_is_ended() {
    let mut alone = Alone::new();
    let call = alone.call(Call::Opendir { node: ROOT });
    let tag = alone.next();
    let names: Vec<Vec<u8>> = (0..700).map(|index| format!("{index:04}").into_bytes()).collect();
    let names: Vec<&[u8]> = names.iter().map(Vec::as_slice).collect();
    let piece = listing(&names, 10);
    let ended = (0..20_000).any(|_| {
        let ended = alone.reply(tag, &got(GotMode::DATA.and(GotMode::MORE), None, &piece)).is_err();
        ended || matches!(alone.answer(call), Some(Answer::Fail(_)))
    });
    assert!(ended, "fourteen million entries are taken in");
}

#[test]
fn attributes_of_another_file_are_not_taken_for_this_one() {
    let mut alone = Alone::new();
    let (node, _) = alone.open(10);
    alone.now.0 += 5_000_000_000;
    let call = alone.call(Call::Getattr { node, handle: None });
    let tag = alone.next();
    alone.reply(tag, &got(GotMode::LAST, Some(stat(1234, Kind::Directory, 77)), b"")).unwrap();
    match alone.answer(call) {
        Some(Answer::Fail(_)) => {}
        other => panic!("the kernel is told {other:?}"),
    }
    assert_eq!(alone.client.snapshot().nodes, 2);
}

#[test]
fn data_without_end_is_not_kept_beyond_what_was_asked_for() {
    let mut alone = Alone::new();
    let (node, handle) = alone.open(1 << 40);
    let call = alone.call(Call::Read { node, handle, offset: 1 << 30, count: 4096 });
    let tag = alone.next();
    let more = GotMode::DATA.and(GotMode::MORE);
    for index in 0..500 {
        let first = (index == 0).then(|| stat(9, Kind::File, 1 << 40));
        if alone.reply(tag, &got(more, first, &vec![1; DATA_BYTES_MAX])).is_err() {
            break;
        }
    }
    assert!(alone.client.snapshot().cached_bytes <= 4096, "{}", alone.client.snapshot().cached_bytes);
    let ended = alone.reply(tag, &got(more.and(GotMode::LAST), None, b""));
    assert!(ended.is_err() || alone.answer(call).is_some(), "nobody is left waiting");
}

#[test]
fn sizes_and_offsets_at_the_end_of_all_numbers_do_not_overflow() {
    let mut alone = Alone::new();
    let (node, handle) = alone.open(u64::MAX);
    for offset in [0, i64::MAX as u64 - 10, u64::MAX - 5000, u64::MAX] {
        alone.call(Call::Read { node, handle, offset, count: 4096 });
    }
    while let Some((tag, _)) = alone.asked.pop_front() {
        let reply = got(GotMode::DATA.and(GotMode::LAST), Some(stat(9, Kind::File, u64::MAX)), b"");
        alone.reply(tag, &reply).unwrap();
        if alone.now.0 > 2_000_000_000 {
            break;
        }
    }
}
