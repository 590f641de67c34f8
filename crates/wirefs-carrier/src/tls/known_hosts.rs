//! Keys of servers, pinned at the first connection.

use std::io::Write;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use super::key::PublicKey;
use super::private_file::{self, FileError, Forbidden};

/// The word after the key of a server whose symbolic links may lead out of its mounts.
const TRUSTED: &str = "trusted";

/// A file with one line per server: `host:port wirefs-ed25519 BASE64 [trusted]`. Blank lines and lines that start with `#` are
/// ignored.
#[derive(Clone, Debug)]
pub struct KnownHosts {
    path: PathBuf,
}

/// The file cannot be read or written. The text names the next step.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct KnownHostsError {
    /// The file.
    pub path: PathBuf,
    message: String,
}

/// A server's entry in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownHost {
    /// The pinned key.
    pub key: PublicKey,
    /// Its line number, from 1.
    pub line: usize,
    /// Whether the user trusts the server like this machine.
    pub is_trusted: bool,
}

impl KnownHosts {
    /// Returns the file at `path`; it need not exist yet.
    pub fn new(path: impl AsRef<Path>) -> Self {
        Self { path: path.as_ref().to_owned() }
    }

    /// Returns the path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Looks up `host` (as `host:port`).
    ///
    /// # Errors
    /// Fails if the file is unreadable or writable by others, or the host's line is invalid: no connection is better
    /// than an unchecked one.
    pub fn find(&self, host: &str) -> Result<Option<KnownHost>, KnownHostsError> {
        let text = match private_file::read(&self.path, Forbidden::Change) {
            Ok(text) => text,
            Err(FileError::Missing(_)) => return Ok(None),
            Err(error) => return Err(self.fail(error)),
        };
        for (index, line) in text.lines().enumerate() {
            let Some((name, key)) = line.trim().split_once(char::is_whitespace) else { continue };
            if name != host {
                continue;
            }
            let line = index + 1;
            let is_trusted = key.split_whitespace().nth(2) == Some(TRUSTED);
            let key = PublicKey::parse(key).ok_or_else(|| {
                self.fail(format!(
                    "{}:{line}: the key of {host} is broken; delete that line",
                    self.path.display()
                ))
            })?;
            return Ok(Some(KnownHost { key, line, is_trusted }));
        }
        Ok(None)
    }

    /// Pins `key` for `host`. Returns the existing entry if another process pinned a key meanwhile.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn pin(&self, host: &str, key: PublicKey) -> Result<Option<KnownHost>, KnownHostsError> {
        if let Some(directory) = self.path.parent() {
            private_file::make_directory(directory).map_err(|error| self.fail(error))?;
        }
        let mut file = private_file::open_append(&self.path).map_err(|error| self.fail(error))?;
        // Two concurrent mounts must not write two lines.
        flock(&file, FlockOperation::LockExclusive).map_err(|errno| self.fail(errno))?;
        if let Some(known) = self.find(host)? {
            return Ok(Some(known));
        }
        let line = format!("{host} {key}\n");
        file.write_all(line.as_bytes()).and_then(|()| file.sync_all()).map_err(|error| self.fail(error))?;
        Ok(None)
    }

    fn fail(&self, message: impl ToString) -> KnownHostsError {
        KnownHostsError { path: self.path.clone(), message: message.to_string() }
    }
}

#[cfg(test)]
mod tests;
