//! A journal without room on the local disk.

use crate::ahead::{at_once, lone};
use crate::world::World;
use std::time::Duration;
use wirefs_client::call::ROOT;

fn fills(world: &mut World) {
    let now = world.now;
    world.seats[0].client.journal_full(now);
    world.outputs(0);
}

fn begins(world: &mut World) {
    let now = world.now;
    world.seats[0].client.journal_begun(now);
    world.outputs(0);
}

// S-97 S-98
#[test]
fn a_mount_whose_journal_has_no_room_waits_for_the_server_until_it_begins_anew() {
    let mut world = lone();
    at_once(&mut world, |world| world.file(0, ROOT, b"before", b"text"));
    let journaled = world.seats[0].journal.len();
    fills(&mut world);
    let before = world.now;
    world.file(0, ROOT, b"full", b"text");
    assert!(world.now > before, "nothing has it");
    assert_eq!(world.seats[0].journal.len(), journaled, "there is no room");
    world.pass(Duration::from_secs(7));
    assert!(world.seats[0].anew > 0, "it is not tried");
    begins(&mut world);
    at_once(&mut world, |world| world.file(0, ROOT, b"after", b"text"));
    assert!(world.seats[0].journal.len() > journaled);
    let tried = world.seats[0].anew;
    world.pass(Duration::from_secs(20));
    assert_eq!(world.seats[0].anew, tried, "it has begun");
}

// S-98
#[test]
fn looking_for_room_costs_the_server_one_sync_in_five_seconds() {
    let mut world = lone();
    at_once(&mut world, |world| world.file(0, ROOT, b"before", b"text"));
    fills(&mut world);
    let commits = |world: &World| {
        let requests = world.seats[0].client.snapshot().counters.requests();
        requests.iter().find(|request| request.name == "Commit").map_or(0, |request| request.count)
    };
    let before = commits(&world);
    world.pass(Duration::from_secs(60));
    let count = commits(&world) - before;
    assert!((10..=13).contains(&count), "{count}");
    assert_eq!(u64::from(world.seats[0].anew), count);
}

// S-97
#[test]
fn a_journal_that_has_failed_for_good_is_not_begun_anew() {
    let mut world = lone();
    let now = world.now;
    world.seats[0].client.journal_failed(now);
    fills(&mut world);
    world.file(0, ROOT, b"file", b"text");
    world.pass(Duration::from_secs(20));
    assert_eq!(world.seats[0].anew, 0);
}
