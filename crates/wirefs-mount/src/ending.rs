//! Waiting for an earlier mount of the same source, which is unmounted and whose process still sends what programs wrote.
//!
//! | note in the locked directory | the kernel's table of mounts | the next mount |
//! |---|---|---|
//! | none: it has mounted nothing yet | | does without the directory |
//! | the mount | has it | the same |
//! | the mount | no longer has it | waits a moment: its process is about to learn of it, or it is out of sight and still in use |
//! | that it is ending | | waits until it has ended |

use super::slow::{Slow, Waits};
use std::time::{Duration, Instant};
use wirefs_fuse::TableEntry;
use wirefs_store::SourceDirectoryError;

/// For how long one that is ending is waited for: longer than its server may take to answer.
const ENDING_MAX: Duration = Duration::from_secs(30);
/// For how long one that is unmounted may take to notice it and to note that, on a disk that is busy.
const UNNOTICED_MAX: Duration = Duration::from_secs(5);
/// How often it is looked whether it has ended.
const LOOK_EACH: Duration = Duration::from_millis(5);
/// The words of a mount that is ending.
const ENDING: &str = "ending";

/// Notes of a mount in its directories, for the next one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Holder {
    /// It is this mount.
    Mount(TableEntry),
    /// It is unmounted.
    Ending,
}

impl Holder {
    pub(super) fn encode(&self) -> Vec<u8> {
        let rest = match self {
            Holder::Mount(TableEntry { minor, source }) => format!("{minor} {source}"),
            Holder::Ending => ENDING.to_owned(),
        };
        format!("{} {rest}", kernel_run()).into_bytes()
    }

    /// `None`: it has mounted nothing yet, or it is of another kernel, with which this one shares the directory.
    fn decode(note: &[u8]) -> Option<Holder> {
        let (run, rest) = std::str::from_utf8(note).ok()?.split_once(' ')?;
        if run != kernel_run() {
            return None;
        }
        if rest == ENDING {
            return Some(Holder::Ending);
        }
        let (minor, source) = rest.split_once(' ')?;
        Some(Holder::Mount(TableEntry { minor: minor.parse().ok()?, source: source.to_owned() }))
    }

    /// For how long it is worth waiting for its end, from the first look on.
    fn patience(&self, is_mounted: impl FnOnce(&TableEntry) -> bool) -> Duration {
        match self {
            Holder::Ending => ENDING_MAX,
            Holder::Mount(entry) if is_mounted(entry) => Duration::ZERO,
            Holder::Mount(_) => UNNOTICED_MAX,
        }
    }
}

/// Names the run of this machine's kernel.
fn kernel_run() -> String {
    let run = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    run.trim_end().to_owned()
}

/// Takes a directory, once an earlier mount that is about to end has let go of it.
///
/// # Errors
/// As `take`.
pub(super) fn once_it_has_ended<T>(
    tell: fn(Waits),
    mut take: impl FnMut() -> Result<T, SourceDirectoryError>,
) -> Result<T, SourceDirectoryError> {
    let begun = Instant::now();
    let mut slow = None;
    loop {
        let taken = take();
        let patience = match &taken {
            Err(SourceDirectoryError::Busy { note, .. }) => {
                Holder::decode(note).map(|holder| holder.patience(TableEntry::is_mounted))
            }
            Err(SourceDirectoryError::Removed(_)) => Some(UNNOTICED_MAX),
            Ok(_) | Err(SourceDirectoryError::Foreign(_) | SourceDirectoryError::System(..)) => None,
        };
        if patience.is_none_or(|patience| begun.elapsed() >= patience) {
            return taken;
        }
        slow.get_or_insert_with(|| Slow::begin(tell, Waits::Ending));
        std::thread::sleep(LOOK_EACH);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_is_mounted_is_not_waited_for() {
        let entry = TableEntry { minor: 45, source: "host:a dir".to_owned() };
        let holder = Holder::decode(&Holder::Mount(entry.clone()).encode()).unwrap();
        assert_eq!(holder, Holder::Mount(entry));
        assert_eq!(holder.patience(|_| true), Duration::ZERO);
        assert_eq!(holder.patience(|_| false), UNNOTICED_MAX);
        let ending = Holder::decode(&Holder::Ending.encode()).unwrap();
        assert_eq!(ending.patience(|_| true), ENDING_MAX);
    }

    #[test]
    fn of_one_that_has_noted_nothing_or_is_of_another_kernel_nothing_is_known() {
        for note in [&b""[..], b"another-kernel ending", b"another-kernel 45 host:dir", b"garbage", b"\xff"] {
            assert_eq!(Holder::decode(note), None);
        }
    }
}
