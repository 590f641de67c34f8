//! A program on one node that continuously reads another node's files.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use wirefs_lab::random::Random;

use super::contents::{FILES, name, version_of};
use super::{SharedState, is_strict};

/// The pause between two reads.
const PAUSE: Duration = Duration::from_millis(15);

const NOT_FOUND: i32 = 2;
const IO: i32 = 5;
const CONNECTION_ABORTED: i32 = 103;
const NOT_CONNECTED: i32 = 107;
const HOST_DOWN: i32 = 112;
const STALE: i32 = 116;

/// The observations of a reader.
#[derive(Default)]
pub(super) struct Observations {
    pub(super) reads: u64,
    pub(super) bytes: u64,
    /// The number of expected errors, by errno.
    pub(super) errors: BTreeMap<i32, u64>,
    /// How often a live node was reported as down.
    pub(super) reported_down: u64,
    /// The maximum time of such a report after the node was known to be alive.
    pub(super) reported_down_after: Duration,
    /// The longest access.
    pub(super) longest: Duration,
    /// Violations.
    pub(super) faults: Vec<String>,
}

impl Observations {
    pub(super) fn add(&mut self, other: Observations) {
        self.reads += other.reads;
        self.bytes += other.bytes;
        self.reported_down += other.reported_down;
        self.reported_down_after = self.reported_down_after.max(other.reported_down_after);
        self.longest = self.longest.max(other.longest);
        self.faults.extend(other.faults);
        for (errno, count) in other.errors {
            *self.errors.entry(errno).or_default() += count;
        }
    }
}

/// Reads the files of node `there` on node `here`; both numbers start at 0.
pub(super) struct NodeReader {
    pub(super) here: usize,
    pub(super) there: usize,
    /// The directory of node `there` in the /net of node `here`.
    pub(super) at: PathBuf,
    pub(super) shared: Arc<SharedState>,
    /// The number of successful reads, for waiting threads.
    pub(super) done: Arc<AtomicU64>,
}

impl NodeReader {
    pub(super) fn run(self) -> Observations {
        let mut random = Random::new((self.here * 100 + self.there) as u64);
        let (mut observations, mut seen) = (Observations::default(), [0; FILES]);
        while !self.shared.stop.load(Ordering::Relaxed) {
            let file = random.below(FILES as u64) as usize;
            self.read(file, &mut seen[file], &mut observations);
            std::thread::sleep(PAUSE);
        }
        observations
    }

    fn read(&self, file: usize, seen: &mut u64, observations: &mut Observations) {
        let before = self.shared.pair_state(self.here, self.there);
        let oldest_allowed = self.shared.versions.oldest_allowed(self.there, file);
        let begun = Instant::now();
        let read = fs::read(self.at.join(name(file)));
        observations.longest = observations.longest.max(begun.elapsed());
        let after = self.shared.pair_state(self.here, self.there);
        let fault = match read {
            Ok(bytes) => {
                observations.reads += 1;
                observations.bytes += bytes.len() as u64;
                self.done.fetch_add(1, Ordering::Relaxed);
                self.check(file, &bytes, oldest_allowed, seen)
            }
            Err(error) => {
                let errno = error.raw_os_error().unwrap_or_default();
                *observations.errors.entry(errno).or_default() += 1;
                let is_calm = before == after && before.is_calm();
                if is_calm && errno == HOST_DOWN {
                    observations.reported_down += 1;
                    let after = self.shared.calm_for(self.here, self.there);
                    observations.reported_down_after = observations.reported_down_after.max(after);
                }
                // On a busy machine a live node may count as dead; HOST_DOWN is then a valid answer. ESTALE is valid if
                // the file was replaced: the kernel repeats a lookup once for a replaced file (S-56), and the file may
                // be replaced again meanwhile. An open from the cache may get ESTALE as late as at the read.
                let is_replaced = self.shared.versions.newest_started(self.there, file) > oldest_allowed;
                let may_be_stale = is_replaced || !is_strict(self.here);
                let is_right = match errno {
                    HOST_DOWN => true,
                    STALE if may_be_stale => true,
                    errno => !is_calm && is_transition_error(errno),
                };
                let calm_for = self.shared.calm_for(self.here, self.there);
                (!is_right).then(|| format!("{error}, {before:?}, {after:?}, calm for {calm_for:?}"))
            }
        };
        if let Some(fault) = fault {
            observations.faults.push(format!(
                "{} read {} of {}: {fault}",
                self.here + 1,
                name(file),
                self.there + 1
            ));
        }
    }

    fn check(&self, file: usize, bytes: &[u8], oldest_allowed: u64, seen: &mut u64) -> Option<String> {
        let Some(version) = version_of(self.there, file, bytes) else {
            let head = String::from_utf8_lossy(&bytes[..bytes.len().min(40)]).into_owned();
            return Some(format!("{} bytes of no version: {head:?}", bytes.len()));
        };
        let newest = self.shared.versions.newest_started(self.there, file);
        let before = std::mem::replace(seen, version);
        if version > newest {
            return Some(format!("version {version} before it was written"));
        }
        if version < before {
            return Some(format!("version {version} after version {before}"));
        }
        (is_strict(self.here) && version < oldest_allowed)
            .then(|| format!("version {version} when {oldest_allowed} was there, in mode strict"))
    }
}

/// Returns whether an error is valid while one of the nodes is dead or in transition.
fn is_transition_error(errno: i32) -> bool {
    // The name or mount does not exist yet; the own node died during the call; the file was replaced while its server
    // was dead.
    [NOT_FOUND, IO, CONNECTION_ABORTED, NOT_CONNECTED, STALE].contains(&errno)
}

/// Formats the errors with their names.
pub(super) fn format_errors(errors: &BTreeMap<i32, u64>) -> String {
    let words =
        errors.iter().map(|(errno, count)| format!("{count} × {}", io::Error::from_raw_os_error(*errno)));
    words.collect::<Vec<_>>().join(", ")
}
