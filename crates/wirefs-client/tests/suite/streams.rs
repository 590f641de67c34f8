//! The cost of programs that go through many directories and files, with an empty cache.

use crate::config;
use crate::deeds::{READ, READ_WRITE, data, entry, getattr, handle, listing, readdir, write};
use crate::world::{STEADY, World};
use std::time::Duration;
use wirefs_client::PrefetchStatus;
use wirefs_client::call::{Answer, Call, CallId, ROOT, TreeNodeId};

/// One round trip of the steady world.
pub(crate) const RTT: Duration = Duration::from_millis(100);

/// A tree of `directories` with `files` each of `bytes`, and client 1 that knows nothing of it.
pub(crate) fn world(mode: &str, directories: usize, files: usize, bytes: usize) -> World {
    let mut world = World::of(1, &[config("window"), config(mode)], STEADY);
    for number in 0..directories {
        let dir = world.directory(0, ROOT, format!("d{number:02}").as_bytes());
        fill(&mut world, dir, files, bytes);
    }
    get_ready(&mut world);
    world
}

/// Earlier changes by others need no more recalls.
pub(crate) fn get_ready(world: &mut World) {
    world.settle();
    world.pass(Duration::from_secs(20));
    world.ask(1, Call::Statfs { node: ROOT });
    world.settle();
    world.pass(Duration::from_secs(5));
}

pub(crate) fn fill(world: &mut World, dir: TreeNodeId, files: usize, bytes: usize) {
    for number in 0..files {
        world.file(0, dir, format!("file{number:02}").as_bytes(), &vec![number as u8; bytes]);
    }
}

/// The cost of an action: time, requests, and prefetched data.
pub(crate) fn cost(world: &mut World, work: impl FnOnce(&mut World)) -> (Duration, usize, PrefetchStatus) {
    let (began, sent) = (world.now, world.seats[1].sent.len());
    work(world);
    let took = world.now.since(began);
    (took, world.seats[1].sent.len() - sent, world.seats[1].client.snapshot().prefetch)
}

/// Lists a directory as `find` does, and what is in it; hands each file to `visit`.
pub(crate) fn walk(world: &mut World, dir: TreeNodeId, visit: &mut dyn FnMut(&mut World, TreeNodeId)) {
    let opened = handle(world.ask(1, Call::Opendir { node: dir }));
    let mut found = Vec::new();
    let mut offset = 0;
    loop {
        let listed = listing(world.ask(1, readdir(dir, opened, offset)));
        let Some(last) = listed.last() else { break };
        offset = last.next;
        found.extend(listed.into_iter().filter(|listed| listed.name != b"." && listed.name != b".."));
    }
    for listed in found {
        let node = listed.entry.map_or_else(|| world.lookup(1, dir, &listed.name), |entry| entry.node);
        if listed.st_mode & 0o170_000 == 0o040_000 {
            walk(world, node, visit);
        } else {
            visit(world, node);
        }
    }
    world.ask(1, Call::Releasedir { node: dir, handle: opened });
}

/// Takes the file's attributes.
pub(crate) fn look(world: &mut World, node: TreeNodeId) {
    assert!(matches!(world.ask(1, getattr(node)), Answer::Attr(..)));
}

/// Reads all of a file.
pub(crate) fn read(world: &mut World, node: TreeNodeId) {
    let opened = handle(world.ask(1, Call::Open { node, how: READ }));
    let read = Call::Read { node, handle: opened, offset: 0, count: 128 * 1024 };
    assert!(!data(world.ask(1, read)).is_empty());
    world.ask(1, Call::Flush { node, handle: opened, owner: 1 });
    world.ask(1, Call::Release { node, handle: opened, flock_owner: None });
}

#[test]
fn walk_of_a_tree_waits_for_two_round_trips() {
    let mut world = world("lease", 30, 10, 10);
    let mut seen = 0;
    let (took, requests, fetched) = cost(&mut world, |world| {
        walk(world, ROOT, &mut |world, node| {
            seen += 1;
            look(world, node);
        });
    });
    assert_eq!((seen, took), (300, 2 * RTT));
    assert!(requests <= 4, "{requests} requests: {:?}", world.seats[1].sent);
    // The first two were asked for in the meantime.
    assert!(fetched.directories.used >= 28 && fetched.directories.wasted <= 2, "{fetched:?}");
}

// S-37
#[test]
fn without_prefetch_nothing_is_asked_for_that_no_program_has_asked_about() {
    let mut quiet = config("lease");
    quiet.mode.fetch = quiet.mode.fetch.without_prefetch();
    let mut world = World::of(1, &[config("window"), quiet], STEADY);
    for name in [b"one".as_slice(), b"two", b"three"] {
        let dir = world.directory(0, ROOT, name);
        fill(&mut world, dir, 5, 1000);
    }
    world.file(0, ROOT, b"large", &vec![7; 4 << 20]);
    get_ready(&mut world);
    walk(&mut world, ROOT, &mut read);
    assert_eq!(world.seats[1].client.snapshot().prefetch, PrefetchStatus::default());
    let large = world.lookup(1, ROOT, b"large");
    let opened = handle(world.ask(1, Call::Open { node: large, how: READ }));
    for offset in [128 << 10, 256 << 10, 384 << 10] {
        let read = Call::Read { node: large, handle: opened, offset, count: 128 << 10 };
        assert_eq!(world.cost(1, read).1, ["Get"], "what is read, and no block ahead of it");
    }
}

