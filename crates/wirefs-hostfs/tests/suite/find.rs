//! Streams of subtrees.

mod bounds;
mod changes;
mod cost;
mod leases;
mod listings;

use crate::harness::{Collected, FIRST, World, at, get, keep, open_as, path, place, put};
use listings::ReceivedStream;
use rustix::fs::{CWD, Mode};
use rustix::time::{ClockId, clock_gettime};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;
use wirefs_hostfs::HostOptions;
use wirefs_op::message::find::Tfind;
use wirefs_op::message::get::GetMode;
use wirefs_op::message::rename::Trename;
use wirefs_op::message::target::Target;
use wirefs_op::{Errno, FileId, Kind, Request, TreePath};
use wirefs_server::Tree;

/// The whole subtree of a target, without contents.
fn all(target: Target) -> Tfind {
    Tfind { target, depth: u16::MAX, entries: u32::MAX, bytes: u32::MAX, inline: 0 }
}

fn find(world: &World, request: Tfind) -> Result<ReceivedStream, Errno> {
    let mut collected = Collected::default();
    world.tree.serve(FIRST, Request::Find(request), &mut collected);
    ReceivedStream::of(collected.replies)
}

/// Waits until the files are old enough for contents to be included.
fn settle() {
    let now = || {
        let now = clock_gettime(ClockId::RealtimeCoarse);
        Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
    };
    let until = now() + Duration::from_millis(40);
    while now() < until {
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

/// `breadth` directories in each directory, `depth` levels deep, `files` files in each.
fn grow(dir: &Path, depth: usize, breadth: usize, files: usize) {
    for number in 0..files {
        std::fs::write(dir.join(format!("file{number}")), format!("{}/{number}", dir.display())).unwrap();
    }
    for number in (0..breadth).filter(|_| depth > 0) {
        let below = dir.join(format!("dir{number}"));
        std::fs::create_dir(&below).unwrap();
        grow(&below, depth - 1, breadth, files);
    }
}

/// Compares the stream with ordinary listings of all directories below a path.
fn list_all(world: &World, at_path: &TreePath, stream: &ReceivedStream) {
    let mut paths = vec![TreePath::root()];
    let mut count = 0;
    while let Some(below) = paths.pop() {
        let names = at_path.names().chain(below.names());
        let target = Target::at(TreePath::from_names(names).unwrap());
        let mut listed = world.list(FIRST, target.clone()).unwrap();
        listed.sort_by(|one, other| one.name.cmp(&other.name));
        let listing = stream.listing(&below).unwrap_or_else(|| panic!("{below:?} is not stream of"));
        assert!(listing.ended, "{below:?} is not complete");
        assert_eq!(listing.stat.unleased(), world.stat(FIRST, target).unwrap());
        let mut entries: Vec<_> = listing.entries.iter().map(|entry| (&entry.name, entry.stat)).collect();
        entries.sort_by_key(|(name, _)| *name);
        assert_eq!(entries, listed.iter().map(|entry| (&entry.name, entry.stat)).collect::<Vec<_>>());
        let directories = listed.iter().filter(|entry| entry.stat.kind == Kind::Directory);
        paths.extend(directories.map(|entry| below.join(&entry.name).unwrap()));
        count += 1;
    }
    assert_eq!(stream.listings.len(), count, "more is stream of than there is");
}

#[test]
fn a_stream_equals_ordinary_listings() {
    let world = World::new();
    grow(&world.host(""), 3, 4, 5);
    std::os::unix::fs::symlink("dir0", world.host("dir1/link")).unwrap();
    rustix::fs::mkfifoat(CWD, world.host("dir1/pipe"), Mode::RUSR).unwrap();
    let stream = find(&world, all(at(""))).unwrap();
    assert!(!stream.has_more);
    list_all(&world, &TreePath::root(), &stream);
    let below = find(&world, all(at("dir1/dir2"))).unwrap();
    list_all(&world, &path("dir1/dir2"), &below);
    assert!(below.listings.len() < stream.listings.len());
}

#[test]
fn directories_come_in_the_order_of_a_tree_walk() {
    let world = World::new();
    grow(&world.host(""), 3, 5, 1);
    let stream = find(&world, all(at(""))).unwrap();
    let mut expected = Vec::new();
    let mut left = vec![TreePath::root()];
    while let Some(path) = left.pop() {
        let entries = &stream.listing(&path).unwrap().entries;
        let directories = entries.iter().filter(|entry| entry.stat.kind == Kind::Directory);
        let mut below: Vec<_> = directories.map(|entry| path.join(&entry.name).unwrap()).collect();
        below.sort_unstable();
        left.extend(below.into_iter().rev());
        expected.push(path);
    }
    let order: Vec<TreePath> = stream.listings.iter().map(|listing| listing.path.clone()).collect();
    assert_eq!(order, expected);
}

#[test]
fn symlinks_are_listed_and_not_followed() {
    let outside = crate::harness::Scratch::new();
    std::fs::write(outside.path().join("secret"), "secret").unwrap();
    let world = World::new();
    std::os::unix::fs::symlink(outside.path(), world.host("away")).unwrap();
    std::os::unix::fs::symlink(outside.path().join("secret"), world.host("leak")).unwrap();
    std::os::unix::fs::symlink(".", world.host("loop")).unwrap();
    let stream = find(&world, Tfind { inline: 4096, ..all(at("")) }).unwrap();
    assert_eq!(stream.listings.len(), 1);
    for (name, target) in [("away", outside.path().to_path_buf()), ("leak", outside.path().join("secret"))] {
        let entry = stream.entry("", name);
        assert_eq!(entry.stat.kind, Kind::Symlink);
        assert_eq!(entry.contents.as_deref(), Some(target.as_os_str().as_encoded_bytes()));
    }
    assert_eq!(find(&world, all(at("away"))), Err(Errno::NotDirectory));
}

#[test]
fn only_directories_have_a_stream() {
    let world = World::new();
    std::fs::write(world.host("file"), "").unwrap();
    std::fs::create_dir(world.host("dir")).unwrap();
    let id = world.stat(FIRST, at("dir")).unwrap().id;
    let other = FileId { ino: id.ino + 1, ..id };
    assert_eq!(find(&world, all(at("file"))), Err(Errno::NotDirectory));
    assert_eq!(find(&world, all(at("file/below"))), Err(Errno::NotDirectory));
    assert_eq!(find(&world, all(at("nothing"))), Err(Errno::NotFound));
    assert_eq!(find(&world, all(Target { id: Some(other), ..at("dir") })), Err(Errno::Stale));
    assert_eq!(find(&world, all(Target { id: Some(id), ..at("dir") })).unwrap().listings.len(), 1);
}

#[test]
fn an_fd_identifies_the_directory_and_stays_open() {
    let world = World::new();
    grow(&world.host("").join("."), 2, 2, 1);
    let kept = world.get(FIRST, get(at("dir0"), GetMode::STAT.and(GetMode::MORE), 0, 0)).unwrap().remove(0);
    let id = kept.stat.unwrap().id;
    for _ in 0..2 {
        let stream = find(&world, all(open_as("dir0", kept.fd, id))).unwrap();
        list_all(&world, &path("dir0"), &stream);
    }
    // Its path now belongs to another directory, whose subtree is not sent.
    let rename = Trename { from: place("dir0"), to: place("moved"), flags: 0 };
    world.ask_one(FIRST, Request::Rename(rename)).unwrap();
    grow(&world.host("").join("."), 0, 0, 1);
    std::fs::create_dir_all(world.host("dir0/dir0")).unwrap();
    std::fs::write(world.host("dir0/dir0/other"), "").unwrap();
    let stream = find(&world, all(open_as("dir0", kept.fd, id))).unwrap();
    assert_eq!(stream.listings.len(), 1);
    assert_eq!(stream.listings[0].stat.id, id);
    let names: BTreeSet<_> = stream.listings[0].entries.iter().map(|entry| entry.name.as_slice()).collect();
    assert_eq!(names, BTreeSet::from([&b"dir0"[..], b"dir1", b"file0"]));
    // A removed directory has no listing.
    std::fs::remove_dir_all(world.host("moved")).unwrap();
    assert_eq!(find(&world, all(open_as("dir0", kept.fd, id))), Err(Errno::NotFound));
}

#[test]
fn small_contents_are_included() {
    let world = World::new();
    for (name, size) in [("empty", 0), ("small", 100), ("limit", 1000), ("large", 1001)] {
        std::fs::write(world.host(name), name.bytes().cycle().take(size).collect::<Vec<u8>>()).unwrap();
    }
    std::os::unix::fs::symlink("t".repeat(1000), world.host("link")).unwrap();
    std::os::unix::fs::symlink("t".repeat(1001), world.host("long")).unwrap();
    settle();
    let stream = find(&world, Tfind { inline: 1000, ..all(at("")) }).unwrap();
    for name in ["empty", "small", "limit"] {
        let contents = std::fs::read(world.host(name)).unwrap();
        assert_eq!(stream.entry("", name).contents.as_deref(), Some(&contents[..]), "{name}");
    }
    assert_eq!(stream.entry("", "link").contents.as_deref(), Some("t".repeat(1000).as_bytes()));
    assert_eq!(stream.entry("", "large").contents, None);
    assert_eq!(stream.entry("", "long").contents, None);
    let without = find(&world, all(at(""))).unwrap();
    assert!(without.listings[0].entries.iter().all(|entry| entry.contents.is_none()));
}

#[test]
fn a_large_directory_spans_messages() {
    let world = World::new();
    std::fs::create_dir(world.host("large")).unwrap();
    for number in 0..3000 {
        std::fs::write(world.host(&format!("large/{}{number}", "n".repeat(200))), "").unwrap();
    }
    for number in 0..50 {
        std::fs::write(world.host(&format!("large/contents{number}")), vec![b'c'; 40_000]).unwrap();
    }
    std::fs::create_dir(world.host("large/below")).unwrap();
    settle();
    let stream = find(&world, Tfind { inline: 64 * 1024, ..all(at("")) }).unwrap();
    list_all(&world, &TreePath::root(), &stream);
    assert!(stream.messages > 10, "{} messages", stream.messages);
    for number in 0..50 {
        let contents = &stream.entry("large", &format!("contents{number}")).contents;
        assert_eq!(contents.as_ref().map(|contents| contents.len()), Some(40_000));
    }
}

#[test]
fn directories_without_a_path_are_left_out() {
    let world = World::new();
    let name = "n".repeat(255);
    let mut dir = rustix::fs::open(world.host(""), rustix::fs::OFlags::PATH, Mode::empty()).unwrap();
    for _ in 0..130 {
        rustix::fs::mkdirat(&dir, &name, Mode::RWXU).unwrap();
        dir = rustix::fs::openat(&dir, &name, rustix::fs::OFlags::PATH, Mode::empty()).unwrap();
    }
    let stream = find(&world, all(at(""))).unwrap();
    // 128 names and the slashes between them are 32,767 bytes.
    assert_eq!(stream.listings.len(), 129);
    assert_eq!(stream.listings[128].entries.len(), 1);
    assert!(stream.listings[128].ended && !stream.has_more);
}

#[test]
fn mounts_below_are_listed_as_in_ordinary_listings() {
    crate::harness::need_root();
    for cross_mounts in [true, false] {
        let options = HostOptions { cross_mounts, ..HostOptions::all_rights() };
        let world = World::with(options, |dir| std::fs::create_dir(dir.join("mounted")).unwrap());
        let _mount = crate::full_disk::Tmpfs::mount(&world.host("mounted"), 1 << 20);
        std::fs::create_dir(world.host("mounted/dir")).unwrap();
        std::fs::write(world.host("mounted/dir/file"), "data").unwrap();
        std::fs::write(world.host("own"), "data").unwrap();
        settle();
        let stream = find(&world, Tfind { inline: 1000, ..all(at("")) }).unwrap();
        assert_ne!(stream.entry("", "mounted").stat.id.fs, 0);
        assert_eq!(stream.entry("", "own").contents.as_deref(), Some(&b"data"[..]));
        assert_eq!(stream.listings.len(), if cross_mounts { 3 } else { 1 });
        if cross_mounts {
            assert_eq!(stream.entry("mounted/dir", "file").contents.as_deref(), Some(&b"data"[..]));
        }
    }
}

#[test]
fn unreadable_directories_are_left_out() {
    crate::harness::need_root();
    let world = World::new();
    grow(&world.host(""), 1, 12, 2);
    for name in ["dir3", "dir7/file1"] {
        let closed = std::os::unix::fs::PermissionsExt::from_mode(0o000);
        std::fs::set_permissions(world.host(name), closed).unwrap();
        std::os::unix::fs::chown(world.host(name), Some(1000), Some(1000)).unwrap();
    }
    settle();
    let stream = std::thread::scope(|scope| {
        // Only a separate thread may drop its rights; the threads that it starts have none either.
        let without_rights = || {
            let mut rights = rustix::thread::capabilities(None).unwrap();
            rights.effective = rustix::thread::CapabilitySet::empty();
            rustix::thread::set_capabilities(None, rights).unwrap();
            find(&world, Tfind { inline: 1000, ..all(at("")) }).unwrap()
        };
        scope.spawn(without_rights).join().unwrap()
    });
    assert!(!stream.has_more);
    assert_eq!(stream.listings.len(), 12);
    assert!(stream.listing(&path("dir3")).is_none());
    assert_eq!(stream.entry("", "dir3").stat.mode, 0);
    assert_eq!(stream.entry("dir7", "file1").contents, None);
    assert!(stream.entry("dir7", "file0").contents.is_some());
}

#[test]
fn a_removed_files_fd_has_no_stream() {
    let world = World::new();
    std::fs::write(world.host("file"), "").unwrap();
    let kept = world.put(FIRST, put(at("file"), keep())).unwrap();
    let id = kept.stat.unwrap().id;
    std::fs::remove_file(world.host("file")).unwrap();
    assert_eq!(find(&world, all(open_as("file", kept.fd, id))), Err(Errno::NotDirectory));
}
