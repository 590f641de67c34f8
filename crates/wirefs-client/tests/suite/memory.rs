//! The cache takes no more memory than the user allows, whatever programs walk, list and read.

use crate::config;
use crate::deeds::{NEW, READ, data, entry, handle, listing, readdir, write};
use crate::world::{STEADY, World};
use std::collections::BTreeMap;
use std::time::Duration;
use wirefs_client::Config;
use wirefs_client::call::{Call, CallId, Caller, ROOT, TreeNodeId};
use wirefs_op::Kind;

/// As much for 20,000 entries as the usual 256 MiB are for a million.
const BYTES_MAX: usize = 5 * 1024 * 1024;
const ENTRIES: usize = 20_000;
fn world() -> World {
    World::new(1, Config { cache_bytes_max: BYTES_MAX, ..config("lease") }, 1, STEADY)
}

/// A program that walks, and a kernel that keeps all names until it is to let go of them.
struct Walker {
    world: World,
    /// The nodes that the kernel holds, and the number of their lookups.
    held: BTreeMap<TreeNodeId, u64>,
    bytes_max: usize,
}

impl Walker {
    fn new(world: World) -> Walker {
        Walker { world, held: BTreeMap::new(), bytes_max: 0 }
    }

    /// Lets time pass; the kernel does what it was told.
    fn pass(&mut self) {
        self.check();
        self.release();
        self.check();
    }

    /// The same without a look at the memory.
    fn release(&mut self) {
        self.world.pass(Duration::from_millis(100));
        let (now, nobody) = (self.world.now, Caller { uid: 0, gid: 0, pid: 1 });
        let seat = &mut self.world.seats[0];
        for node in std::mem::take(&mut seat.let_go) {
            if let Some(count) = self.held.remove(&node) {
                seat.client.call(now, CallId(u64::MAX), nobody, Call::Forget { node, count });
            }
        }
    }

    fn check(&mut self) {
        let snapshot = self.world.seats[0].client.snapshot();
        let bytes = snapshot.memory.all() + snapshot.cached_bytes;
        assert!(bytes <= BYTES_MAX, "{bytes}: {:?} and contents {}", snapshot.memory, snapshot.cached_bytes);
        self.bytes_max = self.bytes_max.max(bytes);
    }

    /// Lists a directory and all below it; tells how many names there are.
    fn walk(&mut self, dir: TreeNodeId) -> usize {
        let opened = handle(self.world.ask(0, Call::Opendir { node: dir }));
        let (mut count, mut offset, mut below) = (0, 0, Vec::new());
        loop {
            let listed = listing(self.world.ask(0, readdir(dir, opened, offset)));
            let Some(last) = listed.last() else { break };
            offset = last.next;
            for listed in listed.into_iter().filter(|listed| !matches!(listed.name.as_slice(), b"." | b".."))
            {
                count += 1;
                if let Some(entry) = listed.entry {
                    *self.held.entry(entry.node).or_default() += 1;
                    below.extend((entry.stat.kind == Kind::Directory).then_some(entry.node));
                }
            }
            self.pass();
        }
        self.world.ask(0, Call::Releasedir { node: dir, handle: opened });
        count + below.into_iter().map(|dir| self.walk(dir)).sum::<usize>()
    }

    /// Reads a file to its end.
    fn read(&mut self, name: &[u8], size: u64) {
        let node = self.world.lookup(0, ROOT, name);
        let opened = handle(self.world.ask(0, Call::Open { node, how: READ }));
        for offset in (0..size).step_by(128 * 1024) {
            let read = self.world.ask(0, Call::Read { node, handle: opened, offset, count: 128 * 1024 });
            assert_eq!(data(read).len() as u64, (size - offset).min(128 * 1024));
            self.pass();
        }
        self.world.close(0, node, opened);
    }
}

