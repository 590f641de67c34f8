//! Waits for an earlier mount of the same source that is unmounted, while its process still sends pending writes.
//!
//! | note in the locked directory | in the kernel's mount table | the next mount |
//! |---|---|---|
//! | none: not mounted yet | | works without the directory |
//! | mounted | yes | works without the directory |
//! | mounted | no | waits briefly: the process is about to notice, or the mount is detached and in use |
//! | ending | | waits until the process has ended |

use super::slow_step::{MountStep, SlowStep};
use std::time::{Duration, Instant};
use wirefs_fuse::TableEntry;
use wirefs_store::SourceDirectoryError;

/// The maximum wait for an ending mount: longer than its server may take to answer.
const ENDING_MAX: Duration = Duration::from_secs(30);
/// The maximum time in which an unmounted process notices that and updates its note on a busy disk.
const UNNOTICED_MAX: Duration = Duration::from_secs(5);
/// The interval between two attempts.
const RETRY_INTERVAL: Duration = Duration::from_millis(5);
/// The text of the note of an ending mount.
const ENDING: &str = "ending";

/// The note that a mount leaves in its directories for the next mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum MountNote {
    /// It is mounted.
    Mount(TableEntry),
    /// It is unmounted, and its process is ending.
    Ending,
}

impl MountNote {
    pub(super) fn encode(&self) -> Vec<u8> {
        let rest = match self {
            MountNote::Mount(TableEntry { minor, source }) => format!("{minor} {source}"),
            MountNote::Ending => ENDING.to_owned(),
        };
        format!("{} {rest}", kernel_run()).into_bytes()
    }

    /// Decodes a note; `None` for an empty one, and for a note of another kernel that shares the directory.
    fn decode(note: &[u8]) -> Option<MountNote> {
        let (run, rest) = std::str::from_utf8(note).ok()?.split_once(' ')?;
        if run != kernel_run() {
            return None;
        }
        if rest == ENDING {
            return Some(MountNote::Ending);
        }
        let (minor, source) = rest.split_once(' ')?;
        Some(MountNote::Mount(TableEntry { minor: minor.parse().ok()?, source: source.to_owned() }))
    }

    /// Returns how long to wait for the end of that mount, counted from the first attempt.
    fn patience(&self, is_mounted: impl FnOnce(&TableEntry) -> bool) -> Duration {
        match self {
            MountNote::Ending => ENDING_MAX,
            MountNote::Mount(entry) if is_mounted(entry) => Duration::ZERO,
            MountNote::Mount(_) => UNNOTICED_MAX,
        }
    }
}

/// Returns the boot id of this machine's kernel.
fn kernel_run() -> String {
    let run = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    run.trim_end().to_owned()
}

/// Takes a directory, after an earlier mount that is about to end has released it.
///
/// # Errors
/// Those of `take`.
pub(super) fn wait_for_previous<T>(
    report: fn(MountStep),
    mut take: impl FnMut() -> Result<T, SourceDirectoryError>,
) -> Result<T, SourceDirectoryError> {
    let begun = Instant::now();
    let mut slow = None;
    loop {
        let taken = take();
        let patience = match &taken {
            Err(SourceDirectoryError::Busy { note, .. }) => {
                MountNote::decode(note).map(|holder| holder.patience(TableEntry::is_mounted))
            }
            Err(SourceDirectoryError::Removed(_)) => Some(UNNOTICED_MAX),
            Ok(_) | Err(SourceDirectoryError::Foreign(_) | SourceDirectoryError::System(..)) => None,
        };
        if patience.is_none_or(|patience| begun.elapsed() >= patience) {
            return taken;
        }
        slow.get_or_insert_with(|| SlowStep::begin(report, MountStep::Ending));
        std::thread::sleep(RETRY_INTERVAL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounted_one_is_not_waited_for() {
        let entry = TableEntry { minor: 45, source: "host:a dir".to_owned() };
        let holder = MountNote::decode(&MountNote::Mount(entry.clone()).encode()).unwrap();
        assert_eq!(holder, MountNote::Mount(entry));
        assert_eq!(holder.patience(|_| true), Duration::ZERO);
        assert_eq!(holder.patience(|_| false), UNNOTICED_MAX);
        let ending = MountNote::decode(&MountNote::Ending.encode()).unwrap();
        assert_eq!(ending.patience(|_| true), ENDING_MAX);
    }

    #[test]
    fn empty_or_foreign_note_is_ignored() {
        for note in [&b""[..], b"another-kernel ending", b"another-kernel 45 host:dir", b"garbage", b"\xff"] {
            assert_eq!(MountNote::decode(note), None);
        }
    }
}
