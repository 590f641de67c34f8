//! Programs that contend for locks. Each runs as a process of its own, since `fcntl` locks belong to processes.
//!
//! One file holds [`COUNTERS`] counters. Each program adds 1 to a random one of them, under a lock, again and again. A program that gets
//! a lock and reads what was there before the previous holder wrote loses an update: the sum is too small then.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use crate::error::LabError;
use crate::random::Random;
use crate::range_lock::{HeldLock, RangeLock};

/// Counters in a file.
pub const COUNTERS: u64 = 16;
/// Bytes of a counter.
const COUNTER_BYTES: u64 = 8;

/// A family of locks, which do not exclude those of the other family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContendedLock {
    /// `flock`: the whole file.
    Flock,
    /// `fcntl`: a range; here the bytes of a counter.
    Fcntl,
}

impl ContendedLock {
    /// Both.
    pub const ALL: [ContendedLock; 2] = [ContendedLock::Flock, ContendedLock::Fcntl];

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            ContendedLock::Flock => "flock",
            ContendedLock::Fcntl => "fcntl",
        }
    }

    /// Reads that word.
    ///
    /// # Errors
    /// The words there are.
    pub fn parse(word: &str) -> Result<ContendedLock, String> {
        let known = ContendedLock::ALL.into_iter().find(|kind| kind.name() == word);
        known.ok_or_else(|| format!("`{word}` is neither flock nor fcntl"))
    }

    /// Takes a lock of `range`, or of the whole file, and waits for it.
    ///
    /// # Errors
    /// Those of `flock` and `F_SETLKW`.
    pub fn take(self, file: &File, range: RangeLock) -> io::Result<()> {
        match self {
            ContendedLock::Flock => flock(file, FlockOperation::LockExclusive).map_err(Into::into),
            ContendedLock::Fcntl => range.take(file),
        }
    }

    /// Releases that lock.
    ///
    /// # Errors
    /// Those of `flock` and `F_SETLK`.
    pub fn release(self, file: &File, range: RangeLock) -> io::Result<()> {
        match self {
            ContendedLock::Flock => flock(file, FlockOperation::Unlock).map_err(Into::into),
            ContendedLock::Fcntl => range.release(file),
        }
    }
}

/// A program that adds to counters.
#[derive(Clone, Debug)]
pub struct Adder {
    /// The file of the counters.
    pub path: PathBuf,
    /// The locks that it takes.
    pub lock: ContendedLock,
    /// Additions.
    pub rounds: u64,
    /// The seed of its choice of counters.
    pub seed: u64,
}

impl Adder {
    /// Makes all additions.
    ///
    /// # Errors
    /// A call on the file that fails.
    pub fn run(&self) -> Result<(), LabError> {
        self.add_all().map_err(|error| LabError::io(format!("add in {}", self.path.display()), error))
    }

    fn add_all(&self) -> io::Result<()> {
        let file = File::options().read(true).write(true).open(&self.path)?;
        let mut random = Random::new(self.seed);
        for _ in 0..self.rounds {
            let at = random.below(COUNTERS) * COUNTER_BYTES;
            // A multiple of 8 below 128.
            let range = RangeLock::exclusive(at as i64, COUNTER_BYTES as i64);
            self.lock.take(&file, range)?;
            let mut counter = [0; COUNTER_BYTES as usize];
            file.read_exact_at(&mut counter, at)?;
            let next = u64::from_le_bytes(counter) + 1;
            file.write_all_at(&next.to_le_bytes(), at)?;
            self.lock.release(&file, range)?;
        }
        Ok(())
    }
}

/// Sets all counters of a file to 0.
///
/// # Errors
/// A write that fails.
pub fn reset_counters(path: &Path) -> Result<(), LabError> {
    let zeros = vec![0; (COUNTERS * COUNTER_BYTES) as usize];
    fs::write(path, zeros).map_err(|error| LabError::io(format!("write {}", path.display()), error))
}

/// The sum of all counters of a file.
///
/// # Errors
/// A read that fails.
pub fn sum_of_counters(path: &Path) -> Result<u64, LabError> {
    let bytes = fs::read(path).map_err(|error| LabError::io(format!("read {}", path.display()), error))?;
    let (counters, _) = bytes.as_chunks::<{ COUNTER_BYTES as usize }>();
    Ok(counters.iter().map(|counter| u64::from_le_bytes(*counter)).sum())
}

/// Opens a file, calls `opened`, and waits for a lock of all of it.
///
/// # Errors
/// A call that fails.
pub fn wait_for_lock(path: &Path, lock: ContendedLock, opened: impl FnOnce()) -> Result<(), LabError> {
    let failed = |error| LabError::io(format!("lock {}", path.display()), error);
    let file = File::options().read(true).write(true).open(path).map_err(failed)?;
    opened();
    lock.take(&file, RangeLock::exclusive(0, 0)).map_err(failed)
}

/// The lock of another process that is in the way of `lock`.
///
/// # Errors
/// A call that fails.
pub fn conflict(path: &Path, lock: RangeLock) -> Result<Option<HeldLock>, LabError> {
    let failed = |error| LabError::io(format!("ask for locks of {}", path.display()), error);
    let file = File::options().read(true).write(true).open(path).map_err(failed)?;
    lock.conflict(&file).map_err(failed)
}
