//! A mount that is alone: changes are answered before the server has them.

use crate::config;
use crate::deeds::{NEW, READ, READ_WRITE, data, entry, getattr, handle, is_absent, listing, readdir, write};
use crate::world::{STEADY, World};
use std::time::Duration;
use wirefs_client::call::{Answer, Call, Listed, OpenHow, ROOT, STATELESS, TreeNodeId};
use wirefs_client::{ChangeFact, Config, Note};
use wirefs_op::{Errno, Kind, SetStat, SetTime, Timestamp};

pub(crate) fn journaling() -> Config {
    Config { journal: true, day: Timestamp { secs: 1_700_000_000, nanos: 0 }, ..config("lease") }
}

/// One client, which has been told that it is alone, and knows the root.
pub(crate) fn lone() -> World {
    alone(World::new(1, journaling(), 1, STEADY))
}

pub(crate) fn alone(mut world: World) -> World {
    list(&mut world, 0, ROOT);
    // The tree counts its own time, so that the root looks as if it had just been changed: no program may be at work there.
    world.pass(Duration::from_secs(61));
    assert!(world.seats[0].client.snapshot().ahead.is_alone);
    world
}

fn list(world: &mut World, seat: usize, dir: TreeNodeId) -> Vec<Vec<u8>> {
    let opened = handle(world.ask(seat, Call::Opendir { node: dir }));
    let mut names = Vec::new();
    loop {
        let offset = names.len() as u64;
        let entries = listing(world.ask(seat, readdir(dir, opened, offset)));
        if entries.is_empty() {
            break;
        }
        names.extend(entries.into_iter().map(|entry| entry.name));
    }
    assert_eq!(world.ask(seat, Call::Releasedir { node: dir, handle: opened }), Answer::Done);
    names.retain(|name| name != b"." && name != b"..");
    names.sort();
    names
}

/// Does something that is to take no time.
pub(crate) fn at_once<R>(world: &mut World, deed: impl FnOnce(&mut World) -> R) -> R {
    let before = world.now;
    let result = deed(world);
    assert_eq!(world.now, before, "it waited for the server");
    result
}

fn unlink(parent: TreeNodeId, name: &[u8]) -> Call<'_> {
    Call::Unlink { parent, name }
}

fn rename<'a>(parent: TreeNodeId, name: &'a [u8], to_parent: TreeNodeId, to_name: &'a [u8]) -> Call<'a> {
    Call::Rename { parent, name, to_parent, to_name, flags: 0 }
}

fn read_all(world: &mut World, seat: usize, node: TreeNodeId) -> Vec<u8> {
    let opened = handle(world.ask(seat, Call::Open { node, how: READ }));
    let read = data(world.ask(seat, Call::Read { node, handle: opened, offset: 0, count: 1 << 20 })).to_vec();
    world.close(seat, node, opened);
    read
}

// S-20
#[test]
fn fsync_waits_for_the_journal_alone_where_that_is_enough() {
    let mut world = alone(World::new(1, Config { fsync_here: true, ..journaling() }, 1, STEADY));
    let node = at_once(&mut world, |world| world.file(0, ROOT, b"f", b"hello"));
    let opened = handle(world.ask(0, Call::Open { node, how: NEW }));
    at_once(&mut world, |world| {
        world.ask(0, write(node, opened, 0, b"again"));
        let fsync = |data_only| Call::Fsync { node, handle: opened, data_only };
        assert_eq!(world.ask(0, fsync(false)), Answer::Done);
        assert_eq!(world.ask(0, fsync(true)), Answer::Done);
    });
    assert!(!world.seats[0].journal.is_empty(), "nothing was under way");
    world.close(0, node, opened);
}

#[test]
fn a_lone_mount_makes_writes_closes_and_looks_without_waiting() {
    let mut world = lone();
    at_once(&mut world, |world| {
        let dir = world.directory(0, ROOT, b"d");
        let file = world.file(0, dir, b"f", b"hello");
        assert_eq!(read_all(world, 0, file), b"hello");
        let Answer::Attr(stat, _) = world.ask(0, getattr(file)) else { panic!("no attributes") };
        assert_eq!((stat.size, stat.nlink, stat.mode), (5, 1, 0o644));
        assert_eq!(list(world, 0, dir), [b"f"]);
        assert!(is_absent(&world.ask(0, Call::Lookup { parent: dir, name: b"g" })));
        assert_eq!(world.lookup(0, dir, b"f"), file);
    });
    assert!(world.seats[0].client.snapshot().ahead.changes > 0);
    world.settle();
    assert_eq!(world.seats[0].client.snapshot().ahead.late_count, 0);
}

