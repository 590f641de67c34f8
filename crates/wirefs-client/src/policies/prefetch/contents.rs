//! Prefetch of small files for programs that open them one after the other.
//!
//! How much may be asked for and not used yet is a window, as in a transfer: it grows by what is used of it and shrinks by what is
//! dropped unused. A directory whose small files fit is asked for as a whole, as a stream; of a larger one the files that are listed
//! next are asked for one by one.

use super::Client;
use crate::operation::{find, open};
use crate::pending::FindBounds;
use crate::requests::Requests;
use crate::view::View;
use crate::view::prefetch::Place;
use crate::view::prefetch::window::{Joined, SMALL_BYTES_MAX, WINDOW_BYTES_MIN};
use std::time::Duration;
use wirefs_cache::{Fetch, Freshness, ROOT, TreeNodeId};
use wirefs_op::{DirEntry, Errno, FileId, Kind, Time};

/// Contents that are unused for this long leave the window, though not the memory.
const LATE: Duration = Duration::from_secs(2);

/// A directory with so many bytes in small files is asked for as a whole.
const WHOLE_BYTES_MAX: u64 = 256 * 1024;

/// Entries of a directory whose listing is not known, at most.
const UNKNOWN_ENTRIES_MAX: u32 = 1024;

/// The approximate size of an entry in a stream beside its contents, in bytes.
pub(super) const ENTRY_BYTES: u64 = 128;

/// So it cannot have more entries of which half are to be asked for.
const WHOLE_ENTRIES_MAX: usize = (2 * WHOLE_BYTES_MAX / ENTRY_BYTES) as usize;

/// Files asked for one by one for the sake of one that is opened, at most.
const SINGLE_MAX: usize = 32;

/// Entries of one listing that are looked at for that, at most; one takes about 0.5 us.
const LOOKED_AT_MAX: usize = 512;

/// Directories looked at for the sake of one file that is opened, at most.
const DIRECTORIES_MAX: usize = 128;

