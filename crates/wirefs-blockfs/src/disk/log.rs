//! The log as a whole: which block is where, and what is appended.

mod clean;

use super::DiskFault;
use super::record::{self, FREED_MAX, Head, Kind};
use super::reserve::Reserve;
use super::segment::{Found, Segment};
use super::usage::Usage;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use wirefs_blocks::id::BlockId;
use wirefs_blocks::limits::{PAYLOAD_BYTES_MAX, PAYLOAD_BYTES_MIN};
use wirefs_blocks::store::StoreFault;

/// The version of the format.
const VERSION: u32 = 1;
/// The first record of a segment, in bytes.
const BEGIN_BYTES: u64 = record::HEAD_BYTES as u64 + 8;
/// A segment is worth cleaning for room when it has more than this part to be let go of.
const SLACK: u64 = 16;
/// Segments' worth of room that is set aside: one for cleaning, the others for changes that make room.
pub(super) const RESERVED_SEGMENTS: u64 = 3;

/// Where a block is.
#[derive(Clone, Copy, Debug)]
struct Location {
    segment: u64,
    found: Found,
}

/// A block that can be read although the log goes on.
#[derive(Debug)]
pub(super) struct Place {
    segment: Segment,
    found: Found,
}

impl Place {
    /// The block; `None` when it cannot be read or is damaged.
    pub(super) fn read(&self) -> Option<Bytes> {
        // Whoever wants it can do no more about a disk that fails than about a block that is damaged.
        self.segment.body(self.found.body_at, &self.found.head).ok().flatten()
    }
}

/// All segments, and what their records come to.
#[derive(Debug)]
pub(super) struct Log {
    directory: PathBuf,
    payload_bytes: usize,
    segment_bytes: u64,
    /// By number. There is always a last one, which is written to.
    segments: BTreeMap<u64, Segment>,
    blocks: BTreeMap<BlockId, Location>,
    root: Option<BlockId>,
    usage: Usage,
    reserve: Reserve,
    /// How much of the last segment is known to be on the disk, in bytes.
    synced_end: u64,
    /// It is not known what is on the disk: nothing more is written.
    is_broken: bool,
}

impl Log {
    pub(super) fn open(directory: &Path, payload_bytes: usize, segment_bytes: u64) -> Result<Log, DiskFault> {
        let reserve = Reserve::open(directory, RESERVED_SEGMENTS * segment_bytes);
        let reserve = reserve.map_err(DiskFault::system(directory))?;
        let mut log = Log {
            directory: directory.to_owned(),
            payload_bytes,
            segment_bytes,
            segments: BTreeMap::new(),
            blocks: BTreeMap::new(),
            root: None,
            usage: Usage::new(segment_bytes / SLACK),
            reserve,
            synced_end: 0,
            is_broken: false,
        };
        let mut numbers = Vec::new();
        for entry in std::fs::read_dir(directory).map_err(DiskFault::system(directory))? {
            let name = entry.map_err(DiskFault::system(directory))?.file_name();
            numbers.extend(name.to_str().and_then(Segment::number_of));
        }
        numbers.sort_unstable();
        for number in &numbers {
            log.replay(*number, numbers.last() == Some(number))?;
        }
        if log.segments.is_empty() {
            let next = numbers.last().map_or(1, |last| last + 1);
            log.begin(next).map_err(DiskFault::system(directory))?;
        }
        Ok(log)
    }

    /// Takes in what the records of a segment say. Of the last one, what is behind its first record that is not whole is cut
    /// off, unless it was synced: then it did not come to an end there, but was damaged.
    fn replay(&mut self, number: u64, is_last: bool) -> Result<(), DiskFault> {
        let mut segment = Segment::open(&self.directory, number)?;
        let path = Segment::path(&self.directory, number);
        let corrupt = |what| DiskFault::Corrupt { path: path.clone(), what };
        let records = segment.records(is_last).map_err(DiskFault::system(&path))?;
        let Some(first) = records.first() else {
            if is_last && segment.end <= BEGIN_BYTES {
                // It was just begun when the machine stopped.
                return std::fs::remove_file(&path).map_err(DiskFault::system(&path));
            }
            return Err(corrupt("it is not a segment of a block store"));
        };
        let begin = segment.body(first.body_at, &first.head).map_err(DiskFault::system(&path))?;
        let begin = begin.filter(|_| first.is(Kind::Begin)).and_then(|body| begun(&body));
        self.payload_bytes = begin.ok_or_else(|| corrupt("another version has made it"))?;
        let end = records.last().map_or(0, Found::end);
        if end < segment.end {
            // What follows a segment was begun after that was synced.
            let is_torn = is_last && segment.synced_behind(end).map_err(DiskFault::system(&path))? <= end;
            if !is_torn {
                return Err(corrupt("a part of it is damaged"));
            }
            segment.file.set_len(end).map_err(DiskFault::system(&path))?;
            segment.end = end;
        }
        self.usage.grow(number, segment.end);
        for found in records {
            match found.head.kind {
                Kind::Begin => {}
                Kind::Block => {
                    if let Some(id) = BlockId::from_bits(found.head.id) {
                        self.note(id, Location { segment: number, found });
                    }
                }
                Kind::Root => self.root = BlockId::from_bits(found.head.id),
                Kind::Free => {
                    self.usage.add_freeing(number, found.head.record_bytes());
                    let body = segment.body(found.body_at, &found.head);
                    // Of a damaged one the blocks stay until a sweep finds that nothing names them.
                    let body = body.map_err(DiskFault::system(&path))?.unwrap_or_default();
                    for id in record::ids_of(&body) {
                        self.forget(id);
                    }
                }
            }
        }
        self.segments.insert(number, segment);
        Ok(())
    }

