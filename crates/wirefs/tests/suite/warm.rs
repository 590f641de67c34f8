//! What it costs to look again at what is known: calls of the kernel, which are counted, and requests to the server, of which there are
//! none.

use crate::world::{Server, World, wait_for};
use std::fs;

const DIRECTORIES: usize = 5;
const FILES: usize = 4;
/// Walks in a row, so that a call that the kernel makes on its own now and then is not taken for part of them.
const WALKS: usize = 20;

/// A mount of a tree that nobody changes.
fn mounted(world: &World) -> Server {
    for directory in 0..DIRECTORIES {
        for file in 0..FILES {
            world.write(&format!("export/d{directory}/f{file}"), "some text\n");
        }
    }
    let server = world.serve(&["--listen", &world.url()]);
    world.wirefs(&["mount", &world.url(), "mnt"]).succeeds();
    server
}

/// Lists each directory and looks at each file, as `find` does.
fn find(world: &World) {
    let mut files = 0;
    for directory in fs::read_dir(world.path("mnt")).unwrap() {
        for file in fs::read_dir(directory.unwrap().path()).unwrap() {
            files += usize::from(file.unwrap().metadata().unwrap().is_file());
        }
    }
    assert_eq!(files, DIRECTORIES * FILES);
}

/// Reads each file besides, as `grep -r` does.
fn grep(world: &World) {
    find(world);
    for directory in 0..DIRECTORIES {
        for file in 0..FILES {
            assert_eq!(world.read(&format!("mnt/d{directory}/f{file}")), "some text\n");
        }
    }
}

fn calls(world: &World) -> usize {
    usize::try_from(world.status()["calls"].as_u64().unwrap()).unwrap()
}

/// What was asked of the server about the tree.
fn asked(world: &World) -> Vec<u64> {
    let status = world.status();
    ["Get", "Find", "Put"].map(|kind| status["requests"][kind].as_u64().unwrap_or(0)).to_vec()
}

/// Does it until it costs `each` calls, then once more and again, and sees that it costs that and asks the server nothing.
fn costs(world: &World, walk: fn(&World), each: usize) {
    wait_for("all to be known", || {
        let before = calls(world);
        walk(world);
        calls(world) - before <= each
    });
    let (before, asked_before) = (calls(world), asked(world));
    for _ in 0..WALKS {
        walk(world);
    }
    // What is closed is told behind the back of who closed it.
    wait_for("the last call", || calls(world) - before >= WALKS * each);
    let cost = calls(world) - before;
    assert!(cost < WALKS * (each + 1), "{cost} calls for {WALKS} walks of {each}");
    assert_eq!(asked(world), asked_before);
}

// S-121
#[test]
fn a_walk_over_what_is_known_asks_nothing() {
    let world = World::new();
    let _server = mounted(&world);
    costs(&world, find, 0);
}

// S-121
#[test]
fn files_that_are_known_are_opened_and_closed_and_nothing_else() {
    let world = World::new();
    let _server = mounted(&world);
    costs(&world, grep, 2 * DIRECTORIES * FILES);
}