/// Of a directory of which a single file is opened, so many bytes are asked for at most where they are not asked for as a whole.
const FIRST_BYTES_MAX: u64 = 128 * 1024;

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

    fn is_known_node(&self, node: TreeNodeId) -> bool {
        self.names.node(node).is_some_and(|known| self.is_wholly_known(known.stat.id))
    }

    /// How many bytes more may be asked for.
    fn room(&mut self) -> u64 {
        let window = self.prefetch.contents.window.min(self.ahead_bytes_max());
        let late = Time(self.mount.now.0.saturating_sub(LATE.as_nanos() as u64));
        let unused = self.prefetch.unused.bytes_since(late);
        window.saturating_sub(self.prefetch.contents.coming_bytes + unused)
    }

    /// Whether it is a small file of which no contents are known.
    pub(crate) fn is_missing(&self, entry: &DirEntry) -> bool {
        matches!(entry.stat.kind, Kind::File | Kind::Symlink)
            && entry.stat.size <= u64::from(SMALL_BYTES_MAX)
            && !self.is_wholly_known(entry.stat.id)
    }

    /// How many bytes a directory's small files have of which nothing is known, where they are to be asked for as a whole.
    fn missing_whole(&self, listing: &[DirEntry]) -> Option<u64> {
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
    fn place_of(&self, parent: TreeNodeId, node: TreeNodeId) -> Option<Place> {
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
    fn directories_next(&mut self, requests: &Requests, dir: TreeNodeId, count: usize) -> Vec<TreeNodeId> {
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

impl Client {
    /// Continues the opens that wait for contents. `all`: no more contents arrive.
    pub(crate) fn serve_joined(&mut self, key: TreeNodeId, all: bool) {
        let Some(joined) = self.view.prefetch.contents.joined.remove(&key) else { return };
        let mut left = Vec::new();
        for joined in joined {
            if !self.calls.is_waiting(joined.call) {
                self.fail(joined.call, Errno::Interrupted);
            } else if all || self.view.is_known_node(joined.node) {
                open::go_on(self, joined);
            } else {
                left.push(joined);
            }
        }
        if !left.is_empty() {
            self.view.prefetch.contents.joined.entry(key).or_default().append(&mut left);
        }
    }

    /// Notes that the contents of this directory or file have arrived, or will not arrive.
    pub(crate) fn contents_came(&mut self, key: TreeNodeId) {
        if let Some(bytes) = self.view.prefetch.contents.coming.remove(&key) {
            self.view.prefetch.contents.coming_bytes -= bytes;
            self.serve_joined(key, true);
        }
    }

    /// A file is opened for reading, whose contents were not known, or were fetched ahead: more of the kind may follow.
    pub(crate) fn file_opened(&mut self, node: TreeNodeId) {
        let Some(stat) = self.view.names.node(node).map(|known| known.stat) else { return };
        if stat.size > u64::from(SMALL_BYTES_MAX)
            || self.view.mount.config.mode.fetch != Fetch::Blocks
            || !self.view.may_stream(&self.requests)
        {
            return;
        }
        let (pace, dir) = (self.view.pace(&self.requests), self.view.names.parent(node));
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
        let pace = self.view.pace(&self.requests);
        self.view.prefetch.contents.exhausted = None;
        let Some((dir, since)) = self.view.prefetch.contents.front else { return };
        let room = self.view.room();
        if pace.is_speedy(Some(since))
            && room >= self.view.prefetch.contents.window / 4
            && self.view.may_stream(&self.requests)
        {
            self.fetch_behind(dir, room);
        }
    }

    /// Asks for contents in the directories that a reader of this one comes to next.
    fn fetch_behind(&mut self, dir: TreeNodeId, mut room: u64) {
        let before = room;
        for next in self.view.directories_next(&self.requests, dir, DIRECTORIES_MAX) {
            if room < WINDOW_BYTES_MIN / 4 {
                break;
            }
            self.fetch_contents(next, None, &mut room);
        }
        self.view.prefetch.contents.exhausted = (room == before).then_some(dir);
    }

    /// Asks for contents of a directory's files, those behind `name` first.
    fn fetch_contents(&mut self, dir: TreeNodeId, name: Option<&[u8]>, room: &mut u64) {
        let pace = self.view.pace(&self.requests);
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
    pub(super) fn fetch_single(&mut self, dir: TreeNodeId, entry: &DirEntry, known: Freshness) -> bool {
        let coming = self.view.names.of_file(entry.stat.id);
        if coming.is_some_and(|node| self.view.prefetch.contents.coming.contains_key(&node)) {
            return false;
        }
        let asked = open::ask_ahead(self, dir, entry, known);
        if let Some(node) = asked {
            self.view.prefetch.contents.comes(node, entry.stat.size + ENTRY_BYTES);
        }
        asked.is_some()
    }

    /// Asks for a directory's listing with contents, `expected` bytes of them. Tells whether that was possible.
    fn fetch_whole(&mut self, dir: TreeNodeId, entries: u32, bytes_max: u64, expected: u64) -> bool {
        let bytes = u32::try_from(bytes_max).unwrap_or(u32::MAX);
        let is_asked = find::ask(self, dir, FindBounds { depth: 0, entries, bytes, inline: SMALL_BYTES_MAX });
        if is_asked {
            let pace = self.view.pace(&self.requests);
            self.view.prefetch.walks.seen(dir, pace).is_fetched = true;
            self.view.prefetch.contents.comes(dir, expected);
        }
        is_asked
    }

    /// Asks for the contents of a directory whose listing is not known yet, and for the listing with them. It is taken to be like
    /// the one before; of a larger one the rest is asked for when it is known.
    fn fetch_unknown(&mut self, dir: TreeNodeId, room: &mut u64) {
        let (pace, expected) = (self.view.pace(&self.requests), self.view.prefetch.contents.whole_bytes);
        let may_ask =
            expected > 0 && *room >= expected && !self.view.prefetch.walks.seen(dir, pace).is_fetched;
        if may_ask && self.fetch_whole(dir, UNKNOWN_ENTRIES_MAX, expected * 2, expected) {
            *room -= expected;
        }
    }
}
