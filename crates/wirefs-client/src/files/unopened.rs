//! Directories that the kernel reads without opening them, and what it may have gathered of their listings for itself.
//!
//! Nobody says when a program begins to read such a directory or has done with it: a READDIR comes with a position, and position 0 is the
//! beginning. What is read from there on is a *reading*: the listing as of then, which keeps its order however names come and go.
//! Who reads goes on in the reading that the position names, and readers share one for as long as the directory stays as it is.
//!
//! ```text
//!   position   0              the beginning: the directory as it is now
//!              number index   behind so many entries of that reading
//!              age 0x3fffff   behind the last one
//! ```
//!
//! The kernel (`fs/fuse/readdir.c`) appends each entry that it reads to what it has, if that one's position is the one behind the
//! last that it has; and when it reads nothing at that very position it calls the listing whole, and asks no more. It begins anew where
//! its own change of the directory came between, or a page of it is missing. So what is doubtful must be dropped after the last entry was
//! read and before nothing is: dropped earlier, an answer on its way would be appended behind that.
//!
//! A position behind the last entry names an *age* of the directory, which the readings of that age share: a listing that one
//! reader has left is ended by the next one, even if the directory changed here meanwhile.
//!
//! | the directory is doubted | | then |
//! |---|---|---|
//! | the kernel's listing may be whole, none was read since | it is dropped | the age is another |
//! | it may be whole, and one is being read | it is dropped | this age is doubtful |
//! | one is being read | | this age is doubtful |
//!
//! | a reader comes to the end of | | and is told |
//! |---|---|---|
//! | this age | | that nothing follows: it is whole |
//! | this age, which is doubtful; no other reader has a beginning of it on its way | it is dropped, the age is another | the same |
//! | the same, but another may have | the age is another | that it is the end, of which the kernel concludes nothing |
//! | another age | | the same |
//!
//! A thread that reads on has taken in what it was told before. A change of names here finds no reader at all: the kernel holds the
//! directory alone then.
//!
//! *Holds*: what the kernel calls whole and has all pages of was told since its age began, and was not doubted since.

mod readings;

use crate::call::Handle;
use crate::files::OpenDirectory;
use readings::Readings;
use std::collections::{BTreeMap, BTreeSet};
use wirefs_cache::NodeId;
use wirefs_op::Time;

/// The bits of a position that say where in a reading it is. Directories that did not change since the kernel knows them have positions as
/// small as can be, for programs that have 32 bits for them.
const INDEX_BITS: u32 = 22;
const END: u64 = (1 << INDEX_BITS) - 1;
/// Numbers and ages are below that: a position has 63 bits.
const NUMBERS_MAX: u64 = 1 << (63 - INDEX_BITS);
/// Threads that may have the beginning of a listing on its way to them, at most; where there are more, none of them is known.
const BEGINNERS_MAX: usize = 64;

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

/// What the kernel may have gathered of one directory.
#[derive(Debug, Default)]
struct Gathered {
    age: u64,
    age_max: u64,
    /// Something was told since the age began, or since a listing may have become whole.
    is_told: bool,
    /// Of this age, something may not be so.
    is_doubtful: bool,
    /// The kernel's listing may be whole.
    is_whole: bool,
    /// To whom a beginning of this age may be on its way. 0: to anybody.
    beginners: BTreeSet<u32>,
    /// The kernel may have a listing of this age, which nobody ends.
    left: Option<u64>,
    next: u64,
}

/// What a reader is told who comes to the end.
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
pub(crate) struct Unopened {
    directories: BTreeMap<NodeId, Gathered>,
    readings: Readings,
}

impl Unopened {
    /// For a client that may use so many bytes.
    pub(crate) fn within(bytes_max: usize) -> Unopened {
        Unopened { directories: BTreeMap::new(), readings: Readings::within(bytes_max) }
    }

    /// A listing is here, or its beginning, for who reads the directory.
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

    /// Nobody was told of this listing, for now.
    pub(crate) fn tells_nobody(&mut self, handle: Handle) {
        self.readings.drop_vain(handle);
    }

    /// The listings that are being read.
    pub(crate) fn all(&self) -> impl Iterator<Item = &OpenDirectory> {
        self.readings.all()
    }

    /// What they take, in bytes, at most.
    ///
    /// # Cost
    /// None: it is counted as they change.
    pub(crate) fn bytes(&self) -> usize {
        self.readings.bytes()
    }

    /// Those of this directory, to change.
    pub(crate) fn of(&mut self, dir: NodeId, mut change: impl FnMut(&mut OpenDirectory)) {
        for handle in self.readings.of(dir).collect::<Vec<_>>() {
            self.readings.listing_mut(handle).into_iter().for_each(&mut change);
        }
    }

    /// The listing that the reading of this number goes through.
    pub(crate) fn reading(&self, dir: NodeId, number: u64) -> Option<Handle> {
        self.readings.find((dir, number)).map(|(handle, _)| handle)
    }

