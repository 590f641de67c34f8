//! The notes of one session in one file, which one process has at a time.

use super::record::{self, Damage, Record};
use bytes::Bytes;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use wirefs_op::message::version::BootId;
use wirefs_server::{Note, Noted};

/// A log is written anew when it has become so long, in bytes, and twice as long as what it says.
const REWRITTEN_AT: u64 = 4 * 1024 * 1024;
/// No log of ours is longer, in bytes.
const LOG_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// How often a file that is replaced while it is opened is tried.
const TRIES_MAX: usize = 16;

/// A log that this process writes.
#[derive(Debug)]
pub(crate) struct Log {
    file: File,
    path: PathBuf,
    boot: BootId,
    bytes: u64,
    /// Its length when it was written anew last.
    rewritten_bytes: u64,
    /// Records that go with the next one.
    held_back: Vec<u8>,
}

/// What is there under a session's name.
#[derive(Debug)]
pub(super) enum Kept {
    Nothing,
    /// Another process has it.
    Busy,
    Log(Box<Log>, Box<Noted>),
    /// It cannot be believed, and is removed.
    Void(Damage),
}

impl Log {
    /// Opens the log at `path`. One that was not ended in order counts only while the same boot lasts: what is not on the disk
    /// yet outlives the process, but not the machine.
    ///
    /// # Errors
    /// It cannot be read or written.
    pub(super) fn open(path: &Path, boot: BootId) -> io::Result<Kept> {
        let mut file = match lock(path)? {
            Locked::Nothing => return Ok(Kept::Nothing),
            Locked::Busy => return Ok(Kept::Busy),
            Locked::File(file) => file,
        };
        let mut bytes = Vec::new();
        (&mut file).take(LOG_BYTES_MAX).read_to_end(&mut bytes)?;
        let told = match record::read(&Bytes::from(bytes)) {
            Ok(told) => told,
            Err(damage) => {
                std::fs::remove_file(path)?;
                return Ok(Kept::Void(damage));
            }
        };
        if !told.is_closed && told.boot != Some(boot) {
            std::fs::remove_file(path)?;
            return Ok(Kept::Nothing);
        }
        let bytes = told.whole_bytes as u64;
        file.set_len(bytes)?;
        let (path, held_back) = (path.to_owned(), Vec::new());
        let mut log = Log { file, path, boot, bytes, rewritten_bytes: 0, held_back };
        if told.is_closed {
            log.write(&Record::Opened(boot))?;
            // Or after a loss of power it would look as if nothing had happened since it was ended.
            log.file.sync_data()?;
        }
        Ok(Kept::Log(Box::new(log), Box::new(told.noted)))
    }

    /// Begins a log where there is none.
    ///
    /// # Errors
    /// It cannot be written, or there is one.
    pub(super) fn create(path: &Path, boot: BootId) -> io::Result<Log> {
        let mut file = OpenOptions::new().read(true).append(true).create_new(true).mode(0o600).open(path)?;
        file.try_lock()?;
        let head = record::whole(boot, &Noted::default());
        file.write_all(&head)?;
        let bytes = head.len() as u64;
        Ok(Log { file, path: path.to_owned(), boot, bytes, rewritten_bytes: bytes, held_back: Vec::new() })
    }

    /// Appends a note; one that does not matter by itself goes with the next.
    ///
    /// # Errors
    /// It cannot be written whole.
    ///
    /// # Cost
    /// One write into the page cache, of about 300 bytes.
    pub(super) fn note(&mut self, note: Note) -> io::Result<()> {
        match note {
            Note::Answered(_) => {
                // The last one says all that those before it said.
                self.held_back.clear();
                Record::Note(note).write(&mut self.held_back);
                Ok(())
            }
            Note::Begun { .. } | Note::Done { .. } => self.write(&Record::Note(note)),
        }
    }

    /// Whether it should be written anew.
    pub(super) fn is_long(&self) -> bool {
        self.bytes > REWRITTEN_AT.max(2 * self.rewritten_bytes)
    }

    /// Puts a log in its place that says this and nothing that is over.
    ///
    /// # Errors
    /// It cannot be written, or another process has taken the place.
    pub(super) fn rewrite(&mut self, noted: &Noted) -> io::Result<()> {
        let path = self.path.with_extension("new");
        let _left = std::fs::remove_file(&path);
        let mut file = OpenOptions::new().read(true).append(true).create_new(true).mode(0o600).open(&path)?;
        file.try_lock()?;
        let log = record::whole(self.boot, noted);
        file.write_all(&log)?;
        if !is_at(&self.file, &self.path)? {
            std::fs::remove_file(&path)?;
            return Err(io::Error::new(io::ErrorKind::NotFound, "another server has taken the session over"));
        }
        std::fs::rename(&path, &self.path)?;
        (self.file, self.bytes, self.rewritten_bytes) = (file, log.len() as u64, log.len() as u64);
        self.held_back.clear();
        Ok(())
    }

    /// Ends it in order: it is believed after the next boot as well.
    ///
    /// # Errors
    /// It cannot be written or synced, and counts as not ended in order then.
    pub(crate) fn close(mut self) -> io::Result<()> {
        self.write(&Record::Closed)?;
        self.file.sync_data()
    }

    /// Removes it: a log in which something is missing would have changes done twice.
    pub(super) fn discard(self) {
        if is_at(&self.file, &self.path).unwrap_or(true) {
            let _gone = std::fs::remove_file(&self.path);
        }
    }

    fn write(&mut self, record: &Record) -> io::Result<()> {
        let mut bytes = std::mem::take(&mut self.held_back);
        if !record.write(&mut bytes) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a note is too long"));
        }
        self.file.write_all(&bytes)?;
        self.bytes += bytes.len() as u64;
        bytes.clear();
        self.held_back = bytes;
        Ok(())
    }
}

enum Locked {
    Nothing,
    Busy,
    File(File),
}

/// Opens and locks the file that has this name, also while it is being replaced.
fn lock(path: &Path) -> io::Result<Locked> {
    for _ in 0..TRIES_MAX {
        let file = match OpenOptions::new().read(true).append(true).open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Locked::Nothing),
            Err(error) => return Err(error),
        };
        match file.try_lock() {
            Ok(()) if is_at(&file, path)? => return Ok(Locked::File(file)),
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(Locked::Busy),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Ok(Locked::Busy)
}

/// Removes a log that no process has.
pub(super) fn remove_unless_used(path: &Path) {
    if let Ok(Locked::File(_locked)) = lock(path) {
        let _gone = std::fs::remove_file(path);
    }
}

/// Whether this file has this name.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let found = match std::fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    let own = file.metadata()?;
    Ok((found.dev(), found.ino()) == (own.dev(), own.ino()))
}

#[cfg(test)]
mod tests;
