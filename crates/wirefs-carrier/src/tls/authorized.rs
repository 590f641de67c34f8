//! The keys that may connect to a server.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

use super::key::PublicKey;
use super::private_file::{self, FileError, Forbidden};

/// A file with one key per line: `wirefs-ed25519 BASE64 comment`. Blank lines and lines that start with `#` are
/// ignored.
#[derive(Clone, Debug, Default)]
pub struct AuthorizedKeys {
    keys: BTreeSet<PublicKey>,
    broken: Vec<BrokenLine>,
}

/// An invalid line. The other lines count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokenLine {
    /// The file.
    pub file: PathBuf,
    /// The line number, from 1.
    pub line: usize,
}

impl fmt::Display for BrokenLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}:{}: this line is no key and lets nobody in; keys look like `wirefs-ed25519 BASE64 comment`",
            self.file.display(),
            self.line
        )
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
                    format!(
                        "{error}, so no client may connect; put the line from the client's identity.pub into it",
                    )
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
            match PublicKey::parse(line) {
                Some(key) => {
                    found.keys.insert(key);
                }
                None => found.broken.push(BrokenLine { file: path.to_owned(), line: index + 1 }),
            }
        }
        found
    }

    /// Returns whether the key may connect.
    pub fn contains(&self, key: &PublicKey) -> bool {
        self.keys.contains(key)
    }

    /// Returns the keys that may connect, in order.
    pub fn keys(&self) -> impl Iterator<Item = &PublicKey> {
        self.keys.iter()
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