/// As assemblers and linkers do, which leave room for headers and read the page that they write to.
#[test]
fn what_a_lone_mount_has_left_out_of_its_file_reads_as_zeros_without_waiting() {
    let mut world = lone();
    let file = at_once(&mut world, |world| {
        let created =
            world.ask(0, Call::Create { parent: ROOT, name: b"f", mode: 0o644, umask: 0, how: NEW });
        let (file, opened) = (entry(created.clone()).node, handle(created));
        let read = |offset| Call::Read { node: file, handle: opened, offset, count: 4096 };
        for (offset, text) in [(0, b"head"), (10, b"text")] {
            world.ask(0, write(file, opened, offset, text));
        }
        assert_eq!(data(world.ask(0, read(0)))[..], *b"head\0\0\0\0\0\0text");
        let set = SetStat { size: Some(16), ..SetStat::default() };
        world.ask(0, Call::Setattr { node: file, handle: None, set, kill_privileges: false });
        assert_eq!(data(world.ask(0, read(9)))[..], *b"\0text\0\0");
        world.close(0, file, opened);
        file
    });
    world.settle();
    assert_eq!(read_all(&mut world, 0, file), b"head\0\0\0\0\0\0text\0\0");
    assert_eq!(world.seats[0].client.snapshot().ahead.late_count, 0);
}

#[test]
fn what_a_lone_mount_has_shown_of_a_file_stays_so_when_the_server_has_it() {
    let mut world = lone();
    let file = world.file(0, ROOT, b"f", b"hello");
    let Answer::Attr(before, _) = world.ask(0, getattr(file)) else { panic!("no attributes") };
    world.settle();
    let Answer::Attr(after, _) = world.ask(0, getattr(file)) else { panic!("no attributes") };
    assert_eq!((before.id.ino, before.mtime, before.ctime), (after.id.ino, after.mtime, after.ctime));
    assert_eq!(world.seats[0].client.snapshot().ahead.changes, 0);
}

#[test]
fn a_lone_mount_renames_links_removes_and_sets_attributes_without_waiting() {
    let mut world = lone();
    at_once(&mut world, |world| {
        let dir = world.directory(0, ROOT, b"d");
        let file = world.file(0, dir, b"f", b"one");
        assert_eq!(world.ask(0, rename(dir, b"f", ROOT, b"g")), Answer::Done);
        world.file(0, ROOT, b"h", b"two");
        assert_eq!(world.ask(0, rename(ROOT, b"g", ROOT, b"h")), Answer::Done);
        assert_eq!(read_all(world, 0, file), b"one");
        let linked = entry(world.ask(0, Call::Link { node: file, parent: dir, name: b"l" }));
        assert_eq!(linked.stat.nlink, 2);
        let set = SetStat {
            mode: Some(0o600),
            mtime: Some(SetTime::At(Timestamp { secs: 77, nanos: 5 })),
            ..SetStat::default()
        };
        let answer = world.ask(0, Call::Setattr { node: file, handle: None, set, kill_privileges: false });
        let Answer::Attr(stat, _) = answer else { panic!("{answer:?}") };
        assert_eq!((stat.mode, stat.mtime.secs), (0o600, 77));
    });
    // What the server would refuse it is asked.
    assert_eq!(world.ask(0, Call::Rmdir { parent: ROOT, name: b"d" }), Answer::Fail(Errno::NotEmpty));
    world.settle();
    at_once(&mut world, |world| {
        let dir = world.lookup(0, ROOT, b"d");
        assert_eq!(world.ask(0, unlink(dir, b"l")), Answer::Done);
        assert_eq!(world.ask(0, Call::Rmdir { parent: ROOT, name: b"d" }), Answer::Done);
        assert_eq!(list(world, 0, ROOT), [b"h"]);
        let link = Call::Symlink { parent: ROOT, name: b"s", target: b"h" };
        assert_eq!(entry(world.ask(0, link)).stat.size, 1);
    });
    world.settle();
    assert_eq!(world.seats[0].client.snapshot().ahead.late, []);
    assert_eq!(list(&mut world, 0, ROOT), [b"h", b"s"]);
    let Answer::Attr(stat, _) = ({
        let file = world.lookup(0, ROOT, b"h");
        world.ask(0, getattr(file))
    }) else {
        panic!("no attributes")
    };
    assert_eq!((stat.mode, stat.mtime.secs, stat.nlink), (0o600, 77, 1));
}

