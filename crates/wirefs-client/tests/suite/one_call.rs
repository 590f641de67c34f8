//! Single calls, each in a world at rest: how often one enters the client, and (`scripts/paths`) which functions it passes.

use crate::ahead::lone;
use crate::config;
use crate::deeds::{READ, READ_WRITE, handle, write};
use crate::world::{STEADY, World};
use wirefs_client::call::{Answer, Call, ROOT};
use wirefs_op::Kind;

const RENAME: Call<'_> = Call::Rename { parent: ROOT, name: b"f", to_parent: ROOT, to_name: b"g", flags: 0 };

/// A world in which the server has the file `f` of this size.
fn with_file(bytes: usize) -> World {
    let world = World::new(1, config("lease"), 1, STEADY);
    world.make("f", Kind::File, &vec![b'x'; bytes]);
    world
}

/// Calls and messages that the client has taken in.
fn inputs(world: &World) -> u64 {
    let counters = world.seats[0].client.snapshot().counters;
    counters.calls + counters.frames_in
}

/// Makes one call; its answer, and how many inputs the client took until then.
fn counted(world: &mut World, call: Call<'_>) -> (Answer, u64) {
    world.settle();
    let before = inputs(world);
    let answer = one_call(world, call);
    (answer, inputs(world) - before)
}

/// `scripts/paths` profiles this function.
#[inline(never)]
fn one_call(world: &mut World, call: Call<'_>) -> Answer {
    std::hint::black_box(world.ask(0, call))
}

#[test]
fn cold_open_enters_the_client_with_its_call_and_its_reply() {
    let mut world = with_file(2_000_000);
    let node = world.lookup(0, ROOT, b"f");
    let (answer, inputs) = counted(&mut world, Call::Open { node, how: READ });
    assert_eq!((inputs, matches!(answer, Answer::Opened(..))), (2, true));
}

#[test]
fn warm_open_enters_the_client_once() {
    let mut world = with_file(100);
    let node = world.lookup(0, ROOT, b"f");
    let opened = handle(world.ask(0, Call::Open { node, how: READ }));
    world.ask(0, Call::Read { node, handle: opened, offset: 0, count: 100 });
    world.close(0, node, opened);
    let (answer, inputs) = counted(&mut world, Call::Open { node, how: READ });
    assert_eq!((inputs, matches!(answer, Answer::Opened(..))), (1, true));
}

#[test]
fn write_enters_the_client_once() {
    let mut world = lone();
    let node = world.file(0, ROOT, b"f", b"contents");
    let opened = handle(world.ask(0, Call::Open { node, how: READ_WRITE }));
    assert_eq!(counted(&mut world, write(node, opened, 0, b"other")), (Answer::Count(5), 1));
}

#[test]
fn rename_enters_the_client_with_its_call_and_its_reply() {
    let mut world = with_file(100);
    world.lookup(0, ROOT, b"f");
    assert_eq!(counted(&mut world, RENAME), (Answer::Done, 2));
}

#[test]
fn optimistic_rename_enters_the_client_once() {
    let mut world = lone();
    world.file(0, ROOT, b"f", b"contents");
    assert_eq!(counted(&mut world, RENAME), (Answer::Done, 1));
}
