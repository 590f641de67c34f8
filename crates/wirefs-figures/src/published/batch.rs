//! A file that is written in pieces of 1 KiB, synced and closed, by a process of its own, which ends the server on the way if it is to.
//!
//! ```text
//!   writes 1 … N/2 │ kill -9 │ writes N/2+1 … N │ fsync │ close          crash during writes
//!   writes 1 … N   │ stop │ fsync ─ it waits ─ kill -9 │ close           crash during the commit
//! ```
//! For a crash during the commit the server is stopped first: what is stopped answers nothing, so that `fsync` is under way when it is
//! killed, on however busy a machine.

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

/// Bytes of each write, as the source has it.
const PIECE_BYTES: usize = 1 << 10;
/// Between two looks whether the commit waits.
const LOOK_EVERY: Duration = Duration::from_micros(20);

/// When the server is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Crash {
    /// Never.
    None,
    /// While `fsync` waits.
    Commit,
    /// When half of the pieces are written; the writer goes on at once.
    Writes,
}

impl Crash {
    /// All of them, in the order of the source's table.
    pub const ALL: [Crash; 3] = [Crash::None, Crash::Commit, Crash::Writes];

    /// The words for it.
    pub fn name(self) -> &'static str {
        match self {
            Crash::None => "no crash",
            Crash::Commit => "crash during commit",
            Crash::Writes => "crash during writes",
        }
    }

    /// The word for it on a command line.
    pub fn word(self) -> &'static str {
        match self {
            Crash::None => "none",
            Crash::Commit => "commit",
            Crash::Writes => "writes",
        }
    }

    /// Reads that word.
    ///
    /// # Errors
    /// What could have been written.
    pub fn parse(word: &str) -> Result<Crash, String> {
        let known = Crash::ALL.into_iter().find(|crash| crash.word() == word);
        known.ok_or_else(|| format!("`{word}` is none of none, commit, writes"))
    }
}

/// What to write, and whom to kill.
#[derive(Clone, Debug)]
pub struct Batch {
    /// The file, which is made.
    pub path: PathBuf,
    /// How many pieces.
    pub pieces: usize,
    /// When to kill.
    pub crash: Crash,
    /// The process of the server; nobody is killed without it.
    pub victim: Option<i32>,
}

/// What became of it. Moments are those of the system's monotonic clock, the same in all processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// From before the file was made until it was closed.
    pub took: Duration,
    /// Pieces that were written before the server was killed, and after that.
    pub before: usize,
    /// See `before`.
    pub after: usize,
    /// Whether `fsync` had been called and had not returned when the server was killed.
    pub in_commit: bool,
    /// When the server was killed; zero: it was not.
    pub killed_at: Duration,
}

/// Now, by the clock that all processes share.
pub(super) fn now() -> Duration {
    Duration::try_from(clock_gettime(ClockId::Monotonic)).unwrap_or_default()
}

/// The bytes of a file of so many pieces.
pub(super) fn content(pieces: usize) -> Vec<u8> {
    let mut random = Random::new(pieces as u64);
    let words = (0..pieces * PIECE_BYTES / 8).map(|_| random.next_u64().to_le_bytes());
    words.flatten().collect()
}

impl Batch {
    /// Writes the file.
    ///
    /// # Errors
    /// A call on the file that fails.
    pub fn run(&self) -> Result<Written, LabError> {
        let failed = |error| LabError::io(format!("write {}", self.path.display()), error);
        let content = content(self.pieces);
        let victim = self.victim.and_then(Pid::from_raw);
        let half = self.pieces / 2;
        let mut written = Written::default();
        let begun = now();
        let mut file = File::create(&self.path).map_err(failed)?;
        for (nth, piece) in content.chunks(PIECE_BYTES).enumerate() {
            if self.crash == Crash::Writes && nth == half {
                written.killed_at = kill(victim)?;
            }
            file.write_all(piece).map_err(failed)?;
            match written.killed_at.is_zero() {
                true => written.before += 1,
                false => written.after += 1,
            }
        }
        match (self.crash, victim) {
            (Crash::Commit, Some(victim)) => {
                (written.killed_at, written.in_commit) = commit_and_kill(&file, victim)?;
            }
            _ => file.sync_all().map_err(failed)?,
        }
        drop(file);
        written.took = now().saturating_sub(begun);
        Ok(written)
    }
}

fn kill(victim: Option<Pid>) -> Result<Duration, LabError> {
    let Some(victim) = victim else { return Ok(Duration::ZERO) };
    let killed_at = now();
    kill_process(victim, Signal::KILL).map_err(|error| LabError::io("kill the server", error))?;
    Ok(killed_at)
}

/// Syncs the file, and kills the server while that waits for it: when that was, and whether `fsync` was under way.
fn commit_and_kill(file: &File, victim: Pid) -> Result<(Duration, bool), LabError> {
    let (caller, has_returned) = (AtomicI32::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        let killer = scope.spawn(|| {
            while !is_waiting(caller.load(Ordering::SeqCst)) && !has_returned.load(Ordering::SeqCst) {
                thread::sleep(LOOK_EVERY);
            }
            let killed_at = kill(Some(victim))?;
            Ok((killed_at, !has_returned.load(Ordering::SeqCst)))
        });
        kill_process(victim, Signal::STOP).map_err(|error| LabError::io("stop the server", error))?;
        caller.store(gettid().as_raw_nonzero().get(), Ordering::SeqCst);
        let synced = file.sync_all();
        has_returned.store(true, Ordering::SeqCst);
        let killed = killer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        synced.map_err(|error| LabError::io("sync the file", error))?;
        killed
    })
}

/// Whether a thread of this process waits in a call.
fn is_waiting(thread: i32) -> bool {
    if thread == 0 {
        return false;
    }
    let stat = fs::read_to_string(Path::new("/proc/self/task").join(thread.to_string()).join("stat"));
    // The state stands behind the name, which is in brackets.
    let state = stat.ok().and_then(|stat| stat.rsplit_once(") ")?.1.chars().next());
    matches!(state, Some('S' | 'D'))
}

impl Written {
    /// As the writing process says it.
    pub fn to_line(&self) -> String {
        let Written { took, before, after, in_commit, killed_at } = self;
        format!("{} {before} {after} {} {}", took.as_nanos(), u8::from(*in_commit), killed_at.as_nanos())
    }

    /// Reads what that said.
    pub(super) fn parse(line: &str) -> Option<Written> {
        let numbers: Vec<u64> = line.split_whitespace().map_while(|word| word.parse().ok()).collect();
        let [took, before, after, in_commit, killed_at] = numbers.as_slice() else { return None };
        Some(Written {
            took: Duration::from_nanos(*took),
            before: usize::try_from(*before).ok()?,
            after: usize::try_from(*after).ok()?,
            in_commit: *in_commit == 1,
            killed_at: Duration::from_nanos(*killed_at),
        })
    }

    /// Whether the server was killed at the stage that was meant, and nowhere else.
    pub(super) fn is_as_meant(&self, crash: Crash, pieces: usize) -> bool {
        let is_killed = !self.killed_at.is_zero();
        match crash {
            Crash::None => !is_killed && self.before == pieces,
            Crash::Commit => is_killed && self.in_commit && self.before == pieces && self.after == 0,
            Crash::Writes => {
                is_killed && !self.in_commit && self.before == pieces / 2 && self.after == pieces - pieces / 2
            }
        }
    }
}

#[cfg(test)]
mod tests;
