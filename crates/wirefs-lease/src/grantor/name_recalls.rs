//! Counts recalls of single names per directory: above a limit, a recall of the whole directory is cheaper.

use crate::limits::{NAME_RECALL_DIRECTORIES_MAX, NAME_RECALLS_MAX, NAME_RECALLS_SPAN};
use std::collections::BTreeMap;
use wirefs_op::{FileId, Time};

/// The counts per directory, each with the start of its time span.
#[derive(Debug, Default)]
pub(super) struct NameRecalls(BTreeMap<FileId, (Time, u8)>);

impl NameRecalls {
    /// Counts a recall of one name. Returns false if the whole directory should be recalled instead.
    pub(super) fn count(&mut self, now: Time, directory: FileId) -> bool {
        if let Some((since, count)) = self.0.get_mut(&directory) {
            if now.since(*since) > NAME_RECALLS_SPAN {
                (*since, *count) = (now, 0);
            }
            *count += 1;
            let is_few = *count <= NAME_RECALLS_MAX;
            if !is_few {
                self.0.remove(&directory);
            }
            return is_few;
        }
        if self.0.len() >= NAME_RECALL_DIRECTORIES_MAX {
            self.0.retain(|_, (since, _)| now.since(*since) <= NAME_RECALLS_SPAN);
        }
        let fits = self.0.len() < NAME_RECALL_DIRECTORIES_MAX;
        if fits {
            self.0.insert(directory, (now, 1));
        }
        fits
    }
}

#[cfg(test)]
mod tests;
