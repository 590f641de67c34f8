//! Mode `session`: each open file is a copy, validated and fetched at open, published at close.

use crate::alone::{Alone, got, stat};
use crate::config;
use crate::deeds::{READ, READ_WRITE, data, entry, getattr, handle, listing, readdir, write};
use crate::world::{STEADY, World};
use std::time::Duration;
use wirefs_client::Conflicts;
use wirefs_client::call::{Answer, Call, Handle, OpenHow, ROOT, TreeNodeId};
use wirefs_op::message::get::GotMode;
use wirefs_op::message::put::Rput;
use wirefs_op::message::remove::Rremove;
use wirefs_op::message::rename::Rrename;
use wirefs_op::message::target::NOFD;
use wirefs_op::{
    Errno, Kind, LockFamily, LockKind, LockRange, Reply, Request, SetStat, SetTime, Stat, Timestamp,
};

const TRUNCATED: OpenHow = OpenHow { truncate: true, ..READ_WRITE };

/// Two clients in mode `session`, and one who looks at each call.
fn world() -> World {
    World::of(1, &[config("session"), config("session"), config("strict")], STEADY)
}

fn open(world: &mut World, seat: usize, node: TreeNodeId, how: OpenHow) -> Handle {
    handle(world.ask(seat, Call::Open { node, how }))
}

fn read(world: &mut World, seat: usize, node: TreeNodeId, handle: Handle) -> Vec<u8> {
    data(world.ask(seat, Call::Read { node, handle, offset: 0, count: 1 << 20 })).to_vec()
}

/// The tree at the server.
fn there(world: &mut World, name: &[u8]) -> Vec<u8> {
    let node = world.lookup(2, ROOT, name);
    let open = open(world, 2, node, READ);
    let found = read(world, 2, node, open);
    world.ask(2, Call::Release { node, handle: open, flock_owner: None });
    found
}

fn conflicts(world: &World, seat: usize) -> Conflicts {
    world.seats[seat].client.snapshot().conflicts
}

/// The root as the third client sees it.
fn names(world: &mut World) -> Vec<Vec<u8>> {
    let handle = handle(world.ask(2, Call::Opendir { node: ROOT }));
    let listed = listing(world.ask(2, readdir(ROOT, handle, 0)));
    listed.into_iter().map(|entry| entry.name).skip(2).collect()
}

/// S-26
#[test]
fn what_is_written_is_seen_by_nobody_else_before_close_and_by_each_open_after_it() {
    let mut world = world();
    let node = world.file(0, ROOT, b"f", b"old");
    assert_eq!(there(&mut world, b"f"), b"old");
    let theirs = world.lookup(1, ROOT, b"f");
    let before = open(&mut world, 1, theirs, READ);
    let (writer, other) = (open(&mut world, 0, node, READ_WRITE), open(&mut world, 0, node, READ));
    world.ask(0, write(node, writer, 0, b"newer"));
    assert_eq!(read(&mut world, 0, node, writer), b"newer");
    assert_eq!(read(&mut world, 0, node, other), b"old", "each open file is a copy of its own");
    world.pass(Duration::from_secs(30));
    assert_eq!(there(&mut world, b"f"), b"old");
    world.close(0, node, writer);
    assert_eq!(there(&mut world, b"f"), b"newer");
    assert_eq!(read(&mut world, 1, theirs, before), b"old", "what was open stays as it was");
    assert_eq!(world.ask(1, Call::Open { node: theirs, how: READ }), Answer::Fail(Errno::Stale));
    let again = world.lookup(1, ROOT, b"f");
    let after = open(&mut world, 1, again, READ);
    assert_eq!(read(&mut world, 1, again, after), b"newer");
    let here = open(&mut world, 0, node, READ);
    assert_eq!(read(&mut world, 0, node, here), b"newer");
}

