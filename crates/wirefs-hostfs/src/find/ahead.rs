//! Which directories are still to be told of, in their order, and what of them was read ahead.
//!
//! ```text
//!   line:   … | next sibling | child 2 | child 1 |      the end of it is told next
//!                 waiting      read      claimed
//! ```
//! A directory that was read is followed by its children at once, so that these can be read ahead too.

use super::reading::{Directory, Part, Reading, Rest};
use super::{AHEAD_BYTES_MAX, AHEAD_DIRECTORIES_MAX, LINE_BYTES_MAX};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// About what a place in the line takes beside its path, in bytes.
const PLACE_BYTES: usize = 128;

/// How far a directory is.
#[derive(Debug)]
enum State {
    /// Nobody reads it.
    Waiting,
    /// A helper reads it.
    Claimed,
    /// It was read; `None`: it could not be.
    Read(Option<Box<Reading>>),
}

/// A place in the line.
#[derive(Debug)]
struct Place {
    key: u64,
    directory: Directory,
    state: State,
}

#[derive(Debug)]
struct Line {
    /// The last is told next.
    places: Vec<Place>,
    keys: u64,
    /// Places that wait.
    waiting: usize,
    /// Places that are claimed or read.
    ahead: usize,
    /// What was read takes so much.
    ahead_bytes: usize,
    /// What the line itself takes.
    bytes: usize,
    /// Entries that were read, told or not.
    entries: u64,
    /// Some had no place any more.
    is_cut: bool,
}

/// What is to be told next.
#[derive(Debug)]
pub(super) enum Next {
    /// Nothing more.
    Nothing,
    /// This one, which nobody has read: it is the caller's to read now.
    Unread(Directory),
    /// This one.
    Read(Directory, Box<Reading>),
    /// This one cannot be told of.
    Unreadable,
    /// A helper reads it still, and the time is over.
    Late,
}

/// The directories that are to be told of, shared by those who read them.
#[derive(Debug)]
pub(super) struct Ahead {
    entries_max: u64,
    line: Mutex<Line>,
    /// What is to be told next was read.
    read: Condvar,
    /// There is more to read, or room for it.
    work: Condvar,
    /// The key of what is to be told next while that is waited for; no place has 0.
    awaited: AtomicU64,
    is_over: AtomicBool,
}

impl Ahead {
    /// Nothing to tell of yet. When so many entries were read, no more are read ahead.
    pub(super) fn new(entries_max: u64) -> Ahead {
        let line = Line {
            places: Vec::new(),
            keys: 0,
            waiting: 0,
            ahead: 0,
            ahead_bytes: 0,
            bytes: 0,
            entries: 0,
            is_cut: false,
        };
        Ahead {
            entries_max,
            line: Mutex::new(line),
            read: Condvar::new(),
            work: Condvar::new(),
            awaited: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
        }
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The caller has read so many entries of a directory that it took.
    pub(super) fn count(&self, part: &Part) {
        self.line().entries += part.entries.len() as u64;
    }

    /// Lines up the children of the directory that was told of last.
    pub(super) fn follow(&self, children: Children) {
        if children.directories.is_empty() {
            return;
        }
        let mut line = self.line();
        let end = line.places.len();
        line.insert(end, children.directories);
        drop(line);
        self.work.notify_all();
    }

    /// What is to be told next, waited for until `until` where a helper reads it.
    pub(super) fn next(&self, until: Instant) -> Next {
        let mut line = self.line();
        loop {
            let Some(place) = line.places.pop() else {
                return Next::Nothing;
            };
            match place.state {
                State::Waiting => {
                    line.waiting -= 1;
                    line.bytes -= place.directory.bytes();
                    return Next::Unread(place.directory);
                }
                State::Read(reading) => {
                    line.ahead -= 1;
                    line.bytes -= place.directory.bytes();
                    line.ahead_bytes -= reading.as_ref().map_or(0, |reading| reading.part.bytes());
                    drop(line);
                    self.work.notify_one();
                    return match reading {
                        Some(reading) => Next::Read(place.directory, reading),
                        None => Next::Unreadable,
                    };
                }
                State::Claimed => {
                    self.awaited.store(place.key, Ordering::Relaxed);
                    line.places.push(place);
                    let left = until.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return Next::Late;
                    }
                    line = self.read.wait_timeout(line, left).unwrap_or_else(PoisonError::into_inner).0;
                    self.awaited.store(0, Ordering::Relaxed);
                }
            }
        }
    }

    /// How many directories nobody reads yet.
    pub(super) fn waiting(&self) -> usize {
        self.line().waiting
    }

    /// Whether there was more to tell of than the line holds.
    pub(super) fn is_cut(&self) -> bool {
        self.line().is_cut
    }

