//! Stateless readdir: listings of directories that the kernel reads without opening them, and may have cached.
//!
//! The kernel does not report when a program begins or ends to read such a directory. A READDIR only has a position,
//! and position 0 is the beginning. There a *reading* begins: a listing of the directory as of that moment, whose order
//! stays the same when names come and go. Each further READDIR continues the reading that its position names. Readers
//! share a reading while the directory stays the same.
//!
//! ```text
//!   position   0              the beginning: the directory as it is now
//!              number index   behind so many entries of that reading
//!              age 0x3fffff   behind the last one
//! ```
//!
//! The kernel (`fs/fuse/readdir.c`) appends each entry that it reads to its cached listing, if the entry's position follows the last
//! one. When a READDIR at that very position returns nothing, the kernel calls the listing complete, and asks no more. It starts
//! again after its own change of the directory, or if a page of the listing is missing. So an outdated listing must be dropped after
//! its last entry was read and before the empty answer: otherwise an answer in transit would be appended after the drop.
//!
//! A position behind the last entry names an *age* of the directory. All readings of one age share it, so a reader can end a listing
//! that another reader has left. Each age ends once, and only when no answer with a beginning of it is in transit: afterwards no
//! reading leads from the beginning to the end of that age, and a late end changes nothing but entries that were cached before.
//!
//! | invalidation of a directory | kernel | age |
//! |---|---|---|
//! | its listing in the kernel may be complete | the listing is dropped | |
//! | entries of this age were sent | | becomes doubtful |
//!
//! | a reader reaches the end of | answer | afterwards |
//! |---|---|---|
//! | this age, while a beginning of it may be in transit to another reader | end, from which the kernel concludes nothing | the other readers are awaited |
//! | this age | empty: the listing is complete | the age increments |
//! | this age, doubtful | empty, after the kernel has dropped its listing | the age increments |
//! | another age | end, from which the kernel concludes nothing | |
//!
//! A reading that was ended continues under another number: in the directory as it is now, without the names before the position.
//!
//! A thread that makes another call has received its earlier answers. A change of names in this mount meets no reader: the kernel
//! holds the directory's lock exclusively. So it does for the invalidation of a name, which shows that earlier readers have received
//! their answers.
//!
//! *Holds*: each page of a listing that the kernel calls complete was sent since its age began, and was not invalidated since.

pub(super) mod outlines;
mod readings;

use crate::call::Handle;
use crate::view::files::directory::OpenDirectory;
use readings::{DOTS, Readings};
use std::collections::BTreeMap;
use wirefs_cache::TreeNodeId;
use wirefs_op::{Errno, FileId, Stat, Time};

/// The bits of a position that say where in a reading it is. Directories that did not change since the kernel knows them have positions as
/// small as can be, for programs that have 32 bits for them.
const INDEX_BITS: u32 = 22;
const END: u64 = (1 << INDEX_BITS) - 1;
/// Numbers and ages are below that: a position has 63 bits.
const NUMBERS_MAX: u64 = 1 << (63 - INDEX_BITS);
/// Threads that may have the beginning of a listing in transit to them and are known, at most.
const THREADS_MAX: usize = 1024;

/// Where a READDIR goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Position {
    Begin,
    /// In the reading of this number, at this index: 0 is `.`.
    At(u64, u64),
    /// Behind the last entry of a listing of this age.
    End(u64),
}

impl Position {
    pub(crate) fn of(offset: u64) -> Position {
        let number = offset >> INDEX_BITS;
        match offset & END {
            0 if number == 0 => Position::Begin,
            END => Position::End(number),
            index => Position::At(number, index),
        }
    }

    /// `None`: there is no such position.
    pub(crate) fn offset(self) -> Option<u64> {
        let (number, index) = match self {
            Position::Begin => return Some(0),
            Position::At(number, index) => (number, Some(index).filter(|index| (1..END).contains(index))?),
            Position::End(age) => (age, END),
        };
        (number < NUMBERS_MAX).then_some(number << INDEX_BITS | index)
    }
}

/// The kernel's listing of one directory.
#[derive(Debug, Default)]
struct KernelListing {
    age: u64,
    /// Something of this age was told.
    is_told: bool,
    /// Of this age, something may not be so.
    is_doubtful: bool,
    /// The kernel's listing may be whole.
    is_whole: bool,
    /// The threads to which a beginning of this age may be in transit, and the serial number of the answer. Thread 0: any thread.
    beginners: BTreeMap<u32, u64>,
    /// These are waited for.
    is_awaited: bool,
    next: u64,
}

/// The answer to a reader at the end of a listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Nothing follows: the kernel may call what it has whole.
    Whole,
    /// The same, once the kernel has dropped what it has.
    Dropped,
    /// That it is the end, of which the kernel concludes nothing.
    Plain,
}

