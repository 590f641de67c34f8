//! Directories in which server programs make changes.

use std::collections::BTreeMap;
use std::time::Duration;
use wirefs_op::{FileId, Time};

/// After the last change by a program at the server, a directory is contended for so long.
pub(crate) const CONTENDED_FOR: Duration = Duration::from_secs(60);

/// Directories that are remembered, at most; past it all are contended.
pub(crate) const CONTENDED_MAX: usize = 16 * 1024;

/// Until when directories are contended.
#[derive(Debug, Default)]
pub(crate) struct Contended {
    pub(crate) until: BTreeMap<FileId, Time>,
    /// Of all directories.
    pub(crate) all_until: Time,
}

impl Contended {
    /// A program at the server may have changed this directory, or something below it, `age` ago.
    pub(crate) fn changed(&mut self, now: Time, dir: FileId, age: Duration) {
        let until = now + CONTENDED_FOR.saturating_sub(age);
        if until <= now {
            return;
        }
        if self.until.len() >= CONTENDED_MAX && !self.until.contains_key(&dir) {
            self.until.retain(|_, until| now < *until);
            if self.until.len() >= CONTENDED_MAX {
                self.all_until = self.until.values().copied().fold(until, Time::max);
                self.until.clear();
                return;
            }
        }
        let latest = self.until.entry(dir).or_insert(until);
        *latest = until.max(*latest);
    }

    /// A program at the server may have changed any directory.
    pub(crate) fn all_changed(&mut self, now: Time) {
        self.all_until = now + CONTENDED_FOR;
        self.until.clear();
    }

    /// Whether a program at the server may be about to change names in this directory.
    pub(crate) fn is(&self, now: Time, dir: FileId) -> bool {
        now < self.all_until || self.until.get(&dir).is_some_and(|until| now < *until)
    }
}

#[cfg(test)]
mod tests;