#[test]
fn a_tree_that_is_known_costs_nothing() {
    let mut world = world("lease", 10, 5, 10);
    walk(&mut world, ROOT, &mut look);
    world.pass(Duration::from_secs(3600));
    world.seats[1].sent.clear();
    assert_eq!(cost(&mut world, |world| walk(world, ROOT, &mut look)).1, 0);
}

#[test]
fn a_tree_that_is_deep_takes_no_more_round_trips_than_a_flat_one() {
    let mut world = world("lease", 1, 1, 1);
    let mut dirs = vec![world.directory(0, ROOT, b"deep")];
    for level in 0..4 {
        for dir in std::mem::take(&mut dirs) {
            for name in [b"a", b"b", b"c"] {
                let below = world.directory(0, dir, name);
                world.file(0, below, format!("f{level}").as_bytes(), b"x");
                dirs.push(below);
            }
        }
    }
    get_ready(&mut world);
    let (took, requests, _) = cost(&mut world, |world| walk(world, ROOT, &mut look));
    assert!(took <= 3 * RTT, "{took:?}");
    assert!(requests <= 6, "{:?}", world.seats[1].sent);
}

#[test]
fn names_looked_up_in_one_directory_after_the_other_start_a_stream() {
    let mut world = world("lease", 20, 10, 10);
    let (took, requests, _) = cost(&mut world, |world| {
        for number in 0..20 {
            let dir = world.lookup(1, ROOT, format!("d{number:02}").as_bytes());
            for file in 0..10 {
                world.lookup(1, dir, format!("file{file:02}").as_bytes());
            }
        }
    });
    assert!(took <= 3 * RTT, "{took:?}");
    assert!(requests <= 6, "{:?}", world.seats[1].sent);
}

#[test]
fn reading_all_files_of_a_tree_waits_for_three_round_trips() {
    let mut world = world("lease", 20, 20, 1000);
    let mut seen = 0;
    let (took, requests, fetched) = cost(&mut world, |world| {
        walk(world, ROOT, &mut |world, node| {
            seen += 1;
            read(world, node);
        });
    });
    assert_eq!((seen, took), (400, 3 * RTT));
    assert!(requests <= 30, "{requests}: {:?}", world.seats[1].sent);
    assert!(fetched.files.wasted <= 1 && fetched.files.used >= 398, "{fetched:?}");
}

/// Lists the root and the first directory in it, with nothing else known yet. The directory, and the first file in it.
fn begin_to_walk(world: &mut World) -> (TreeNodeId, TreeNodeId) {
    let mut list = |dir| {
        let opened = handle(world.ask(1, Call::Opendir { node: dir }));
        let listed = listing(world.ask(1, readdir(dir, opened, 0)));
        listed.into_iter().find_map(|listed| listed.entry).unwrap().node
    };
    let dir = list(ROOT);
    (dir, list(dir))
}

#[test]
fn directories_not_yet_streamed_are_requested_with_their_contents() {
    let mut world = world("lease", 20, 20, 1000);
    let (_, first) = begin_to_walk(&mut world);
    let finds = |world: &World| world.seats[1].sent.iter().filter(|kind| **kind == "Find").count();
    assert_eq!(finds(&world), 1, "the stream that tells of all directories is on its way");
    let opening = world.call(1, Call::Open { node: first, how: READ });
    assert!(finds(&world) > 10, "{:?}", world.seats[1].sent);
    assert!(matches!(world.wait(1, opening), Answer::Opened(..)));
    world.settle();
    let (took, requests, fetched) = cost(&mut world, |world| walk(world, ROOT, &mut read));
    assert!(took <= RTT && requests <= 10, "{took:?}, {requests}");
    assert!(fetched.contents.wasted <= 1000, "{fetched:?}");
}

#[test]
fn walk_does_not_wait_for_the_free_space() {
    let mut world = world("lease", 20, 3, 10);
    world.pass(Duration::from_secs(20));
    let (dir, _) = begin_to_walk(&mut world);
    let (took, requests, _) = cost(&mut world, |world| {
        assert!(matches!(world.ask(1, Call::Statfs { node: dir }), Answer::FsStat(_)));
    });
    assert_eq!((took, requests), (Duration::ZERO, 0));
    let asked = world.seats[1].sent.iter().filter(|kind| **kind == "Statfs").count();
    assert_eq!(asked, 2, "with the one before");
}

