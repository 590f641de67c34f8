use super::{Children, Claim, Next, ReadAhead};
use crate::find::reading::{Directory, FoundEntry, Part, Reading, Remainder};
use crate::find::{QUEUE_BYTES_MAX, READ_AHEAD_BYTES_MAX, READ_AHEAD_DIRECTORIES_MAX};
use bytes::Bytes;
use std::time::{Duration, Instant};
use wirefs_op::{FileId, Kind, Stat, TreePath};
use wirefs_virtual::Dice;

fn stat() -> Stat {
    Stat {
        version: 1,
        mode: 0o755,
        nlink: 2,
        blksize: 4096,
        without_xattrs: true,
        ..Stat::blank(FileId::default(), Kind::Directory)
    }
}

fn directory(path: &str) -> Directory {
    let path = TreePath::from_bytes(Bytes::copy_from_slice(path.as_bytes())).unwrap();
    Directory { level: path.names().count() as u16, path, id: FileId::default() }
}

/// The children of a directory, in a tree whose shape is determined by the paths.
fn children(directory: &Directory) -> Vec<Directory> {
    let bytes = directory.path.as_bytes().iter();
    let hash = bytes.fold(7_usize, |hash, byte| (hash * 31 + usize::from(*byte)) % 10_007);
    let count = if directory.level < 5 { hash % 7 } else { 0 };
    (0..count)
        .map(|number| Directory {
            path: directory.path.join(format!("{number}").as_bytes()).unwrap(),
            level: directory.level + 1,
            ..directory.clone()
        })
        .collect()
}

fn reading(children: Vec<Directory>, entries: usize) -> Reading {
    let found = || FoundEntry { name: b"name".to_vec(), stat: stat(), contents: None };
    let entries = (0..entries).map(|_| found()).collect();
    let part = Part { entries, children, ..Part::default() };
    Reading { stat: stat(), is_covered: false, part, rest: Remainder::Ended, dir: None }
}

fn enqueue_children(ahead: &ReadAhead, directories: Vec<Directory>) {
    let mut children = Children::default();
    children.take(&mut Part { children: directories, ..Part::default() });
    ahead.enqueue_children(children);
}

fn claim(ahead: &ReadAhead) -> Option<Claim<'_>> {
    ahead.claim_in(&mut ahead.queue())
}

/// The next directory, without waiting.
fn next(ahead: &ReadAhead) -> Next {
    ahead.next(Instant::now() - Duration::from_secs(1))
}

fn in_order(directory: Directory, order: &mut Vec<TreePath>) {
    let below = children(&directory);
    order.push(directory.path);
    below.into_iter().for_each(|child| in_order(child, order));
}

#[test]
fn the_order_does_not_depend_on_the_readers() {
    let mut expected = Vec::new();
    for path in ["a", "b", "c", "d"] {
        in_order(directory(path), &mut expected);
    }
    assert!(expected.len() > 100);
    for seed in 0..200_u64 {
        let mut dice = Dice::new(seed);
        let ahead = ReadAhead::new(u64::MAX);
        enqueue_children(&ahead, ["c", "a", "d", "b"].map(directory).to_vec());
        let (mut claims, mut state) = (Vec::new(), Vec::new());
        loop {
            match dice.below(8) {
                0..=3 => claims.extend(claim(&ahead)),
                4 | 5 if !claims.is_empty() => {
                    let claim: Claim<'_> = claims.swap_remove(dice.index(claims.len()));
                    let below = children(&claim.directory);
                    claim.settle(Some(reading(below, 1)));
                }
                _ => match next(&ahead) {
                    Next::Nothing => break,
                    Next::Late => assert!(!claims.is_empty()),
                    Next::Unread(directory) => {
                        enqueue_children(&ahead, children(&directory));
                        state.push(directory.path);
                    }
                    Next::Read(directory, reading) => {
                        assert!(reading.part.children.is_empty());
                        state.push(directory.path);
                    }
                    Next::Unreadable => panic!("each was read"),
                },
            }
        }
        assert_eq!(state, expected);
        let queue = ahead.queue();
        assert_eq!((queue.waiting, queue.ahead, queue.ahead_bytes, queue.bytes), (0, 0, 0, 0));
    }
}

