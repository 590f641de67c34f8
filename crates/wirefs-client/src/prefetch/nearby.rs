//! Prefetches small files in the directories around a file that a program reads at random. Git reads `.git` in this
//! way: it opens single files in several directories, and the contents of each decide which one is next.

use super::asking;
use crate::pending::FindBounds;
use crate::policies::prefetch::contents::ENTRY_BYTES;
use crate::sending::Sender;
use std::collections::VecDeque;
use std::sync::Arc;
use wirefs_cache::{Freshness, TreeNodeId};
use wirefs_op::{DirEntry, Kind};

/// The maximum number of directories to visit.
const NEARBY_MAX: usize = 24;
/// The maximum number of them without a known listing: each takes a stream.
const UNKNOWN_MAX: usize = 8;
/// The bounds of such a stream.
const UNKNOWN: FindBounds =
    FindBounds { depth: u16::MAX, entries: 512, bytes: 16 * 1024, inline: FILE_BYTES_MAX as u32 };
/// The maximum number of entries, and of bytes, of a directory whose files are prefetched. A larger one has many
/// similar files, and it is unknown which of them will be read.
const ENTRIES_MAX: usize = 64;
const BYTES_MAX: u64 = 16 * 1024;
/// The maximum size of a prefetched file, in bytes.
const FILE_BYTES_MAX: u64 = 4096;
/// The maximum number of files that are requested one by one, and of their bytes.
const FILES_MAX: usize = 32;
const FILES_BYTES_MAX: u64 = 64 * 1024;

impl Sender<'_> {
    /// Requests some small files in the directories below `dir`, level by level.
    pub(super) fn fetch_nearby(&mut self, dir: TreeNodeId, room: u64) {
        let mut left = Left { files: FILES_MAX, bytes: room.min(FILES_BYTES_MAX), unknown: UNKNOWN_MAX };
        let mut line: VecDeque<TreeNodeId> = self.directories_in(dir).into();
        for _ in 0..NEARBY_MAX {
            let Some(next) = line.pop_front() else { break };
            let Some((listing, known)) = self.view.directories.snapshot(next, &self.view.coherency()) else {
                if left.unknown > 0 && asking::stream(self, next, UNKNOWN) {
                    left.unknown -= 1;
                }
                self.view.names.evict_if_unused(next);
                continue;
            };
            if is_little(&listing) {
                self.fetch_little(next, &listing, known, &mut left);
                line.extend(self.directories_in(next));
            }
        }
        line.into_iter().for_each(|node| self.view.names.evict_if_unused(node));
    }

    /// The first directories in `dir`, whether or not the kernel knows them.
    fn directories_in(&mut self, dir: TreeNodeId) -> Vec<TreeNodeId> {
        let Some((listing, known)) = self.view.directories.snapshot(dir, &self.view.coherency()) else {
            return Vec::new();
        };
        let directories = listing.iter().filter(|entry| entry.stat.kind == Kind::Directory);
        let few: Vec<&DirEntry> = directories.take(ENTRIES_MAX).collect();
        few.into_iter().filter_map(|entry| self.node_listed(dir, entry, known)).collect()
    }

    /// The node of an entry of a listing. A known node keeps its name, which may be newer; `None` if another object has the entry's
    /// name by now.
    fn node_listed(&mut self, dir: TreeNodeId, entry: &DirEntry, known: Freshness) -> Option<TreeNodeId> {
        if let Some(node) = self.view.names.of_file(entry.stat.id) {
            return Some(node);
        }
        if self.view.names.child(dir, &entry.name).is_some() {
            return None;
        }
        let attributes = self.view.directories.attributes_freshness(&entry.stat, known.at);
        let node = self.learn(&entry.stat, attributes);
        self.view.names.link(dir, &entry.name, node);
        Some(node)
    }

    fn fetch_little(
        &mut self,
        dir: TreeNodeId,
        listing: &Arc<Vec<DirEntry>>,
        known: Freshness,
        left: &mut Left,
    ) {
        for entry in listing.iter().filter(|entry| entry.stat.size <= FILE_BYTES_MAX) {
            let bytes = entry.stat.size + ENTRY_BYTES;
            if left.files == 0 || left.bytes < bytes {
                return;
            }
            if self.view.is_missing(entry) && self.fetch_single(dir, entry, known) {
                left.files -= 1;
                left.bytes -= bytes;
            }
        }
    }
}

/// The remaining budget.
struct Left {
    files: usize,
    bytes: u64,
    unknown: usize,
}

/// Whether the directory is small enough to be prefetched as a whole.
fn is_little(listing: &[DirEntry]) -> bool {
    let files = listing.iter().filter(|entry| entry.stat.kind == Kind::File);
    listing.len() <= ENTRIES_MAX && files.map(|entry| entry.stat.size).sum::<u64>() <= BYTES_MAX
}
