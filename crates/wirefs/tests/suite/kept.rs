//! What a mount keeps on disk for the next one.

use crate::world::{Other, Server, World, wait_for};
use rustix::process::{Signal, kill_process};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

const FILES: [&str; 3] = ["one", "two", "three"];

/// A world with a few files, and its server.
fn served(world: &World) -> Server {
    for name in FILES {
        world.write(&format!("export/dir/{name}"), name);
    }
    world.write("export/dir/large", &"large ".repeat(30_000));
    symlink("one", world.path("export/dir/link")).unwrap();
    world.serve(&["--listen", &world.url()])
}

fn mount(world: &World) -> String {
    let ran = world.wirefs(&["mount", &world.url(), "mnt"]);
    let said = ran.stderr.clone();
    ran.succeeds();
    said
}

fn umount(world: &World) {
    // Files are released behind the back of whoever closed them.
    wait_for("the unmount", || world.wirefs(&["umount", "mnt"]).code == Some(0));
}

/// Reads everything.
fn look(world: &World) {
    let names = fs::read_dir(world.path("mnt/dir")).unwrap();
    assert_eq!(names.count_lookup(), 5);
    for name in FILES {
        assert_eq!(world.read(&format!("mnt/dir/{name}")), name);
    }
    assert_eq!(world.read("mnt/dir/large").len(), 180_000);
    assert_eq!(fs::read_link(world.path("mnt/dir/link")).unwrap().as_os_str(), "one");
    assert!(!world.path("mnt/dir/absent").exists());
}

/// Mounts, reads everything and unmounts.
fn warm(world: &World) {
    mount(world);
    look(world);
    umount(world);
}

/// What the mount asked the server, but for signs of life.
/// How much room the server has is asked by a mount that is alone, whatever it knows.
fn asked(world: &World) -> u64 {
    let status = world.status();
    let requests = status["requests"].as_object().unwrap();
    let sent = requests.iter().filter(|(kind, _)| !["Ping", "Recalled", "Statfs"].contains(&kind.as_str()));
    sent.map(|(_, count)| count.as_u64().unwrap()).sum()
}

/// What is kept for the only source.
fn kept(world: &World) -> PathBuf {
    let places = fs::read_dir(world.path("home/.cache/wirefs")).unwrap();
    let places: Vec<PathBuf> = places.map(|place| place.unwrap().path()).collect();
    assert_eq!(places.len(), 1, "{places:?}");
    places.into_iter().next().unwrap()
}

fn segment(world: &World) -> PathBuf {
    let files = fs::read_dir(kept(world)).unwrap().map(|file| file.unwrap().path());
    let is_segment = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "segment");
    files.filter(is_segment).min().unwrap()
}

/// Makes one byte in the midst of a file another one.
fn damage(path: PathBuf) {
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(path, bytes).unwrap();
}

// S-50
#[test]
fn the_next_mount_knows_what_the_last_one_knew() {
    let world = World::new();
    let _server = served(&world);
    warm(&world);
    mount(&world);
    // The large file's other pieces are not kept where the server is as near as the disk.
    for name in FILES {
        assert_eq!(world.read(&format!("mnt/dir/{name}")), name);
    }
    assert_eq!(fs::read_dir(world.path("mnt/dir")).unwrap().count(), 5);
    assert_eq!(fs::read_link(world.path("mnt/dir/link")).unwrap().as_os_str(), "one");
    assert!(!world.path("mnt/dir/absent").exists());
    assert_eq!(asked(&world), 0, "{}", world.status());
    let disk = &world.status()["cache"]["disk"];
    assert_eq!(disk["listings_taken"], 2, "{disk}");
    assert!(disk["hits"].as_u64().unwrap() >= 4, "{disk}");
    look(&world);
    umount(&world);
}

