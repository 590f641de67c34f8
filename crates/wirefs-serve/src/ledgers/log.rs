//! The ledger file of one session, used by one process at a time.

use super::record::{self, Damage, Record};
use bytes::Bytes;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use wirefs_op::message::version::BootId;
use wirefs_server::{LedgerRecord, SavedLedger};

/// A log longer than this, in bytes, is rewritten once it has doubled since the last time.
const REWRITTEN_AT: u64 = 4 * 1024 * 1024;
/// The maximum length of a log, in bytes.
const LOG_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// The first bytes of a log that tell its owner: it precedes all other records but the three of a new log.
const OWNER_WITHIN: u64 = 2 * record::RECORD_BYTES_MAX as u64;
/// The maximum number of attempts to open a file that is being replaced.
const TRIES_MAX: usize = 16;

/// A log that this process writes.
#[derive(Debug)]
pub(crate) struct Log {
    file: File,
    path: PathBuf,
    boot: BootId,
    bytes: u64,
    /// The length after the last rewrite.
    rewritten_bytes: u64,
    /// Records to write together with the next one.
    held_back: Vec<u8>,
}

/// The result of opening a session's log.
#[derive(Debug)]
pub(super) enum OpenedLog {
    Missing,
    /// Another process has it open.
    Busy,
    Log(Box<Log>, Box<SavedLedger>),
    /// The log was damaged, and is removed.
    Damaged(Damage),
}

impl Log {
    /// Opens the log at `path`. A log that was not closed is valid only during the same boot: unsynced records survive
    /// the process, but not the machine.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub(super) fn open(path: &Path, boot: BootId) -> io::Result<OpenedLog> {
        let mut file = match lock(path)? {
            Locked::Missing => return Ok(OpenedLog::Missing),
            Locked::Busy => return Ok(OpenedLog::Busy),
            Locked::File(file) => file,
        };
        let mut bytes = Vec::new();
        (&mut file).take(LOG_BYTES_MAX).read_to_end(&mut bytes)?;
        let contents = match record::read(&Bytes::from(bytes)) {
            Ok(contents) => contents,
            Err(damage) => {
                std::fs::remove_file(path)?;
                return Ok(OpenedLog::Damaged(damage));
            }
        };
        if !contents.is_closed && contents.boot != Some(boot) {
            std::fs::remove_file(path)?;
            return Ok(OpenedLog::Missing);
        }
        let bytes = contents.whole_bytes as u64;
        file.set_len(bytes)?;
        let (path, held_back) = (path.to_owned(), Vec::new());
        let mut log = Log { file, path, boot, bytes, rewritten_bytes: 0, held_back };
        if contents.is_closed {
            log.write(&Record::Opened(boot))?;
            // Otherwise the log would look closed after a power loss.
            log.file.sync_data()?;
        }
        Ok(OpenedLog::Log(Box::new(log), Box::new(contents.noted)))
    }

    /// Creates a log.
    ///
    /// # Errors
    /// The file cannot be written, or exists.
    pub(super) fn create(path: &Path, boot: BootId) -> io::Result<Log> {
        let mut file = OpenOptions::new().read(true).append(true).create_new(true).mode(0o600).open(path)?;
        file.try_lock()?;
        let head = record::whole(boot, &SavedLedger::default());
        file.write_all(&head)?;
        let bytes = head.len() as u64;
        Ok(Log { file, path: path.to_owned(), boot, bytes, rewritten_bytes: bytes, held_back: Vec::new() })
    }

    /// Appends a record. `Answered` waits for the next record.
    ///
    /// # Errors
    /// The record cannot be written completely.
    ///
    /// # Cost
    /// One write into the page cache, of about 300 bytes.
    pub(super) fn note(&mut self, note: LedgerRecord) -> io::Result<()> {
        match note {
            LedgerRecord::Acknowledged(_) => {
                // The last `Answered` includes all earlier ones.
                self.held_back.clear();
                Record::Note(note).write(&mut self.held_back);
                Ok(())
            }
            LedgerRecord::Owner(_) | LedgerRecord::Started { .. } | LedgerRecord::Done { .. } => {
                self.write(&Record::Note(note))
            }
        }
    }

    /// Returns whether the log should be rewritten.
    pub(super) fn is_long(&self) -> bool {
        self.bytes > REWRITTEN_AT.max(2 * self.rewritten_bytes)
    }

    /// Replaces the log by one that has only these contents.
    ///
    /// # Errors
    /// The file cannot be written, or another process has taken the session over.
    pub(super) fn rewrite(&mut self, noted: &SavedLedger) -> io::Result<()> {
        let path = self.path.with_extension("new");
        let _absent = std::fs::remove_file(&path);
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

    /// Closes the log, so that it stays valid after a reboot.
    ///
    /// # Errors
    /// The log cannot be written or synced; then it counts as not closed.
    pub(crate) fn close(mut self) -> io::Result<()> {
        self.write(&Record::Closed)?;
        self.file.sync_data()
    }

    /// Removes the log: with a record missing, changes would be applied twice.
    pub(super) fn discard(self) {
        if is_at(&self.file, &self.path).unwrap_or(true) {
            let _gone = std::fs::remove_file(&self.path);
        }
    }

    fn write(&mut self, record: &Record) -> io::Result<()> {
        let mut bytes = std::mem::take(&mut self.held_back);
        if !record.write(&mut bytes) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a record is too long"));
        }
        self.file.write_all(&bytes)?;
        self.bytes += bytes.len() as u64;
        bytes.clear();
        self.held_back = bytes;
        Ok(())
    }
}

enum Locked {
    Missing,
    Busy,
    File(File),
}

/// Opens and locks the file at a path, even while the file is replaced.
fn lock(path: &Path) -> io::Result<Locked> {
    for _ in 0..TRIES_MAX {
        let file = match OpenOptions::new().read(true).append(true).open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Locked::Missing),
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

/// Returns the owner of a log that another process writes, or `None` if it is not known yet.
pub(super) fn owner_of_open(path: &Path) -> Option<LogOwner> {
    let mut head = Vec::new();
    File::open(path).ok()?.take(OWNER_WITHIN).read_to_end(&mut head).ok()?;
    let noted = record::read(&Bytes::from(head)).ok()?.noted;
    Some(match noted.owner {
        Some(key) => LogOwner::Key(key),
        None if noted == SavedLedger::default() => LogOwner::NoneYet,
        None => LogOwner::None,
    })
}

/// The owner of a session, as the beginning of its log tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LogOwner {
    /// The key that began the session.
    Key([u8; 32]),
    /// Its client proved no key.
    None,
    /// The log has no records yet, so its client proved no key unless it was made just now.
    NoneYet,
}

/// Removes a log that no process has open.
pub(super) fn remove_unless_used(path: &Path) {
    if let Ok(Locked::File(_locked)) = lock(path) {
        let _gone = std::fs::remove_file(path);
    }
}

/// Returns whether the path leads to this file.
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
