//! The findings of a replay in progress, in a file beside the journal's segments, so that another process can continue.

use super::{kernel_run, log_line};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use wirefs_journal::Findings;

const NAME: &str = "decided";
/// The maximum file size, in bytes: findings for a million names take less.
const FILE_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// The file, while it is written.
pub(super) struct FindingsFile {
    path: PathBuf,
    file: Option<File>,
}

impl FindingsFile {
    /// Uses the file in a journal's directory.
    pub(super) fn of(dir: &Path) -> FindingsFile {
        FindingsFile { path: dir.join(NAME), file: None }
    }

    /// Replaces the file. It survives this process.
    pub(super) fn decided(&mut self, decision: &Findings) {
        self.file = self.begin(decision).inspect_err(|error| self.is_lost(error)).ok();
    }

    /// Notes that the server may forget its replies to changes below a number. Called before that is sent to the
    /// server.
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

    /// Continues the file of an earlier connection or process.
    fn append(&mut self, below: u64) -> io::Result<()> {
        let mut file = match OpenOptions::new().append(true).open(&self.path) {
            // Its creation has failed.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            opened => opened?,
        };
        file.write_all(&Findings::answered(below))?;
        self.file = Some(file);
        Ok(())
    }

    /// Removes an incomplete file: another process would rely on replies that the server has forgotten.
    fn is_lost(&self, error: &io::Error) {
        log_line(&format!(
            "what is being done again at the server cannot be noted: {error}; if this ends now, it is kept aside"
        ));
        remove(&self.path);
    }
}

/// Reads the findings in a journal's directory, if they are of this boot of the local machine.
pub(super) fn noted(dir: &Path) -> Option<Findings> {
    let file = File::open(dir.join(NAME)).ok()?;
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    Findings::decode(&bytes, kernel_run())
}

/// Removes the findings of a completed or abandoned replay.
pub(super) fn forget(dir: &Path) {
    remove(&dir.join(NAME));
}

fn remove(path: &Path) {
    // Usually there is none.
    let _gone = std::fs::remove_file(path);
}

#[cfg(test)]
mod tests;