// S-50
#[test]
fn what_changed_while_nothing_was_mounted_is_seen() {
    let world = World::new();
    let _server = served(&world);
    warm(&world);
    world.write("export/dir/one", "changed");
    fs::remove_file(world.path("export/dir/two")).unwrap();
    world.write("export/dir/new", "new");
    mount(&world);
    // The server hears of what programs there do in a thread of its own, in their order.
    wait_for("the last change to be heard of", || world.path("mnt/dir/new").exists());
    assert_eq!(world.read("mnt/dir/one"), "changed");
    assert!(!world.path("mnt/dir/two").exists());
    assert_eq!(world.read("mnt/dir/new"), "new");
    assert_eq!(world.read("mnt/dir/three"), "three");
    assert_eq!(fs::read_dir(world.path("mnt/dir")).unwrap().count(), 5);
    umount(&world);
}

// S-50
#[test]
fn a_server_that_was_started_again_is_asked_about_everything() {
    let world = World::new();
    let server = served(&world);
    warm(&world);
    server.kill(Signal::TERM);
    assert_eq!(server.end().code, Some(0));
    world.write("export/dir/one", "changed");
    let _server = world.serve(&["--listen", &world.url()]);
    mount(&world);
    assert_eq!(world.read("mnt/dir/one"), "changed");
    for name in ["two", "three"] {
        assert_eq!(world.read(&format!("mnt/dir/{name}")), name);
    }
    assert!(asked(&world) > 0);
    assert_eq!(world.status()["cache"]["disk"]["listings_taken"], 0);
    umount(&world);
}

// S-51
#[test]
fn a_damaged_snapshot_is_dropped() {
    let world = World::new();
    let _server = served(&world);
    warm(&world);
    damage(kept(&world).join("snapshot"));
    let said = mount(&world);
    assert!(said.contains("the cached names were damaged"), "{said}");
    look(&world);
    umount(&world);
    assert!(kept(&world).join("snapshot").exists());
    assert_eq!(mount(&world), "");
    look(&world);
    umount(&world);
}

// S-51
#[test]
fn damaged_contents_are_dropped_and_asked_for_again() {
    let world = World::new();
    let _server = served(&world);
    warm(&world);
    let path = segment(&world);
    let mut bytes = fs::read(&path).unwrap();
    let at = bytes.windows(5).position(|window| window == b"three").unwrap();
    bytes[at] = b'T';
    fs::write(path, bytes).unwrap();
    mount(&world);
    look(&world);
    assert_eq!(world.status()["cache"]["disk"]["damaged"], 1);
    umount(&world);
    damage(kept(&world).join("index"));
    let said = mount(&world);
    assert!(said.contains("damaged"), "{said}");
    look(&world);
    umount(&world);
}

// S-51
#[test]
fn a_mount_that_was_killed_leaves_nothing_that_is_believed_unasked() {
    let world = World::new();
    let _server = served(&world);
    mount(&world);
    look(&world);
    kill_process(world.process(), Signal::KILL).unwrap();
    wait_for("the end", || world.wirefs(&["umount", "-f", "mnt"]).code == Some(0));
    assert!(!kept(&world).join("snapshot").exists());
    mount(&world);
    look(&world);
    assert!(asked(&world) > 0);
    umount(&world);
}

#[test]
fn two_mounts_of_one_source_do_not_share_what_they_keep() {
    let world = World::new();
    let _server = served(&world);
    warm(&world);
    mount(&world);
    let other = Other::mount(&world, "lease");
    assert!(world.status()["cache"]["disk"].is_object());
    assert!(world.status_of("other")["cache"]["disk"].is_null());
    assert_eq!(world.read("other/dir/one"), "one");
    world.write("other/dir/one", "changed");
    assert_eq!(world.read("mnt/dir/one"), "changed");
    drop(other);
    umount(&world);
}

#[test]
fn what_is_kept_is_the_users_alone_and_nothing_where_that_is_wished() {
    let world = World::new();
    let _server = served(&world);
    world.wirefs(&["mount", "--no-cache", &world.url(), "mnt"]).succeeds();
    look(&world);
    umount(&world);
    assert!(!world.path("home/.cache").exists());
    warm(&world);
    let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(world.path("home/.cache/wirefs")), 0o700);
    assert_eq!(mode(kept(&world)), 0o700);
    let files: Vec<PathBuf> = fs::read_dir(kept(&world)).unwrap().map(|file| file.unwrap().path()).collect();
    assert!(files.len() >= 4, "{files:?}");
    for file in files {
        assert_eq!(mode(file.clone()), 0o600, "{}", file.display());
    }
}
