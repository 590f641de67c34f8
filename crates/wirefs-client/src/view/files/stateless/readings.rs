//! Readings of directories: their listings, their readers, and their bounds.
//!
//! A *reading* has a number in its directory, and goes through one listing; several readings may share a listing. Since
//! no message says that a reader has left, a reading is kept until one of these bounds ends it:
//!
//! | state of its readers | when the reading is ended |
//! |---|---|
//! | all have reached its end | the one that ended first, while there are more than [`DONE_MAX`] such readings, or all readings take more than [`Limits::done`] |
//! | none has continued for [`SLOW`] | while all readings take more than [`Limits::slow`] |
//! | some are in the middle | the one used longest ago, while all readings take more than [`Limits::all`], or there are more than [`READINGS_MAX`] |
//!
//! An ended reading leaves its outline, with which a reader can continue it.
//!
//! *Holds*: the memory use is updated with each change, so that no query has to walk the readings.

use super::outlines::Outlines;
use crate::call::Handle;
use crate::view::files::directory::OpenDirectory;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use wirefs_cache::TreeNodeId;
use wirefs_cache::long_listing::ENTRY_BYTES;
use wirefs_op::Time;

/// The maximum number of readings over all directories.
const READINGS_MAX: usize = 16_384;
/// The maximum number of readings whose readers have all reached the end.
pub(super) const DONE_MAX: usize = 1024;
/// Readings without progress for this long are dropped when listings take much room.
pub(super) const SLOW: Duration = Duration::from_secs(60);
/// If a directory has more readings than this, a further one ends one of its own first.
const FEW: usize = 16;
/// The maximum number of threads in the middle of a reading that are recorded.
const READERS_MAX: usize = 64;
/// The entries `.` and `..`, which a listing does not have.
pub(super) const DOTS: usize = 2;
/// Memory of a reading beside its listing, in bytes.
const READING_BYTES: usize = 512;

/// The memory of all readings, in bytes, above which those at their end, the slow ones too, and any are ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    done: usize,
    slow: usize,
    all: usize,
}

impl Limits {
    /// The limits of a client that may use this many bytes.
    pub(super) fn within(bytes_max: usize) -> Limits {
        Limits {
            done: (bytes_max / 16).clamp(256 * 1024, 16 * 1024 * 1024),
            slow: (bytes_max / 4).max(512 * 1024),
            all: (bytes_max / 2).max(1024 * 1024),
        }
    }
}

/// The key of a reading: its directory, and its number there.
pub(super) type Id = (TreeNodeId, u64);

#[derive(Debug)]
struct Listing {
    open: OpenDirectory,
    weight: Weight,
    /// The readings that go through it.
    numbers: BTreeSet<u64>,
}

/// The counted memory of a listing: its own bytes, and the address of the entries that it may share.
#[derive(Clone, Copy, Debug, Default)]
struct Weight {
    own: usize,
    plain: Option<usize>,
}

#[derive(Debug)]
struct Reading {
    handle: Handle,
    age: u64,
    used: Time,
    /// The threads in the middle of the reading, each with the number of their passes; thread 0: unrecorded ones.
    readers: BTreeMap<u32, u32>,
    /// Whether the last entry was sent.
    is_told: bool,
    is_queued: bool,
}

/// All of them.
#[derive(Debug)]
pub(super) struct Readings {
    listings: BTreeMap<Handle, Listing>,
    /// The same, by directory.
    of: BTreeSet<(TreeNodeId, Handle)>,
    readings: BTreeMap<Id, Reading>,
    by_use: BTreeSet<(Time, Id)>,
    /// The readings whose readers reached the end, in that order. Some may have got new readers since.
    done: VecDeque<Id>,
    /// Shared entries of listings, by address: the number of listings, and the bytes.
    plain: BTreeMap<usize, (usize, usize)>,
    bytes: usize,
    limits: Limits,
    outlines: Outlines,
}

impl Readings {
    pub(super) fn within(bytes_max: usize) -> Readings {
        Readings {
            listings: BTreeMap::new(),
            of: BTreeSet::new(),
            readings: BTreeMap::new(),
            by_use: BTreeSet::new(),
            done: VecDeque::new(),
            plain: BTreeMap::new(),
            bytes: 0,
            limits: Limits::within(bytes_max),
            outlines: Outlines::within(Limits::within(bytes_max).done),
        }
    }

    /// The bytes of all readings, shared entries included.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The bytes of the outlines of ended ones.
    pub(super) fn outline_bytes(&self) -> usize {
        self.outlines.bytes()
    }