/// S-27
#[test]
fn last_writer_to_close_wins_with_its_whole_copy() {
    let mut world = world();
    let node = world.file(0, ROOT, b"f", b"......");
    let theirs = world.lookup(1, ROOT, b"f");
    let (first, second) = (open(&mut world, 0, node, READ_WRITE), open(&mut world, 1, theirs, READ_WRITE));
    world.ask(1, write(theirs, second, 4, b"22"));
    world.ask(0, write(node, first, 0, b"11"));
    world.close(0, node, first);
    assert_eq!(there(&mut world, b"f"), b"11....");
    world.close(1, theirs, second);
    assert_eq!(there(&mut world, b"f"), b"....22", "never a mix of both");
    let [file, kept] = names(&mut world).try_into().unwrap();
    assert_eq!(file, b"f");
    assert!(kept.starts_with(b"f.wirefs-conflict-box-"), "{}", kept.escape_ascii());
    assert_eq!(there(&mut world, &kept), b"11....", "nor is anything lost");
    world.settle();
    assert_eq!((conflicts(&world, 0).count, conflicts(&world, 1).count), (0, 1));
    assert_eq!(conflicts(&world, 1).last, [kept]);
}

/// S-28
#[test]
fn what_the_writer_itself_closed_set_or_replaced_before_is_no_conflict() {
    let mut world = world();
    let node = world.file(0, ROOT, b"f", b"old");
    let writer = open(&mut world, 0, node, READ_WRITE);
    world.ask(0, write(node, writer, 0, b"one"));
    world.ask(0, Call::Fsync { node, handle: writer, data_only: false });
    let times =
        SetStat { mtime: Some(SetTime::At(Timestamp { secs: 1_000, nanos: 0 })), ..SetStat::default() };
    let set = Call::Setattr { node, handle: Some(writer), set: times, kill_privileges: false };
    assert!(matches!(world.ask(0, set), Answer::Attr(..)));
    world.ask(0, write(node, writer, 3, b" two"));
    world.close(0, node, writer);
    let cut = open(&mut world, 0, node, TRUNCATED);
    world.ask(0, write(node, cut, 0, b"three"));
    world.close(0, node, cut);
    assert_eq!((there(&mut world, b"f"), names(&mut world)), (b"three".to_vec(), vec![b"f".to_vec()]));
    assert_eq!(conflicts(&world, 0).count, 0);
}

/// S-28
#[test]
fn each_of_several_that_were_replaced_unseen_is_kept_under_a_name_of_its_own() {
    let mut world = world();
    let node = world.file(0, ROOT, b"f", b"0");
    let open: Vec<_> = (0..3).map(|_| open(&mut world, 0, node, READ_WRITE)).collect();
    for (number, handle) in open.iter().enumerate() {
        world.ask(0, write(node, *handle, 0, format!("written by {number}").as_bytes()));
    }
    for handle in open {
        world.close(0, node, handle);
    }
    assert_eq!(there(&mut world, b"f"), b"written by 2");
    let kept: Vec<_> = names(&mut world).into_iter().filter(|name| name != b"f").collect();
    let mut contents: Vec<_> = kept.iter().map(|name| there(&mut world, name)).collect();
    contents.sort();
    assert_eq!(contents, [b"written by 0", b"written by 1"]);
    assert_eq!(conflicts(&world, 0).count, 2);
}

/// S-28
#[test]
fn a_directory_is_removed_behind_what_was_replaced_in_it() {
    let mut world = world();
    let dir = world.directory(0, ROOT, b"d");
    let node = world.file(0, dir, b"f", b"old");
    let writer = open(&mut world, 0, node, READ_WRITE);
    world.ask(0, write(node, writer, 0, b"new"));
    world.close(0, node, writer);
    assert_eq!(world.ask(0, Call::Unlink { parent: dir, name: b"f" }), Answer::Done);
    assert_eq!(world.ask(0, Call::Rmdir { parent: ROOT, name: b"d" }), Answer::Done);
}

/// S-28
#[test]
fn what_another_put_in_the_files_place_is_kept_too() {
    let mut world = world();
    let node = world.file(0, ROOT, b"f", b"old");
    let writer = open(&mut world, 0, node, READ_WRITE);
    world.ask(0, write(node, writer, 0, b"mine"));
    world.file(2, ROOT, b"g", b"theirs");
    let (name, to_name) = (b"g".as_slice(), b"f".as_slice());
    let rename = Call::Rename { parent: ROOT, name, to_parent: ROOT, to_name, flags: 0 };
    assert_eq!(world.ask(2, rename), Answer::Done);
    world.close(0, node, writer);
    assert_eq!(there(&mut world, b"f"), b"mine");
    let kept = names(&mut world).into_iter().find(|name| name != b"f").unwrap();
    assert_eq!(there(&mut world, &kept), b"theirs");
}

