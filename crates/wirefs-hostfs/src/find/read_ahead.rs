//! The queue of directories to send, and their data that was read ahead.
//!
//! ```text
//!   queue:  … | next sibling | child 2 | child 1 |      the end is sent next
//!                 waiting      read      claimed
//! ```
//! The children of a directory are enqueued as soon as it is read, so that they can be read ahead too.

use super::reading::{Directory, Part, Reading, Remainder};
use super::{QUEUE_BYTES_MAX, READ_AHEAD_BYTES_MAX, READ_AHEAD_DIRECTORIES_MAX};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Approximate bytes of a queued directory beside its path.
const QUEUED_BYTES: usize = 128;

/// The state of a directory.
#[derive(Debug)]
enum State {
    /// It is not being read.
    Waiting,
    /// A helper is reading it.
    Claimed,
    /// It was read; `None`: it could not be.
    Read(Option<Box<Reading>>),
}

/// A queued directory.
#[derive(Debug)]
struct Queued {
    key: u64,
    directory: Directory,
    state: State,
}

#[derive(Debug)]
struct Queue {
    /// The last one is sent next.
    directories: Vec<Queued>,
    keys: u64,
    /// Directories in state `Waiting`.
    waiting: usize,
    /// Directories in state `Claimed` or `Read`.
    ahead: usize,
    /// Bytes of all data that was read ahead.
    ahead_bytes: usize,
    /// Bytes of the queue itself.
    bytes: usize,
    /// Entries that were read, sent or not.
    entries: u64,
    /// Whether directories did not fit into the queue.
    is_cut: bool,
}

/// The next directory to send.
#[derive(Debug)]
pub(super) enum Next {
    /// The queue is empty.
    Nothing,
    /// A directory that no helper has read; the caller must read it.
    Unread(Directory),
    /// A directory that a helper has read.
    Read(Directory, Box<Reading>),
    /// A directory that cannot be read.
    Unreadable,
    /// A helper is still reading, and the time is over.
    Late,
}

/// The queue, shared by the stream's thread and its helpers.
#[derive(Debug)]
pub(super) struct ReadAhead {
    entries_max: u64,
    queue: Mutex<Queue>,
    /// Signaled when the next directory was read.
    read: Condvar,
    /// Signaled when there is more to read, or room for it.
    work: Condvar,
    /// The key of the directory that the stream's thread waits for; no key is 0.
    awaited: AtomicU64,
    is_over: AtomicBool,
}

