//! File operations and programs, with errors that name them.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Output};

use crate::error::LabError;
use crate::program;

/// The bytes per read or write of a large file.
pub(super) const CHUNK_BYTES: usize = 1 << 20;

/// Adds the file to an error.
pub(super) trait ErrorContext<T> {
    /// Converts the error into "cannot `verb` `path`: …".
    fn context(self, verb: &str, path: &Path) -> Result<T, LabError>;
}

impl<T> ErrorContext<T> for std::io::Result<T> {
    fn context(self, verb: &str, path: &Path) -> Result<T, LabError> {
        self.map_err(|error| LabError::io(format!("{verb} {}", path.display()), error))
    }
}

/// Creates a directory.
pub(super) fn make_directory(path: &Path) -> Result<(), LabError> {
    fs::create_dir(path).context("make", path)
}

/// Creates a file; fails if it exists.
pub(super) fn create(path: &Path, contents: &[u8]) -> Result<(), LabError> {
    File::create_new(path).and_then(|mut file| file.write_all(contents)).context("create", path)
}

/// Reads a file to its end in large chunks; returns its length in bytes.
pub(super) fn read(path: &Path) -> Result<u64, LabError> {
    let count = || {
        let mut file = File::open(path)?;
        let mut buffer = vec![0; CHUNK_BYTES];
        let mut bytes = 0;
        loop {
            match file.read(&mut buffer)? {
                0 => return Ok(bytes),
                count => bytes += count as u64,
            }
        }
    };
    count().context("read", path)
}

/// Fails unless a count equals that of the tree, so that a wrong result is never reported as fast.
pub(super) fn verify(unit: &str, expected: u64, found: u64) -> Result<(), LabError> {
    if expected == found {
        return Ok(());
    }
    Err(LabError::Probe { measurement: "a workload", problem: format!("{found} {unit}, not {expected}") })
}

/// Runs a program until it ends.
pub(super) fn run(command: &mut Command) -> Result<Output, LabError> {
    program::run(command, "the package of that name", "")
}

/// Returns the number of lines of a program's output.
pub(super) fn lines(output: &Output) -> u64 {
    output.stdout.iter().filter(|byte| **byte == b'\n').count() as u64
}