#[test]
fn read_ahead_is_bounded() {
    let ahead = ReadAhead::new(u64::MAX);
    enqueue_children(
        &ahead,
        (0..2 * READ_AHEAD_DIRECTORIES_MAX).map(|number| directory(&format!("{number}"))).collect(),
    );
    let claims: Vec<_> = std::iter::from_fn(|| claim(&ahead)).collect();
    assert_eq!(claims.len(), READ_AHEAD_DIRECTORIES_MAX);
    claims.into_iter().for_each(|claim| claim.settle(Some(reading(vec![], 0))));
    assert!(claim(&ahead).is_none());
    assert!(matches!(next(&ahead), Next::Read(..)));
    let large = claim(&ahead).unwrap();
    let found = FoundEntry { name: vec![b'n'; READ_AHEAD_BYTES_MAX], stat: stat(), contents: None };
    let mut full = reading(vec![], 0);
    full.part.entries.push(found);
    large.settle(Some(full));
    assert!(matches!(next(&ahead), Next::Read(..)));
    assert!(claim(&ahead).is_none(), "there is room for a directory, but not for what is in it");
}

#[test]
fn read_ahead_stops_at_the_requested_entries() {
    let ahead = ReadAhead::new(10);
    enqueue_children(&ahead, ["a", "b", "c", "d"].map(directory).to_vec());
    claim(&ahead).unwrap().settle(Some(reading(vec![], 6)));
    ahead.count(&reading(vec![], 3).part);
    let last = claim(&ahead).unwrap();
    last.settle(Some(reading(vec![], 1)));
    assert!(claim(&ahead).is_none());
}

#[test]
fn a_full_queue_takes_no_more() {
    let ahead = ReadAhead::new(u64::MAX);
    let name = "n".repeat(200);
    let many = QUEUE_BYTES_MAX / 300;
    enqueue_children(&ahead, (0..many).map(|number| directory(&format!("{name}{number:06}"))).collect());
    assert!(ahead.is_cut());
    let held = ahead.waiting();
    assert!(held > many / 2 && held < many && ahead.queue().bytes <= QUEUE_BYTES_MAX);
    for _ in 0..2 {
        assert!(matches!(next(&ahead), Next::Unread(_)));
    }
    enqueue_children(&ahead, vec![directory("a"), directory("b")]);
    assert!(matches!(next(&ahead), Next::Unread(first) if first == directory("a")));
}

#[test]
fn children_beyond_the_queue_limit_are_dropped() {
    let (ahead, name) = (ReadAhead::new(u64::MAX), "n".repeat(200));
    let part =
        |part: usize| (0..1000).map(|number| directory(&format!("{name}{part:03}{number:03}"))).collect();
    let mut children = Children::default();
    for number in 0..QUEUE_BYTES_MAX / 200_000 {
        children.take(&mut Part { children: part(number), ..Part::default() });
        assert!(children.bytes <= QUEUE_BYTES_MAX + 1000);
    }
    ahead.enqueue_children(children);
    assert!(ahead.is_cut(), "the client must hear that there is more");
}

#[test]
fn a_directory_whose_helper_failed_is_left_out() {
    let ahead = ReadAhead::new(u64::MAX);
    enqueue_children(&ahead, ["a", "b"].map(directory).to_vec());
    drop(claim(&ahead));
    claim(&ahead).unwrap().settle(None);
    assert!(matches!(next(&ahead), Next::Unreadable));
    assert!(matches!(next(&ahead), Next::Unreadable));
    assert!(matches!(next(&ahead), Next::Nothing));
}

#[test]
fn entries_before_a_failure_of_the_listing_are_sent() {
    let ahead = ReadAhead::new(u64::MAX);
    enqueue_children(&ahead, ["a", "b"].map(directory).to_vec());
    let broken = Remainder::Broken(crate::failure::Failure::Errno(wirefs_op::Errno::Io));
    let first = claim(&ahead).unwrap();
    first.settle(Some(Reading { rest: broken, ..reading(vec![directory("a/c")], 1) }));
    assert!(matches!(next(&ahead), Next::Read(read, _) if read == directory("a")));
    assert!(matches!(next(&ahead), Next::Unread(child) if child == directory("a/c")));
}

#[test]
fn a_helper_is_notified_of_waits_and_of_the_end() {
    let ahead = ReadAhead::new(u64::MAX);
    enqueue_children(&ahead, vec![directory("a")]);
    let claim = claim(&ahead).unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| ahead.next(Instant::now() + Duration::from_secs(60)));
        while !claim.is_awaited() {
            std::thread::yield_now();
        }
        claim.settle(Some(reading(vec![], 0)));
        assert!(matches!(waiting.join().unwrap(), Next::Read(..)));
        let helper = scope.spawn(|| ahead.claim().is_none());
        ahead.end();
        assert!(helper.join().unwrap() && ahead.is_over());
    });
}
