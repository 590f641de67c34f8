//! What is noted of changes that are being done again, in a file beside the journal's segments, so that another process can go on with them.

use super::{kernel_run, tell};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use wirefs_journal::Findings;

const NAME: &str = "decided";
/// A file that is longer is none, in bytes: a look for each of a million names takes less.
const FILE_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// The file, to write to.
pub(super) struct Notes {
    path: PathBuf,
    file: Option<File>,
}

impl Notes {
    /// In the directory of a journal.
    pub(super) fn of(dir: &Path) -> Notes {
        Notes { path: dir.join(NAME), file: None }
    }

    /// Begins anew. The kernel has it then: it outlives this process.
    pub(super) fn decided(&mut self, decision: &Findings) {
        self.file = self.begin(decision).inspect_err(|error| self.is_lost(error)).ok();
    }

    /// The server is about to be told that it may forget its replies to changes below this number.
    pub(super) fn answered(&mut self, below: u64) {
        let written = match &mut self.file {
            Some(file) => file.write_all(&Findings::answered(below)),
            None => self.append(below),
        };
        if let Err(error) = written {
            self.is_lost(&error);
        }
    }

    fn begin(&self, decision: &Findings) -> io::Result<File> {
        let half = self.path.with_extension("new");
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&half)?;
        file.write_all(&decision.encode(kernel_run()))?;
        std::fs::rename(half, &self.path)?;
        Ok(file)
    }

    /// Goes on with what an earlier connection, or process, began.
    fn append(&mut self, below: u64) -> io::Result<()> {
        let mut file = match OpenOptions::new().append(true).open(&self.path) {
            // It could not be written then.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            opened => opened?,
        };
        file.write_all(&Findings::answered(below))?;
        self.file = Some(file);
        Ok(())
    }

    /// What is there does not tell all: who takes it up would ask the server for what that has forgotten.
    fn is_lost(&self, error: &io::Error) {
        tell(&format!(
            "what is being done again at the server cannot be noted: {error}; if this ends now, it is kept aside"
        ));
        remove(&self.path);
    }
}

/// What was noted in the directory of a journal, in this run of the kernel.
pub(super) fn noted(dir: &Path) -> Option<Findings> {
    let file = File::open(dir.join(NAME)).ok()?;
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    Findings::decode(&bytes, kernel_run())
}

/// All of it is done, or given up.
pub(super) fn forget(dir: &Path) {
    remove(&dir.join(NAME));
}

fn remove(path: &Path) {
    // Most often none was made.
    let _gone = std::fs::remove_file(path);
}

#[cfg(test)]
mod tests;
