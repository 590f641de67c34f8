//! The keys that may connect to a server.

mod key_line;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

pub use key_line::{KeyLine, KeyOptions, LineError, is_export_name};

use super::key::PublicKey;
use super::private_file::{self, FileError, Forbidden};

/// The next step where no key is authorized.
pub(super) const ALLOW_HINT: &str =
    "run `wirefs allow KEY` here, with the key that `wirefs identity` prints at the client";

/// A file with one key per line: `OPTIONS wirefs-ed25519 BASE64 comment`. Blank lines and lines that start with `#` are
/// ignored. A key may be in several lines, and has the rights of each.
#[derive(Clone, Debug, Default)]
pub struct AuthorizedKeys {
    keys: BTreeMap<PublicKey, Vec<KeyOptions>>,
    broken: Vec<BrokenLine>,
}

/// The rights of a key on one export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyRights {
    /// The key may change nothing.
    pub read_only: bool,
}

/// An invalid line. The other lines count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokenLine {
    /// The file.
    pub file: PathBuf,
    /// The line number, from 1.
    pub line: usize,
    /// The reason.
    pub error: LineError,
}

impl fmt::Display for BrokenLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file.display(), self.line, self.error)
    }
}

/// The authorized-keys file cannot be used. The text names the next step.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct AuthorizedError {
    /// The file.
    pub path: PathBuf,
    /// The file does not exist; no client may connect yet.
    pub is_missing: bool,
    message: String,
}

impl AuthorizedKeys {
    /// Reads the file.
    ///
    /// # Errors
    /// Fails if the file is missing, unreadable, or writable by others. Then no client may connect.
    pub fn read(path: &Path) -> Result<Self, AuthorizedError> {
        match private_file::read(path, Forbidden::Change) {
            Ok(text) => Ok(Self::parse(path, &text)),
            Err(error) => {
                let is_missing = matches!(error, FileError::Missing(_));
                let message = if is_missing {
                    format!("{error}, so no client may connect; {ALLOW_HINT}")
                } else {
                    error.to_string()
                };
                Err(AuthorizedError { path: path.to_owned(), is_missing, message })
            }
        }
    }

    fn parse(path: &Path, text: &str) -> Self {
        let mut found = Self::default();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            match KeyLine::parse(line) {
                Ok(KeyLine { key, options, .. }) => found.keys.entry(key).or_default().push(options),
                Err(error) => {
                    found.broken.push(BrokenLine { file: path.to_owned(), line: index + 1, error });
                }
            }
        }
        found
    }

    /// Returns whether the key may connect from this address.
    pub fn admits(&self, key: &PublicKey, peer: &str) -> bool {
        self.options(key).any(|options| options.allows_peer(peer))
    }

    /// Returns whether the file has the key, with any options.
    pub fn contains(&self, key: &PublicKey) -> bool {
        self.keys.contains_key(key)
    }

    /// Returns the rights of the key on an export, from this address; `None` if it may not use the export. The rights
    /// of all lines add up.
    pub fn rights(&self, key: &PublicKey, peer: &str, export: &str) -> Option<KeyRights> {
        let lines = self.options(key).filter(|it| it.allows_peer(peer) && it.allows_export(export));
        lines
            .map(|options| options.read_only)
            .reduce(|all, one| all && one)
            .map(|read_only| KeyRights { read_only })
    }

    fn options(&self, key: &PublicKey) -> impl Iterator<Item = &KeyOptions> {
        self.keys.get(key).into_iter().flatten()
    }

    /// Returns the keys that may connect, in order.
    pub fn keys(&self) -> impl Iterator<Item = &PublicKey> {
        self.keys.keys()
    }

    /// Returns whether the file lists no key.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Returns the invalid lines.
    pub fn broken(&self) -> &[BrokenLine] {
        &self.broken
    }
}

#[cfg(test)]
mod tests;