    fn note(&mut self, id: BlockId, location: Location) {
        self.usage.add(location.segment, location.found.head.record_bytes());
        if let Some(before) = self.blocks.insert(id, location) {
            self.usage.release(before.segment, before.found.head.record_bytes());
        }
    }

    fn forget(&mut self, id: BlockId) {
        if let Some(before) = self.blocks.remove(&id) {
            self.usage.release(before.segment, before.found.head.record_bytes());
        }
    }

    pub(super) fn payload_bytes(&self) -> usize {
        self.payload_bytes
    }

    pub(super) fn root(&self) -> Option<BlockId> {
        self.root
    }

    pub(super) fn registered(&self, after: Option<BlockId>, count_max: usize) -> Vec<BlockId> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.blocks.range((from, Bound::Unbounded)).take(count_max).map(|(id, _)| *id).collect()
    }

    pub(super) fn place(&self, id: BlockId) -> Option<Place> {
        let Location { segment, found } = *self.blocks.get(&id)?;
        Some(Place { segment: self.segments.get(&segment)?.clone(), found })
    }

    /// The segment that is written to.
    pub(super) fn written(&self) -> Result<Segment, StoreFault> {
        if self.is_broken {
            return Err(StoreFault::Broken("the disk failed before"));
        }
        self.last().cloned().ok_or(StoreFault::Broken("there is no segment"))
    }

    /// Notes that a segment was synced as it was.
    pub(super) fn note_synced(&mut self, synced: &Segment) {
        if self.last().is_some_and(|last| last.number == synced.number) {
            self.synced_end = self.synced_end.max(synced.end);
        }
    }

    /// Writes down that all is on the disk, where it is: what is damaged later is told apart from what never came to be.
    pub(super) fn close(&mut self) {
        let is_synced = self.last().is_some_and(|last| last.end == self.synced_end);
        if let Some(root) = self.root.filter(|_| is_synced) {
            // Without it a damaged end is taken for one that was not written.
            let _undone = self.append(&[(Kind::Root, root.bits(), record::synced(self.synced_end))]);
        }
    }

    pub(super) fn give_up(&mut self) {
        self.is_broken = true;
    }

    pub(super) fn register(&mut self, blocks: &[(BlockId, Bytes)]) -> Result<(), StoreFault> {
        if blocks.iter().any(|(id, _)| self.blocks.contains_key(id)) {
            return Err(StoreFault::Broken("an id that was used before"));
        }
        let record_bytes = |bytes: &Bytes| (record::HEAD_BYTES + bytes.len()) as u64;
        self.make_free(blocks.iter().map(|(_, bytes)| record_bytes(bytes)).sum());
        let records: Vec<(Kind, u64, Bytes)> =
            blocks.iter().map(|(id, bytes)| (Kind::Block, id.bits(), bytes.clone())).collect();
        self.append(&records)
    }

    pub(super) fn switch_root(&mut self, root: BlockId) -> Result<(), StoreFault> {
        self.append_root(root)?;
        self.root = Some(root);
        Ok(())
    }

    /// Lets go of blocks. Where that cannot be written they are forgotten until the store is opened again.
    pub(super) fn deregister(&mut self, ids: &[BlockId]) {
        for ids in ids.chunks(FREED_MAX) {
            let _forgotten_later = self.append(&[(Kind::Free, 0, record::freed(ids))]);
            for id in ids {
                self.forget(*id);
            }
        }
    }

    fn append_root(&mut self, root: BlockId) -> Result<(), StoreFault> {
        // Before the place is told, because the next segment has a place of its own.
        match self.go_on() {
            Err(StoreFault::Full) if self.reserve.release() => self.go_on()?,
            outcome => outcome?,
        }
        self.append(&[(Kind::Root, root.bits(), record::synced(self.synced_end))])
    }

    /// Goes over to the next segment where the last one is full.
    fn go_on(&mut self) -> Result<(), StoreFault> {
        if self.last().is_none_or(|last| last.end >= self.segment_bytes) {
            self.begin_next()?;
        }
        Ok(())
    }

    /// Appends records in one write: all of them are there, or none. Where the disk has no room there is the reserve.
    fn append(&mut self, records: &[(Kind, u64, Bytes)]) -> Result<(), StoreFault> {
        match self.append_once(records) {
            Err(StoreFault::Full) if self.reserve.release() => self.append_once(records),
            outcome => outcome,
        }
    }

    fn append_once(&mut self, records: &[(Kind, u64, Bytes)]) -> Result<(), StoreFault> {
        if self.is_broken {
            return Err(StoreFault::Broken("the disk failed before"));
        }
        self.go_on()?;
        let Some(last) = self.last().cloned() else { return Err(StoreFault::Broken("there is no segment")) };
        let mut bytes = Vec::new();
        let mut places = Vec::new();
        for (kind, id, body) in records {
            let at = last.end + bytes.len() as u64;
            record::put(&mut bytes, last.number, *kind, *id, body);
            places.push(at);
        }
        if let Err(error) = last.file.write_all_at(&bytes, last.end) {
            return Err(self.undo(&last, &error));
        }
        if let Some(segment) = self.segments.get_mut(&last.number) {
            segment.end += bytes.len() as u64;
            self.usage.grow(last.number, bytes.len() as u64);
        }
        for ((kind, id, body), at) in records.iter().zip(places) {
            if *kind == Kind::Free {
                self.usage.add_freeing(last.number, (record::HEAD_BYTES + body.len()) as u64);
            }
            if let (Kind::Block, Some(id)) = (kind, BlockId::from_bits(*id))
                && let Some(found) = found_in(&bytes, at, last.end, last.number)
            {
                self.note(id, Location { segment: last.number, found });
            }
        }
        Ok(())
    }

    /// Takes back what was written of a write that failed.
    fn undo(&mut self, last: &Segment, error: &std::io::Error) -> StoreFault {
        if last.file.set_len(last.end).is_err() {
            self.is_broken = true;
        }
        match error.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded if !self.is_broken => {
                StoreFault::Full
            }
            _ => StoreFault::Broken("the disk does not take what is written"),
        }
    }

    fn last(&self) -> Option<&Segment> {
        self.segments.last_key_value().map(|(_, last)| last)
    }

    /// Goes over to the next segment. What is before it is synced first, so that it cannot be torn any more.
    fn begin_next(&mut self) -> Result<(), StoreFault> {
        self.sync_last()?;
        let next = self.last().map_or(1, |last| last.number + 1);
        self.begin(next).map_err(|error| match error.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => StoreFault::Full,
            _ => StoreFault::Broken("no segment can be made"),
        })
    }

    fn sync_last(&mut self) -> Result<(), StoreFault> {
        let last = self.written()?;
        last.file.sync_data().map_err(|_| {
            self.is_broken = true;
            StoreFault::Broken("the disk does not take what was written")
        })?;
        self.note_synced(&last);
        Ok(())
    }

    fn begin(&mut self, number: u64) -> std::io::Result<()> {
        let mut segment = Segment::create(&self.directory, number)?;
        let payload = u32::try_from(self.payload_bytes).unwrap_or(u32::MAX);
        let mut bytes = Vec::new();
        let body = [VERSION.to_le_bytes(), payload.to_le_bytes()].concat();
        record::put(&mut bytes, number, Kind::Begin, 0, &body);
        segment.file.write_all_at(&bytes, 0)?;
        // So that one with records has its first one, whatever happens.
        segment.file.sync_all()?;
        segment.end = bytes.len() as u64;
        self.synced_end = segment.end;
        self.usage.grow(number, segment.end);
        self.segments.insert(number, segment);
        Ok(())
    }
}

/// The payload that a segment's first record tells.
fn begun(body: &[u8]) -> Option<usize> {
    let (version, payload) = body.split_at_checked(4)?;
    let payload = u32::from_le_bytes(payload.try_into().ok()?) as usize;
    let is_known = version == VERSION.to_le_bytes();
    (is_known && (PAYLOAD_BYTES_MIN..=PAYLOAD_BYTES_MAX).contains(&payload)).then_some(payload)
}

/// A record that stands at `at`, in bytes that were written at `from`.
fn found_in(bytes: &[u8], at: u64, from: u64, segment: u64) -> Option<Found> {
    let begin = usize::try_from(at - from).ok()?;
    let head = bytes.get(begin..)?.first_chunk().and_then(|head| Head::decode(segment, head))?;
    Some(Found { head, body_at: at + record::HEAD_BYTES as u64 })
}
