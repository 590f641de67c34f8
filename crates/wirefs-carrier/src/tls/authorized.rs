//! The keys that may connect to a server.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

use super::key::PublicKey;
use super::private_file::{self, FileError, Forbidden};

/// A file with one key per line: `wirefs-ed25519 BASE64 comment`. Blank lines and lines that start with `#` mean nothing.
#[derive(Clone, Debug, Default)]
pub struct AuthorizedKeys {
    keys: BTreeSet<PublicKey>,
    broken: Vec<BrokenLine>,
}

/// A line that is no key. The other lines count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokenLine {
    /// The file.
    pub file: PathBuf,
    /// The line in it, from 1.
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

/// The authorized-keys file cannot be used. The text says what to do.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct AuthorizedError {
    /// The file.
    pub path: PathBuf,
    /// The file does not exist: nobody may enter yet.
    pub is_missing: bool,
    message: String,
}

impl AuthorizedKeys {
    /// Reads the file.
    ///
    /// # Errors
    /// The file is missing, unreadable, or others can change it. Then nobody may enter.
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

    /// Whether this key may enter.
    pub fn contains(&self, key: &PublicKey) -> bool {
        self.keys.contains(key)
    }

    /// The keys that may enter, in order.
    pub fn keys(&self) -> impl Iterator<Item = &PublicKey> {
        self.keys.iter()
    }

    /// Whether the file lists no key at all.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The lines that are no keys.
    pub fn broken(&self) -> &[BrokenLine] {
        &self.broken
    }
}

#[cfg(test)]
mod tests;
