//! Prefetch of small files for programs that open them one after the other.
//!
//! A window, as in congestion control, limits the prefetched bytes that no program has used yet. It grows with each
//! use, and shrinks when data is dropped unused. If all small files of a directory fit in the window, they are
//! requested together as a stream. Otherwise the files that come next in the listing are requested one by one.

use crate::requests::Requests;
use crate::view::View;
use crate::view::prefetch::Place;
use crate::view::prefetch::window::{Joined, SMALL_BYTES_MAX};
use std::time::Duration;
use wirefs_cache::{ROOT, TreeNodeId};
use wirefs_op::{DirEntry, FileId, Kind, Time};

/// Contents that are unused for this long leave the window, though not the memory.
const LATE: Duration = Duration::from_secs(2);

/// A directory with at most this many bytes in small files is requested as a whole.
const WHOLE_BYTES_MAX: u64 = 256 * 1024;

/// The approximate size of an entry in a stream beside its contents, in bytes.
pub(crate) const ENTRY_BYTES: u64 = 128;

/// So it cannot have more entries of which half are to be asked for.
const WHOLE_ENTRIES_MAX: usize = (2 * WHOLE_BYTES_MAX / ENTRY_BYTES) as usize;

impl View {
    /// Whether all contents of an object are known that may be believed.
    pub(crate) fn is_wholly_known(&self, id: FileId) -> bool {
        let Some(node) = self.names.of_file(id) else { return false };
        let Some(known) = self.names.node(node).filter(|known| known.is_fresh(&self.coherency())) else {
            return false;
        };
        self.files
            .known(node)
            .is_some_and(|contents| contents.ranges.cached_to(0, known.stat.size) >= known.stat.size)
    }

    /// Lets an open wait for contents in transit. Returns false if there are none.
    pub(crate) fn joins(&mut self, joined: Joined) -> bool {
        let node = joined.node;
        let is_small = |size: u64| size <= u64::from(SMALL_BYTES_MAX);
        if self.prefetch.contents.coming.is_empty()
            || self.files.is_writing(node)
            || !self.names.node(node).is_some_and(|known| is_small(known.stat.size))
        {
            return false;
        }
        let dir = self.names.parent(node);
        let key = [node, dir].into_iter().find(|key| self.prefetch.contents.coming.contains_key(key));
        let Some(key) = key else { return false };
        self.prefetch.contents.joined.entry(key).or_default().push(joined);
        true
    }

    pub(crate) fn is_known_node(&self, node: TreeNodeId) -> bool {
        self.names.node(node).is_some_and(|known| self.is_wholly_known(known.stat.id))
    }

    /// How many more bytes may be requested.
    pub(crate) fn room(&mut self) -> u64 {
        let window = self.prefetch.contents.window.min(self.ahead_bytes_max());
        let late = Time(self.mount.now.0.saturating_sub(LATE.as_nanos() as u64));
        let unused = self.prefetch.unused.bytes_since(late);
        window.saturating_sub(self.prefetch.contents.coming_bytes + unused)
    }

    /// Whether the entry is a small file, or a symbolic link, whose contents are not completely known.
    pub(crate) fn is_missing(&self, entry: &DirEntry) -> bool {
        matches!(entry.stat.kind, Kind::File | Kind::Symlink)
            && entry.stat.size <= u64::from(SMALL_BYTES_MAX)
            && !self.is_wholly_known(entry.stat.id)
    }

    /// Returns the bytes in the directory's small files with unknown contents, if these should be requested together.
    pub(crate) fn missing_whole(&self, listing: &[DirEntry]) -> Option<u64> {
        if listing.len() > WHOLE_ENTRIES_MAX {
            return None;
        }
        let (mut files, mut bytes) = (0, 0);
        for entry in listing.iter().filter(|entry| self.is_missing(entry)) {
            files += 1;
            bytes += entry.stat.size + ENTRY_BYTES;
            if bytes > WHOLE_BYTES_MAX {
                return None;
            }
        }
        (files > 0 && files * 2 >= listing.len()).then_some(bytes)
    }

    /// The directories in one, as far as they are known, in the order in which they are walked; those behind one of them.
    fn children(&mut self, dir: TreeNodeId, behind: Option<TreeNodeId>) -> Vec<TreeNodeId> {
        let Some((listing, _)) = self.directories.snapshot(dir, &self.coherency()) else {
            return Vec::new();
        };
        let behind = behind.and_then(|node| self.place_of(dir, node));
        let order = self.prefetch.walks.order();
        order
            .children(&listing, behind.as_ref())
            .into_iter()
            .filter_map(|id| self.names.of_file(id))
            .collect()
    }

    /// The name of a directory in its parent, and its id.
    pub(crate) fn place_of(&self, parent: TreeNodeId, node: TreeNodeId) -> Option<Place> {
        let id = self.names.node(node)?.stat.id;
        let (_, name) = self.names.links(node).into_iter().find(|(of, _)| *of == parent)?;
        Some((name, id))
    }

    /// A program lists a directory: tells in which order it goes through those of its parent.
    pub(crate) fn note_order(&mut self, requests: &Requests, dir: TreeNodeId) {
        let parent = self.names.parent(dir);
        let pace = self.pace(requests);
        let before = self.prefetch.walks.seen(parent, pace).listed_child.replace(dir);
        if dir == ROOT || before == Some(dir) {
            return;
        }
        let Some((listing, _)) = self.directories.snapshot(parent, &self.coherency()) else { return };
        let Some(id) = self.names.node(dir).map(|known| known.stat.id) else { return };
        let before = before.and_then(|node| self.place_of(parent, node));
        self.prefetch.walks.note_order(&listing, before.as_ref(), id);
    }

    /// The directories that a walk comes to after this one, as far as they are known: those in it, those behind it, and so on up to
    /// where the walk began.
    pub(crate) fn directories_next(
        &mut self,
        requests: &Requests,
        dir: TreeNodeId,
        count: usize,
    ) -> Vec<TreeNodeId> {
        let pace = self.pace(requests);
        let mut next = Vec::new();
        let mut at = dir;
        let mut waiting: Vec<TreeNodeId> = self.children(at, None).into_iter().rev().collect();
        loop {
            while let Some(directory) = waiting.pop() {
                next.push(directory);
                if next.len() >= count {
                    return next;
                }
                waiting.extend(self.children(directory, None).into_iter().rev());
            }
            let parent = self.names.parent(at);
            // The first step is the caller's to allow; higher ones are a walk's that came from there.
            if at == ROOT || (at != dir && !self.prefetch.walks.was_listed_by_program(parent, pace)) {
                return next;
            }
            waiting = self.children(parent, Some(at)).into_iter().rev().collect();
            at = parent;
        }
    }
}
