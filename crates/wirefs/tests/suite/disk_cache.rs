//! The disk cache: data of a mount that the next one uses.

use crate::home::{SecondMount, Server, TestHome, wait_for};
use rustix::process::{Signal, kill_process};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

const FILES: [&str; 3] = ["one", "two", "three"];

/// Writes a few files, and serves them.
fn served(home: &TestHome) -> Server {
    for name in FILES {
        home.write(&format!("export/dir/{name}"), name);
    }
    home.write("export/dir/large", &"large ".repeat(30_000));
    symlink("one", home.path("export/dir/link")).unwrap();
    home.serve(&["--listen", &home.url()])
}

fn mount(home: &TestHome) -> String {
    let ran = home.wirefs(&["mount", &home.url(), "mnt"]);
    let output = ran.stderr.clone();
    ran.succeeds();
    output
}

fn umount(home: &TestHome) {
    // Files are released asynchronously after their close.
    wait_for("the unmount", || home.wirefs(&["umount", "mnt"]).code == Some(0));
}

/// Reads everything.
fn read_all(home: &TestHome) {
    let names = fs::read_dir(home.path("mnt/dir")).unwrap();
    assert_eq!(names.count(), 5);
    for name in FILES {
        assert_eq!(home.read(&format!("mnt/dir/{name}")), name);
    }
    assert_eq!(home.read("mnt/dir/large").len(), 180_000);
    assert_eq!(fs::read_link(home.path("mnt/dir/link")).unwrap().as_os_str(), "one");
    assert!(!home.path("mnt/dir/absent").exists());
}

/// Mounts, reads everything and unmounts.
fn warm_up(home: &TestHome) {
    mount(home);
    read_all(home);
    umount(home);
}

/// Returns the number of requests except keepalives. A mount with an exclusive session always asks for free space.
fn requests(home: &TestHome) -> u64 {
    let status = home.status();
    let requests = status["requests"].as_object().unwrap();
    let sent = requests.iter().filter(|(kind, _)| !["Ping", "Recalled", "Statfs"].contains(&kind.as_str()));
    sent.map(|(_, count)| count.as_u64().unwrap()).sum()
}

/// Returns the cache directory of the only source.
fn kept(home: &TestHome) -> PathBuf {
    let places = fs::read_dir(home.path("home/.cache/wirefs")).unwrap();
    let places: Vec<PathBuf> = places.map(|place| place.unwrap().path()).collect();
    assert_eq!(places.len(), 1, "{places:?}");
    places.into_iter().next().unwrap()
}

fn segment(home: &TestHome) -> PathBuf {
    let files = fs::read_dir(kept(home)).unwrap().map(|file| file.unwrap().path());
    let is_segment = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "segment");
    files.filter(is_segment).min().unwrap()
}

/// Changes one byte in the middle of a file.
fn damage(path: PathBuf) {
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(path, bytes).unwrap();
}

// S-38
#[test]
fn next_mount_uses_cached_data_without_requests() {
    let home = TestHome::new();
    let _server = served(&home);
    warm_up(&home);
    mount(&home);
    // Other pieces of the large file are not cached if the server is as fast as the disk.
    for name in FILES {
        assert_eq!(home.read(&format!("mnt/dir/{name}")), name);
    }
    assert_eq!(fs::read_dir(home.path("mnt/dir")).unwrap().count(), 5);
    assert_eq!(fs::read_link(home.path("mnt/dir/link")).unwrap().as_os_str(), "one");
    assert!(!home.path("mnt/dir/absent").exists());
    assert_eq!(requests(&home), 0, "{}", home.status());
    let disk = &home.status()["cache"]["disk"];
    assert_eq!(disk["listings_taken"], 2, "{disk}");
    assert!(disk["hits"].as_u64().unwrap() >= 4, "{disk}");
    read_all(&home);
    umount(&home);
}

