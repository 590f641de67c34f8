//! How often single names of a directory were recalled from one holder: past a limit the whole directory is cheaper.

use crate::limits::{NAMED_DIRECTORIES_MAX, NAMED_MAX, NAMED_SPAN};
use std::collections::BTreeMap;
use wirefs_op::{FileId, Time};

/// Counts per directory, each from the first recall of a span on.
#[derive(Debug, Default)]
pub(super) struct Named(BTreeMap<FileId, (Time, u8)>);

impl Named {
    /// Counts a recall of one name; false when the whole directory should be recalled instead.
    pub(super) fn count(&mut self, now: Time, directory: FileId) -> bool {
        if let Some((since, count)) = self.0.get_mut(&directory) {
            if now.since(*since) > NAMED_SPAN {
                (*since, *count) = (now, 0);
            }
            *count += 1;
            let is_few = *count <= NAMED_MAX;
            if !is_few {
                self.0.remove(&directory);
            }
            return is_few;
        }
        if self.0.len() >= NAMED_DIRECTORIES_MAX {
            self.0.retain(|_, (since, _)| now.since(*since) <= NAMED_SPAN);
        }
        let fits = self.0.len() < NAMED_DIRECTORIES_MAX;
        if fits {
            self.0.insert(directory, (now, 1));
        }
        fits
    }
}

#[cfg(test)]
mod tests;
