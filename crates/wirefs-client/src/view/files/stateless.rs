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
//! A position behind the last entry names an *age* of the directory, which the readings of that age share, so that a listing that one
//! reader has left is ended by the next one. Each age is ended once, and only when nobody has a beginning of it on its way: whatever
//! becomes of the kernel's listing then, nothing leads to that age's end from its beginning any more, and an end that comes late
//! changes nothing but what was gathered before it was told.
//!
//! | the directory is doubted | | |
//! |---|---|---|
//! | the kernel's listing may be whole | it is dropped | |
//! | something of this age was told | | this age is doubtful |
//!
//! | a reader comes to the end of | is told | |
//! |---|---|---|
//! | this age, and another may have a beginning of it on its way | that it is the end, of which the kernel concludes nothing | the others are waited for |
//! | this age | that nothing follows: it is whole | the age is another |
//! | this age, which is doubtful | the same, once the kernel has dropped it | the age is another |
//! | another age | that it is the end, of which the kernel concludes nothing | |
//!
//! A thread that asks for anything else has taken in what it was told before. A change of names here finds no reader at all: the kernel
//! holds the directory alone then. So it does when it is told to forget a name there, which tells when those who left have taken it in.
//!
//! *Holds*: what the kernel calls whole and has all pages of was told since its age began, and was not doubted since.

mod readings;

use crate::call::Handle;
use crate::view::files::OpenDirectory;
use readings::Readings;
use std::collections::BTreeMap;
use wirefs_cache::TreeNodeId;
use wirefs_op::Time;

/// The bits of a position that say where in a reading it is. Directories that did not change since the kernel knows them have positions as
/// small as can be, for programs that have 32 bits for them.
const INDEX_BITS: u32 = 22;
const END: u64 = (1 << INDEX_BITS) - 1;
/// Numbers and ages are below that: a position has 63 bits.
const NUMBERS_MAX: u64 = 1 << (63 - INDEX_BITS);
/// Threads that may have the beginning of a listing on its way to them and are known, at most.
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

/// What the kernel may have gathered of one directory.
#[derive(Debug, Default)]
struct Gathered {
    age: u64,
    /// Something of this age was told.
    is_told: bool,
    /// Of this age, something may not be so.
    is_doubtful: bool,
    /// The kernel's listing may be whole.
    is_whole: bool,
    /// To whom a beginning of this age may be on its way, and when it was told. 0: to anybody.
    beginners: BTreeMap<u32, u64>,
    /// These are waited for.
    is_awaited: bool,
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
    directories: BTreeMap<TreeNodeId, Gathered>,
    readings: Readings,
    /// The threads among all beginners. Each waits for one answer at a time.
    threads: BTreeMap<u32, TreeNodeId>,
    /// Counts beginnings.
    told: u64,
}

impl Unopened {
    /// For a client that may use so many bytes.
    pub(crate) fn within(bytes_max: usize) -> Unopened {
        let readings = Readings::within(bytes_max);
        Unopened { directories: BTreeMap::new(), readings, threads: BTreeMap::new(), told: 0 }
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
    pub(crate) fn of(&mut self, dir: TreeNodeId, mut change: impl FnMut(&mut OpenDirectory)) {
        for handle in self.readings.of(dir).collect::<Vec<_>>() {
            self.readings.listing_mut(handle).into_iter().for_each(&mut change);
        }
    }

    /// The listing that the reading of this number goes through.
    pub(crate) fn reading(&self, dir: TreeNodeId, number: u64) -> Option<Handle> {
        self.readings.find((dir, number)).map(|(handle, _)| handle)
    }

    /// The last listing of a directory.
    pub(crate) fn latest(&self, dir: TreeNodeId) -> Option<Handle> {
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
                self.begins(dir, thread);
            }
        }
        self.readings.tells((dir, number), thread, (begins, is_last), now);
        Some(Told { number, age })
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
        if let Some(gathered) = self.directories.get_mut(&dir) {
            gathered.beginners.insert(thread, self.told);
        }
    }

    /// A thread comes to the end of a listing of this age.
    pub(crate) fn ends(&mut self, dir: TreeNodeId, age: u64, thread: u32) -> Ending {
        self.readings.ended(dir, age, thread);
        let gathered = self.directories.get_mut(&dir).filter(|gathered| gathered.age == age);
        match gathered {
            Some(gathered) if gathered.beginners.is_empty() => gathered.ends(),
            Some(_) | None => Ending::Plain,
        }
    }

    /// A thread asks for something: what it was told before it has taken in.
    pub(crate) fn goes_on(&mut self, thread: u32) {
        if let Some(dir) = self.threads.remove(&thread)
            && let Some(gathered) = self.directories.get_mut(&dir)
        {
            gathered.beginners.remove(&thread);
        }
    }

    /// The kernel changes names in a directory: nobody reads it.
    pub(crate) fn is_alone(&mut self, dir: TreeNodeId) {
        if let Some(gathered) = self.directories.get_mut(&dir) {
            gathered.beginners.clear();
        }
    }

    /// Whether somebody is to be waited for who may have a beginning on its way, and is not: all that were told up to this moment.
    pub(crate) fn awaits(&mut self, dir: TreeNodeId) -> Option<u64> {
        let gathered = self.directories.get_mut(&dir).filter(|gathered| !gathered.beginners.is_empty())?;
        (!std::mem::replace(&mut gathered.is_awaited, true)).then_some(self.told)
    }

    /// Who was told something of a directory up to this moment has taken it in.
    pub(crate) fn passed(&mut self, dir: TreeNodeId, until: u64) {
        if let Some(gathered) = self.directories.get_mut(&dir) {
            gathered.is_awaited = false;
            gathered.beginners.retain(|_, told| *told > until);
        }
    }

    /// What is known of the directory's names is not so, or not for sure: nothing promises its listings any more. Says whether the kernel is
    /// to drop what it has.
    pub(crate) fn doubt(&mut self, dir: TreeNodeId) -> bool {
        self.of(dir, |open| open.listed.leased = false);
        self.directories.get_mut(&dir).is_some_and(Gathered::doubt)
    }

    /// The same of all directories: those of which the kernel is to drop what it has.
    pub(crate) fn doubt_all(&mut self) -> Vec<TreeNodeId> {
        self.readings.all_mut().for_each(|open| open.listed.leased = false);
        let doubted =
            self.directories.iter_mut().filter_map(|(dir, gathered)| gathered.doubt().then_some(*dir));
        doubted.collect()
    }

    /// Whether this directory was read without being opened.
    pub(crate) fn knows(&self, dir: TreeNodeId) -> bool {
        self.directories.contains_key(&dir)
    }

    /// Forgets the directories that the kernel does not know any more, and what nobody has read on in for long.
    pub(crate) fn bound(&mut self, now: Time, is_there: impl Fn(TreeNodeId) -> bool) {
        self.directories.retain(|dir, _| is_there(*dir));
        self.threads.retain(|_, dir| is_there(*dir));
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
    /// INVARIANT: nobody has a beginning of this age on its way, and nobody will.
    fn ends(&mut self) -> Ending {
        self.is_whole = !self.is_doubtful;
        self.age += 1;
        (self.is_told, self.is_doubtful) = (false, false);
        if self.is_whole { Ending::Whole } else { Ending::Dropped }
    }

    fn doubt(&mut self) -> bool {
        self.is_doubtful |= self.is_told;
        std::mem::take(&mut self.is_whole)
    }
}

#[cfg(test)]
mod tests;
