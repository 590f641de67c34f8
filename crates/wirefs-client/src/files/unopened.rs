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

use crate::call::Handle;
use crate::files::OpenDirectory;
use crate::files::directory::listing_bytes;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;
use wirefs_cache::NodeId;
use wirefs_op::Time;

/// The bits of a position that say where in a reading it is. Directories that did not change since the kernel knows them have positions as
/// small as can be, for programs that have 32 bits for them.
const INDEX_BITS: u32 = 22;
const END: u64 = (1 << INDEX_BITS) - 1;
/// Readings remembered over all directories, at most, beside those that were not told to their end.
const READINGS_MAX: usize = 1024;
/// Of these so many are let go of in one step.
const ENDED_AT_ONCE: usize = 64;
/// Threads that may have the beginning of a listing on its way to them, at most; where there are more, none of them is known.
const BEGINNERS_MAX: usize = 64;
/// Who has not read on for so long gives way when listings take far too much room.
const SLOW: Duration = Duration::from_secs(60);

/// Where a READDIR goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Position {
    Begin,
    /// In the reading of this number, at this index: 0 is `.`.
    At(u32, u64),
    /// Behind the last entry of a listing of this age.
    End(u32),
}

impl Position {
    pub(crate) fn of(offset: u64) -> Position {
        let number = u32::try_from(offset >> INDEX_BITS).unwrap_or(u32::MAX);
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
        Some(u64::from(number) << INDEX_BITS | index)
    }
}

/// One listing as it is being read.
#[derive(Debug)]
struct Reading {
    open: OpenDirectory,
    number: u32,
    age: u32,
    used: Time,
    /// Its last entry was told.
    is_done: bool,
}

/// What the kernel may have gathered of one directory.
#[derive(Debug, Default)]
struct Gathered {
    age: u32,
    age_max: u32,
    /// Something was told since the age began, or since a listing may have become whole.
    is_told: bool,
    /// Of this age, something may not be so.
    is_doubtful: bool,
    /// The kernel's listing may be whole.
    is_whole: bool,
    /// To whom a beginning of this age may be on its way. 0: to anybody.
    beginners: BTreeSet<u32>,
    /// The kernel may have a listing of this age, which nobody ends.
    left: Option<u32>,
    next: u32,
    readings: BTreeMap<u32, Handle>,
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
#[derive(Debug, Default)]
pub(crate) struct Unopened {
    directories: BTreeMap<NodeId, Gathered>,
    readings: BTreeMap<Handle, Reading>,
    /// Those whose last entry was told, in the order in which that was.
    done: VecDeque<Handle>,
}

impl Unopened {
    /// A reading begins.
    pub(crate) fn begins(&mut self, handle: Handle, open: OpenDirectory, now: Time) {
        let gathered = self.directories.entry(open.node).or_default();
        let (number, age) = (gathered.next, gathered.age);
        gathered.next += 1;
        gathered.readings.insert(number, handle);
        self.readings.insert(handle, Reading { open, number, age, used: now, is_done: false });
        if self.readings.len() > READINGS_MAX {
            self.end_done();
        }
    }

    pub(crate) fn directory(&self, handle: Handle) -> Option<&OpenDirectory> {
        self.readings.get(&handle).map(|reading| &reading.open)
    }

    pub(crate) fn directory_mut(&mut self, handle: Handle) -> Option<&mut OpenDirectory> {
        self.readings.get_mut(&handle).map(|reading| &mut reading.open)
    }

    /// The listings that are being read.
    pub(crate) fn all(&self) -> impl Iterator<Item = &OpenDirectory> {
        self.readings.values().map(|reading| &reading.open)
    }

    /// Those of this directory, to change.
    pub(crate) fn of(&mut self, dir: NodeId, mut change: impl FnMut(&mut OpenDirectory)) {
        let handles = self.directories.get(&dir).into_iter().flat_map(|gathered| gathered.readings.values());
        for handle in handles {
            if let Some(reading) = self.readings.get_mut(handle) {
                change(&mut reading.open);
            }
        }
    }

