//! Entries of one size under ids, close together: linear hashing with sorted buckets.
//!
//! A table that doubles is half empty just after, and stops everything while it does. Here the number of buckets follows
//! the number of entries one by one: when the buckets are fuller than meant on average, *one* of them is split in two.
//! A bucket is an array of entries sorted by hash with hardly a gap, so what is not an entry is one small header for
//! every 64 of them.
//!
//! # Source
//! W. Litwin, "Linear hashing: a new tool for file and table addressing" (VLDB 1980); sorted buckets in place of chains
//! are ours.

use std::cmp::Ordering;

use crate::block::BlockId;

/// Entries in a bucket on average, before one more bucket is made.
const FILL: usize = 64;
/// Entries in a bucket on average, below which one bucket is given up.
const FILL_MIN: usize = 48;
/// Entries by which a bucket grows when it is full.
const GROWTH: usize = 4;
/// Free places of a bucket beyond which it is made smaller.
const SLACK_MAX: usize = 16;

/// All entries, each `stride` bytes, the id first.
#[derive(Debug)]
pub(super) struct Buckets {
    buckets: Vec<Vec<u8>>,
    stride: usize,
    len: usize,
}

impl Buckets {
    /// Makes an empty table of entries with `stride` bytes, at least those of the id.
    pub(super) fn new(stride: usize) -> Buckets {
        Buckets { buckets: vec![Vec::new()], stride: stride.max(BlockId::BYTES), len: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// How many buckets there are.
    pub(super) fn count(&self) -> usize {
        self.buckets.len()
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let contents: usize = self.buckets.iter().map(Vec::capacity).sum();
        contents + self.buckets.capacity() * size_of::<Vec<u8>>()
    }

    pub(super) fn contains(&self, id: BlockId) -> bool {
        let bucket = self.buckets.get(self.bucket_of(id));
        bucket.is_some_and(|bucket| search(bucket, self.stride, id).is_ok())
    }

    pub(super) fn find(&mut self, id: BlockId) -> Option<&mut [u8]> {
        let number = self.bucket_of(id);
        let bucket = self.buckets.get_mut(number)?;
        let at = search(bucket, self.stride, id).ok()? * self.stride;
        bucket.get_mut(at..at + self.stride)
    }

    /// Adds an entry of zeros under this id and gives it; one that is there already is made new.
    pub(super) fn insert(&mut self, id: BlockId) -> &mut [u8] {
        if !self.contains(id) {
            if self.len >= self.buckets.len() * FILL {
                self.split_one();
            }
            self.len += 1;
        }
        let (number, stride) = (self.bucket_of(id), self.stride);
        let Some(bucket) = self.buckets.get_mut(number) else {
            return &mut [];
        };
        let at = match search(bucket, stride, id) {
            Ok(place) => place * stride,
            Err(place) => {
                open_gap(bucket, place * stride, stride);
                place * stride
            }
        };
        let entry = bucket.get_mut(at..at + stride).unwrap_or_default();
        entry.fill(0);
        if let Some(field) = entry.first_chunk_mut() {
            *field = id.0;
        }
        entry
    }

    pub(super) fn remove(&mut self, id: BlockId) {
        let (number, stride) = (self.bucket_of(id), self.stride);
        let Some(bucket) = self.buckets.get_mut(number) else {
            return;
        };
        let Ok(place) = search(bucket, stride, id) else {
            return;
        };
        bucket.drain(place * stride..(place + 1) * stride);
        if bucket.capacity() - bucket.len() > SLACK_MAX * stride {
            bucket.shrink_to(bucket.len() + GROWTH * stride);
        }
        self.len -= 1;
        if self.buckets.len() > 1 && self.len < self.buckets.len() * FILL_MIN {
            self.merge_one();
        }
    }

    /// The ids of all entries, in no order that means anything.
    pub(super) fn ids(&self) -> impl Iterator<Item = BlockId> + '_ {
        self.buckets.iter().flat_map(|bucket| bucket.chunks_exact(self.stride)).map(id_of)
    }

    /// The entries of one bucket.
    pub(super) fn entries_mut(&mut self, bucket: usize) -> impl Iterator<Item = &mut [u8]> {
        let stride = self.stride;
        self.buckets.get_mut(bucket).map(|bucket| bucket.chunks_exact_mut(stride)).into_iter().flatten()
    }

    /// The bucket of an id: by as many low bits of its hash as number the buckets, one fewer for those that are not
    /// split yet in this round.
    fn bucket_of(&self, id: BlockId) -> usize {
        let round = self.buckets.len().next_power_of_two();
        // Fewer buckets than a usize counts: the high bits are not needed.
        let hash = hash(id) as usize;
        let number = hash & (round - 1);
        if number < self.buckets.len() { number } else { hash & (round / 2 - 1) }
    }

    /// Makes one more bucket, with those entries of another that belong there now.
    fn split_one(&mut self) {
        let new = self.buckets.len();
        let from = new - (new + 1).next_power_of_two() / 2;
        let Some(old) = self.buckets.get_mut(from).map(std::mem::take) else {
            return;
        };
        self.buckets.push(Vec::new());
        let stride = self.stride;
        let moves = old.chunks_exact(stride).filter(|entry| self.bucket_of(id_of(entry)) == new).count();
        let mut parts = [Vec::new(), Vec::new()];
        let [stay, leave] = &mut parts;
        stay.reserve_exact(old.len() - moves * stride + GROWTH * stride);
        leave.reserve_exact((moves + GROWTH) * stride);
        for entry in old.chunks_exact(stride) {
            // In order, so both stay sorted.
            if self.bucket_of(id_of(entry)) == new { &mut *leave } else { &mut *stay }
                .extend_from_slice(entry);
        }
        let [stay, leave] = parts;
        for (number, part) in [(from, stay), (new, leave)] {
            if let Some(bucket) = self.buckets.get_mut(number) {
                *bucket = part;
            }
        }
    }

    /// Gives up the last bucket, whose entries go back to the one that they came from.
    fn merge_one(&mut self) {
        let Some(last) = self.buckets.pop() else {
            return;
        };
        for entry in last.chunks_exact(self.stride) {
            let number = self.bucket_of(id_of(entry));
            if let Some(bucket) = self.buckets.get_mut(number) {
                let at =
                    search(bucket, self.stride, id_of(entry)).unwrap_or_else(|place| place) * self.stride;
                open_gap(bucket, at, self.stride);
                if let Some(to) = bucket.get_mut(at..at + self.stride) {
                    to.copy_from_slice(entry);
                }
            }
        }
        if self.buckets.capacity() > 2 * self.buckets.len() {
            self.buckets.shrink_to_fit();
        }
    }
}

/// Makes room for one entry at `at`, a few places at a time.
fn open_gap(bucket: &mut Vec<u8>, at: usize, stride: usize) {
    if bucket.capacity() < bucket.len() + stride {
        bucket.reserve_exact(GROWTH * stride);
    }
    let end = bucket.len();
    bucket.resize(end + stride, 0);
    bucket.copy_within(at..end, at + stride);
}

fn id_of(entry: &[u8]) -> BlockId {
    BlockId(entry.first_chunk().copied().unwrap_or_default())
}

/// The place of an id in a bucket, or where it would be. Entries are in the order of their hashes, which are spread
/// evenly, so a first guess is a few places off at most.
fn search(bucket: &[u8], stride: usize, id: BlockId) -> Result<usize, usize> {
    let wanted = order(id);
    let count = bucket.len() / stride;
    // Compares the entry at a place with what is wanted; past the end all is greater.
    let compare = |place: usize| {
        bucket.get(place * stride..).and_then(<[u8]>::first_chunk).map_or(Ordering::Greater, |found| {
            let found = BlockId(*found);
            if found == id { Ordering::Equal } else { (order(found), found).cmp(&(wanted, id)) }
        })
    };
    // Both factors have 32 bits at most.
    let mut place = ((u64::from(wanted) * count as u64) >> 32) as usize;
    match compare(place) {
        Ordering::Equal => return Ok(place),
        Ordering::Less => loop {
            place += 1;
            match compare(place) {
                Ordering::Less => {}
                Ordering::Equal => return Ok(place),
                Ordering::Greater => return Err(place),
            }
        },
        Ordering::Greater => {}
    }
    while place > 0 {
        match compare(place - 1) {
            Ordering::Less => return Err(place),
            Ordering::Equal => return Ok(place - 1),
            Ordering::Greater => place -= 1,
        }
    }
    Err(0)
}

/// The part of the hash that orders a bucket; its low part chooses it.
fn order(id: BlockId) -> u32 {
    // The high half.
    (hash(id) >> 32) as u32
}

/// Spreads ids evenly, also those that are counted up. Nobody who could choose ids to hurt gets past the seal.
fn hash(id: BlockId) -> u64 {
    let number = u128::from_be_bytes(id.0);
    let (high, low) = ((number >> 64) as u64, number as u64);
    let product = u128::from(low ^ 0x9E37_79B9_7F4A_7C15) * u128::from(high ^ 0xD6E8_FEB8_6659_FD93);
    let mixed = (product >> 64) as u64 ^ product as u64;
    mixed ^ mixed >> 29
}

#[cfg(test)]
mod tests;