#[test]
fn a_walk_over_many_directories_stays_within_its_memory() {
    let world = world();
    for dir in 0..20 {
        world.make(&format!("d{dir}"), Kind::Directory, b"");
        for file in 1..ENTRIES / 20 {
            world.make(&format!("d{dir}/a-file-{file:05}"), Kind::File, b"");
        }
    }
    let mut walker = Walker::new(world);
    assert_eq!(walker.walk(ROOT), ENTRIES);
    assert!(walker.bytes_max > BYTES_MAX / 4, "it remembered {} bytes only", walker.bytes_max);
    assert!(walker.world.seats[0].client.snapshot().nodes < ENTRIES / 4);
    let came = walker.world.seats[0].client.snapshot().prefetch.directories;
    assert!(came.wasted * 4 <= came.fetched, "{came:?}");
    // Most of it is known, packed.
    let before = walker.world.seats[0].sent.len();
    assert_eq!(walker.walk(ROOT), ENTRIES);
    let sent = &walker.world.seats[0].sent[before..];
    assert!(sent.len() <= 4, "{sent:?}");
}

#[test]
fn one_directory_of_many_files_stays_within_its_memory() {
    let (world, files) = (world(), 8000);
    for file in 0..files {
        world.make(&format!("a-file-{file:05}"), Kind::File, b"");
    }
    let mut walker = Walker::new(world);
    for _ in 0..2 {
        assert_eq!(walker.walk(ROOT), files);
    }
}

#[test]
fn a_long_directory_that_is_used_is_not_packed_at_each_call() {
    let (world, files) = (world(), 3000);
    world.make("d", Kind::Directory, b"");
    for file in 0..files {
        world.make(&format!("d/a-file-{file:05}"), Kind::File, b"");
    }
    let mut walker = Walker::new(world);
    assert_eq!(walker.walk(ROOT), files + 1);
    let dir = walker.world.lookup(0, ROOT, b"d");
    walker.pass();
    let before = walker.world.seats[0].sent.len();
    for _ in 0..100 {
        walker.world.ask(0, Call::Getattr { node: dir, handle: None });
        assert_eq!(walker.world.seats[0].client.snapshot().memory.packed, 0);
    }
    assert_eq!(walker.world.seats[0].sent[before..], Vec::<&str>::new());
}

#[test]
fn a_listing_that_many_programs_have_open_counts_once() {
    let (world, files) = (world(), 1000);
    for file in 0..files {
        world.make(&format!("a-file-{file:05}"), Kind::File, b"");
    }
    let mut walker = Walker::new(world);
    assert_eq!(walker.walk(ROOT), files);
    let listings = |world: &World| world.seats[0].client.snapshot().memory.listings;
    let (mut handles, world) = (Vec::new(), &mut walker.world);
    handles.push(handle(world.ask(0, Call::Opendir { node: ROOT })));
    let once = listings(world);
    for _ in 0..12 {
        handles.push(handle(world.ask(0, Call::Opendir { node: ROOT })));
    }
    assert_eq!(listings(world), once);
    // Others change the directory: it is known no more, and still open.
    world.make("another-file", Kind::File, b"");
    world.pass(Duration::from_secs(2));
    assert!(listings(world) > 0 && listings(world) <= once, "{}", listings(world));
    for handle in handles {
        world.ask(0, Call::Releasedir { node: ROOT, handle });
    }
}

#[test]
fn contents_make_room_for_names() {
    let world = world();
    let size = BYTES_MAX - 64 * 1024;
    world.make("large", Kind::File, &vec![7; size]);
    world.make("d", Kind::Directory, b"");
    for file in 0..2000 {
        world.make(&format!("d/a-file-{file:05}"), Kind::File, b"");
    }
    let mut walker = Walker::new(world);
    walker.read(b"large", size as u64);
    let cached = walker.world.seats[0].client.snapshot().cached_bytes;
    assert!(cached > BYTES_MAX / 2, "{cached} bytes are remembered");
    assert_eq!(walker.walk(ROOT), 2002);
    assert!(walker.world.seats[0].client.snapshot().cached_bytes < cached);
}