#[test]
fn each_change_is_in_the_journal_until_the_servers_disk_has_it() {
    let mut world = lone();
    world.file(0, ROOT, b"f", b"hello");
    let journal = world.seats[0].journal.clone();
    assert!(journal.len() >= 2, "{journal:?}");
    assert!(journal.windows(2).all(|pair| pair[0] < pair[1]), "{journal:?}");
    world.settle();
    assert_eq!(world.seats[0].journal, journal);
    world.pass(Duration::from_secs(5));
    assert_eq!(world.seats[0].journal, []);
}

// S-95
#[test]
fn a_sync_of_the_file_system_empties_the_journal_and_nothing_is_asked_for_again() {
    let mut world = lone();
    world.file(0, ROOT, b"f", b"hello");
    assert_ne!(world.seats[0].journal, []);
    let (answer, _) = world.cost(0, Call::Syncfs { node: ROOT });
    assert_eq!(answer, Answer::Done);
    assert_eq!(world.seats[0].journal, []);
    let before = world.seats[0].sent.len();
    world.pass(Duration::from_secs(30));
    assert!(!world.seats[0].sent[before..].contains(&"Commit"), "{:?}", &world.seats[0].sent[before..]);
}

// S-95
#[test]
fn while_changes_go_on_the_journal_holds_only_those_of_the_last_seconds() {
    let mut world = lone();
    let mut since = std::collections::BTreeMap::new();
    for index in 0..200 {
        world.file(0, ROOT, format!("f{index}").as_bytes(), b"hello");
        world.pass(Duration::from_millis(200));
        for number in world.seats[0].journal.clone() {
            let age = world.now.since(*since.entry(number).or_insert(world.now));
            // A tick and a round trip are in it.
            assert!(age <= Duration::from_secs(6), "change {number} is {age:?} old");
        }
    }
}

#[test]
fn second_mount_sees_all_changes_of_an_exclusive_mount() {
    let mut world = lone();
    let dir = world.directory(0, ROOT, b"d");
    world.file(0, dir, b"f", b"hello");
    world.another(config("lease"));
    let found = world.lookup(1, ROOT, b"d");
    let file = world.lookup(1, found, b"f");
    assert_eq!(read_all(&mut world, 1, file), b"hello");
    assert!(!world.seats[0].client.snapshot().ahead.is_alone);
    // From now on it waits, as others do.
    let before = world.now;
    world.directory(0, ROOT, b"e");
    assert!(world.now > before);
}

#[test]
fn a_lost_connection_loses_nothing_that_was_answered() {
    let mut world = lone();
    let dir = world.directory(0, ROOT, b"d");
    for index in 0..20u8 {
        world.file(0, dir, &[b'a' + index], &[index; 100]);
    }
    world.cut(0, Duration::from_secs(1), true);
    world.settle();
    world.pass(Duration::from_secs(1));
    world.another(config("lease"));
    let dir = world.lookup(1, ROOT, b"d");
    assert_eq!(list(&mut world, 1, dir).len(), 20);
    for index in 0..20u8 {
        let file = world.lookup(1, dir, &[b'a' + index]);
        assert_eq!(read_all(&mut world, 1, file), [index; 100]);
    }
}

#[test]
fn a_created_file_is_written_though_its_mode_allows_no_writing() {
    let mut world = lone();
    let answer = world.ask(0, Call::Create { parent: ROOT, name: b"f", mode: 0o444, umask: 0, how: NEW });
    let (node, opened) = (entry(answer.clone()).node, handle(answer));
    assert_eq!(world.ask(0, write(node, opened, 0, b"data")), Answer::Count(4));
    world.close(0, node, opened);
    world.settle();
    assert_eq!(world.seats[0].client.snapshot().ahead.late, []);
    assert_eq!(read_all(&mut world, 0, node), b"data");
}

#[test]
fn what_is_appended_to_a_file_that_the_server_does_not_have_yet_is_seen_at_once() {
    let mut world = lone();
    let how = OpenHow { append: true, ..NEW };
    let answer = world.ask(0, Call::Create { parent: ROOT, name: b"f", mode: 0o644, umask: 0, how });
    let (node, opened) = (entry(answer.clone()).node, handle(answer));
    for (piece, size) in [(b"hi", 2), (b"ho", 4)] {
        assert_eq!(world.ask(0, write(node, opened, 0, piece)), Answer::Count(2));
        let Answer::Attr(stat, _) = world.ask(0, getattr(node)) else { panic!("no attributes") };
        assert_eq!(stat.size, size);
    }
    assert_eq!(world.ask(0, write(node, opened, 0, b"!")), Answer::Count(1));
    world.close(0, node, opened);
    assert_eq!(read_all(&mut world, 0, node), b"hiho!");
    world.settle();
    let Answer::Attr(stat, _) = world.ask(0, getattr(node)) else { panic!("no attributes") };
    assert_eq!(stat.size, 5);
    assert_eq!(world.seats[0].client.snapshot().ahead.late, []);
}

