//! A client that ends and begins again with what it left on disk.

use crate::config;
use crate::deeds::{READ, READ_WRITE, data, handle, is_absent, listing, readdir, write};
use crate::world::{STEADY, World};
use std::time::Duration;
use wirefs_client::call::{Answer, Call, Handle, ROOT, TreeNodeId};

const NOTHING: [&str; 0] = [];

fn read(node: TreeNodeId, handle: Handle) -> Call<'static> {
    Call::Read { node, handle, offset: 0, count: 4096 }
}

fn contents(world: &mut World, seat: usize, node: TreeNodeId) -> bytes::Bytes {
    let opened = handle(world.ask(seat, Call::Open { node, how: READ }));
    let read = data(world.ask(seat, read(node, opened)));
    world.close(seat, node, opened);
    read
}

fn names(world: &mut World, seat: usize, dir: TreeNodeId) -> usize {
    let opened = handle(world.ask(seat, Call::Opendir { node: dir }));
    let count = listing(world.ask(seat, readdir(dir, opened, 0))).len() - 2;
    world.ask(seat, Call::Releasedir { node: dir, handle: opened });
    count
}

/// Client 0 made things, client 1 looked at all of them.
fn warm() -> World {
    let mut world = World::new(1, config("lease"), 2, STEADY);
    world.use_store(1);
    let dir = world.directory(0, ROOT, b"d");
    for name in [b"a".as_slice(), b"b", b"c"] {
        world.file(0, dir, name, name);
    }
    world.ask(0, Call::Symlink { parent: dir, name: b"link", target: b"a" });
    world.settle();
    look(&mut world);
    world.settle();
    world
}

/// Looks at all that is there; tells what was sent for it.
fn look(world: &mut World) -> Vec<&'static str> {
    let before = world.seats[1].sent.len();
    assert_eq!(names(world, 1, ROOT), 1);
    let dir = world.lookup(1, ROOT, b"d");
    assert_eq!(names(world, 1, dir), 4);
    assert!(is_absent(&world.ask(1, Call::Lookup { parent: dir, name: b"nothing" })));
    for name in [b"a".as_slice(), b"b", b"c"] {
        let node = world.lookup(1, dir, name);
        assert_eq!(contents(world, 1, node), name);
    }
    let link = world.lookup(1, dir, b"link");
    assert_eq!(data(world.ask(1, Call::Readlink { node: link })), b"a".as_slice());
    world.seats[1].sent[before..].to_vec()
}

/// The client begins again, and hears from the server once.
fn remount(world: &mut World) {
    world.remount(1, config("lease"));
    world.pass(Duration::from_millis(100));
}

#[test]
fn the_top_of_the_tree_does_not_come_along_where_names_were_left() {
    let mut world = warm();
    world.seats[1].sent.clear();
    world.remount(1, config("lease"));
    // A program may be sooner than the mount's own thread, and what it uses is on the shelf no more.
    world.call(1, Call::Opendir { node: ROOT });
    world.greet(1);
    world.settle();
    assert!(!world.seats[1].sent.contains(&"Find"), "{:?}", world.seats[1].sent);
}

// S-38
#[test]
fn what_was_known_costs_nothing_after_a_restart() {
    let mut world = warm();
    for _ in 0..3 {
        remount(&mut world);
        assert_eq!(look(&mut world), NOTHING);
        let counters = world.seats[1].client.snapshot().counters;
        assert_eq!((counters.stored_hits, counters.stored_bytes), (4, 4), "three files and a link");
    }
}

#[test]
fn damaged_contents_are_asked_for_again() {
    let mut world = warm();
    world.damages = true;
    for _ in 0..20 {
        remount(&mut world);
        look(&mut world);
        world.settle();
    }
    assert!(world.seats[1].sent.iter().filter(|name| **name == "Get").count() > 1);
}

// S-38
#[test]
fn what_others_changed_while_it_was_away_is_seen() {
    let mut world = warm();
    let dir = world.lookup(0, ROOT, b"d");
    let node = world.lookup(0, dir, b"b");
    let left = world.leave(1);
    // The server waits for it, then notes what it misses.
    let open = handle(world.ask(0, Call::Open { node, how: READ_WRITE }));
    world.ask(0, write(node, open, 0, b"B"));
    world.close(0, node, open);
    world.ask(0, Call::Unlink { parent: dir, name: b"c" });
    world.file(0, dir, b"new", b"new");
    world.pass(Duration::from_secs(1));
    world.come_back(1, config("lease"), left);
    world.pass(Duration::from_millis(100));
    let dir = world.lookup(1, ROOT, b"d");
    let node = world.lookup(1, dir, b"b");
    assert_eq!(contents(&mut world, 1, node), b"B".as_slice());
    assert!(is_absent(&world.ask(1, Call::Lookup { parent: dir, name: b"c" })));
    let node = world.lookup(1, dir, b"new");
    assert_eq!(contents(&mut world, 1, node), b"new".as_slice());
    assert_eq!(names(&mut world, 1, dir), 4);
}