impl ReadAhead {
    /// An empty queue. After `entries_max` entries no more directories are read ahead.
    pub(super) fn new(entries_max: u64) -> ReadAhead {
        let queue = Queue {
            directories: Vec::new(),
            keys: 0,
            waiting: 0,
            ahead: 0,
            ahead_bytes: 0,
            bytes: 0,
            entries: 0,
            is_cut: false,
        };
        ReadAhead {
            entries_max,
            queue: Mutex::new(queue),
            read: Condvar::new(),
            work: Condvar::new(),
            awaited: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts the entries that the stream's thread has read.
    pub(super) fn count(&self, part: &Part) {
        self.queue().entries += part.entries.len() as u64;
    }

    /// Enqueues the children of the directory that was sent last.
    pub(super) fn enqueue_children(&self, children: Children) {
        if children.directories.is_empty() {
            return;
        }
        let mut queue = self.queue();
        let end = queue.directories.len();
        queue.insert(end, children.directories);
        drop(queue);
        self.work.notify_all();
    }

    /// Takes the next directory. Waits until `until` if a helper is reading it.
    pub(super) fn next(&self, until: Instant) -> Next {
        let mut queue = self.queue();
        loop {
            let Some(queued) = queue.directories.pop() else {
                return Next::Nothing;
            };
            match queued.state {
                State::Waiting => {
                    queue.waiting -= 1;
                    queue.bytes -= queued.directory.bytes();
                    return Next::Unread(queued.directory);
                }
                State::Read(reading) => {
                    queue.ahead -= 1;
                    queue.bytes -= queued.directory.bytes();
                    queue.ahead_bytes -= reading.as_ref().map_or(0, |reading| reading.part.bytes());
                    drop(queue);
                    self.work.notify_one();
                    return match reading {
                        Some(reading) => Next::Read(queued.directory, reading),
                        None => Next::Unreadable,
                    };
                }
                State::Claimed => {
                    self.awaited.store(queued.key, Ordering::Relaxed);
                    queue.directories.push(queued);
                    let left = until.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return Next::Late;
                    }
                    queue = self.read.wait_timeout(queue, left).unwrap_or_else(PoisonError::into_inner).0;
                    self.awaited.store(0, Ordering::Relaxed);
                }
            }
        }
    }

    /// The number of directories that are not being read.
    pub(super) fn waiting(&self) -> usize {
        self.queue().waiting
    }

    /// Whether directories did not fit into the queue.
    pub(super) fn is_cut(&self) -> bool {
        self.queue().is_cut
    }

    /// Ends the helpers.
    pub(super) fn end(&self) {
        // Under the lock, so that a helper between its check and its wait does not miss it.
        let queue = self.queue();
        self.is_over.store(true, Ordering::Relaxed);
        drop(queue);
        self.work.notify_all();
    }

    /// Whether the helpers must end.
    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Claims the next directory for a helper, and waits for one. `None`: the helper must end.
    pub(super) fn claim(&self) -> Option<Claim<'_>> {
        let mut queue = self.queue();
        loop {
            if self.is_over() {
                return None;
            }
            if let Some(claim) = self.claim_in(&mut queue) {
                return Some(claim);
            }
            queue = self.work.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Claims the next directory, if there is one and the limits allow it.
    fn claim_in(&self, queue: &mut Queue) -> Option<Claim<'_>> {
        if !queue.has_room(self.entries_max) {
            return None;
        }
        let queued = queue.first_waiting()?;
        queued.state = State::Claimed;
        let (key, directory) = (queued.key, queued.directory.clone());
        queue.waiting -= 1;
        queue.ahead += 1;
        Some(Claim { ahead: self, key, directory, reading: None })
    }

    fn settle(&self, key: u64, mut reading: Option<Box<Reading>>) {
        let children = match &mut reading {
            // If the listing continues, further children follow these, so all of them are enqueued later.
            Some(reading) if !matches!(reading.rest, Remainder::More(_)) => reading.part.take_children(),
            Some(_) | None => Vec::new(),
        };
        let (bytes, entries) = match &reading {
            Some(reading) => (reading.part.bytes(), reading.part.entries.len()),
            None => (0, 0),
        };
        let has_children = !children.is_empty();
        let mut queue = self.queue();
        if let Some(at) = queue.directories.iter().rposition(|queued| queued.key == key) {
            if let Some(queued) = queue.directories.get_mut(at) {
                queued.state = State::Read(reading);
            }
            queue.ahead_bytes += bytes;
            queue.entries += entries as u64;
            queue.insert(at, children);
        }
        drop(queue);
        if self.awaited.load(Ordering::Relaxed) == key {
            self.read.notify_one();
        }
        if has_children {
            self.work.notify_all();
        }
    }
}

impl Queue {
    /// Whether the limits allow more read-ahead.
    fn has_room(&self, entries_max: u64) -> bool {
        self.ahead < READ_AHEAD_DIRECTORIES_MAX
            && self.ahead_bytes < READ_AHEAD_BYTES_MAX
            && self.entries < entries_max
    }

    fn first_waiting(&mut self) -> Option<&mut Queued> {
        if self.waiting == 0 {
            return None;
        }
        self.directories.iter_mut().rev().find(|queued| matches!(queued.state, State::Waiting))
    }

    /// Inserts children before position `at`, so that they are sent in the order of their names.
    fn insert(&mut self, at: usize, mut children: Vec<Directory>) {
        children.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        let mut directories = Vec::with_capacity(children.len());
        for directory in children {
            let bytes = directory.bytes();
            if self.bytes + bytes > QUEUE_BYTES_MAX {
                self.is_cut = true;
                break;
            }
            self.bytes += bytes;
            self.keys += 1;
            directories.push(Queued { key: self.keys, directory, state: State::Waiting });
        }
        self.waiting += directories.len();
        self.directories.splice(at..at, directories.into_iter().rev());
    }
}

impl Directory {
    /// Approximate memory use.
    pub(super) fn bytes(&self) -> usize {
        self.path.as_bytes().len() + QUEUED_BYTES
    }
}

/// The children of a directory that is being sent: as many as the queue can hold, and one more that marks the
/// overflow.
#[derive(Debug, Default)]
pub(super) struct Children {
    directories: Vec<Directory>,
    bytes: usize,
}

impl Children {
    /// Takes the children of a part.
    pub(super) fn take(&mut self, part: &mut Part) {
        for directory in part.take_children() {
            if self.bytes > QUEUE_BYTES_MAX {
                return;
            }
            self.bytes += directory.bytes();
            self.directories.push(directory);
        }
    }
}

/// A directory that a helper reads. If this is dropped without data, the directory is left out.
#[derive(Debug)]
pub(super) struct Claim<'a> {
    ahead: &'a ReadAhead,
    key: u64,
    pub(super) directory: Directory,
    reading: Option<Box<Reading>>,
}

impl Claim<'_> {
    /// Whether the stream's thread waits for it.
    pub(super) fn is_awaited(&self) -> bool {
        self.ahead.awaited.load(Ordering::Relaxed) == self.key
    }

    /// Hands over the data.
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