// S-106
#[test]
fn an_append_while_the_mount_connects_again_has_an_expected_offset() {
    let mut world = lone();
    let node = world.file(0, ROOT, b"f", b"hello");
    let opened = handle(world.ask(0, Call::Open { node, how: OpenHow { append: true, ..READ_WRITE } }));
    world.settle();
    world.seats[0].client.lost(world.now);
    world.seats[0].notes.clear();
    world.call(0, write(node, opened, 0, b"abc"));
    world.call(0, write(node, opened, 0, b"de"));
    let offset = |note: &Note| match note {
        Note::Fact(_, ChangeFact::WillWriteAt(offset)) => Some(*offset),
        _ => None,
    };
    let offsets: Vec<u64> = world.seats[0].notes.iter().filter_map(offset).collect();
    assert_eq!(offsets, [5, 8]);
}

#[test]
fn times_that_are_set_are_shown_though_others_were_shown_before() {
    let mut world = lone();
    let file = world.file(0, ROOT, b"f", b"hello");
    world.settle();
    let set = SetStat { mtime: Some(SetTime::At(Timestamp { secs: 99, nanos: 0 })), ..SetStat::default() };
    let answer = world.ask(0, Call::Setattr { node: file, handle: None, set, kill_privileges: false });
    let Answer::Attr(stat, _) = answer else { panic!("{answer:?}") };
    assert_eq!(stat.mtime.secs, 99);
    let Answer::Attr(stat, _) = world.ask(0, getattr(file)) else { panic!("no attributes") };
    assert_eq!(stat.mtime.secs, 99);
    world.settle();
    let Answer::Attr(stat, _) = world.ask(0, getattr(file)) else { panic!("no attributes") };
    assert_eq!(stat.mtime.secs, 99);
}

#[test]
fn the_room_of_a_directory_that_the_server_does_not_have_yet_can_be_asked_for() {
    let mut world = lone();
    let dir = world.directory(0, ROOT, b"d");
    let answer = world.ask(0, Call::Statfs { node: dir });
    assert!(matches!(answer, Answer::FsStat(_)), "{answer:?}");
}

#[test]
fn a_file_that_lost_its_name_before_the_server_has_it_is_written_and_read() {
    let mut world = lone();
    let answer = world.ask(0, Call::Create { parent: ROOT, name: b"f", mode: 0o644, umask: 0, how: NEW });
    let (node, opened) = (entry(answer.clone()).node, handle(answer));
    assert_eq!(world.ask(0, unlink(ROOT, b"f")), Answer::Done);
    let Answer::Attr(stat, _) = world.ask(0, getattr(node)) else { panic!("no attributes") };
    assert_eq!(stat.nlink, 0);
    assert_eq!(world.ask(0, write(node, opened, 0, b"data")), Answer::Count(4));
    let read = Call::Read { node, handle: opened, offset: 0, count: 100 };
    assert_eq!(data(world.ask(0, read)).as_ref(), b"data");
    world.settle();
    assert_eq!(data(world.ask(0, read)).as_ref(), b"data");
    world.close(0, node, opened);
    world.settle();
    assert_eq!(world.seats[0].client.snapshot().ahead.late, []);
}

#[test]
fn nothing_is_left_to_the_next_mount_that_the_server_does_not_have() {
    let mut world = lone();
    world.file(0, ROOT, b"f", b"hello");
    world.seats[0].client.lost(world.now);
    assert_eq!(world.seats[0].client.export().len(), 0);
    let mut world = lone();
    world.file(0, ROOT, b"f", b"hello");
    world.settle();
    world.seats[0].client.lost(world.now);
    assert_eq!(world.seats[0].client.export().len(), 1);
}