    /// The reading of this number.
    pub(crate) fn reading(&mut self, dir: NodeId, number: u32, now: Time) -> Option<Handle> {
        let handle = *self.directories.get(&dir)?.readings.get(&number)?;
        self.readings.get_mut(&handle)?.used = now;
        Some(handle)
    }

    /// The last reading of a directory, if who begins now may share it as far as its age goes.
    pub(crate) fn latest(&self, dir: NodeId) -> Option<Handle> {
        let gathered = self.directories.get(&dir)?;
        let (_, handle) = gathered.readings.last_key_value()?;
        self.readings.get(handle).filter(|reading| reading.age == gathered.age).map(|_| *handle)
    }

    /// Entries of a reading are being told to a thread (0: it is not known), the first one if it `begins`, the last one if it `is_last`;
    /// `is_promised`: the kernel would be told of any change.
    pub(crate) fn tells(&mut self, handle: Handle, part: Part, now: Time) -> Option<Told> {
        let Part { thread, begins, is_last, is_promised } = part;
        let reading = self.readings.get_mut(&handle)?;
        reading.used = now;
        if is_last && !std::mem::replace(&mut reading.is_done, true) {
            self.done.push_back(handle);
        }
        let gathered = self.directories.get_mut(&reading.open.node)?;
        // One of another age is dropped at its end.
        if reading.age == gathered.age {
            gathered.is_told = true;
            gathered.is_doubtful |= !is_promised;
            if begins {
                gathered.begins(thread);
            }
        }
        Some(Told { number: reading.number, age: reading.age })
    }

    /// The age of a reading.
    pub(crate) fn age(&self, handle: Handle) -> Option<u32> {
        self.readings.get(&handle).map(|reading| reading.age)
    }

    /// A thread comes to the end of a listing of this age.
    pub(crate) fn ends(&mut self, dir: NodeId, age: u32, thread: u32) -> Ending {
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

    /// Forgets the directories that the kernel does not know any more.
    pub(crate) fn retain(&mut self, is_there: impl Fn(NodeId) -> bool) {
        self.directories.retain(|dir, _| is_there(*dir));
        let directories = &self.directories;
        self.readings.retain(|_, reading| directories.contains_key(&reading.open.node));
        let readings = &self.readings;
        self.done.retain(|handle| readings.contains_key(handle));
    }

    /// Lets go of readings while their listings take more than this, in bytes: those whose end was told; then, while they
    /// take more than `bytes_max`, those that nobody has gone on with for a while.
    pub(crate) fn shrink(&mut self, now: Time, done_bytes_max: usize, bytes_max: usize) {
        let bytes = |unopened: &Unopened| listing_bytes(unopened.all(), |_, _| false);
        for _ in 0..ENDED_AT_ONCE {
            if bytes(self) <= done_bytes_max || !self.end_done() {
                break;
            }
        }
        let is_slow = |reading: &Reading| reading.is_idle() && now.since(reading.used) >= SLOW;
        while bytes(self) > bytes_max {
            let slow = self.readings.iter().find(|(_, reading)| is_slow(reading)).map(|(handle, _)| *handle);
            let Some(handle) = slow else { return };
            self.end(handle);
        }
    }

    /// Lets go of the reading that was told to its end the longest time ago; false when there is none.
    fn end_done(&mut self) -> bool {
        let Some(handle) = self.done.pop_front() else { return false };
        if self.readings.get(&handle).is_some_and(|reading| !reading.is_idle()) {
            self.done.push_back(handle);
        } else {
            self.end(handle);
        }
        true
    }

    fn end(&mut self, handle: Handle) {
        let Some(reading) = self.readings.remove(&handle) else { return };
        if let Some(gathered) = self.directories.get_mut(&reading.open.node) {
            gathered.readings.remove(&reading.number);
        }
    }
}

/// What is told of a reading.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub(crate) thread: u32,
    pub(crate) begins: bool,
    pub(crate) is_last: bool,
    pub(crate) is_promised: bool,
}

/// Which reading was told of, and of which age it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Told {
    pub(crate) number: u32,
    pub(crate) age: u32,
}

impl Reading {
    /// Nobody waits for more of it.
    fn is_idle(&self) -> bool {
        self.open.waiting.is_empty()
    }
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