/// S-29
#[test]
fn a_file_with_another_name_is_written_in_place_and_stays_one_file() {
    let mut world = world();
    let node = world.file(0, ROOT, b"f", b"old, and long");
    world.ask(0, Call::Link { node, parent: ROOT, name: b"g" });
    let writer = open(&mut world, 0, node, TRUNCATED);
    world.ask(0, write(node, writer, 0, b"new"));
    world.close(0, node, writer);
    assert_eq!((there(&mut world, b"f"), there(&mut world, b"g")), (b"new".to_vec(), b"new".to_vec()));
    let Answer::Attr(stat, _) = world.ask(0, getattr(node)) else { panic!("no attributes") };
    assert_eq!((stat.nlink, stat.size), (2, 3));
}

/// S-29
#[test]
fn a_replaced_file_keeps_its_mode_and_the_times_that_were_set() {
    let mut world = world();
    let node = world.file(0, ROOT, b"f", b"old");
    let set = |set| Call::Setattr { node, handle: None, set, kill_privileges: false };
    world.ask(0, set(SetStat { mode: Some(0o640), ..SetStat::default() }));
    let before = world.ask(0, getattr(node));
    let writer = open(&mut world, 0, node, READ_WRITE);
    world.ask(0, write(node, writer, 3, &[7; 300_000]));
    let time = SetTime::At(Timestamp { secs: 77, nanos: 5 });
    world.ask(0, set(SetStat { mtime: Some(time), ..SetStat::default() }));
    world.close(0, node, writer);
    let (Answer::Attr(before, _), Answer::Attr(after, _)) = (before, world.ask(0, getattr(node))) else {
        panic!("no attributes");
    };
    assert_eq!((after.mode, after.size, after.nlink), (0o640, 300_003, 1));
    assert_eq!(after.mtime, Timestamp { secs: 77, nanos: 5 });
    assert_ne!(after.id, before.id, "it is a new file that took the old one's place");
    assert_eq!(there(&mut world, b"f").len(), 300_003);
}

#[test]
fn an_open_asks_once_and_fetches_what_changed_only() {
    let mut world = world();
    let node = world.file(0, ROOT, b"f", &[1; 20_000]);
    // What the close took the place of is put away in the background.
    world.settle();
    let (answer, sent) = world.cost(0, Call::Open { node, how: READ });
    assert_eq!(sent, ["Get"]);
    let opened = handle(answer);
    let received = world.seats[0].client.snapshot().counters.bytes_in;
    let (answer, sent) = world.cost(0, Call::Open { node, how: READ });
    assert_eq!(sent, ["Get"]);
    assert!(world.seats[0].client.snapshot().counters.bytes_in - received < 1000);
    let read = Call::Read { node, handle: opened, offset: 0, count: 1 << 20 };
    assert_eq!(world.cost(0, read).1, [""; 0], "all of it is here");
    world.close(0, node, opened);
    world.close(0, node, handle(answer));
}

#[test]
fn a_large_file_is_whole_and_of_one_version_before_its_open_returns() {
    let mut world = world();
    let node = world.file(2, ROOT, b"f", &[1; 3_000_000]);
    let theirs = world.lookup(0, ROOT, b"f");
    let opening = world.call(0, Call::Open { node: theirs, how: READ });
    let writer = open(&mut world, 2, node, READ_WRITE);
    for at in 0..3 {
        world.ask(2, write(node, writer, at * 1_000_000, &[2; 1_000_000]));
    }
    let opened = handle(world.wait(0, opening));
    let found = data(world.ask(0, Call::Read { node: theirs, handle: opened, offset: 0, count: 4_000_000 }));
    let runs = crate::check::runs(&found);
    assert!(runs.iter().map(|(_, count)| count).sum::<usize>() == 3_000_000);
    assert!(runs.len() <= 2, "a state that the file was in: {runs:?}");
}

#[test]
fn a_file_that_does_not_fit_is_refused_with_its_reason() {
    let mut config = config("session");
    config.cache_bytes_max = 100_000;
    let mut world = World::of(1, &[config, crate::config("strict")], STEADY);
    world.file(1, ROOT, b"f", &[1; 60_000]);
    let node = world.lookup(0, ROOT, b"f");
    assert_eq!(world.ask(0, Call::Open { node, how: READ }), Answer::Fail(Errno::FileTooBig));
    let writer = open(&mut world, 0, node, TRUNCATED);
    assert_eq!(world.ask(0, write(node, writer, 0, &[2; 50_000])), Answer::Count(50_000));
    assert_eq!(world.ask(0, write(node, writer, 50_000, &[2; 1])), Answer::Fail(Errno::NoSpace));
    world.close(0, node, writer);
}