#[test]
fn what_was_there_before_is_renamed_linked_set_and_removed_without_waiting_too() {
    let world = World::new(1, journaling(), 1, STEADY);
    world.make("d", Kind::Directory, b"");
    for name in ["d/one", "d/two", "d/three"] {
        world.make(name, Kind::File, name.as_bytes());
    }
    let mut world = alone(world);
    let dir = world.lookup(0, ROOT, b"d");
    list(&mut world, 0, dir);
    let [one, two, three] = [b"one".as_slice(), b"two", b"three"].map(|name| world.lookup(0, dir, name));
    at_once(&mut world, |world| {
        assert_eq!(world.ask(0, rename(dir, b"one", ROOT, b"uno")), Answer::Done);
        let set = SetStat { mode: Some(0o600), size: Some(3), ..SetStat::default() };
        for node in [one, two] {
            let answer = world.ask(0, Call::Setattr { node, handle: None, set, kill_privileges: false });
            let Answer::Attr(stat, _) = answer else { panic!("{answer:?}") };
            assert_eq!((stat.mode, stat.size), (0o600, 3));
        }
        let linked = entry(world.ask(0, Call::Link { node: two, parent: ROOT, name: b"dos" }));
        assert_eq!(linked.stat.nlink, 2);
        assert_eq!(world.ask(0, rename(dir, b"three", dir, b"two")), Answer::Done);
        assert_eq!(list(world, 0, dir), [b"two"]);
        assert_eq!(world.lookup(0, dir, b"two"), three);
        assert_eq!(world.ask(0, unlink(dir, b"two")), Answer::Done);
    });
    world.settle();
    assert_eq!(world.seats[0].client.snapshot().ahead.late, []);
    assert_eq!(list(&mut world, 0, ROOT), [b"d".as_slice(), b"dos", b"uno"]);
    let [uno, dos] = [b"uno".as_slice(), b"dos"].map(|name| world.lookup(0, ROOT, name));
    assert_eq!((uno, dos), (one, two));
    assert_eq!([one, two].map(|node| read_all(&mut world, 0, node)), [b"d/o", b"d/t"]);
}

/// The clocks of both sides differ, and the server has its own opinion on how much room something takes.
#[test]
fn what_was_shown_of_an_object_stays_when_the_server_has_it() {
    let mut world = lone();
    let made = world.ask(0, Call::Symlink { parent: ROOT, name: b"link", target: b"nowhere" });
    let dir = world.directory(0, ROOT, b"d");
    let nodes = [entry(made).node, dir, world.file(0, dir, b"f", b"text")];
    let look = |world: &mut World| {
        nodes.map(|node| {
            let Answer::Attr(stat, _) = world.ask(0, getattr(node)) else { panic!("no attributes") };
            (stat.id.ino, stat.size, stat.blocks, [stat.atime, stat.mtime, stat.ctime])
        })
    };
    let before = look(&mut world);
    world.settle();
    world.pass(Duration::from_secs(2));
    assert_eq!(world.seats[0].client.snapshot().ahead.changes, 0);
    assert_eq!(look(&mut world), before);
}

// S-14
#[test]
fn a_listing_shows_the_same_objects_before_and_after_the_server_confirms_them() {
    let mut world = lone();
    let dir = world.directory(0, ROOT, b"d");
    for name in [b"a".as_slice(), b"b", b"c"] {
        world.file(0, dir, name, b"");
    }
    let page = |world: &mut World, offset| listing(world.ask(0, readdir(dir, STATELESS, offset)));
    let first = page(&mut world, 0);
    world.settle();
    assert_eq!(world.seats[0].client.snapshot().ahead.changes, 0);
    // `seekdir`: the listing was taken before the server had any of them.
    let again = page(&mut world, first[0].next);
    let inos =
        |listed: &[Listed]| listed.iter().map(|listed| (listed.name.clone(), listed.ino)).collect::<Vec<_>>();
    assert_eq!(inos(&again), inos(&first[1..]));
    assert_eq!(inos(&page(&mut world, 0)), inos(&first));
}

#[test]
fn what_a_lone_mount_changes_is_later_than_before_although_the_servers_clock_is_ahead() {
    // The model server counts its changes in seconds from here on.
    let config = Config { day: Timestamp { secs: 1 << 40, nanos: 0 }, ..journaling() };
    let world = World::new(1, config, 1, STEADY);
    world.make("f", Kind::File, b"hello");
    let mut world = alone(world);
    let file = world.lookup(0, ROOT, b"f");
    let ctime = |world: &mut World| match world.ask(0, getattr(file)) {
        Answer::Attr(stat, _) => stat.ctime,
        other => panic!("no attributes: {other:?}"),
    };
    let before = ctime(&mut world);
    assert!(before.secs > 1 << 40, "the server's clock is not ahead: {before:?}");
    at_once(&mut world, |world| assert_eq!(world.ask(0, rename(ROOT, b"f", ROOT, b"g")), Answer::Done));
    let after = ctime(&mut world);
    assert!(after > before, "{after:?} after {before:?}");
}