    /// Ends the work of the helpers.
    pub(super) fn end(&self) {
        // Under the lock, so that no helper looks at it just before and sleeps just after.
        let line = self.line();
        self.is_over.store(true, Ordering::Relaxed);
        drop(line);
        self.work.notify_all();
    }

    /// Whether the helpers are to end.
    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// The next directory to read ahead, for a helper; waits for one. `None`: the helper is to end.
    pub(super) fn claim(&self) -> Option<Claim<'_>> {
        let mut line = self.line();
        loop {
            if self.is_over() {
                return None;
            }
            if let Some(claim) = self.claim_in(&mut line) {
                return Some(claim);
            }
            line = self.work.wait(line).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The next directory to read ahead, if there is one and room for it.
    fn claim_in(&self, line: &mut Line) -> Option<Claim<'_>> {
        if !line.has_room(self.entries_max) {
            return None;
        }
        let place = line.first_waiting()?;
        place.state = State::Claimed;
        let (key, directory) = (place.key, place.directory.clone());
        line.waiting -= 1;
        line.ahead += 1;
        Some(Claim { ahead: self, key, directory, reading: None })
    }

    fn settle(&self, key: u64, mut reading: Option<Box<Reading>>) {
        let children = match &mut reading {
            // Those of the rest come behind these, so they wait for it.
            Some(reading) if !matches!(reading.rest, Rest::More(_)) => reading.part.take_children(),
            Some(_) | None => Vec::new(),
        };
        let (bytes, entries) = match &reading {
            Some(reading) => (reading.part.bytes(), reading.part.entries.len()),
            None => (0, 0),
        };
        let has_children = !children.is_empty();
        let mut line = self.line();
        if let Some(at) = line.places.iter().rposition(|place| place.key == key) {
            if let Some(place) = line.places.get_mut(at) {
                place.state = State::Read(reading);
            }
            line.ahead_bytes += bytes;
            line.entries += entries as u64;
            line.insert(at, children);
        }
        drop(line);
        if self.awaited.load(Ordering::Relaxed) == key {
            self.read.notify_one();
        }
        if has_children {
            self.work.notify_all();
        }
    }
}

impl Line {
    /// Whether more may be read ahead.
    fn has_room(&self, entries_max: u64) -> bool {
        self.ahead < AHEAD_DIRECTORIES_MAX && self.ahead_bytes < AHEAD_BYTES_MAX && self.entries < entries_max
    }

    fn first_waiting(&mut self) -> Option<&mut Place> {
        if self.waiting == 0 {
            return None;
        }
        self.places.iter_mut().rev().find(|place| matches!(place.state, State::Waiting))
    }

    /// Lines them up so that they are told of in the order of their names, behind what stands from `at` on.
    fn insert(&mut self, at: usize, mut children: Vec<Directory>) {
        children.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        let mut places = Vec::with_capacity(children.len());
        for directory in children {
            let bytes = directory.bytes();
            if self.bytes + bytes > LINE_BYTES_MAX {
                self.is_cut = true;
                break;
            }
            self.bytes += bytes;
            self.keys += 1;
            places.push(Place { key: self.keys, directory, state: State::Waiting });
        }
        self.waiting += places.len();
        self.places.splice(at..at, places.into_iter().rev());
    }
}

impl Directory {
    /// About what it takes in memory.
    pub(super) fn bytes(&self) -> usize {
        self.path.as_bytes().len() + PLACE_BYTES
    }
}

/// Directories that come behind one that is being told of: no more than the line can take, and one that it cannot, so that
/// the line knows.
#[derive(Debug, Default)]
pub(super) struct Children {
    directories: Vec<Directory>,
    bytes: usize,
}

impl Children {
    /// Takes them from a part.
    pub(super) fn take(&mut self, part: &mut Part) {
        for directory in part.take_children() {
            if self.bytes > LINE_BYTES_MAX {
                return;
            }
            self.bytes += directory.bytes();
            self.directories.push(directory);
        }
    }
}

/// A directory that one helper reads. What it has not read when this is dropped cannot be told of.
#[derive(Debug)]
pub(super) struct Claim<'a> {
    ahead: &'a Ahead,
    key: u64,
    pub(super) directory: Directory,
    reading: Option<Box<Reading>>,
}

impl Claim<'_> {
    /// Whether it is waited for just now.
    pub(super) fn is_awaited(&self) -> bool {
        self.ahead.awaited.load(Ordering::Relaxed) == self.key
    }

    /// Hands over what was read.
    pub(super) fn settle(mut self, reading: Option<Reading>) {
        self.reading = reading.map(Box::new);
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        self.ahead.settle(self.key, self.reading.take());
    }
}

#[cfg(test)]
mod tests;
