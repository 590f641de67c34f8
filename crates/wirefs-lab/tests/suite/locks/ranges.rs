//! `F_GETLK` names the lock of a range that is held, as it is held, and no other.

use std::fs::{self, File};

use wirefs_lab::range_lock::RangeLock;

use super::Place;
use crate::site::{ProgramResult, wait_for};

const NAME: &str = "ranges";

pub(super) fn ask(place: &Place) -> Result<(), String> {
    fs::write(place.mount.join(NAME), [b'x'; 100]).unwrap();
    let held = File::options().read(true).write(true).open(place.mount.join(NAME)).unwrap();
    let lock = RangeLock::shared(10, 5);
    lock.take(&held).unwrap();
    // Another machine does not know the process.
    let process = if place.other.is_none() { std::process::id().to_string() } else { String::new() };
    let shared = format!("shared 10 5 {process}");
    expect(place, &["0", "100", "--shared"], "none")?;
    expect(place, &["0", "100"], &shared)?;
    expect(place, &["14", "0"], &shared)?;
    expect(place, &["50", "10", "--shared"], "none")?;
    expect(place, &["15", "10"], "none")?;
    expect(place, &["0", "10"], "none")?;
    RangeLock::exclusive(10, 2).take(&held).unwrap();
    expect(place, &["0", "100", "--shared"], &format!("exclusive 10 2 {process}"))?;
    expect(place, &["12", "3"], &format!("shared 12 3 {process}"))?;
    lock.release(&held).unwrap();
    if place.other.is_some() {
        // The release returns before the server has it.
        wait_for("the release at the server", || answer(place, &["0", "0"]).starts_with("none"));
    }
    expect(place, &["0", "0"], "none")
}

fn expect(place: &Place, asked: &[&str], expected: &str) -> Result<(), String> {
    let answer = answer(place, asked);
    if answer.starts_with(expected) { Ok(()) } else { Err(format!("{asked:?}: {answer}, not {expected}")) }
}

/// The lock in the way, as another process sees it.
fn answer(place: &Place, asked: &[&str]) -> String {
    let path = place.other.unwrap_or(place.mount).join(NAME);
    if place.other.is_some() {
        // Its name may be hidden for a window.
        wait_for("the file on the second mount", || path.exists());
    }
    let mut command = place.site.command(env!("CARGO_BIN_EXE_wirefs-lab"));
    ProgramResult::of(command.args(["contend", "conflict"]).arg(path).args(asked)).succeeds()
}
