//! The prefetch at the top of the tree with a mount, and its benefit.

use crate::deeds::{READ, data, handle, listing, readdir};
use crate::streams::{RTT, cost, fill, get_ready, look, read, walk, world};
use crate::world::World;
use std::time::Duration;
use wirefs_client::call::{Call, ROOT, TreeNodeId};

/// How many streams client 1 has asked for.
fn finds(world: &World) -> usize {
    world.seats[1].sent.iter().filter(|kind| **kind == "Find").count()
}

const MINUTE: Duration = Duration::from_secs(60);

/// A tree of so many levels with two directories and a file in each directory.
fn grow(world: &mut World, dir: TreeNodeId, levels: usize) {
    world.file(0, dir, b"file", b"contents");
    for name in [b"a", b"b"].into_iter().filter(|_| levels > 0) {
        let below = world.directory(0, dir, name);
        grow(world, below, levels - 1);
    }
}

#[test]
fn a_small_tree_is_known_before_anybody_walks_it() {
    let mut world = world("lease", 30, 10, 10);
    world.greet(1);
    world.settle();
    let (took, requests, fetched) = cost(&mut world, |world| walk(world, ROOT, &mut look));
    assert_eq!((took, requests), (Duration::ZERO, 0));
    assert_eq!((fetched.directories.used, fetched.directories.wasted), (31, 0), "{fetched:?}");
}

#[test]
fn walk_while_the_top_is_in_flight_waits_for_one_round_trip() {
    let mut world = world("lease", 30, 10, 10);
    let (took, ..) = cost(&mut world, |world| {
        world.greet(1);
        walk(world, ROOT, &mut look);
    });
    assert_eq!(took, RTT);
}

#[test]
fn reading_all_files_of_a_known_top_waits_for_one_round_trip() {
    let mut world = world("lease", 20, 20, 1000);
    world.greet(1);
    world.settle();
    let (took, requests, fetched) = cost(&mut world, |world| walk(world, ROOT, &mut read));
    assert_eq!(took, RTT);
    assert!(requests <= 30, "{requests}: {:?}", world.seats[1].sent);
    assert!(fetched.files.wasted <= 1 && fetched.files.used >= 398, "{fetched:?}");
}

#[test]
fn a_walk_that_leaves_the_top_asks_for_all_that_is_below_where_it_began() {
    let mut world = world("lease", 0, 0, 0);
    grow(&mut world, ROOT, 6);
    get_ready(&mut world);
    world.greet(1);
    world.settle();
    world.pass(MINUTE);
    let (took, requests, _) = cost(&mut world, |world| walk(world, ROOT, &mut look));
    assert!(took <= RTT && requests <= 4, "{took:?}, {requests}: {:?}", world.seats[1].sent);
}

#[test]
fn a_small_tree_comes_along_however_deep_it_is() {
    let mut world = world("lease", 0, 0, 0);
    let mut dir = ROOT;
    for name in [b"a", b"b", b"c", b"d", b"e", b"f"] {
        dir = world.directory(0, dir, name);
        world.file(0, dir, b"file", b"contents");
    }
    get_ready(&mut world);
    world.greet(1);
    world.settle();
    assert_eq!(finds(&world), 2, "the top, and what is below");
    assert_eq!(cost(&mut world, |world| walk(world, ROOT, &mut look)).0, Duration::ZERO);
}

/// The files of git beside a tree, and the order in which it opens them.
const GIT: [(&str, &[u8]); 4] = [
    ("HEAD", b"ref: refs/heads/main"),
    ("config", b"[core]"),
    ("refs/heads/main", b"0123456789"),
    ("info/exclude", b"*.o"),
];

fn at(world: &mut World, seat: usize, path: &str) -> TreeNodeId {
    path.split('/').fold(ROOT, |dir, name| world.lookup(seat, dir, name.as_bytes()))
}

/// A repository: few small files in several directories, one that is not so small, and many objects.
fn repository() -> World {
    let mut world = world("lease", 0, 0, 0);
    let git = world.directory(0, ROOT, b".git");
    for name in ["objects", "refs", "info"] {
        world.directory(0, git, name.as_bytes());
    }
    let refs = at(&mut world, 0, ".git/refs");
    world.directory(0, refs, b"heads");
    for (path, contents) in GIT {
        let (dir, name) = path.rsplit_once('/').unwrap_or(("", path));
        let dir = at(&mut world, 0, format!(".git/{dir}").trim_end_matches('/'));
        world.file(0, dir, name.as_bytes(), contents);
    }
    world.file(0, git, b"index", &vec![7; 160 * 1024]);
    let objects = at(&mut world, 0, ".git/objects");
    for number in 0..80 {
        let dir = world.directory(0, objects, format!("{number:02x}").as_bytes());
        fill(&mut world, dir, 2, 1000);
    }
    get_ready(&mut world);
    world
}

#[test]
fn the_small_files_around_the_first_one_that_is_opened_come_along() {
    let mut world = repository();
    world.greet(1);
    world.settle();
    world.pass(MINUTE);
    let (took, _, fetched) = cost(&mut world, |world| {
        for (path, _) in GIT {
            let node = at(world, 1, &format!(".git/{path}"));
            read(world, node);
        }
    });
    assert_eq!(took, RTT, "{:?}", world.seats[1].sent);
    assert!(fetched.contents.fetched < 200, "no object is fetched: {fetched:?}");
}

