//! Directory listings with attributes.

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

/// The position of `.checkpoints` in the root directory: after all entries.
const CHECKPOINTS_POSITION: u64 = u64::MAX;

/// A part of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Listed {
    pub(super) entries: Vec<DirEntry>,
    /// The position of the next part.
    pub(super) next: u64,
    /// Whether this is the last part.
    pub(super) ends: bool,
}

impl Listed {
    /// Encodes the entries for the wire.
    pub(super) fn packed(&self) -> Bytes {
        let mut writer = ListingWriter::new(DATA_BYTES_MAX);
        for entry in &self.entries {
            // Cannot overflow: the entries were chosen to fit.
            writer.push(entry);
        }
        writer.finish()
    }
}

impl Trees<'_> {
    /// Returns the entries after position `after` that fit `room` bytes and one message. Returns none, and
    /// `ends: false`, if not even the next entry fits.
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

    /// Returns some entries after a position, and whether they are the last.
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
        if is_all && dir == root_of(0) && after < CHECKPOINTS_POSITION && self.has_checkpoints() {
            let name = CHECKPOINTS_NAME.to_vec();
            listed.push(DirEntry { name, next: CHECKPOINTS_POSITION, stat: self.stat(CHECKPOINTS)? });
        }
        Ok((listed, is_all))
    }

    fn checkpoint_entries(&self, after: u64) -> Result<Vec<DirEntry>, Halt> {
        let mut wants = Wants::default();
        let mut listed = Vec::new();
        for checkpoint in
            self.volume.checkpoints.iter().filter(|checkpoint| u64::from(checkpoint.serial) > after)
        {
            if let Some(stat) = wants.of(self.stat(root_of(checkpoint.serial)))? {
                listed.push(DirEntry {
                    name: checkpoint.name.to_vec(),
                    next: checkpoint.serial.into(),
                    stat,
                });
            }
        }
        wants.settle()?;
        Ok(listed)
    }
}

/// Returns the attributes of the object of an entry. If its head is lost, the name is still listed with the
/// attributes in the entry; access to the object fails with EIO.
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
