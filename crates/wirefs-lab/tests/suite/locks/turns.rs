//! A program at the server and one on the mount write to a file by turns, under `flock`. Each reads what the other one wrote, however soon
//! after its release.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::thread;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};

use super::Place;
use crate::site::wait_for;

/// Between a release and the next lock, by turns. The second is longer than a tick of the server's clock.
const PAUSES: [Duration; 2] = [Duration::ZERO, Duration::from_millis(20)];
/// Where the number is written: two pages that are read together.
const PLACES: [u64; 2] = [0, 8_192];

pub(super) fn take(place: &Place) -> Result<(), String> {
    let export = place.site.export().join("turns");
    fs::write(&export, [0; 8_200]).unwrap();
    let mount = place.mount.join("turns");
    // A name that a program at the server has just made may be hidden for a window, or until the server has noticed it.
    wait_for("the file on the mount", || mount.exists());
    let mut written = 0;
    PAUSES.into_iter().try_for_each(|pause| {
        let stale = alternate(&mount, &export, place.rounds, pause, &mut written)
            .map_err(|error| format!("after {pause:?}: {error}"))?;
        if stale == 0 {
            Ok(())
        } else {
            Err(format!("after {pause:?}: {stale} of {} reads are stale", 2 * place.rounds))
        }
    })
}

/// The number of stale reads. `written`: the number that was written last, under a lock.
fn alternate(
    mount: &Path,
    export: &Path,
    rounds: u64,
    pause: Duration,
    written: &mut u64,
) -> io::Result<u64> {
    let open = |path: &Path| File::options().read(true).write(true).open(path);
    let (here, there) = (open(mount)?, open(export)?);
    let mut stale = 0;
    for _ in 0..rounds {
        for file in [&there, &here] {
            thread::sleep(pause);
            flock(file, FlockOperation::LockExclusive)?;
            stale += u64::from(read(file)? != [*written; 2]);
            *written += 1;
            for at in PLACES {
                file.write_all_at(&written.to_le_bytes(), at)?;
            }
            flock(file, FlockOperation::Unlock)?;
        }
    }
    Ok(stale)
}

fn read(file: &File) -> io::Result<[u64; 2]> {
    let mut found = [0; 2];
    for (number, at) in found.iter_mut().zip(PLACES) {
        let mut bytes = [0; 8];
        file.read_exact_at(&mut bytes, at)?;
        *number = u64::from_le_bytes(bytes);
    }
    Ok(found)
}
