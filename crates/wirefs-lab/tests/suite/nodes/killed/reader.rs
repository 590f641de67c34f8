//! One node's program that reads another's files all the time.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use wirefs_lab::random::Random;

use super::contents::{FILES, name, version_of};
use super::{Shared, is_strict};

/// Between two reads.
const PAUSE: Duration = Duration::from_millis(15);

const NOT_FOUND: i32 = 2;
const IO: i32 = 5;
const CONNECTION_ABORTED: i32 = 103;
const NOT_CONNECTED: i32 = 107;
const HOST_DOWN: i32 = 112;
const STALE: i32 = 116;

/// What a reader met.
#[derive(Default)]
pub(super) struct Met {
    pub(super) reads: u64,
    pub(super) bytes: u64,
    /// Errors that had to be expected, by number.
    pub(super) errors: BTreeMap<i32, u64>,
    /// Times that a node which lived was called down.
    pub(super) called_down: u64,
    /// How long after all knew that it lives, at most.
    pub(super) called_down_after: Duration,
    /// The longest access.
    pub(super) longest: Duration,
    /// What must not be.
    pub(super) faults: Vec<String>,
}

impl Met {
    pub(super) fn add(&mut self, other: Met) {
        self.reads += other.reads;
        self.bytes += other.bytes;
        self.called_down += other.called_down;
        self.called_down_after = self.called_down_after.max(other.called_down_after);
        self.longest = self.longest.max(other.longest);
        self.faults.extend(other.faults);
        for (errno, count) in other.errors {
            *self.errors.entry(errno).or_default() += count;
        }
    }
}

/// Reads the files of node `there` on node `here`; both count from 0.
pub(super) struct Reader {
    pub(super) here: usize,
    pub(super) there: usize,
    /// Node `there` in the net of node `here`.
    pub(super) at: PathBuf,
    pub(super) shared: Arc<Shared>,
    /// Reads that succeeded, for who waits for some.
    pub(super) done: Arc<AtomicU64>,
}

impl Reader {
    pub(super) fn run(self) -> Met {
        let mut random = Random::new((self.here * 100 + self.there) as u64);
        let (mut met, mut seen) = (Met::default(), [0; FILES]);
        while !self.shared.stop.load(Ordering::Relaxed) {
            let file = random.below(FILES as u64) as usize;
            self.read(file, &mut seen[file], &mut met);
            std::thread::sleep(PAUSE);
        }
        met
    }

    fn read(&self, file: usize, seen: &mut u64, met: &mut Met) {
        let before = self.shared.moment(self.here, self.there);
        let least = self.shared.versions.least(self.there, file);
        let begun = Instant::now();
        let read = fs::read(self.at.join(name(file)));
        met.longest = met.longest.max(begun.elapsed());
        let after = self.shared.moment(self.here, self.there);
        let fault = match read {
            Ok(bytes) => {
                met.reads += 1;
                met.bytes += bytes.len() as u64;
                self.done.fetch_add(1, Ordering::Relaxed);
                self.judge(file, &bytes, least, seen)
            }
            Err(error) => {
                let errno = error.raw_os_error().unwrap_or_default();
                *met.errors.entry(errno).or_default() += 1;
                let is_calm = before == after && before.is_calm();
                if is_calm && errno == HOST_DOWN {
                    met.called_down += 1;
                    let after = self.shared.calm_for(self.here, self.there);
                    met.called_down_after = met.called_down_after.max(after);
                }
                // A machine with much to do may take a node for dead; that is told, and is an answer. The kernel looks a name up
                // once more when another file is there by then (S-15); in that moment it may be replaced again. Who opens from
                // memory may learn as late as that from a read.
                let is_replaced = self.shared.versions.most(self.there, file) > least;
                let may_be_stale = is_replaced || !is_strict(self.here);
                let is_right = match errno {
                    HOST_DOWN => true,
                    STALE if may_be_stale => true,
                    errno => !is_calm && is_expected(errno),
                };
                let calm_for = self.shared.calm_for(self.here, self.there);
                (!is_right).then(|| format!("{error}, {before:?}, {after:?}, calm for {calm_for:?}"))
            }
        };
        if let Some(fault) = fault {
            met.faults.push(format!("{} read {} of {}: {fault}", self.here + 1, name(file), self.there + 1));
        }
    }

    fn judge(&self, file: usize, bytes: &[u8], least: u64, seen: &mut u64) -> Option<String> {
        let Some(version) = version_of(self.there, file, bytes) else {
            let head = String::from_utf8_lossy(&bytes[..bytes.len().min(40)]).into_owned();
            return Some(format!("{} bytes of no version: {head:?}", bytes.len()));
        };
        let most = self.shared.versions.most(self.there, file);
        let before = std::mem::replace(seen, version);
        if version > most {
            return Some(format!("version {version} before it was written"));
        }
        if version < before {
            return Some(format!("version {version} after version {before}"));
        }
        (is_strict(self.here) && version < least)
            .then(|| format!("version {version} when {least} was there, in mode strict"))
    }
}

/// What may be told while one of the two nodes is gone, comes or goes.
fn is_expected(errno: i32) -> bool {
    // No such node or mount yet; the own node died under the call; the file was replaced while its server was gone.
    [NOT_FOUND, IO, CONNECTION_ABORTED, NOT_CONNECTED, STALE].contains(&errno)
}

/// The errors by their names.
pub(super) fn named(errors: &BTreeMap<i32, u64>) -> String {
    let words =
        errors.iter().map(|(errno, count)| format!("{count} × {}", io::Error::from_raw_os_error(*errno)));
    words.collect::<Vec<_>>().join(", ")
}
