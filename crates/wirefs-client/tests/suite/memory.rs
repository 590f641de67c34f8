//! What is known takes no more memory than the user allows, whatever is walked, listed and read.

use crate::config;
use crate::deeds::{READ, data, handle, listing, readdir};
use crate::world::{STEADY, World, serve};
use std::collections::BTreeMap;
use std::time::Duration;
use wirefs_client::Config;
use wirefs_client::call::{Call, CallId, Caller, NodeId, ROOT};
use wirefs_op::message::put::{Create, PutMode, Tput};
use wirefs_op::message::target::Target;
use wirefs_op::wire::Data;
use wirefs_op::{Cred, Kind, Reply, Request, SetStat, TreePath};
use wirefs_server::{SessionKey, Tree as _};

/// As much for 20,000 entries as the usual 256 MiB are for a million.
const BYTES_MAX: usize = 5 * 1024 * 1024;
const ENTRIES: usize = 20_000;
/// Who makes the trees.
const MAKER: SessionKey = SessionKey(900);

fn world() -> World {
    let world = World::new(1, Config { cache_bytes_max: BYTES_MAX, ..config("lease") }, 1, STEADY);
    world.tree.attach(MAKER, &TreePath::root()).unwrap();
    world
}

fn make(world: &World, path: &str, kind: Kind, contents: &[u8]) {
    let create = Create { kind, mode: 0o755, rdev: 0, cred: Cred::default() };
    let put = Tput {
        target: Target::at(TreePath::from_bytes(path.to_owned().into()).unwrap()),
        mode: PutMode::CREATE.and(PutMode::EXCLUSIVE).and_if(!contents.is_empty(), PutMode::DATA),
        create: Some(create),
        set: SetStat::default(),
        offset: 0,
        data: Data(contents.to_vec().into()),
    };
    let made = serve(&world.tree, MAKER, Request::Put(put));
    assert!(matches!(made[..], [Reply::Put(_)]), "{path}: {made:?}");
}

/// A program that walks, and a kernel that keeps all names until it is to let go of them.
struct Walker {
    world: World,
    /// What the kernel holds, and how often it was told of it.
    held: BTreeMap<NodeId, u64>,
    bytes_max: usize,
}

impl Walker {
    fn new(world: World) -> Walker {
        Walker { world, held: BTreeMap::new(), bytes_max: 0 }
    }

    /// Lets time pass; the kernel does what it was told.
    fn pass(&mut self) {
        self.check();
        self.world.pass(Duration::from_millis(100));
        let (now, nobody) = (self.world.now, Caller { uid: 0, gid: 0, pid: 1 });
        let seat = &mut self.world.seats[0];
        for node in std::mem::take(&mut seat.let_go) {
            if let Some(count) = self.held.remove(&node) {
                seat.client.call(now, CallId(u64::MAX), nobody, Call::Forget { node, count });
            }
        }
        self.check();
    }

    fn check(&mut self) {
        let snapshot = self.world.seats[0].client.snapshot();
        let bytes = snapshot.memory.all() + snapshot.cached_bytes;
        assert!(bytes <= BYTES_MAX, "{bytes}: {:?} and contents {}", snapshot.memory, snapshot.cached_bytes);
        self.bytes_max = self.bytes_max.max(bytes);
    }

    /// Lists a directory and all below it; tells how many names there are.
    fn walk(&mut self, dir: NodeId) -> usize {
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
        make(&world, &format!("d{dir}"), Kind::Directory, b"");
        for file in 1..ENTRIES / 20 {
            make(&world, &format!("d{dir}/a-file-{file:05}"), Kind::File, b"");
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
        make(&world, &format!("a-file-{file:05}"), Kind::File, b"");
    }
    let mut walker = Walker::new(world);
    for _ in 0..2 {
        assert_eq!(walker.walk(ROOT), files);
    }
}

#[test]
fn a_long_directory_that_is_used_is_not_packed_at_each_call() {
    let (world, files) = (world(), 3000);
    make(&world, "d", Kind::Directory, b"");
    for file in 0..files {
        make(&world, &format!("d/a-file-{file:05}"), Kind::File, b"");
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
        make(&world, &format!("a-file-{file:05}"), Kind::File, b"");
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
    make(world, "another-file", Kind::File, b"");
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
    make(&world, "large", Kind::File, &vec![7; size]);
    make(&world, "d", Kind::Directory, b"");
    for file in 0..2000 {
        make(&world, &format!("d/a-file-{file:05}"), Kind::File, b"");
    }
    let mut walker = Walker::new(world);
    walker.read(b"large", size as u64);
    let cached = walker.world.seats[0].client.snapshot().cached_bytes;
    assert!(cached > BYTES_MAX / 2, "{cached} bytes are remembered");
    assert_eq!(walker.walk(ROOT), 2002);
    assert!(walker.world.seats[0].client.snapshot().cached_bytes < cached);
}