// S-38
#[test]
fn changes_while_unmounted_are_visible() {
    let home = TestHome::new();
    let _server = served(&home);
    warm_up(&home);
    home.write("export/dir/one", "changed");
    fs::remove_file(home.path("export/dir/two")).unwrap();
    home.write("export/dir/new", "new");
    mount(&home);
    // The server is notified of its programs' changes in a thread of its own, in order.
    wait_for("the last change to be heard of", || home.path("mnt/dir/new").exists());
    assert_eq!(home.read("mnt/dir/one"), "changed");
    assert!(!home.path("mnt/dir/two").exists());
    assert_eq!(home.read("mnt/dir/new"), "new");
    assert_eq!(home.read("mnt/dir/three"), "three");
    assert_eq!(fs::read_dir(home.path("mnt/dir")).unwrap().count(), 5);
    umount(&home);
}

// S-38
#[test]
fn restarted_server_invalidates_cached_listings() {
    let home = TestHome::new();
    let server = served(&home);
    warm_up(&home);
    server.kill(Signal::TERM);
    assert_eq!(server.end().code, Some(0));
    home.write("export/dir/one", "changed");
    let _server = home.serve(&["--listen", &home.url()]);
    mount(&home);
    assert_eq!(home.read("mnt/dir/one"), "changed");
    for name in ["two", "three"] {
        assert_eq!(home.read(&format!("mnt/dir/{name}")), name);
    }
    assert!(requests(&home) > 0);
    assert_eq!(home.status()["cache"]["disk"]["listings_taken"], 0);
    umount(&home);
}

// S-39
#[test]
fn damaged_snapshot_is_ignored() {
    let home = TestHome::new();
    let _server = served(&home);
    warm_up(&home);
    damage(kept(&home).join("snapshot"));
    let output = mount(&home);
    assert!(output.contains("the cached names were damaged"), "{output}");
    read_all(&home);
    umount(&home);
    assert!(kept(&home).join("snapshot").exists());
    assert_eq!(mount(&home), "");
    read_all(&home);
    umount(&home);
}

// S-39
#[test]
fn damaged_contents_are_evicted_and_fetched_again() {
    let home = TestHome::new();
    let _server = served(&home);
    warm_up(&home);
    let path = segment(&home);
    let mut bytes = fs::read(&path).unwrap();
    let at = bytes.windows(5).position(|window| window == b"three").unwrap();
    bytes[at] = b'T';
    fs::write(path, bytes).unwrap();
    mount(&home);
    read_all(&home);
    assert_eq!(home.status()["cache"]["disk"]["damaged"], 1);
    umount(&home);
    damage(kept(&home).join("index"));
    let output = mount(&home);
    assert!(output.contains("damaged"), "{output}");
    read_all(&home);
    umount(&home);
}

// S-39
#[test]
fn killed_mount_leaves_no_trusted_cache() {
    let home = TestHome::new();
    let _server = served(&home);
    mount(&home);
    read_all(&home);
    kill_process(home.process(), Signal::KILL).unwrap();
    wait_for("the end", || home.wirefs(&["umount", "-f", "mnt"]).code == Some(0));
    assert!(!kept(&home).join("snapshot").exists());
    mount(&home);
    read_all(&home);
    assert!(requests(&home) > 0);
    umount(&home);
}

#[test]
fn mounts_of_one_source_do_not_share_a_cache() {
    let home = TestHome::new();
    let _server = served(&home);
    warm_up(&home);
    mount(&home);
    let other = SecondMount::mount(&home, "lease");
    assert!(home.status()["cache"]["disk"].is_object());
    assert!(home.status_of("other")["cache"]["disk"].is_null());
    assert_eq!(home.read("other/dir/one"), "one");
    home.write("other/dir/one", "changed");
    assert_eq!(home.read("mnt/dir/one"), "changed");
    drop(other);
    umount(&home);
}

#[test]
fn cache_is_private_and_can_be_disabled() {
    let home = TestHome::new();
    let _server = served(&home);
    home.wirefs(&["mount", "--no-cache", &home.url(), "mnt"]).succeeds();
    read_all(&home);
    umount(&home);
    assert!(!home.path("home/.cache").exists());
    warm_up(&home);
    let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(home.path("home/.cache/wirefs")), 0o700);
    assert_eq!(mode(kept(&home)), 0o700);
    let files: Vec<PathBuf> = fs::read_dir(kept(&home)).unwrap().map(|file| file.unwrap().path()).collect();
    assert!(files.len() >= 4, "{files:?}");
    for file in files {
        assert_eq!(mode(file.clone()), 0o600, "{}", file.display());
    }
}
