//! Writes a file in pieces of 1 KiB, then `fsync` and `close`, in a process of its own; kills the server at a given
//! point.
//!
//! ```text
//!   writes 1 … N/2 │ kill -9 │ writes N/2+1 … N │ fsync │ close          crash during writes
//!   writes 1 … N   │ stop │ fsync ─ it waits ─ kill -9 │ close           crash during the commit
//! ```
//! Before a crash during the commit, SIGSTOP stops the server. A stopped server sends no reply, so `fsync` is still in
//! progress at the kill, however busy the machine is.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::gettid;
use rustix::time::{ClockId, clock_gettime};

use wirefs_lab::LabError;
use wirefs_lab::random::Random;

/// Bytes of each write, as in the source.
const PIECE_BYTES: usize = 1 << 10;
/// The polling interval while waiting for `fsync` to block.
const POLL_INTERVAL: Duration = Duration::from_micros(20);

/// The point at which the server is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CrashPoint {
    /// Never.
    Never,
    /// While `fsync` waits for the server.
    Commit,
    /// After half of the pieces; the writer continues at once.
    Writes,
}

impl CrashPoint {
    /// All points, in the order of the source's table.
    pub const ALL: [CrashPoint; 3] = [CrashPoint::Never, CrashPoint::Commit, CrashPoint::Writes];

    /// Returns the name for reports.
    pub fn name(self) -> &'static str {
        match self {
            CrashPoint::Never => "no crash",
            CrashPoint::Commit => "crash during commit",
            CrashPoint::Writes => "crash during writes",
        }
    }

    /// Returns the name on the command line.
    pub fn word(self) -> &'static str {
        match self {
            CrashPoint::Never => "none",
            CrashPoint::Commit => "commit",
            CrashPoint::Writes => "writes",
        }
    }

    /// Parses the name on the command line.
    ///
    /// # Errors
    /// Returns the list of the valid names.
    pub fn parse(word: &str) -> Result<CrashPoint, String> {
        let known = CrashPoint::ALL.into_iter().find(|crash| crash.word() == word);
        known.ok_or_else(|| format!("`{word}` is none of none, commit, writes"))
    }
}

/// A file to write, and the server to kill meanwhile.
#[derive(Clone, Debug)]
pub struct BatchWriter {
    /// The file, which is created.
    pub path: PathBuf,
    /// The number of pieces.
    pub pieces: usize,
    /// The point of the kill.
    pub crash: CrashPoint,
    /// The process id of the server; without it nothing is killed.
    pub server_pid: Option<i32>,
}

/// The result of one batch. Times are of the monotonic clock, which all processes share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BatchOutcome {
    /// From before the creation of the file until it was closed.
    pub elapsed: Duration,
    /// Pieces written before the server was killed.
    pub before: usize,
    /// Pieces written after the server was killed.
    pub after: usize,
    /// Whether `fsync` was in progress when the server was killed.
    pub in_commit: bool,
    /// The time of the kill; zero if there was none.
    pub killed_at: Duration,
}

/// Returns the monotonic time, which all processes share.
pub(super) fn now() -> Duration {
    Duration::try_from(clock_gettime(ClockId::Monotonic)).unwrap_or_default()
}

/// Returns the contents of a file of this many pieces.
pub(super) fn content(pieces: usize) -> Vec<u8> {
    let mut random = Random::new(pieces as u64);
    let words = (0..pieces * PIECE_BYTES / 8).map(|_| random.next_u64().to_le_bytes());
    words.flatten().collect()
}