#[test]
fn a_file_that_was_renamed_or_removed_while_it_was_written_goes_where_its_name_is() {
    let mut world = world();
    let node = world.file(0, ROOT, b"f", b"old");
    let writer = open(&mut world, 0, node, READ_WRITE);
    world.ask(0, write(node, writer, 0, b"new"));
    let rename = Call::Rename { parent: ROOT, name: b"f", to_parent: ROOT, to_name: b"g", flags: 0 };
    assert_eq!(world.ask(0, rename), Answer::Done);
    assert_eq!(world.ask(0, Call::Flush { node, handle: writer, owner: 1 }), Answer::Done);
    assert_eq!((there(&mut world, b"g"), names(&mut world)), (b"new".to_vec(), vec![b"g".to_vec()]));
    world.ask(0, write(node, writer, 0, b"gone"));
    assert_eq!(world.ask(0, Call::Unlink { parent: ROOT, name: b"g" }), Answer::Done);
    world.close(0, node, writer);
    assert!(names(&mut world).is_empty());
}

/// S-18
#[test]
fn an_fsync_publishes_and_waits_for_the_disk() {
    let mut world = world();
    let node = world.file(0, ROOT, b"f", b"old");
    let writer = open(&mut world, 0, node, READ_WRITE);
    world.ask(0, write(node, writer, 0, b"new"));
    let (answer, sent) = world.cost(0, Call::Fsync { node, handle: writer, data_only: false });
    assert_eq!(answer, Answer::Done);
    // What was replaced is looked at and put away meanwhile; nobody waits for that.
    let is_waited_for = |name: &&&str| !["Get", "Remove"].contains(*name);
    assert_eq!(sent.iter().filter(is_waited_for).collect::<Vec<_>>(), [&"Put", &"Rename", &"Commit"]);
    assert_eq!(there(&mut world, b"f"), b"new");
}

#[test]
fn interrupted_publication_is_complete_or_reported_and_never_partial() {
    for resumed in [true, false] {
        let mut world = world();
        let node = world.file(0, ROOT, b"f", b"old");
        let writer = open(&mut world, 0, node, READ_WRITE);
        world.ask(0, write(node, writer, 0, b"new"));
        let flush = world.call(0, Call::Flush { node, handle: writer, owner: 1 });
        world.pass(Duration::from_millis(20));
        world.cut(0, Duration::from_millis(500), resumed);
        if world.wait(0, flush) != Answer::Done {
            assert_eq!(there(&mut world, b"f"), b"old");
            world.pass(Duration::from_secs(2));
            assert_eq!(world.ask(0, Call::Flush { node, handle: writer, owner: 1 }), Answer::Done);
        }
        assert_eq!(there(&mut world, b"f"), b"new");
    }
}

/// A `flock` call.
fn flock(node: TreeNodeId, handle: Handle, owner: u64, kind: LockKind) -> Call<'static> {
    let range = LockRange { kind, start: 0, end: u64::MAX, pid: 0 };
    Call::Setlk { node, handle, owner, family: LockFamily::Flock, range, wait: true }
}

/// S-41
#[test]
fn a_lock_is_released_at_the_file_that_it_was_taken_of_though_a_copy_took_its_place() {
    let mut world = world();
    let node = world.file(0, ROOT, b"f", b"old");
    let (holder, writer) = (open(&mut world, 0, node, READ_WRITE), open(&mut world, 0, node, READ_WRITE));
    let theirs = world.lookup(1, ROOT, b"f");
    let waiting = open(&mut world, 1, theirs, READ_WRITE);
    assert_eq!(world.ask(0, flock(node, holder, 1, LockKind::Write)), Answer::Done);
    let call = world.call(1, flock(theirs, waiting, 1, LockKind::Write));
    world.ask(0, write(node, writer, 0, b"new"));
    world.close(0, node, writer);
    assert_eq!(there(&mut world, b"f"), b"new");
    assert_eq!(world.ask(0, flock(node, holder, 1, LockKind::Unlock)), Answer::Done);
    assert_eq!(world.wait(1, call), Answer::Done);
    // What is granted only after the file was replaced is released there as well.
    let late = world.call(0, flock(node, holder, 1, LockKind::Write));
    assert_eq!(world.wait(0, late), Answer::Done, "the new file is locked by nobody");
    world.ask(1, flock(theirs, waiting, 1, LockKind::Unlock));
    world.ask(0, Call::Release { node, handle: holder, flock_owner: Some(1) });
    world.settle();
    assert_eq!(world.locked(), []);
}

