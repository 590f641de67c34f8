//! Requests for the contents of small files before programs open them.

use super::asking;
use crate::pending::FindBounds;
use crate::policies::prefetch::contents::ENTRY_BYTES;
use crate::sending::Sender;
use crate::steps::Step;
use crate::view::prefetch::window::{SMALL_BYTES_MAX, WINDOW_BYTES_MIN};
use wirefs_cache::{Fetch, Freshness, ROOT, TreeNodeId};
use wirefs_op::DirEntry;

/// The maximum number of entries to request from a directory whose listing is not known.
const UNKNOWN_ENTRIES_MAX: u32 = 1024;

/// The maximum number of single files that are requested after one open.
const SINGLE_MAX: usize = 32;

/// The maximum number of entries of one listing that are searched for these files. Each takes about 0.5 us.
const LOOKED_AT_MAX: usize = 512;

/// The maximum number of directories that are searched after one open.
const DIRECTORIES_MAX: usize = 128;

/// The maximum number of bytes to request from a directory in which one file was opened, unless it is requested as a
/// whole.
const FIRST_BYTES_MAX: u64 = 128 * 1024;

impl Sender<'_> {
    /// Notes that the contents of this directory or file have arrived, or will not arrive.
    pub(crate) fn contents_came(&mut self, key: TreeNodeId) {
        if let Some(bytes) = self.view.prefetch.contents.coming.remove(&key) {
            self.view.prefetch.contents.coming_bytes -= bytes;
            self.outputs.leave(Step::ServeJoined(key, true));
        }
    }

    /// Notes that a file is opened for reading whose contents were unknown or prefetched. Similar files may follow.
    pub(crate) fn file_opened(&mut self, node: TreeNodeId) {
        let Some(stat) = self.view.names.node(node).map(|known| known.stat) else { return };
        if stat.size > u64::from(SMALL_BYTES_MAX)
            || self.view.mount.config.mode.fetch != Fetch::Blocks
            || !self.view.may_stream(self.requests)
        {
            return;
        }
        let (pace, dir) = (self.view.pace(self.requests), self.view.names.parent(node));
        let walks = &mut self.view.prefetch.walks;
        let files = walks.reads(dir, pace);
        let is_walked = walks.is_being_walked(dir, pace);
        if files < 2 && !is_walked && !walks.is_new(dir, pace) {
            return;
        }
        // A single file of a directory says nothing of other directories: git reads so, here an object and there one.
        let is_alone = files < 2 && !is_walked;
        let is_first = !is_alone && !std::mem::replace(&mut walks.seen(dir, pace).is_read, true);
        let parent = self.view.names.parent(dir);
        let others = self.view.prefetch.walks.reads_in(parent, is_first, pace);
        let goes_on = dir != ROOT && !is_alone && (is_walked || others >= 2);
        let mut room = self.view.room();
        if room < self.view.prefetch.contents.window / 4 {
            return;
        }
        if is_alone {
            room = room.min(FIRST_BYTES_MAX);
        }
        let name = self.view.place_of(dir, node).map(|(name, _)| name);
        self.fetch_contents(dir, name.as_deref(), &mut room);
        self.view.prefetch.contents.front = goes_on.then_some((dir, self.view.mount.now));
        if goes_on {
            // Once for all files of the directory, where it turns out that there is nothing.
            if self.view.prefetch.contents.exhausted != Some(dir) {
                self.fetch_behind(dir, room);
            }
        } else if !is_walked
            && !std::mem::replace(&mut self.view.prefetch.walks.seen(dir, pace).is_looked_around, true)
        {
            self.fetch_nearby(dir, room);
        }
    }

    /// Directories became known: a reader that came to the last one that was known goes on.
    pub(crate) fn directories_came(&mut self) {
        let pace = self.view.pace(self.requests);
        self.view.prefetch.contents.exhausted = None;
        let Some((dir, since)) = self.view.prefetch.contents.front else { return };
        let room = self.view.room();
        if pace.is_speedy(Some(since))
            && room >= self.view.prefetch.contents.window / 4
            && self.view.may_stream(self.requests)
        {
            self.fetch_behind(dir, room);
        }
    }

    /// Asks for contents in the directories that a reader of this one comes to next.
    fn fetch_behind(&mut self, dir: TreeNodeId, mut room: u64) {
        let before = room;
        for next in self.view.directories_next(self.requests, dir, DIRECTORIES_MAX) {
            if room < WINDOW_BYTES_MIN / 4 {
                break;
            }
            self.fetch_contents(next, None, &mut room);
        }
        self.view.prefetch.contents.exhausted = (room == before).then_some(dir);
    }

    /// Requests contents of a directory's files, beginning with those after `name`.
    fn fetch_contents(&mut self, dir: TreeNodeId, name: Option<&[u8]>, room: &mut u64) {
        let pace = self.view.pace(self.requests);
        if self.view.prefetch.contents.coming.contains_key(&dir) {
            return;
        }
        let Some((listing, known)) = self.view.directories.snapshot(dir, &self.view.coherency()) else {
            return self.fetch_unknown(dir, room);
        };
        let was_fetched = self.view.prefetch.walks.seen(dir, pace).is_fetched;
        let whole = if was_fetched { None } else { self.view.missing_whole(&listing) };
        if let Some(bytes) = whole {
            let all = bytes + ENTRY_BYTES * (listing.len() as u64 + 1);
            let entries = u32::try_from(listing.len()).unwrap_or(u32::MAX).saturating_add(64);
            if self.fetch_whole(dir, entries, all * 2, bytes) {
                self.view.prefetch.contents.whole_bytes = bytes;
                *room = room.saturating_sub(bytes);
            }
            return;
        }
        let behind = name.map_or(0, |name| listing.partition_point(|entry| entry.name.as_slice() <= name));
        let next = listing.iter().skip(behind).take(LOOKED_AT_MAX);
        let next: Vec<DirEntry> =
            next.filter(|entry| self.view.is_missing(entry)).take(SINGLE_MAX).cloned().collect();
        for entry in next {
            if *room < entry.stat.size {
                return;
            }
            if self.fetch_single(dir, &entry, known) {
                *room = room.saturating_sub(entry.stat.size + ENTRY_BYTES);
            }
        }
    }

    /// Asks for the contents of one file. Tells whether that was possible, and not done already.
    pub(crate) fn fetch_single(&mut self, dir: TreeNodeId, entry: &DirEntry, known: Freshness) -> bool {
        let coming = self.view.names.of_file(entry.stat.id);
        if coming.is_some_and(|node| self.view.prefetch.contents.coming.contains_key(&node)) {
            return false;
        }
        let asked = asking::contents(self, dir, entry, known);
        if let Some(node) = asked {
            self.view.prefetch.contents.comes(node, entry.stat.size + ENTRY_BYTES);
        }
        asked.is_some()
    }

    /// Requests a directory's listing with contents, of which `expected` bytes are expected. Returns whether that was
    /// possible.
    fn fetch_whole(&mut self, dir: TreeNodeId, entries: u32, bytes_max: u64, expected: u64) -> bool {
        let bytes = u32::try_from(bytes_max).unwrap_or(u32::MAX);
        let is_asked =
            asking::stream(self, dir, FindBounds { depth: 0, entries, bytes, inline: SMALL_BYTES_MAX });
        if is_asked {
            let pace = self.view.pace(self.requests);
            self.view.prefetch.walks.seen(dir, pace).is_fetched = true;
            self.view.prefetch.contents.comes(dir, expected);
        }
        is_asked
    }

    /// Requests the small files of a directory together with its listing, which is not known yet. The directory is
    /// assumed to be as large as the previous one. If it is larger, the rest is requested once the listing is known.
    fn fetch_unknown(&mut self, dir: TreeNodeId, room: &mut u64) {
        let (pace, expected) = (self.view.pace(self.requests), self.view.prefetch.contents.whole_bytes);
        let may_ask =
            expected > 0 && *room >= expected && !self.view.prefetch.walks.seen(dir, pace).is_fetched;
        if may_ask && self.fetch_whole(dir, UNKNOWN_ENTRIES_MAX, expected * 2, expected) {
            *room -= expected;
        }
    }
}
