//! A mount that takes up the session of one that was unmounted by force.

use crate::world::World;
use rustix::fs::{FlockOperation, flock};
use rustix::process::Signal;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;

const ROUNDS: usize = 100;
const LOCKED: usize = 3;

/// A program at the server truncates and writes a file; then one of the mount opens it, replaces its contents and syncs it.
fn round(world: &World, number: usize) -> std::io::Result<()> {
    let mut there = File::create(world.path("export/file"))?;
    there.write_all(b"of a program at the server")?;
    drop(there);
    // Some rounds write as much as the rounds of the mount before did, others more.
    let text = format!("round {number:04} {}", ".".repeat(number % 3));
    let here = OpenOptions::new().read(true).write(true).open(world.path("mnt/file"))?;
    here.set_len(0)?;
    here.write_all_at(text.as_bytes(), 0)?;
    here.sync_all()?;
    assert_eq!(world.read("export/file"), text, "fsync returned");
    Ok(())
}

fn rounds(world: &World) {
    for number in 0..ROUNDS {
        round(world, number).unwrap_or_else(|error| panic!("round {number}: {error}"));
    }
}

/// The files that programs lock, and where they open them.
fn lockable() -> impl Iterator<Item = (&'static str, String)> {
    let places = (0..LOCKED).flat_map(|number| [("mnt", number), ("export", number)]);
    places.map(|(place, number)| (place, format!("locked-{place}-{number}")))
}

/// Programs hold locks on the mount and at the server.
fn locked(world: &World) -> Vec<File> {
    let lock = |(place, name): (&str, String)| {
        let file = OpenOptions::new().read(true).write(true).open(world.path(place).join(name)).unwrap();
        flock(&file, FlockOperation::NonBlockingLockExclusive).unwrap();
        file
    };
    lockable().map(lock).collect()
}

fn takes_up(arguments: &[&str]) {
    let world = World::new();
    let url = world.url();
    world.write("export/file", "");
    lockable().for_each(|(_, name)| world.write(&format!("export/{name}"), ""));
    let mount = || world.wirefs(&[&["mount"], arguments, &[&url, "mnt"]].concat()).succeeds();
    let mut server = world.serve(&["--listen", &url]);
    mount();
    for stop in [Signal::TERM, Signal::KILL] {
        let held = locked(&world);
        rounds(&world);
        world.wirefs(&["umount", "-f", "mnt"]).succeeds();
        drop(held);
        server.kill(stop);
        server.end();
        server = world.serve(&["--listen", &url]);
        mount();
        rounds(&world);
    }
}

// S-156
#[test]
fn after_umount_by_force_with_locks_held_no_change_is_answered_with_the_reply_to_an_earlier_one() {
    takes_up(&[]);
    takes_up(&["--no-journal"]);
    for mode in ["window", "lazy", "commit", "direct", "strict"] {
        takes_up(&["--mode", mode]);
    }
}
