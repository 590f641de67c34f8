//! Mode `lazy`: others see what was written once there is enough of it, or something else is asked about the file.

use crate::config;
use crate::deeds::{NEW, READ, READ_WRITE, data, entry, getattr, handle, write};
use crate::world::{STEADY, World};
use std::time::Duration;
use wirefs_client::call::{Answer, Call, Handle, ROOT, TreeNodeId};

/// A writer in mode `lazy=4k`, and one who looks at each call; a file that is open for writing.
fn written(pieces: usize, bytes: usize) -> (World, TreeNodeId, Handle) {
    let mut world = World::of(1, &[config("lazy=4k"), config("strict")], STEADY);
    let made = world.ask(0, Call::Create { parent: ROOT, name: b"f", mode: 0o644, umask: 0, how: NEW });
    let (node, open) = (entry(made.clone()).node, handle(made));
    for piece in 0..pieces {
        let answer = world.ask(0, write(node, open, (piece * bytes) as u64, &vec![7; bytes]));
        assert_eq!(answer, Answer::Count(bytes as u32));
    }
    world.pass(Duration::from_secs(30));
    (world, node, open)
}

fn seen_by_the_other(world: &mut World) -> usize {
    let node = world.lookup(1, ROOT, b"f");
    let open = handle(world.ask(1, Call::Open { node, how: READ }));
    let read = data(world.ask(1, Call::Read { node, handle: open, offset: 0, count: 1 << 20 })).len();
    world.ask(1, Call::Release { node, handle: open, flock_owner: None });
    read
}

/// S-15
#[test]
fn less_than_was_asked_for_is_seen_by_others_once_the_file_is_closed() {
    let (mut world, node, open) = written(4, 1000);
    assert_eq!(seen_by_the_other(&mut world), 0);
    assert_eq!(world.ask(0, Call::Flush { node, handle: open, owner: 1 }), Answer::Done);
    assert_eq!(seen_by_the_other(&mut world), 4000);
}

/// S-15
#[test]
fn enough_is_seen_by_others_without_a_close_and_goes_in_one_message() {
    let (mut world, ..) = written(5, 1000);
    assert_eq!(seen_by_the_other(&mut world), 5000);
    let puts = world.seats[0].sent.iter().filter(|name| **name == "Put").count();
    assert_eq!(puts, 2, "the creation, and all the data");
}

#[test]
fn the_writer_reads_what_it_wrote_although_nobody_else_does() {
    let (mut world, node, open) = written(1, 1000);
    let read = Call::Read { node, handle: open, offset: 0, count: 4096 };
    assert_eq!(data(world.ask(0, read)).len(), 1000);
    let Answer::Attr(stat, _) = world.ask(0, getattr(node)) else { panic!("no attributes") };
    assert_eq!(stat.size, 1000);
}

#[test]
fn a_rename_takes_along_what_was_written_before() {
    let (mut world, _, _) = written(1, 1000);
    let rename = Call::Rename { parent: ROOT, name: b"f", to_parent: ROOT, to_name: b"g", flags: 0 };
    assert_eq!(world.ask(0, rename), Answer::Done);
    assert!(world.seats[0].sent.ends_with(&["Put", "Put", "Rename"]));
}

#[test]
fn coalesced_writes_keep_their_order_and_overwrite_old_data() {
    let mut world = World::of(1, &[config("lazy=1m"), config("strict")], STEADY);
    let node = world.file(0, ROOT, b"f", &[1; 6000]);
    let open = handle(world.ask(0, Call::Open { node, how: READ_WRITE }));
    for (offset, bytes) in [(0, [2; 3000]), (2000, [3; 3000]), (1000, [4; 3000])] {
        world.ask(0, write(node, open, offset, &bytes));
    }
    world.close(0, node, open);
    let node = world.lookup(1, ROOT, b"f");
    let open = handle(world.ask(1, Call::Open { node, how: READ }));
    let read = data(world.ask(1, Call::Read { node, handle: open, offset: 0, count: 1 << 20 }));
    assert_eq!(crate::check::runs(&read), [(2, 1000), (4, 3000), (3, 1000), (1, 1000)]);
}
