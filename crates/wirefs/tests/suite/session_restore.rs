//! A mount that restores the session of one unmounted by force.

use crate::home::TestHome;
use rustix::fs::{FlockOperation, flock};
use rustix::process::Signal;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;

const ROUNDS: usize = 100;
const LOCKED: usize = 3;

/// A server program truncates and writes a file; then a program of the mount opens it, replaces its contents and syncs
/// it.
fn round(home: &TestHome, number: usize) -> std::io::Result<()> {
    let mut server_file = File::create(home.path("export/file"))?;
    server_file.write_all(b"of a program at the server")?;
    drop(server_file);
    // Some rounds write as much as the rounds of the earlier mount, others more.
    let text = format!("round {number:04} {}", ".".repeat(number % 3));
    let mount_file = OpenOptions::new().read(true).write(true).open(home.path("mnt/file"))?;
    mount_file.set_len(0)?;
    mount_file.write_all_at(text.as_bytes(), 0)?;
    mount_file.sync_all()?;
    assert_eq!(home.read("export/file"), text, "fsync returned");
    Ok(())
}

fn rounds(home: &TestHome) {
    for number in 0..ROUNDS {
        round(home, number).unwrap_or_else(|error| panic!("round {number}: {error}"));
    }
}

/// Returns the files that programs lock, and where they open them.
fn lockable() -> impl Iterator<Item = (&'static str, String)> {
    let sides = (0..LOCKED).flat_map(|number| [("mnt", number), ("export", number)]);
    sides.map(|(side, number)| (side, format!("locked-{side}-{number}")))
}

/// Locks files on the mount and at the server.
fn locked(home: &TestHome) -> Vec<File> {
    let lock = |(side, name): (&str, String)| {
        let file = OpenOptions::new().read(true).write(true).open(home.path(side).join(name)).unwrap();
        flock(&file, FlockOperation::NonBlockingLockExclusive).unwrap();
        file
    };
    lockable().map(lock).collect()
}

fn restores_session(arguments: &[&str]) {
    let home = TestHome::new();
    let url = home.url();
    home.write("export/file", "");
    lockable().for_each(|(_, name)| home.write(&format!("export/{name}"), ""));
    let mount = || home.wirefs(&[&["mount"], arguments, &[&url, "mnt"]].concat()).succeeds();
    let mut server = home.serve(&["--listen", &url]);
    mount();
    for stop in [Signal::TERM, Signal::KILL] {
        let held = locked(&home);
        rounds(&home);
        home.wirefs(&["umount", "-f", "mnt"]).succeeds();
        drop(held);
        server.kill(stop);
        server.end();
        server = home.serve(&["--listen", &url]);
        mount();
        rounds(&home);
    }
}

// S-88
#[test]
fn change_numbers_do_not_repeat_after_a_forced_unmount_with_locks() {
    restores_session(&[]);
    restores_session(&["--no-journal"]);
    for mode in ["window", "lazy", "commit", "direct", "strict"] {
        restores_session(&["--mode", mode]);
    }
}
