//! A directory's entries with their attributes.

use super::locate::{CHECKPOINTS, CHECKPOINTS_NAME, Trees, root_of};
use crate::halt::{Halt, Wants};
use crate::item::Entry;
use crate::key::Ino;
use crate::limits::LISTING_ENTRIES_MAX;
use crate::view::View;
use bytes::Bytes;
use wirefs_op::limits::DATA_BYTES_MAX;
use wirefs_op::listing::ListingWriter;
use wirefs_op::{DirEntry, Errno, FileId, Stat, Timestamp};

/// The place of the directory of checkpoints in the root directory: behind all entries, none of which has the last place.
const CHECKPOINTS_PLACE: u64 = u64::MAX;

/// A piece of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Listed {
    pub(super) entries: Vec<DirEntry>,
    /// Where the next piece begins.
    pub(super) next: u64,
    /// Nothing follows.
    pub(super) ends: bool,
}

impl Listed {
    /// As it travels.
    pub(super) fn packed(&self) -> Bytes {
        let mut writer = ListingWriter::new(DATA_BYTES_MAX);
        for entry in &self.entries {
            // As many as fit were taken.
            writer.push(entry);
        }
        writer.finish()
    }
}

impl Trees<'_> {
    /// The entries of a directory behind the place `after`, as many as go into `room` bytes and one message. Empty, and
    /// not at the end, when there is room for none.
    pub(super) fn list(&self, dir: FileId, after: u64, room: usize) -> Result<Listed, Halt> {
        let mut writer = ListingWriter::new(room.min(DATA_BYTES_MAX));
        let mut listed = Listed { entries: Vec::new(), next: after, ends: false };
        loop {
            let (entries, is_all) = self.entries(dir, listed.next)?;
            for entry in entries {
                if !writer.push(&entry) {
                    return Ok(listed);
                }
                listed.next = entry.next;
                listed.entries.push(entry);
            }
            if is_all {
                return Ok(Listed { ends: true, ..listed });
            }
        }
    }

    /// Some entries behind a place, and whether they are all.
    fn entries(&self, dir: FileId, after: u64) -> Result<(Vec<DirEntry>, bool), Halt> {
        if dir == CHECKPOINTS {
            return Ok((self.checkpoint_entries(after)?, true));
        }
        let view = self.view(dir.fs)?;
        let entries = view.list(Ino(dir.ino), after, LISTING_ENTRIES_MAX)?;
        let is_all = entries.len() < LISTING_ENTRIES_MAX;
        let mut wants = Wants::default();
        let mut listed = Vec::with_capacity(entries.len());
        for (place, entry) in entries {
            if let Some(stat) = wants.of(stat_of(&view, &entry))? {
                listed.push(DirEntry { name: entry.name.to_vec(), next: place, stat });
            }
        }
        wants.settle()?;
        if is_all && dir == root_of(0) && after < CHECKPOINTS_PLACE && self.has_checkpoints() {
            let name = CHECKPOINTS_NAME.to_vec();
            listed.push(DirEntry { name, next: CHECKPOINTS_PLACE, stat: self.stat(CHECKPOINTS)? });
        }
        Ok((listed, is_all))
    }

    fn checkpoint_entries(&self, after: u64) -> Result<Vec<DirEntry>, Halt> {
        let mut wants = Wants::default();
        let mut listed = Vec::new();
        for kept in self.volume.checkpoints.iter().filter(|kept| u64::from(kept.serial) > after) {
            if let Some(stat) = wants.of(self.stat(root_of(kept.serial)))? {
                listed.push(DirEntry { name: kept.name.to_vec(), next: kept.serial.into(), stat });
            }
        }
        wants.settle()?;
        Ok(listed)
    }
}

/// The attributes of an entry's object. Where its head is lost the name is listed still, with what the directory itself
/// knows of it; whoever asks for the object is told EIO.
fn stat_of(view: &View<'_>, entry: &Entry) -> Result<Stat, Halt> {
    match view.stat(entry.ino) {
        Err(Halt::Lost(_) | Halt::Failed(Errno::Io | Errno::Stale)) => {
            let never = Timestamp { secs: 0, nanos: 0 };
            Ok(Stat {
                id: FileId { fs: view.fs, ino: entry.ino.0, generation: entry.generation },
                kind: entry.kind,
                version: 0,
                mode: 0,
                nlink: 0,
                uid: 0,
                gid: 0,
                rdev: 0,
                size: 0,
                blocks: 0,
                blksize: 4096,
                atime: never,
                mtime: never,
                ctime: never,
                without_xattrs: false,
                leased: false,
            })
        }
        outcome => outcome,
    }
}