#[test]
fn they_come_along_where_no_listing_is_known_of_their_directories_too() {
    let mut world = repository();
    let git = at(&mut world, 1, ".git");
    let head = world.lookup(1, git, b"HEAD");
    read(&mut world, head);
    world.settle();
    let (took, ..) = cost(&mut world, |world| {
        for (path, _) in GIT {
            let node = at(world, 1, &format!(".git/{path}"));
            read(world, node);
        }
    });
    assert_eq!(took, Duration::ZERO, "{:?}", world.seats[1].sent);
}

#[test]
fn single_files_read_in_two_directories_fetch_none_of_the_others() {
    let mut world = repository();
    world.greet(1);
    world.settle();
    world.pass(MINUTE);
    for path in ["07/file01", "31/file00"] {
        let node = at(&mut world, 1, &format!(".git/objects/{path}"));
        read(&mut world, node);
    }
    world.settle();
    let fetched = world.seats[1].client.snapshot().prefetch.contents;
    assert!(fetched.fetched <= 4 * 1000, "what is beside them: {fetched:?}");
}

#[test]
fn a_file_somewhat_larger_than_what_its_open_brings_takes_one_round_trip() {
    let mut world = repository();
    world.greet(1);
    world.settle();
    let index = at(&mut world, 1, ".git/index");
    let (took, ..) = cost(&mut world, |world| {
        let opened = handle(world.ask(1, Call::Open { node: index, how: READ }));
        for offset in [0, 128 * 1024] {
            let read = Call::Read { node: index, handle: opened, offset, count: 128 * 1024 };
            assert!(data(world.ask(1, read)).iter().all(|byte| *byte == 7));
        }
    });
    assert_eq!(took, RTT);
}

#[test]
fn contents_come_in_the_order_in_which_directories_are_walked_by_inode_too() {
    let mut world = world("lease", 0, 0, 0);
    // The later it was made, the earlier it is by name.
    for number in (0..30).rev() {
        let dir = world.directory(0, ROOT, format!("d{number:02}").as_bytes());
        fill(&mut world, dir, 4, 30_000);
    }
    get_ready(&mut world);
    world.greet(1);
    world.settle();
    let (took, _, fetched) = cost(&mut world, |world| {
        let opened = handle(world.ask(1, Call::Opendir { node: ROOT }));
        listing(world.ask(1, readdir(ROOT, opened, 0)));
        for number in (0..30).rev() {
            let dir = world.lookup(1, ROOT, format!("d{number:02}").as_bytes());
            walk(world, dir, &mut read);
        }
    });
    // A window of 512 KiB at first, which grows by what is used of it.
    assert!(took <= 4 * RTT, "{took:?}, {fetched:?}");
    assert!(fetched.files.wasted <= 1, "{fetched:?}");
}

#[test]
fn the_top_is_not_asked_for_where_nothing_of_it_would_be_believed_for_long() {
    for mode in ["window", "strict"] {
        let mut world = world(mode, 3, 3, 10);
        let (_, requests, fetched) = cost(&mut world, |world| {
            world.greet(1);
            world.settle();
        });
        assert_eq!((requests, fetched.asked), (0, 0), "{mode}");
    }
}

#[test]
fn the_top_of_a_large_tree_comes_within_its_bounds() {
    let mut world = world("lease", 0, 0, 0);
    for number in 0..24 {
        let dir = world.directory(0, ROOT, format!("d{number:02}").as_bytes());
        fill(&mut world, dir, 500, 1);
    }
    get_ready(&mut world);
    let (_, _, fetched) = cost(&mut world, |world| {
        world.greet(1);
        world.settle();
    });
    assert!((12..24).contains(&fetched.directories.fetched), "{fetched:?}");
    assert!(fetched.bytes <= 256 * 1024, "{fetched:?}");
    let (took, ..) = cost(&mut world, |world| walk(world, ROOT, &mut look));
    assert!(took <= 2 * RTT, "{took:?}");
}

#[test]
fn a_file_opened_long_after_the_top_came_brings_those_beside_it() {
    let mut world = world("lease", 3, 5, 1000);
    world.greet(1);
    world.settle();
    world.pass(MINUTE);
    let dir = world.lookup(1, ROOT, b"d01");
    let first = world.lookup(1, dir, b"file00");
    let (took, requests, _) = cost(&mut world, |world| {
        world.ask(1, Call::Open { node: first, how: READ });
    });
    assert_eq!((took, requests), (RTT, 2), "the file, and what is beside it");
    world.settle();
    for name in [b"file01", b"file02", b"file03", b"file04"] {
        let node = world.lookup(1, dir, name);
        assert_eq!(cost(&mut world, |world| read(world, node)).1, 0);
    }
}

#[test]
fn a_directory_that_others_moved_keeps_its_new_name_when_the_old_place_is_looked_around() {
    let mut world = world("window", 0, 0, 0);
    let old = world.directory(0, ROOT, b"old");
    let new = world.directory(0, old, b"new");
    let dir = world.directory(0, old, b"dir");
    world.file(0, dir, b"inner", b"contents");
    world.file(0, old, b"file", b"contents");
    get_ready(&mut world);
    // The listing of the old place comes along with the second name that is asked for in it.
    let place = world.lookup(1, ROOT, b"old");
    let file = world.lookup(1, place, b"file");
    world.ask(1, Call::Lookup { parent: place, name: b"nothing" });
    world.pass(RTT);
    let moved = Call::Rename { parent: old, name: b"dir", to_parent: new, to_name: b"dir", flags: 0 };
    world.ask(0, moved);
    let there = world.lookup(1, place, b"new");
    let found = world.lookup(1, there, b"dir");
    world.ask(1, Call::Open { node: file, how: READ });
    world.settle();
    world.directory(1, found, b"made");
}
