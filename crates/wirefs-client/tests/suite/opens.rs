//! Files that exist, opened for writing on a mount that is alone.

use crate::ahead::{at_once, lone};
use crate::config;
use crate::deeds::{READ, READ_WRITE, data, handle, write};
use crate::world::{World, serve};
use std::time::Duration;
use wirefs_client::call::{Answer, Call, Handle, OpenHow, ROOT, TreeNodeId};
use wirefs_op::message::remove::Tremove;
use wirefs_op::message::target::Place;
use wirefs_op::{Errno, Reply, Request, SetStat, TreePath};
use wirefs_server::{SessionKey, Tree as _};

const CUT: OpenHow = OpenHow { read: false, truncate: true, ..READ_WRITE };
const APPEND: OpenHow = OpenHow { read: false, append: true, ..READ_WRITE };

/// A file that the server has, of which no more than its attributes and contents is known.
fn with_file() -> (World, TreeNodeId) {
    let mut world = lone();
    let file = world.file(0, ROOT, b"f", b"before");
    world.settle();
    (world, file)
}

fn open(world: &mut World, node: TreeNodeId, how: OpenHow) -> Handle {
    handle(world.ask(0, Call::Open { node, how }))
}

fn read(world: &mut World, seat: usize, node: TreeNodeId) -> Vec<u8> {
    let opened = handle(world.ask(seat, Call::Open { node, how: READ }));
    let read = data(world.ask(seat, Call::Read { node, handle: opened, offset: 0, count: 1 << 20 })).to_vec();
    world.close(seat, node, opened);
    read
}

/// The view of another client.
fn found(world: &mut World) -> Vec<u8> {
    world.settle();
    assert_eq!(world.seats[0].client.snapshot().ahead.late, []);
    world.another(config("lease"));
    let node = world.lookup(1, ROOT, b"f");
    read(world, 1, node)
}

fn remove_at_server(world: &World, name: &[u8]) {
    let local = SessionKey(900);
    world.tree.attach(local, &TreePath::root()).unwrap();
    let place = Place { path: TreePath::from_names([name]).unwrap(), dir: None };
    let replies = serve(&world.tree, local, Request::Remove(Tremove { place, directory: false }));
    assert!(matches!(replies[..], [Reply::Remove(_)]), "{replies:?}");
}

// S-13
#[test]
fn a_lone_mount_opens_files_that_exist_for_writing_without_waiting() {
    let (mut world, file) = with_file();
    at_once(&mut world, |world| {
        let opened = open(world, file, READ_WRITE);
        assert_eq!(world.ask(0, write(file, opened, 2, b"XY")), Answer::Count(2));
        world.close(0, file, opened);
        assert_eq!(read(world, 0, file), b"beXYre");
        let opened = open(world, file, CUT);
        assert_eq!(read(world, 0, file), b"");
        assert_eq!(world.ask(0, write(file, opened, 0, b"after")), Answer::Count(5));
        world.close(0, file, opened);
        assert_eq!(read(world, 0, file), b"after");
    });
    let opened = open(&mut world, file, APPEND);
    assert_eq!(world.ask(0, write(file, opened, 0, b"wards")), Answer::Count(5));
    world.close(0, file, opened);
    assert_eq!(found(&mut world), b"afterwards");
}

#[test]
fn a_file_that_is_made_closed_and_opened_again_at_once_is_written_whole() {
    let mut world = lone();
    at_once(&mut world, |world| {
        let file = world.file(0, ROOT, b"f", b"before");
        let opened = open(world, file, READ_WRITE);
        assert_eq!(world.ask(0, write(file, opened, 6, b"after")), Answer::Count(5));
        world.close(0, file, opened);
    });
    assert_eq!(found(&mut world), b"beforeafter");
}

#[test]
fn a_file_that_loses_its_name_right_after_it_was_opened_is_written_nevertheless() {
    for settled in [true, false] {
        let mut world = lone();
        let file = world.file(0, ROOT, b"g", b"before");
        if settled {
            world.settle();
        }
        let opened = open(&mut world, file, READ_WRITE);
        assert_eq!(world.ask(0, Call::Unlink { parent: ROOT, name: b"g" }), Answer::Done);
        for part in 0..5 {
            assert_eq!(world.ask(0, write(file, opened, part * 2, b"ab")), Answer::Count(2));
            world.pass(Duration::from_millis(40));
        }
        let got = world.ask(0, Call::Read { node: file, handle: opened, offset: 0, count: 100 });
        assert_eq!(data(got)[..], *b"ababababab");
        assert_eq!(world.ask(0, Call::Fsync { node: file, handle: opened, data_only: false }), Answer::Done);
        world.close(0, file, opened);
        world.settle();
        assert_eq!(world.seats[0].client.snapshot().ahead.late, []);
    }
}

#[test]
fn a_file_that_is_renamed_right_after_it_was_opened_is_written_where_it_is() {
    let (mut world, file) = with_file();
    let opened = open(&mut world, file, CUT);
    let rename = |from, to| Call::Rename { parent: ROOT, name: from, to_parent: ROOT, to_name: to, flags: 0 };
    assert_eq!(world.ask(0, rename(b"f", b"e")), Answer::Done);
    assert_eq!(world.ask(0, write(file, opened, 0, b"one")), Answer::Count(3));
    assert_eq!(world.ask(0, rename(b"e", b"f")), Answer::Done);
    assert_eq!(world.ask(0, write(file, opened, 3, b"two")), Answer::Count(3));
    world.cut(0, Duration::from_secs(1), true);
    assert_eq!(world.ask(0, write(file, opened, 6, b"three")), Answer::Count(5));
    world.close(0, file, opened);
    world.settle();
    world.pass(Duration::from_secs(1));
    assert_eq!(found(&mut world), b"onetwothree");
}

#[test]
fn what_may_run_as_a_program_is_asked_for() {
    let (mut world, file) = with_file();
    let set = SetStat { mode: Some(0o755), ..SetStat::default() };
    world.ask(0, Call::Setattr { node: file, handle: None, set, kill_privileges: false });
    let began = world.now;
    let opened = open(&mut world, file, READ_WRITE);
    assert_eq!(world.now.since(began), Duration::from_millis(100));
    world.close(0, file, opened);
}

/// A change at the server between the open and its execution there reaches the open file.
#[test]
fn rejected_open_is_reported_to_the_writer() {
    let (mut world, file) = with_file();
    let opened = open(&mut world, file, READ_WRITE);
    remove_at_server(&world, b"f");
    world.settle();
    let Answer::Fail(errno) = world.ask(0, write(file, opened, 0, b"late")) else { panic!("it is gone") };
    assert!(matches!(errno, Errno::Stale | Errno::NotFound), "{errno}");
    assert_eq!(world.seats[0].client.snapshot().ahead.late_count, 1);
}
