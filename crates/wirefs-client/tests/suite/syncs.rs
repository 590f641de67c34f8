//! Syncs of a mount that is alone: of a file that was just made, and then of its directory.

use crate::ahead::{at_once, lone};
use crate::config;
use crate::deeds::{create, entry, handle, write};
use crate::world::World;
use std::time::Duration;
use wirefs_client::Note;
use wirefs_client::call::{Answer, Call, Handle, ROOT, TreeNodeId};
use wirefs_op::FileId;

fn made(world: &mut World, name: &[u8]) -> (TreeNodeId, Handle) {
    let answer = world.ask(0, create(ROOT, name));
    let (node, handle) = (entry(answer.clone()).node, handle(answer));
    assert_eq!(world.ask(0, write(node, handle, 0, b"data")), Answer::Count(4));
    (node, handle)
}

fn sync(world: &mut World, (node, handle): (TreeNodeId, Handle)) {
    let began = world.now;
    assert_eq!(world.ask(0, Call::Fsync { node, handle, data_only: true }), Answer::Done);
    assert_eq!(world.now.since(began), Duration::from_millis(100), "it waits for the server's disk");
}

fn sync_directory(world: &mut World) -> Duration {
    let (opened, began) = (handle(world.ask(0, Call::Opendir { node: ROOT })), world.now);
    let call = Call::Fsyncdir { node: ROOT, handle: opened, data_only: true };
    assert_eq!(world.ask(0, call), Answer::Done);
    let waited = world.now.since(began);
    world.ask(0, Call::Releasedir { node: ROOT, handle: opened });
    waited
}

/// A mount in which a directory is synced now and then.
fn syncing() -> World {
    let mut world = lone();
    let file = made(&mut world, b"first");
    sync(&mut world, file);
    assert_eq!(sync_directory(&mut world), Duration::from_millis(100));
    world
}

// S-19
#[test]
fn a_directory_is_synced_along_with_a_file_that_was_made_in_it() {
    let mut world = syncing();
    for name in [b"a", b"b"] {
        let file = made(&mut world, name);
        sync(&mut world, file);
        assert_eq!(sync_directory(&mut world), Duration::ZERO);
        // Contents are no names.
        assert_eq!(world.ask(0, write(file.0, file.1, 0, b"head")), Answer::Count(4));
        at_once(&mut world, sync_directory);
        sync(&mut world, file);
    }
}

// S-19
#[test]
fn a_directory_whose_names_have_changed_since_is_synced_anew() {
    let mut world = syncing();
    let file = made(&mut world, b"a");
    sync(&mut world, file);
    assert_eq!(world.ask(0, Call::Unlink { parent: ROOT, name: b"a" }), Answer::Done);
    assert_eq!(sync_directory(&mut world), Duration::from_millis(100));
    assert_eq!(sync_directory(&mut world), Duration::ZERO);
    world.cut(0, Duration::from_millis(500), true);
    world.settle();
    assert!(sync_directory(&mut world) > Duration::ZERO);
}

// S-19
#[test]
fn with_others_there_each_sync_of_a_directory_asks_the_server() {
    let mut world = syncing();
    world.another(config("lease"));
    world.settle();
    for _ in 0..2 {
        assert_eq!(sync_directory(&mut world), Duration::from_millis(100));
    }
}

/// As an editor does it: write another file, sync it, put it in the place of the old one.
// S-18 S-13
#[test]
fn a_save_waits_for_one_round_trip_the_first_one_too() {
    let mut world = lone();
    made(&mut world, b"file");
    world.settle();
    let began = world.now;
    for _ in 0..20 {
        let new = made(&mut world, b".file.new");
        sync(&mut world, new);
        world.close(0, new.0, new.1);
        let rename =
            Call::Rename { parent: ROOT, name: b".file.new", to_parent: ROOT, to_name: b"file", flags: 0 };
        at_once(&mut world, |world| assert_eq!(world.ask(0, rename), Answer::Done));
    }
    assert_eq!(world.now.since(began), Duration::from_millis(100) * 20);
}

// S-100
#[test]
fn an_fsync_notes_the_file_and_the_changes_that_the_servers_disk_has() {
    let mut world = lone();
    let file = made(&mut world, b"f");
    let last = *world.seats[0].journal.last().unwrap();
    sync(&mut world, file);
    let is_it = |below: u64, file: FileId| below == last + 1 && file.provisional_number().is_none();
    let notes = &world.seats[0].notes;
    assert!(
        notes.iter().any(|note| matches!(note, Note::Synced(below, file) if is_it(*below, *file))),
        "{notes:?}"
    );
}
