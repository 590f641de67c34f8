//! Which pages the kernel keeps when a file is opened.

use crate::config;
use crate::deeds::{READ, READ_WRITE, data, handle, write};
use crate::world::{Delays, STEADY, World};
use std::time::Duration;
use wirefs_client::call::{
    Answer, Call, Handle, Invalidate, OpenHow, PageCache, ROOT, TreeNodeId, WriteData,
};

/// Client 0 has a file open and its pages in its kernel.
fn with_pages(world: &mut World) -> (TreeNodeId, Handle) {
    let node = world.file(0, ROOT, b"f", b"old contents");
    let open = handle(world.ask(0, Call::Open { node, how: READ_WRITE }));
    let read = Call::Read { node, handle: open, offset: 0, count: 4096 };
    assert_eq!(data(world.ask(0, read)), "old contents");
    world.settle();
    (node, open)
}

fn kept(answer: Answer) -> PageCache {
    match answer {
        Answer::Opened(_, pages) => pages,
        other => panic!("not opened: {other:?}"),
    }
}

// S-8
#[test]
fn pages_older_than_a_change_by_others_do_not_survive_an_open_during_own_writes() {
    let delays = Delays { wire: (1_000, 60_000), server: (0, 30_000), kernel: (0, 0) };
    for seed in 0..40 {
        let mut world = World::new(seed, config("window"), 2, delays);
        let (node, open) = with_pages(&mut world);
        let theirs = world.lookup(1, ROOT, b"f");
        let other = handle(world.ask(1, Call::Open { node: theirs, how: READ_WRITE }));
        assert_eq!(world.ask(1, write(theirs, other, 0, b"new")), Answer::Count(3));
        world.close(1, theirs, other);
        world.pass(Duration::from_secs(2));
        world.call(0, write(node, open, 8, b"first"));
        let opening = world.call(0, Call::Open { node, how: READ });
        let until = world.now + Duration::from_millis(40);
        while world.now < until && !world.seats[0].answers.contains_key(&opening) {
            world.step();
        }
        world.call(0, write(node, open, 16, b"second"));
        let pages = kept(world.wait(0, opening));
        assert_eq!(pages, PageCache::Drop, "seed {seed}");
    }
}

#[test]
fn open_keeps_pages_during_own_writes() {
    let mut world = World::new(1, config("window"), 1, STEADY);
    let (node, open) = with_pages(&mut world);
    for round in 0..50 {
        world.call(0, write(node, open, round, b"own"));
        world.pass(Duration::from_millis(30));
        let opening = world.call(0, Call::Open { node, how: READ });
        world.pass(Duration::from_millis(30));
        world.call(0, write(node, open, round, b"own"));
        let opened = world.wait(0, opening);
        assert!(!world.seats[0].client.is_settled());
        assert_eq!(kept(opened), PageCache::Keep);
    }
}

// S-1
#[test]
fn a_direct_write_is_answered_once_the_kernel_has_dropped_the_pages_that_it_read_meanwhile() {
    let delays = Delays { kernel: (500_000, 500_000), ..STEADY };
    let mut world = World::new(1, config("window"), 1, delays);
    let (node, _) = with_pages(&mut world);
    let direct = handle(world.ask(0, Call::Open { node, how: OpenHow { direct: true, ..READ_WRITE } }));
    world.settle();
    world.seats[0].invalidated.clear();
    assert_eq!(world.ask(0, write(node, direct, 4, b"new")), Answer::Count(3));
    let pages = Invalidate::Node { node, offset: 4, length: 3 };
    assert!(world.seats[0].invalidated.contains(&pages), "{:?}", world.seats[0].invalidated);
}

/// The kernel sends pages that a mapping changed through any file that is open for writing, and drops a page only once its writeback is
/// answered: `fuse_reverse_inval_inode` waits for that.
#[test]
fn the_writeback_of_pages_through_a_direct_file_is_answered_before_any_page_is_dropped() {
    for mode in ["lease", "window", "strict"] {
        let mut world = World::new(1, config(mode), 1, STEADY);
        let (node, _) = with_pages(&mut world);
        let direct = handle(world.ask(0, Call::Open { node, how: OpenHow { direct: true, ..READ_WRITE } }));
        world.settle();
        world.seats[0].invalidated.clear();
        let data = WriteData::Lent(b"new");
        let writeback =
            Call::Write { node, handle: direct, offset: 4, data, cached: true, kill_privileges: false };
        assert_eq!(world.ask(0, writeback), Answer::Count(3), "{mode}");
        world.settle();
        let dropped = |what: &Invalidate| matches!(what, Invalidate::Node { offset: 0.., .. });
        assert!(!world.seats[0].invalidated.iter().any(dropped), "{mode}: {:?}", world.seats[0].invalidated);
    }
}
