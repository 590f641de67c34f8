//! `wirefs-lab contend`: one program of a test of locks.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Subcommand;
use wirefs_lab::contend::{Adder, ContendedLock, conflict, wait_for_lock};
use wirefs_lab::range_lock::RangeLock;

#[derive(Subcommand)]
pub(crate) enum Contender {
    /// Adds to counters under locks.
    Add {
        /// The file of the counters.
        path: PathBuf,
        /// flock or fcntl.
        #[arg(value_parser = ContendedLock::parse)]
        lock: ContendedLock,
        /// Additions.
        rounds: u64,
        /// The seed of the choice of counters.
        seed: u64,
    },
    /// Opens a file, prints `open`, and waits for a lock of all of it.
    Wait {
        /// The file.
        path: PathBuf,
        /// flock or fcntl.
        #[arg(value_parser = ContendedLock::parse)]
        lock: ContendedLock,
    },
    /// Prints the `fcntl` lock in the way of an exclusive one, as `shared START LENGTH PROCESS`, or `none`.
    Conflict {
        /// The file.
        path: PathBuf,
        /// The first byte.
        start: i64,
        /// Bytes; 0: to the end.
        length: i64,
        /// Asks for a shared lock.
        #[arg(long)]
        shared: bool,
    },
}

/// Runs that program.
pub(crate) fn run(contender: &Contender) -> anyhow::Result<ExitCode> {
    match contender {
        Contender::Add { path, lock, rounds, seed } => {
            Adder { path: path.clone(), lock: *lock, rounds: *rounds, seed: *seed }.run()?;
        }
        Contender::Wait { path, lock } => wait_for_lock(path, *lock, || println!("open"))?,
        Contender::Conflict { path, start, length, shared } => {
            let lock = RangeLock { is_exclusive: !shared, start: *start, length: *length };
            match conflict(path, lock)? {
                None => println!("none"),
                Some(held) => {
                    let kind = if held.lock.is_exclusive { "exclusive" } else { "shared" };
                    println!("{kind} {} {} {}", held.lock.start, held.lock.length, held.process);
                }
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}