/// All of them.
#[derive(Debug)]
pub(crate) struct StatelessListings {
    directories: BTreeMap<TreeNodeId, KernelListing>,
    readings: Readings,
    /// The threads among all beginners. Each waits for one answer at a time.
    threads: BTreeMap<u32, TreeNodeId>,
    /// Counts beginnings.
    told: u64,
}

impl StatelessListings {
    /// The listings of a client that may use this many bytes.
    pub(crate) fn within(bytes_max: usize) -> StatelessListings {
        let readings = Readings::within(bytes_max);
        StatelessListings { directories: BTreeMap::new(), readings, threads: BTreeMap::new(), told: 0 }
    }

    /// Adds a listing, or its beginning, for the readers of a directory.
    pub(crate) fn lists(&mut self, handle: Handle, open: OpenDirectory) {
        self.readings.lists(handle, open);
    }

    pub(crate) fn directory(&self, handle: Handle) -> Option<&OpenDirectory> {
        self.readings.listing(handle)
    }

    pub(crate) fn directory_mut(&mut self, handle: Handle) -> Option<&mut OpenDirectory> {
        self.readings.listing_mut(handle)
    }

    /// The entries of a listing are others.
    pub(crate) fn weigh(&mut self, handle: Handle) {
        self.readings.weigh(handle);
    }

    /// Drops a listing of which no entry was sent, and for which no call waits.
    pub(crate) fn tells_nobody(&mut self, handle: Handle) {
        self.readings.drop_vain(handle);
    }

    /// The listings that are being read.
    pub(crate) fn all(&self) -> impl Iterator<Item = &OpenDirectory> {
        self.readings.all()
    }

    /// An upper bound of their bytes.
    ///
    /// # Cost
    /// None: it is counted as they change.
    pub(crate) fn bytes(&self) -> usize {
        self.readings.bytes() + self.readings.outline_bytes()
    }

    /// Those of this directory, to change.
    pub(crate) fn of(&mut self, dir: TreeNodeId, mut change: impl FnMut(&mut OpenDirectory)) {
        for handle in self.readings.of(dir).collect::<Vec<_>>() {
            self.readings.listing_mut(handle).into_iter().for_each(&mut change);
        }
    }

    /// Objects have other ids.
    pub(crate) fn made_again(&mut self, made: &BTreeMap<FileId, Stat>) {
        for handle in self.readings.handles().collect::<Vec<_>>() {
            self.readings.listing_mut(handle).into_iter().for_each(|open| open.made_again(made));
            self.readings.weigh(handle);
        }
    }

    /// The listing that the reading of this number goes through.
    pub(crate) fn reading(&self, dir: TreeNodeId, number: u64) -> Option<Handle> {
        self.readings.find((dir, number)).map(|(handle, _)| handle)
    }

    /// Whether a reader can continue an ended reading.
    pub(crate) fn has_ended(&self, dir: TreeNodeId, number: u64) -> bool {
        self.readings.has_outline((dir, number))
    }

    /// Makes a whole listing the rest of an ended reading from this position on, for the calls that wait for it. They fail if the
    /// reading is not known any more.
    pub(crate) fn continue_ended(&mut self, handle: Handle, number: u64, position: u64, now: Time) {
        let Some(dir) = self.directory(handle).map(|open| open.node) else { return };
        let age = self.readings.continue_ended(handle, (dir, number), position);
        let cached = self.directories.entry(dir).or_default();
        let rest = cached.next;
        cached.next += 1;
        let Some(open) = self.readings.listing_mut(handle) else { return };
        open.error = open.error.or(age.is_none().then_some(Errno::Stale));
        for waiting in &mut open.waiting {
            (waiting.number, waiting.offset) = (Some(rest), waiting.offset.min(DOTS as u64));
        }
        if let Some(age) = age {
            self.readings.begins(handle, rest, age, now);
        }
    }

    /// The last listing of a directory.
    pub(crate) fn latest(&self, dir: TreeNodeId) -> Option<Handle> {
        self.readings.of(dir).next_back()
    }

    /// Entries of a listing are being told to a thread (0: it is not known).
    pub(crate) fn tells(&mut self, handle: Handle, part: Part, now: Time) -> Option<PartRead> {
        let Part { number, thread, is_last, is_promised } = part;
        let dir = self.directory(handle)?.node;
        let cached = self.directories.entry(dir).or_default();
        let (begins, of_age) = (number.is_none(), self.readings.number_of(handle, cached.age));
        let number = number.or(of_age).unwrap_or_else(|| {
            cached.next += 1;
            self.readings.begins(handle, cached.next - 1, cached.age, now);
            cached.next - 1
        });
        let (_, age) = self.readings.find((dir, number))?;
        // One of another age is dropped at its end.
        if age == cached.age {
            cached.is_told = true;
            cached.is_doubtful |= !is_promised;
            if begins {
                self.begins(dir, thread);
            }
        }
        self.readings.tells((dir, number), thread, (begins, is_last), now);
        Some(PartRead { number, age })
    }