/// S-41
#[test]
fn a_lock_that_is_granted_after_its_file_was_replaced_is_released_there() {
    let mut world = world();
    let node = world.file(0, ROOT, b"f", b"old");
    let (late, writer) = (open(&mut world, 0, node, READ_WRITE), open(&mut world, 0, node, READ_WRITE));
    let theirs = world.lookup(1, ROOT, b"f");
    let holder = open(&mut world, 1, theirs, READ_WRITE);
    assert_eq!(world.ask(1, flock(theirs, holder, 1, LockKind::Write)), Answer::Done);
    let call = world.call(0, flock(node, late, 1, LockKind::Write));
    world.ask(0, write(node, writer, 0, b"new"));
    world.close(0, node, writer);
    world.ask(1, flock(theirs, holder, 1, LockKind::Unlock));
    assert_eq!(world.wait(0, call), Answer::Done);
    world.ask(0, Call::Release { node, handle: late, flock_owner: Some(1) });
    world.settle();
    assert_eq!(world.locked(), []);
}

// S-43
#[test]
fn a_close_releases_the_fcntl_locks_of_all_files_that_copies_replaced() {
    let mut world = world();
    let node = world.file(0, ROOT, b"f", b"old");
    let holder = open(&mut world, 0, node, READ_WRITE);
    let lock = |start| {
        let range = LockRange { kind: LockKind::Write, start, end: start + 9, pid: 0 };
        Call::Setlk { node, handle: holder, owner: 1, family: LockFamily::Posix, range, wait: false }
    };
    for start in [0, 10] {
        let writer = open(&mut world, 0, node, READ_WRITE);
        assert_eq!(world.ask(0, lock(start)), Answer::Done);
        world.ask(0, write(node, writer, 0, b"new"));
        // No `close` of the process that has the locks.
        world.ask(0, Call::Flush { node, handle: writer, owner: 2 });
        world.ask(0, Call::Release { node, handle: writer, flock_owner: None });
        world.settle();
    }
    assert_eq!(world.ask(0, lock(20)), Answer::Done);
    assert_eq!(world.locked().len(), 3);
    world.ask(0, Call::Flush { node, handle: holder, owner: 1 });
    world.settle();
    assert_eq!(world.locked(), []);
}

/// Answers what a client asks for a file without contents; of a rename it is not known any more where the moved file is.
fn serve(alone: &mut Alone) {
    while let Some((tag, request)) = alone.asked.pop_front() {
        let file = |ino| Some(stat(ino, Kind::File, 0));
        let reply = match request {
            Request::Get(get) if get.target.path.is_root() => {
                got(GotMode::LAST, Some(stat(1, Kind::Directory, 0)), b"")
            }
            Request::Get(_) => got(GotMode::LAST, file(9), b""),
            Request::Put(put) => {
                let stat = Some(Stat { size: put.data.0.len() as u64, ..stat(10, Kind::File, 0) });
                let count = put.data.0.len() as u32;
                Reply::Put(Rput { fd: NOFD, count, offset: 0, before: 0, stat, dir: None })
            }
            Request::Rename(_) => Reply::Rename(Rrename { stat: None, from_dir: None, to_dir: None }),
            Request::Remove(_) => Reply::Remove(Rremove { dir: None }),
            other => panic!("{other:?}"),
        };
        alone.reply(tag, &reply).unwrap();
    }
}

// S-27
#[test]
fn a_copy_whose_place_is_taken_right_behind_it_is_published_without_error() {
    let mut alone = Alone::in_mode("session");
    let mut ask = |call: Call<'_>| {
        let call = alone.call(call);
        serve(&mut alone);
        alone.answer(call).cloned().expect("no answer")
    };
    let node = entry(ask(Call::Lookup { parent: ROOT, name: b"f" })).node;
    let handle = handle(ask(Call::Open { node, how: READ_WRITE }));
    ask(write(node, handle, 0, b"new"));
    assert_eq!(ask(Call::Flush { node, handle, owner: 1 }), Answer::Done);
}