#[test]
fn processes_that_read_the_files_of_one_directory_at_once_wait_for_few_round_trips() {
    let mut world = world("lease", 0, 0, 0);
    fill(&mut world, ROOT, 100, 16 * 1024);
    get_ready(&mut world);
    let (took, _, fetched) = cost(&mut world, |world| {
        // Each has its share of the files and goes on when its call is answered.
        let mut readers: Vec<Reader> = (0..8).map(|reader| Reader::new(world, reader * 12)).collect();
        while !readers.is_empty() {
            readers.retain_mut(|reader| !reader.is_done(world));
            if !readers.is_empty() && readers.iter().all(|reader| !reader.can_go_on(world)) {
                world.step();
            }
        }
    });
    assert!(took <= 4 * RTT, "{took:?}, {fetched:?}");
    assert!(fetched.files.wasted <= 8, "{fetched:?}");
}

/// One process.
struct Reader {
    next: usize,
    end: usize,
    looks: bool,
    call: CallId,
}

impl Reader {
    fn new(world: &mut World, first: usize) -> Reader {
        let call = Reader::look(world, first);
        Reader { next: first, end: first + 12, looks: true, call }
    }

    fn look(world: &mut World, number: usize) -> CallId {
        let name = format!("file{number:02}");
        world.call(1, Call::Lookup { parent: ROOT, name: name.as_bytes() })
    }

    fn can_go_on(&self, world: &World) -> bool {
        world.seats[1].answers.contains_key(&self.call)
    }

    fn is_done(&mut self, world: &mut World) -> bool {
        while self.can_go_on(world) {
            let answer = world.wait(1, self.call);
            if self.looks {
                let node = entry(answer).node;
                self.call = world.call(1, Call::Open { node, how: READ });
            } else {
                assert!(matches!(answer, Answer::Opened(..)), "{answer:?}");
                self.next += 1;
                if self.next == self.end {
                    return true;
                }
                self.call = Reader::look(world, self.next);
            }
            self.looks = !self.looks;
        }
        false
    }
}

#[test]
fn a_strict_client_fetches_nothing_ahead() {
    let mut world = world("strict", 4, 3, 10);
    let (.., fetched) = cost(&mut world, |world| walk(world, ROOT, &mut read));
    assert_eq!(fetched, PrefetchStatus::default());
    assert!(!world.seats[1].sent.contains(&"Find"));
}

#[test]
fn a_window_client_walks_by_streams_too() {
    let mut world = world("window", 30, 5, 10);
    let (took, requests, _) = cost(&mut world, |world| walk(world, ROOT, &mut look));
    assert!(took <= 2 * RTT && requests <= 5, "{took:?}, {requests}");
}

#[test]
fn what_was_fetched_ahead_and_is_too_old_is_dropped_and_counted_as_wasted() {
    let mut world = world("window", 30, 5, 10);
    let opened = handle(world.ask(1, Call::Opendir { node: ROOT }));
    let first = listing(world.ask(1, readdir(ROOT, opened, 0))).into_iter().find(|it| it.name == b"d00");
    let node = first.and_then(|listed| listed.entry).expect("listed with attributes").node;
    world.ask(1, Call::Opendir { node });
    world.pass(Duration::from_secs(5));
    let fetched = world.seats[1].client.snapshot().prefetch.directories;
    assert_eq!((fetched.fetched, fetched.used + fetched.wasted), (30, 30), "{fetched:?}");
}

#[test]
fn separate_listings_of_two_directories_prefetch_nothing() {
    let mut world = world("lease", 10, 5, 10);
    let look_at = |world: &mut World, node: TreeNodeId| {
        let opened = handle(world.ask(1, Call::Opendir { node }));
        world.ask(1, readdir(node, opened, 0));
        world.ask(1, Call::Releasedir { node, handle: opened });
        world.pass(Duration::from_secs(5));
    };
    look_at(&mut world, ROOT);
    for name in [b"d01", b"d05"] {
        let dir = world.lookup(1, ROOT, name);
        look_at(&mut world, dir);
        let file = world.lookup(1, dir, b"file03");
        read(&mut world, file);
    }
    assert_eq!(world.seats[1].client.snapshot().prefetch.asked, 0);
}

#[test]
fn an_open_file_whose_contents_are_fetched_ahead_outlives_its_name() {
    let mut world = World::of(1, &[config("window"), config("lease")], STEADY);
    let dir = world.directory(0, ROOT, b"d00");
    fill(&mut world, dir, 8, 2000);
    // Among so much else its files are asked for one by one.
    for number in 0..20 {
        world.directory(0, dir, format!("other{number}").as_bytes());
    }
    get_ready(&mut world);
    let dir = world.lookup(1, ROOT, b"d00");
    let open = world.lookup(1, dir, b"file06");
    let opened = handle(world.ask(1, Call::Open { node: open, how: READ_WRITE }));
    for name in [b"file00", b"file01", b"file02", b"file03", b"file04"] {
        let node = world.lookup(1, dir, name);
        read(&mut world, node);
    }
    world.settle();
    let counted = world.seats[1].client.snapshot().prefetch;
    assert!(counted.asked > 0, "nothing was fetched ahead: {counted:?}");
    assert_eq!(world.ask(1, Call::Unlink { parent: dir, name: b"file06" }), Answer::Done);
    assert_eq!(world.ask(1, write(open, opened, 0, b"new")), Answer::Count(3));
    assert_eq!(world.ask(1, Call::Fsync { node: open, handle: opened, data_only: false }), Answer::Done);
}
