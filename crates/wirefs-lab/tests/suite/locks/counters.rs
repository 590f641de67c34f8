//! Processes on mounts and at the server add to counters of one file under locks. Each gets its locks, and no addition is lost.

use std::process::{Child, Stdio};

use wirefs_lab::contend::{ContendedLock, reset_counters, sum_of_counters};

use super::Place;

/// Both families of locks. With a second mount, programs at the server take part in half of the runs.
pub(super) fn add(place: &Place) -> Result<(), String> {
    ContendedLock::ALL.into_iter().try_for_each(|lock| add_under(place, lock))
}

fn add_under(place: &Place, lock: ContendedLock) -> Result<(), String> {
    let export = place.site.export();
    let at = match place.other {
        None => [place.mount, place.mount, export, export],
        Some(other) if place.seed.is_multiple_of(2) => [place.mount, other, other, export],
        Some(other) => [place.mount, place.mount, other, other],
    };
    reset_counters(&place.mount.join("counters")).map_err(|error| error.to_string())?;
    // The server's programs open the file too.
    place.site.wirefs(&["sync", place.mount.to_str().unwrap()]).succeeds();
    let adders: Vec<Child> = at
        .into_iter()
        .zip(1..)
        .map(|(directory, number)| {
            let mut command = place.site.command(env!("CARGO_BIN_EXE_wirefs-lab"));
            command.args(["contend", "add"]).arg(directory.join("counters")).arg(lock.name());
            command.arg(place.rounds.to_string()).arg((place.seed * 10 + number).to_string());
            command.stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    let expected = place.rounds * adders.len() as u64;
    for adder in adders {
        let ended = adder.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr);
        // A file whose place a copy has taken cannot be locked any more.
        let is_replaced = !place.locks_contents && said.contains("Stale file handle");
        if !ended.status.success() && !is_replaced {
            return Err(format!("{}: {}: {said}", lock.name(), ended.status));
        }
    }
    place.site.wirefs(&["sync", place.mount.to_str().unwrap()]).succeeds();
    let sum = sum_of_counters(&export.join("counters")).map_err(|error| error.to_string())?;
    if sum == expected || !place.locks_contents {
        Ok(())
    } else {
        Err(format!("{}: {sum} of {expected}", lock.name()))
    }
}
