//! Files that are only read: their closing is not asked about, and locks fall all the same.

use crate::config;
use crate::deeds::{READ, READ_WRITE, data, handle};
use crate::world::{STEADY, World};
use wirefs_client::call::{Answer, Call, Handle, OpenHow, PageCache, ROOT, TreeNodeId};
use wirefs_op::{LockFamily, LockKind, LockRange};

const ONE: u64 = 1;
const OTHER: u64 = 2;

fn opened(world: &mut World, node: TreeNodeId, how: OpenHow) -> (Handle, PageCache) {
    match world.ask(0, Call::Open { node, how }) {
        Answer::Opened(handle, pages) => (handle, pages),
        other => panic!("not opened: {other:?}"),
    }
}

/// A file that was read once, in this mode.
fn read_once(mode: &str) -> (World, TreeNodeId) {
    let mut world = World::new(1, config(mode), 1, STEADY);
    let node = world.file(0, ROOT, b"f", b"contents");
    world.settle();
    let handle = handle(world.ask(0, Call::Open { node, how: READ }));
    assert_eq!(data(world.ask(0, Call::Read { node, handle, offset: 0, count: 4096 })), "contents");
    world.close(0, node, handle);
    world.settle();
    (world, node)
}

fn shared() -> LockRange {
    LockRange { kind: LockKind::Read, start: 0, end: 9, pid: 0 }
}

fn lock(world: &mut World, node: TreeNodeId, handle: Handle, owner: u64) {
    let call = Call::Setlk { node, handle, owner, family: LockFamily::Posix, range: shared(), wait: false };
    assert_eq!(world.ask(0, call), Answer::Done);
}

/// The last descriptor of a file that the kernel closes without a word.
fn release(world: &mut World, node: TreeNodeId, handle: Handle) {
    assert_eq!(world.ask(0, Call::Release { node, handle, flock_owner: None }), Answer::Done);
    world.settle();
}

#[test]
fn a_file_that_is_read_again_is_closed_without_a_word() {
    let (mut world, node) = read_once("lease");
    assert_eq!(opened(&mut world, node, READ).1, PageCache::Quiet);
    assert_eq!(opened(&mut world, node, READ_WRITE).1, PageCache::Keep);
    assert_ne!(opened(&mut world, node, OpenHow { truncate: true, ..READ }).1, PageCache::Quiet);
    for mode in ["window", "session", "lazy", "commit", "strict"] {
        let (mut world, node) = read_once(mode);
        let pages = opened(&mut world, node, READ).1;
        assert!(!matches!(pages, PageCache::Quiet | PageCache::QuietBypass), "{mode}");
    }
}

#[test]
fn a_file_that_no_pages_are_kept_of_is_closed_without_a_word_too() {
    let (mut world, node) = read_once("direct");
    assert_eq!(opened(&mut world, node, READ).1, PageCache::QuietBypass);
    assert_eq!(opened(&mut world, node, READ_WRITE).1, PageCache::Bypass);
    let (handle, pages) = opened(&mut world, node, READ);
    assert_eq!(pages, PageCache::QuietBypass);
    lock(&mut world, node, handle, ONE);
    assert_eq!(opened(&mut world, node, READ).1, PageCache::Bypass);
}

// S-43
#[test]
fn a_file_that_was_locked_is_not_closed_without_a_word_any_more() {
    let (mut world, node) = read_once("lease");
    let (first, pages) = opened(&mut world, node, READ);
    assert_eq!(pages, PageCache::Quiet);
    lock(&mut world, node, first, ONE);
    release(&mut world, node, first);
    for _ in 0..3 {
        let (next, pages) = opened(&mut world, node, READ);
        assert_eq!(pages, PageCache::Keep);
        lock(&mut world, node, next, ONE);
        assert_eq!(world.locked(), [shared()]);
        // Here the first close lets go, though the open file lives on in another process.
        assert_eq!(world.ask(0, Call::Flush { node, handle: next, owner: ONE }), Answer::Done);
        world.settle();
        assert_eq!(world.locked(), []);
        release(&mut world, node, next);
    }
}

// S-43
#[test]
fn locks_taken_through_a_file_that_is_closed_without_a_word_fall_with_its_last_descriptor() {
    let (mut world, node) = read_once("lease");
    let (quiet, pages) = opened(&mut world, node, READ);
    assert_eq!(pages, PageCache::Quiet);
    lock(&mut world, node, quiet, ONE);
    lock(&mut world, node, quiet, OTHER);
    assert_eq!(world.locked(), [shared(), shared()]);
    release(&mut world, node, quiet);
    assert_eq!(world.locked(), []);
}

// S-43
#[test]
fn a_lock_that_was_taken_again_through_another_open_file_outlives_the_quiet_one() {
    let (mut world, node) = read_once("lease");
    let (quiet, _) = opened(&mut world, node, READ);
    let (other, _) = opened(&mut world, node, READ_WRITE);
    lock(&mut world, node, quiet, ONE);
    lock(&mut world, node, other, ONE);
    release(&mut world, node, quiet);
    assert_eq!(world.locked(), [shared()], "its owner still has it by a descriptor that tells of its end");
    world.ask(0, Call::Flush { node, handle: other, owner: ONE });
    world.settle();
    assert_eq!(world.locked(), []);
    release(&mut world, node, other);
}
