//! A process waits for a lock of a file that the holder removes. It gets the lock.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use wirefs_lab::contend::ContendedLock;
use wirefs_lab::range_lock::RangeLock;

use super::Place;

/// From the moment in which the waiting process has the file open to the removal, by turns.
const PAUSES: [Duration; 3] = [Duration::ZERO, Duration::from_millis(5), Duration::from_millis(20)];

pub(super) fn wait(place: &Place) -> Result<(), String> {
    for (round, pause) in (0..place.rounds / 2).zip(PAUSES.into_iter().cycle()) {
        for lock in ContendedLock::ALL {
            one(place, lock, pause).map_err(|fault| format!("{}, round {round}: {fault}", lock.name()))?;
        }
    }
    Ok(())
}

fn one(place: &Place, lock: ContendedLock, pause: Duration) -> Result<(), String> {
    let (made, name) = (place.mount.join("lock.new"), place.mount.join("lock~"));
    File::create(&made).unwrap();
    fs::hard_link(&made, &name).unwrap();
    fs::remove_file(&made).unwrap();
    let held = File::options().read(true).write(true).open(&name).unwrap();
    lock.take(&held, RangeLock::exclusive(0, 0)).unwrap();
    let mut command = place.site.command(env!("CARGO_BIN_EXE_wirefs-lab"));
    command.args(["contend", "wait"]).arg(&name).arg(lock.name());
    let mut waiting = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(waiting.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "open\n");
    thread::sleep(pause);
    fs::remove_file(&name).unwrap();
    drop(held);
    let mut said = String::new();
    waiting.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    if waiting.wait().unwrap().success() { Ok(()) } else { Err(said) }
}