impl BatchWriter {
    /// Writes the file.
    ///
    /// # Errors
    /// Fails if a call on the file fails.
    pub fn run(&self) -> Result<BatchOutcome, LabError> {
        let failed = |error| LabError::io(format!("write {}", self.path.display()), error);
        let content = content(self.pieces);
        let server_pid = self.server_pid.and_then(Pid::from_raw);
        let half = self.pieces / 2;
        let mut written = BatchOutcome::default();
        let begun = now();
        let mut file = File::create(&self.path).map_err(failed)?;
        for (nth, piece) in content.chunks(PIECE_BYTES).enumerate() {
            if self.crash == CrashPoint::Writes && nth == half {
                written.killed_at = kill(server_pid)?;
            }
            file.write_all(piece).map_err(failed)?;
            match written.killed_at.is_zero() {
                true => written.before += 1,
                false => written.after += 1,
            }
        }
        match (self.crash, server_pid) {
            (CrashPoint::Commit, Some(server_pid)) => {
                (written.killed_at, written.in_commit) = commit_and_kill(&file, server_pid)?;
            }
            _ => file.sync_all().map_err(failed)?,
        }
        drop(file);
        written.elapsed = now().saturating_sub(begun);
        Ok(written)
    }
}

fn kill(server_pid: Option<Pid>) -> Result<Duration, LabError> {
    let Some(server_pid) = server_pid else { return Ok(Duration::ZERO) };
    let killed_at = now();
    kill_process(server_pid, Signal::KILL).map_err(|error| LabError::io("kill the server", error))?;
    Ok(killed_at)
}

/// Calls `fsync` and kills the server meanwhile. Returns the time of the kill, and whether `fsync` was in progress.
fn commit_and_kill(file: &File, server_pid: Pid) -> Result<(Duration, bool), LabError> {
    let (caller, has_returned) = (AtomicI32::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        let killer = scope.spawn(|| {
            while !is_waiting(caller.load(Ordering::SeqCst)) && !has_returned.load(Ordering::SeqCst) {
                thread::sleep(POLL_INTERVAL);
            }
            let killed_at = kill(Some(server_pid))?;
            Ok((killed_at, !has_returned.load(Ordering::SeqCst)))
        });
        kill_process(server_pid, Signal::STOP).map_err(|error| LabError::io("stop the server", error))?;
        caller.store(gettid().as_raw_nonzero().get(), Ordering::SeqCst);
        let synced = file.sync_all();
        has_returned.store(true, Ordering::SeqCst);
        let killed = killer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        synced.map_err(|error| LabError::io("sync the file", error))?;
        killed
    })
}

/// Returns whether a thread of this process is blocked in a system call.
fn is_waiting(thread: i32) -> bool {
    if thread == 0 {
        return false;
    }
    let stat = fs::read_to_string(Path::new("/proc/self/task").join(thread.to_string()).join("stat"));
    // The state is the field after the name, which is in parentheses.
    let state = stat.ok().and_then(|stat| stat.rsplit_once(") ")?.1.chars().next());
    matches!(state, Some('S' | 'D'))
}

impl BatchOutcome {
    /// Formats the result as one line for the parent process.
    pub fn to_line(&self) -> String {
        let BatchOutcome { elapsed, before, after, in_commit, killed_at } = self;
        format!("{} {before} {after} {} {}", elapsed.as_nanos(), u8::from(*in_commit), killed_at.as_nanos())
    }

    /// Parses the line of [`to_line`](Self::to_line).
    pub(super) fn parse(line: &str) -> Option<BatchOutcome> {
        let numbers: Vec<u64> = line.split_whitespace().map_while(|word| word.parse().ok()).collect();
        let [elapsed, before, after, in_commit, killed_at] = numbers.as_slice() else { return None };
        Some(BatchOutcome {
            elapsed: Duration::from_nanos(*elapsed),
            before: usize::try_from(*before).ok()?,
            after: usize::try_from(*after).ok()?,
            in_commit: *in_commit == 1,
            killed_at: Duration::from_nanos(*killed_at),
        })
    }

    /// Returns whether the server was killed at `crash` and only there.
    pub(super) fn has_crashed_at(&self, crash: CrashPoint, pieces: usize) -> bool {
        let is_killed = !self.killed_at.is_zero();
        match crash {
            CrashPoint::Never => !is_killed && self.before == pieces,
            CrashPoint::Commit => is_killed && self.in_commit && self.before == pieces && self.after == 0,
            CrashPoint::Writes => {
                is_killed && !self.in_commit && self.before == pieces / 2 && self.after == pieces - pieces / 2
            }
        }
    }
}

#[cfg(test)]
mod tests;