    /// The last listing of a directory.
    pub(crate) fn latest(&self, dir: NodeId) -> Option<Handle> {
        self.readings.of(dir).next_back()
    }

    /// Entries of a listing are being told to a thread (0: it is not known).
    pub(crate) fn tells(&mut self, handle: Handle, part: Part, now: Time) -> Option<Told> {
        let Part { number, thread, is_last, is_promised } = part;
        let dir = self.directory(handle)?.node;
        let gathered = self.directories.entry(dir).or_default();
        let (begins, of_age) = (number.is_none(), self.readings.number_of(handle, gathered.age));
        let number = number.or(of_age).unwrap_or_else(|| {
            gathered.next += 1;
            self.readings.begins(handle, gathered.next - 1, gathered.age, now);
            gathered.next - 1
        });
        let (_, age) = self.readings.find((dir, number))?;
        // One of another age is dropped at its end.
        if age == gathered.age {
            gathered.is_told = true;
            gathered.is_doubtful |= !is_promised;
            if begins {
                gathered.begins(thread);
            }
        }
        self.readings.tells((dir, number), thread, (begins, is_last), now);
        Some(Told { number, age })
    }

    /// The age of a reading.
    pub(crate) fn age(&self, dir: NodeId, number: u64) -> Option<u64> {
        self.readings.find((dir, number)).map(|(_, age)| age)
    }

    /// A thread comes to the end of a listing of this age.
    pub(crate) fn ends(&mut self, dir: NodeId, age: u64, thread: u32) -> Ending {
        self.readings.ended(dir, age, thread);
        let gathered = self.directories.get_mut(&dir).filter(|gathered| gathered.age == age);
        let Some(gathered) = gathered else { return Ending::Plain };
        if !gathered.is_doubtful {
            (gathered.is_whole, gathered.is_told) = (true, false);
            return Ending::Whole;
        }
        let is_alone =
            gathered.beginners.is_empty() || gathered.beginners.iter().eq([&thread]) && thread != 0;
        gathered.grows_old();
        if is_alone {
            gathered.is_whole = false;
            return Ending::Dropped;
        }
        gathered.left.get_or_insert(age);
        Ending::Plain
    }

    /// A thread reads on in a directory.
    pub(crate) fn reads_on(&mut self, dir: NodeId, thread: u32) {
        if let Some(gathered) = self.directories.get_mut(&dir).filter(|_| thread != 0) {
            gathered.beginners.remove(&thread);
        }
    }

    /// The kernel changes names in a directory: nobody reads it. A listing that nobody ends is ended by who reads it next.
    pub(crate) fn is_alone(&mut self, dir: NodeId) {
        let Some(gathered) = self.directories.get_mut(&dir) else { return };
        gathered.beginners.clear();
        if let Some(left) = gathered.left.take() {
            (gathered.age, gathered.is_told, gathered.is_doubtful) = (left, true, true);
        }
    }

    /// What is known of the directory's names is not so, or not for sure. Says whether the kernel is to drop what it has.
    pub(crate) fn doubt(&mut self, dir: NodeId) -> bool {
        self.directories.get_mut(&dir).is_some_and(Gathered::doubt)
    }

    /// The same of all directories: those of which the kernel is to drop what it has.
    pub(crate) fn doubt_all(&mut self) -> Vec<NodeId> {
        let doubted =
            self.directories.iter_mut().filter_map(|(dir, gathered)| gathered.doubt().then_some(*dir));
        doubted.collect()
    }

    /// Whether no directory was read that was not opened.
    pub(crate) fn is_empty(&self) -> bool {
        self.directories.is_empty()
    }

    /// Whether this directory was read without being opened.
    pub(crate) fn knows(&self, dir: NodeId) -> bool {
        self.directories.contains_key(&dir)
    }

    /// Forgets the directories that the kernel does not know any more, and what nobody has read on in for long.
    pub(crate) fn bound(&mut self, now: Time, is_there: impl Fn(NodeId) -> bool) {
        self.directories.retain(|dir, _| is_there(*dir));
        self.readings.retain(is_there);
        self.readings.end_slow(now);
    }
}

/// What is told of a reading.
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
pub(crate) struct Told {
    pub(crate) number: u64,
    pub(crate) age: u64,
}

impl Gathered {
    fn begins(&mut self, thread: u32) {
        if self.beginners.len() < BEGINNERS_MAX {
            self.beginners.insert(thread);
        } else {
            self.beginners = BTreeSet::from([0]);
        }
    }

    fn doubt(&mut self) -> bool {
        let is_whole = std::mem::take(&mut self.is_whole);
        if self.is_told {
            self.is_doubtful = true;
        } else if is_whole {
            self.grows_old();
        }
        is_whole
    }

    fn grows_old(&mut self) {
        self.age_max += 1;
        self.age = self.age_max;
        (self.is_told, self.is_doubtful) = (false, false);
        self.beginners.clear();
    }
}

#[cfg(test)]
mod tests;