#[test]
fn contents_make_room_for_other_memory_of_the_process() {
    let world = world();
    world.make("large", Kind::File, &vec![7; BYTES_MAX - 64 * 1024]);
    let mut walker = Walker::new(world);
    walker.read(b"large", (BYTES_MAX - 64 * 1024) as u64);
    let client = &mut walker.world.seats[0].client;
    let cached = client.snapshot().cached_bytes;
    assert!(cached > BYTES_MAX / 2, "{cached} bytes are remembered");
    client.note_uncounted(BYTES_MAX / 2);
    assert!(client.snapshot().cached_bytes < cached);
    assert!(!client.is_measurement_due(), "evicted memory is resident until it is trimmed");
    client.tick(walker.world.now);
    let snapshot = client.snapshot();
    assert!(snapshot.cached_bytes >= BYTES_MAX / 4, "{} bytes are remembered", snapshot.cached_bytes);
    walker.check();
}

#[test]
fn names_are_released_once_memory_is_short_for_a_while() {
    let world = world();
    for file in 0..1000 {
        world.make(&format!("a-file-{file:05}"), Kind::File, b"");
    }
    let mut walker = Walker::new(world);
    assert_eq!(walker.walk(ROOT), 1000);
    let nodes = |walker: &Walker| walker.world.seats[0].client.snapshot().nodes;
    let before = nodes(&walker);
    assert!(before > 900, "{before} nodes");
    // Freed memory that the allocator keeps for a moment is no reason.
    walker.world.seats[0].client.note_uncounted(2 * BYTES_MAX);
    walker.release();
    walker.world.seats[0].client.note_uncounted(0);
    walker.release();
    assert_eq!(nodes(&walker), before);
    for _ in 0..40 {
        walker.world.seats[0].client.note_uncounted(2 * BYTES_MAX);
        walker.release();
    }
    let after = nodes(&walker);
    assert!(after < before / 2 && after > before / 4, "{after} of {before} nodes");
}

/// A large file that is read or written from its beginning to its end leaves room for what else is remembered.
#[test]
fn what_is_read_or_written_once_in_sequence_is_not_kept() {
    const BYTES: u64 = 24 << 20;
    const STEP: usize = 1 << 20;
    // Of each file.
    const LEFT_MAX: usize = 6 << 20;
    let contents: Vec<u8> = (0..BYTES).map(|at| (at / 997) as u8).collect();
    let mut world = World::new(1, config("lease"), 1, STEADY);
    world.make("old", Kind::File, &contents);
    let check = |world: &mut World, node: TreeNodeId, files: usize| {
        let opened = handle(world.ask(0, Call::Open { node, how: READ }));
        for (index, piece) in contents.chunks(STEP).enumerate() {
            let offset = (index * STEP) as u64;
            let read = world.ask(0, Call::Read { node, handle: opened, offset, count: STEP as u32 });
            assert_eq!(data(read), piece, "at {offset}");
        }
        world.close(0, node, opened);
        let left = world.seats[0].client.snapshot().cached_bytes;
        assert!(left <= files * LEFT_MAX, "{left} bytes");
    };
    let old = world.lookup(0, ROOT, b"old");
    check(&mut world, old, 1);
    check(&mut world, old, 1);
    let created = world.ask(0, Call::Create { parent: ROOT, name: b"new", mode: 0o644, umask: 0, how: NEW });
    let (new, opened) = (entry(created.clone()).node, handle(created));
    for (index, piece) in contents.chunks(STEP).enumerate() {
        world.ask(0, write(new, opened, (index * STEP) as u64, piece));
    }
    let left = world.seats[0].client.snapshot().cached_bytes;
    assert!(left <= 2 * LEFT_MAX, "{left} bytes");
    world.close(0, new, opened);
    check(&mut world, new, 2);
}