    /// The age of a reading.
    pub(crate) fn age(&self, dir: TreeNodeId, number: u64) -> Option<u64> {
        self.readings.find((dir, number)).map(|(_, age)| age)
    }

    fn begins(&mut self, dir: TreeNodeId, thread: u32) {
        if thread != 0 && self.threads.len() >= THREADS_MAX {
            let surplus = self.threads.pop_first();
            let other = surplus.and_then(|(thread, dir)| Some((thread, self.directories.get_mut(&dir)?)));
            if let Some((thread, other)) = other
                && let Some(told) = other.beginners.remove(&thread)
            {
                let unknown = other.beginners.entry(0).or_insert(told);
                *unknown = told.max(*unknown);
            }
        }
        self.told += 1;
        if thread != 0 {
            self.threads.insert(thread, dir);
        }
        if let Some(cached) = self.directories.get_mut(&dir) {
            cached.beginners.insert(thread, self.told);
        }
    }

    /// A thread comes to the end of a listing of this age.
    pub(crate) fn ends(&mut self, dir: TreeNodeId, age: u64, thread: u32) -> Ending {
        self.readings.ended(dir, age, thread);
        let cached = self.directories.get_mut(&dir).filter(|cached| cached.age == age);
        match cached {
            Some(cached) if cached.beginners.is_empty() => cached.ends(),
            Some(_) | None => Ending::Plain,
        }
    }

    /// A thread asks for something: what it was told before it has taken in.
    pub(crate) fn goes_on(&mut self, thread: u32) {
        if let Some(dir) = self.threads.remove(&thread)
            && let Some(cached) = self.directories.get_mut(&dir)
        {
            cached.beginners.remove(&thread);
        }
    }

    /// Notes a change of names in a directory by the kernel, which has no readers then.
    pub(crate) fn is_alone(&mut self, dir: TreeNodeId) {
        if let Some(cached) = self.directories.get_mut(&dir) {
            cached.beginners.clear();
        }
    }

    /// Begins to wait for the readers to which a beginning may be in transit. Returns the serial number up to which answers count; `None`
    /// if there are no such readers, or they are awaited already.
    pub(crate) fn awaits(&mut self, dir: TreeNodeId) -> Option<u64> {
        let cached = self.directories.get_mut(&dir).filter(|cached| !cached.beginners.is_empty())?;
        (!std::mem::replace(&mut cached.is_awaited, true)).then_some(self.told)
    }

    /// Notes that all readers up to this moment have received their answers.
    pub(crate) fn passed(&mut self, dir: TreeNodeId, until: u64) {
        if let Some(cached) = self.directories.get_mut(&dir) {
            cached.is_awaited = false;
            cached.beginners.retain(|_, told| *told > until);
        }
    }

    /// Invalidates the listings of a directory: its names may have changed, and no lease covers them any more. Returns whether the kernel is
    /// to drop what it has.
    pub(crate) fn invalidate(&mut self, dir: TreeNodeId) -> bool {
        self.of(dir, |open| open.listed.leased = false);
        self.directories.get_mut(&dir).is_some_and(KernelListing::invalidate)
    }

    /// The same of all directories: those of which the kernel is to drop what it has.
    pub(crate) fn invalidate_all_listings(&mut self) -> Vec<TreeNodeId> {
        self.readings.all_mut().for_each(|open| open.listed.leased = false);
        let invalidated =
            self.directories.iter_mut().filter_map(|(dir, cached)| cached.invalidate().then_some(*dir));
        invalidated.collect()
    }

    /// Whether this directory was read without being opened.
    pub(crate) fn knows(&self, dir: TreeNodeId) -> bool {
        self.directories.contains_key(&dir)
    }

    /// Drops directories that the kernel does not know any more, and readings without progress.
    pub(crate) fn bound(&mut self, now: Time, is_there: impl Fn(TreeNodeId) -> bool) {
        self.directories.retain(|dir, _| is_there(*dir));
        self.threads.retain(|_, dir| is_there(*dir));
        self.readings.retain(is_there);
        self.readings.end_slow(now);
    }
}

/// The part of a reading in one answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    /// Of the reading of this number; `None`: from the beginning on.
    pub(crate) number: Option<u64>,
    pub(crate) thread: u32,
    /// To its last entry.
    pub(crate) is_last: bool,
    /// The kernel would be told of any change.
    pub(crate) is_promised: bool,
}

/// Which reading was told of, and of which age it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PartRead {
    pub(crate) number: u64,
    pub(crate) age: u64,
}

impl KernelListing {
    /// INVARIANT: no beginning of this age is in transit, and none will be.
    fn ends(&mut self) -> Ending {
        self.is_whole = !self.is_doubtful;
        self.age += 1;
        (self.is_told, self.is_doubtful) = (false, false);
        if self.is_whole { Ending::Whole } else { Ending::Dropped }
    }

    fn invalidate(&mut self) -> bool {
        self.is_doubtful |= self.is_told;
        std::mem::take(&mut self.is_whole)
    }
}

#[cfg(test)]
mod tests;
