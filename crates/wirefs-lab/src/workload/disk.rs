//! Files and programs, with errors that name them.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Output};

use crate::error::LabError;
use crate::program;

/// The bytes of one read or write of a large file.
pub(super) const CHUNK_BYTES: usize = 1 << 20;

/// Names the file that an error is about.
pub(super) trait About<T> {
    /// Turns the error into "cannot `verb` `path`: …".
    fn about(self, verb: &str, path: &Path) -> Result<T, LabError>;
}

impl<T> About<T> for std::io::Result<T> {
    fn about(self, verb: &str, path: &Path) -> Result<T, LabError> {
        self.map_err(|error| LabError::io(format!("{verb} {}", path.display()), error))
    }
}

/// Makes a directory.
pub(super) fn make_directory(path: &Path) -> Result<(), LabError> {
    fs::create_dir(path).about("make", path)
}

/// Makes a file, or fails when it is there.
pub(super) fn create(path: &Path, contents: &[u8]) -> Result<(), LabError> {
    File::create_new(path).and_then(|mut file| file.write_all(contents)).about("create", path)
}

/// Reads a file to its end, in large pieces; gives its length in bytes.
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
    count().about("read", path)
}

/// Fails unless what was found is what the tree holds: a fast answer that is wrong is no result.
pub(super) fn verify(what: &str, expected: u64, found: u64) -> Result<(), LabError> {
    if expected == found {
        return Ok(());
    }
    Err(LabError::Probe { what: "a workload", problem: format!("{found} {what}, not {expected}") })
}

/// Runs a program to its end.
pub(super) fn run(command: &mut Command) -> Result<Output, LabError> {
    program::run(command, "the package of that name", "")
}

/// Lines that a program wrote.
pub(super) fn lines(output: &Output) -> u64 {
    output.stdout.iter().filter(|byte| **byte == b'\n').count() as u64
}