// S-38
#[test]
fn own_changes_are_part_of_what_is_known_after_a_restart() {
    let mut world = warm();
    let dir = world.lookup(1, ROOT, b"d");
    world.ask(1, Call::Unlink { parent: dir, name: b"c" });
    let node = world.lookup(1, dir, b"b");
    let open = handle(world.ask(1, Call::Open { node, how: READ_WRITE }));
    world.ask(1, write(node, open, 0, b"longer"));
    world.close(1, node, open);
    world.settle();
    remount(&mut world);
    let dir = world.lookup(1, ROOT, b"d");
    assert!(is_absent(&world.ask(1, Call::Lookup { parent: dir, name: b"c" })));
    let node = world.lookup(1, dir, b"b");
    assert_eq!(contents(&mut world, 1, node), b"longer".as_slice());
    assert_eq!(names(&mut world, 1, dir), 3);
}

#[test]
fn cached_data_is_unused_until_the_server_answers() {
    let mut world = warm();
    world.remount(1, config("lease"));
    let before = world.seats[1].sent.len();
    world.lookup(1, ROOT, b"d");
    assert_eq!(world.seats[1].sent[before..], ["Get"]);
}

#[test]
fn a_directory_that_the_kernel_forgot_is_known_when_it_comes_back() {
    let mut world = World::new(1, config("lease"), 1, STEADY);
    let dir = world.directory(0, ROOT, b"d");
    world.file(0, dir, b"a", b"a");
    names(&mut world, 0, ROOT);
    names(&mut world, 0, dir);
    world.settle();
    let nodes = world.seats[0].client.snapshot().nodes;
    assert!(nodes > 1);
    for node in 2..100 {
        world.call(0, Call::Forget { node: TreeNodeId(node), count: 1000 });
    }
    assert_eq!(world.seats[0].client.snapshot().nodes, 1);
    let dir = world.lookup(0, ROOT, b"d");
    let before = world.seats[0].sent.len();
    assert_eq!(names(&mut world, 0, dir), 1);
    assert!(is_absent(&world.ask(0, Call::Lookup { parent: dir, name: b"nothing" })));
    let found = world.ask(0, Call::Lookup { parent: dir, name: b"a" });
    assert!(matches!(found, Answer::Entry(_)), "{found:?}");
    assert_eq!(world.seats[0].sent[before..], NOTHING);
}

#[test]
fn beyond_a_bound_nodes_are_forgotten_and_listings_are_packed() {
    let mut world = World::new(1, config("lease"), 2, STEADY);
    for dir in [b"d".as_slice(), b"e"] {
        let dir = world.directory(0, ROOT, dir);
        for name in b'a'..b'u' {
            world.file(0, dir, &[name], b"");
        }
    }
    world.settle();
    world.seats[1].client.bound_names(16, 16);
    for name in [b"d".as_slice(), b"e"] {
        let dir = world.lookup(1, ROOT, name);
        assert_eq!(names(&mut world, 1, dir), 20);
        world.pass(Duration::from_secs(1));
    }
    world.call(1, Call::Forget { node: TreeNodeId(1000), count: 1 });
    assert!(world.seats[1].let_go.len() >= 20, "{:?}", world.seats[1].let_go);
    let before = world.seats[1].sent.len();
    for name in [b"d".as_slice(), b"e"] {
        let dir = world.lookup(1, ROOT, name);
        assert!(is_absent(&world.ask(1, Call::Lookup { parent: dir, name: b"nothing" })));
        world.lookup(1, dir, b"c");
        assert_eq!(names(&mut world, 1, dir), 20);
    }
    assert_eq!(world.seats[1].sent[before..], NOTHING);
    // What is changed meanwhile, here or there, is as ever.
    let dir = world.lookup(1, ROOT, b"d");
    world.ask(1, Call::Unlink { parent: dir, name: b"c" });
    let theirs = world.lookup(0, ROOT, b"e");
    world.ask(0, Call::Unlink { parent: theirs, name: b"c" });
    world.pass(Duration::from_secs(70));
    for name in [b"d".as_slice(), b"e"] {
        let dir = world.lookup(1, ROOT, name);
        assert!(is_absent(&world.ask(1, Call::Lookup { parent: dir, name: b"c" })));
        assert_eq!(names(&mut world, 1, dir), 19);
    }
}
