//! Files that others replace or remove while they are open here.

use crate::config;
use crate::deeds::{READ, READ_WRITE, data, getattr, handle, listing, readdir};
use crate::world::{STEADY, World};
use std::time::Duration;
use wirefs_client::call::{Answer, Call, Handle, ROOT, TreeNodeId};
use wirefs_op::Errno;

/// Two clients in mode `window`; the second opened `f` from memory.
fn opened_from_memory(contents: &[u8]) -> (World, TreeNodeId, Handle) {
    let mut world = World::new(1, config("window"), 2, STEADY);
    world.file(0, ROOT, b"f", contents);
    world.file(0, ROOT, b"new", b"another");
    let node = world.lookup(1, ROOT, b"f");
    let (opened, sent) = world.cost(1, Call::Open { node, how: READ });
    assert!(sent.is_empty(), "it is opened from memory: {sent:?}");
    (world, node, handle(opened))
}

fn replace(world: &mut World) {
    let rename = Call::Rename { parent: ROOT, name: b"new", to_parent: ROOT, to_name: b"f", flags: 0 };
    assert_eq!(world.ask(0, rename), Answer::Done);
    world.pass(Duration::from_secs(3));
}

#[test]
fn a_file_opened_from_memory_and_replaced_by_others_reads_as_it_was_opened() {
    let (mut world, node, opened) = opened_from_memory(b"hello");
    replace(&mut world);
    for _ in 0..2 {
        let read = Call::Read { node, handle: opened, offset: 1, count: 100 };
        assert_eq!(data(world.ask(1, read)).as_ref(), b"ello");
        let Answer::Attr(stat, ttl) = world.ask(1, getattr(node)) else { panic!("no attributes") };
        assert_eq!((stat.size, stat.nlink, ttl), (5, 0, Duration::ZERO));
    }
    world.close(1, node, opened);
    let failed = world.ask(1, getattr(node));
    assert_eq!(failed, Answer::Fail(Errno::Stale), "nobody has it open any more");
}

#[test]
fn what_was_opened_from_memory_and_changed_by_others_in_place_is_seen_as_it_is() {
    let (mut world, node, opened) = opened_from_memory(b"hello");
    let theirs = world.lookup(0, ROOT, b"f");
    let open = handle(world.ask(0, Call::Open { node: theirs, how: READ_WRITE }));
    world.ask(0, crate::deeds::write(theirs, open, 0, b"HELLO"));
    world.close(0, theirs, open);
    world.pass(Duration::from_secs(3));
    let read = Call::Read { node, handle: opened, offset: 0, count: 100 };
    assert_eq!(data(world.ask(1, read)).as_ref(), b"HELLO");
    replace(&mut world);
    let read = Call::Read { node, handle: opened, offset: 0, count: 100 };
    assert_eq!(data(world.ask(1, read)).as_ref(), b"HELLO", "the server has it open for us since");
    world.close(1, node, opened);
}

#[test]
fn a_name_that_turned_out_to_mean_another_file_is_looked_up_anew() {
    let mut world = World::new(1, config("window=60s"), 2, STEADY);
    world.file(0, ROOT, b"f", b"hello");
    world.file(0, ROOT, b"new", b"another");
    let listed = handle(world.ask(1, Call::Opendir { node: ROOT }));
    assert_eq!(listing(world.ask(1, readdir(ROOT, listed, 0))).len(), 4);
    let node = world.lookup(1, ROOT, b"f");
    replace(&mut world);
    assert_eq!(world.ask(1, Call::Open { node, how: READ_WRITE }), Answer::Fail(Errno::Stale));
    let again = world.lookup(1, ROOT, b"f");
    assert_ne!(again, node, "the listing that is believed says otherwise");
    let opened = handle(world.ask(1, Call::Open { node: again, how: READ_WRITE }));
    world.close(1, again, opened);
}