    /// How many there are.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.readings.len()
    }

    /// A listing is here, or its beginning.
    pub(super) fn lists(&mut self, handle: Handle, open: OpenDirectory) {
        self.of.insert((open.node, handle));
        let listing = Listing { open, weight: Weight::default(), numbers: BTreeSet::new() };
        self.bytes += READING_BYTES;
        self.listings.insert(handle, listing);
        self.weigh(handle);
    }

    pub(super) fn listing(&self, handle: Handle) -> Option<&OpenDirectory> {
        self.listings.get(&handle).map(|listing| &listing.open)
    }

    pub(super) fn listing_mut(&mut self, handle: Handle) -> Option<&mut OpenDirectory> {
        self.listings.get_mut(&handle).map(|listing| &mut listing.open)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &OpenDirectory> {
        self.listings.values().map(|listing| &listing.open)
    }

    pub(super) fn all_mut(&mut self) -> impl Iterator<Item = &mut OpenDirectory> {
        self.listings.values_mut().map(|listing| &mut listing.open)
    }

    pub(super) fn handles(&self) -> impl Iterator<Item = Handle> + '_ {
        self.listings.keys().copied()
    }

    /// The listings of a directory, the oldest first.
    pub(super) fn of(&self, dir: TreeNodeId) -> impl DoubleEndedIterator<Item = Handle> + '_ {
        self.of.range((dir, Handle(0))..=(dir, Handle(u64::MAX))).map(|(_, handle)| *handle)
    }

    /// A listing is another: counts it anew, and makes room.
    pub(super) fn weigh(&mut self, handle: Handle) {
        let Some(listing) = self.listings.get_mut(&handle) else { return };
        let old = std::mem::take(&mut listing.weight);
        let plain = listing.open.entries.plain();
        let (address, plain_bytes) = (Arc::as_ptr(plain).addr(), ENTRY_BYTES * plain.len());
        let own = listing.open.entries.packed_bytes() + listing.open.before_bytes();
        listing.weight = Weight { own, plain: Some(address) };
        self.lightens(old);
        let (uses, counted) = self.plain.entry(address).or_insert((0, 0));
        *uses += 1;
        self.bytes = self.bytes.saturating_sub(*counted) + plain_bytes + own;
        *counted = plain_bytes;
        self.make_room(handle);
    }

    fn lightens(&mut self, weight: Weight) {
        self.bytes = self.bytes.saturating_sub(weight.own);
        let Some(address) = weight.plain else { return };
        let Some((uses, counted)) = self.plain.get_mut(&address) else { return };
        *uses -= 1;
        if *uses == 0 {
            self.bytes = self.bytes.saturating_sub(*counted);
            self.plain.remove(&address);
        }
    }

    /// The number of the last reading of a listing, if it is of this age.
    pub(super) fn number_of(&self, handle: Handle, age: u64) -> Option<u64> {
        let listing = self.listings.get(&handle)?;
        let number = *listing.numbers.last()?;
        self.readings.get(&(listing.open.node, number)).filter(|reading| reading.age == age)?;
        Some(number)
    }

    /// A reading of a listing begins.
    pub(super) fn begins(&mut self, handle: Handle, number: u64, age: u64, now: Time) {
        let Some(listing) = self.listings.get_mut(&handle) else { return };
        let id = (listing.open.node, number);
        listing.numbers.insert(number);
        let readers = BTreeMap::new();
        let reading = Reading { handle, age, used: now, readers, is_told: false, is_queued: false };
        self.by_use.insert((now, id));
        self.bytes += READING_BYTES;
        self.readings.insert(id, reading);
        self.make_room(handle);
    }

    /// The listing that a reading goes through, and its age.
    pub(super) fn find(&self, id: Id) -> Option<(Handle, u64)> {
        self.readings.get(&id).map(|reading| (reading.handle, reading.age))
    }

    /// Notes entries of a reading that are sent to a thread, which is then in the middle of the reading. `begins`: they
    /// are the first ones. `is_last`: they include the last one.
    pub(super) fn tells(&mut self, id: Id, thread: u32, (begins, is_last): (bool, bool), now: Time) {
        let Some(reading) = self.readings.get_mut(&id) else { return };
        self.by_use.remove(&(reading.used, id));
        self.by_use.insert((now, id));
        reading.used = now;
        reading.is_told |= is_last;
        let is_known = reading.readers.len() < READERS_MAX || reading.readers.contains_key(&thread);
        let thread = if is_known { thread } else { 0 };
        let times = reading.readers.entry(thread).or_insert(0);
        if begins || *times == 0 {
            *times = times.saturating_add(1);
        }
    }

    /// A thread came to the end of a reading of this age.
    pub(super) fn ended(&mut self, dir: TreeNodeId, age: u64, thread: u32) {
        let mut of_age = self.readings.range_mut((dir, 0)..=(dir, u64::MAX)).rev();
        let is_it = |reading: &Reading| {
            reading.age == age && reading.is_told && reading.readers.contains_key(&thread)
        };
        let Some((id, reading)) = of_age.find(|(_, reading)| is_it(reading)).filter(|_| thread != 0) else {
            return;
        };
        if let Some(times) = reading.readers.get_mut(&thread) {
            *times -= 1;
            if *times == 0 {
                reading.readers.remove(&thread);
            }
        }
        if reading.readers.is_empty() && !reading.is_queued {
            let (id, handle) = (*id, reading.handle);
            self.queue(id);
            self.make_room(handle);
        }
    }

    fn queue(&mut self, id: Id) {
        if let Some(reading) = self.readings.get_mut(&id) {
            reading.is_queued = true;
            self.done.push_back(id);
        }
    }

    /// Ends what there is too much of, but nothing of this listing, which is in use.
    fn make_room(&mut self, keep: Handle) {
        let mut left = self.done.len();
        while left > 0 && (self.done.len() > DONE_MAX || self.bytes > self.limits.done) {
            left -= 1;
            let Some(id) = self.done.pop_front() else { break };
            let Some(reading) = self.readings.get_mut(&id) else { continue };
            reading.is_queued = false;
            if !reading.readers.is_empty() {
                continue;
            }
            if reading.handle == keep || !self.is_idle(id) {
                self.queue(id);
            } else {
                self.end(id);
            }
        }
        while self.bytes > self.limits.all || self.readings.len() > READINGS_MAX {
            let Some(id) = self.oldest(keep) else { break };
            self.end(id);
        }
    }

    /// The reading that gives way to this listing.
    fn oldest(&self, keep: Handle) -> Option<Id> {
        let may_go = |id: &Id| {
            self.is_idle(*id) && self.readings.get(id).is_some_and(|reading| reading.handle != keep)
        };
        let dir = self.listing(keep)?.node;
        let own = || self.readings.range((dir, 0)..=(dir, u64::MAX)).map(|(id, _)| *id);
        let first = if own().nth(FEW).is_some() { own().find(may_go) } else { None };
        first.or_else(|| self.by_use.iter().map(|(_, id)| *id).find(may_go))
    }

    /// Whether no call waits for more of it.
    fn is_idle(&self, id: Id) -> bool {
        let listing = self.readings.get(&id).and_then(|reading| self.listings.get(&reading.handle));
        listing.is_none_or(|listing| listing.open.waiting.is_empty())
    }

    /// Drops a listing of which no entry was sent, and for which no call waits.
    pub(super) fn drop_vain(&mut self, handle: Handle) {
        let is_vain = |listing: &Listing| listing.numbers.is_empty() && listing.open.waiting.is_empty();
        if self.listings.get(&handle).is_some_and(is_vain) {
            self.end_listing(handle);
        }
    }

    /// Ends readings without progress, if they take much room, and listings without readers.
    pub(super) fn end_slow(&mut self, now: Time) {
        while self.bytes > self.limits.slow {
            let slow = self.by_use.iter().take_while(|(used, _)| now.since(*used) >= SLOW);
            let Some(id) = slow.map(|(_, id)| *id).find(|id| self.is_idle(*id)) else { break };
            self.end(id);
        }
        let begun: Vec<Handle> = self.listings.keys().copied().collect();
        begun.into_iter().for_each(|handle| self.drop_vain(handle));
    }

    /// Ends those of directories that are not there any more.
    pub(super) fn retain(&mut self, is_there: impl Fn(TreeNodeId) -> bool) {
        let gone = self.of.iter().filter(|(dir, _)| !is_there(*dir)).map(|(_, handle)| *handle);
        gone.collect::<Vec<_>>().into_iter().for_each(|handle| self.end_listing(handle));
        self.done.retain(|id| is_there(id.0));
        self.outlines.retain(|id| is_there(id.0));
    }

    fn end(&mut self, id: Id) {
        let Some(reading) = self.readings.remove(&id) else { return };
        self.by_use.remove(&(reading.used, id));
        self.bytes = self.bytes.saturating_sub(READING_BYTES);
        if reading.is_queued {
            self.done.retain(|done| *done != id);
        }
        let Some(listing) = self.listings.get_mut(&reading.handle) else { return };
        let open = &mut listing.open;
        self.outlines.insert(id, reading.age, open.before.len(), open.digests());
        listing.numbers.remove(&id.1);
        if listing.numbers.is_empty() {
            self.end_listing(reading.handle);
        }
    }

    /// Whether an ended reading can be continued.
    pub(super) fn has_outline(&self, id: Id) -> bool {
        self.outlines.contains(id)
    }

    /// Makes a whole listing the rest of an ended reading from this position on: removes the names that the reading had before.
    /// Returns the age of the reading.
    pub(super) fn continue_ended(&mut self, handle: Handle, id: Id, position: u64) -> Option<u64> {
        let names_before = usize::try_from(position).ok()?.saturating_sub(DOTS);
        let (age, before) = self.outlines.beginning(id, names_before)?;
        let open = self.listing_mut(handle)?;
        open.continue_after(before)?;
        // Nobody may read it from its beginning.
        open.listed.leased = false;
        self.weigh(handle);
        Some(age)
    }

    fn end_listing(&mut self, handle: Handle) {
        let Some(listing) = self.listings.remove(&handle) else { return };
        self.of.remove(&(listing.open.node, handle));
        self.lightens(listing.weight);
        self.bytes = self.bytes.saturating_sub(READING_BYTES);
        for number in listing.numbers {
            self.end((listing.open.node, number));
        }
    }
}

#[cfg(test)]
mod tests;
