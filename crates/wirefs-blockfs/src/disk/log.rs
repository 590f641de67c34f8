//! The log: the location of each block, and the append position.

mod clean;

use super::DiskFault;
use super::record::{self, FREED_MAX, Head, Kind};
use super::reserve::Reserve;
use super::segment::{RecordAt, Segment};
use super::usage::Usage;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use wirefs_blocks::id::BlockId;
use wirefs_blocks::limits::{PAYLOAD_BYTES_MAX, PAYLOAD_BYTES_MIN};
use wirefs_blocks::store::StoreFault;

/// The version of the on-disk format.
const VERSION: u32 = 1;
/// The size of the first record of a segment, in bytes.
const BEGIN_BYTES: u64 = record::HEAD_BYTES as u64 + 8;
/// A segment is worth cleaning for space if more than this fraction of it is dead (1/16).
const SLACK: u64 = 16;
/// The reserve, in segments: one for cleaning, the others for changes that free space.
pub(super) const RESERVED_SEGMENTS: u64 = 3;

/// The location of a block.
#[derive(Clone, Copy, Debug)]
struct Location {
    segment: u64,
    found: RecordAt,
}

/// Access to a block without the lock of the log.
#[derive(Debug)]
pub(super) struct BlockReader {
    segment: Segment,
    found: RecordAt,
}

impl BlockReader {
    /// Returns the block; `None` if it cannot be read or is damaged.
    pub(super) fn read(&self) -> Option<Bytes> {
        // The caller treats a read error like a damaged block.
        self.segment.body(self.found.body_at, &self.found.head).ok().flatten()
    }
}

/// All segments, and the state that their records result in.
#[derive(Debug)]
pub(super) struct Log {
    directory: PathBuf,
    payload_bytes: usize,
    segment_bytes: u64,
    /// Segments by number. The last one is written to and always exists.
    segments: BTreeMap<u64, Segment>,
    blocks: BTreeMap<BlockId, Location>,
    root: Option<BlockId>,
    usage: Usage,
    reserve: Reserve,
    /// The synced length of the last segment, in bytes.
    synced_end: u64,
    /// The contents of the disk are unknown; all writes fail.
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

    /// Replays the records of a segment. The last segment is truncated at its first incomplete record, unless
    /// that part was synced: then the record is damaged.
    fn replay(&mut self, number: u64, is_last: bool) -> Result<(), DiskFault> {
        let mut segment = Segment::open(&self.directory, number)?;
        let path = Segment::path(&self.directory, number);
        let corrupt = |what| DiskFault::Corrupt { path: path.clone(), what };
        let records = segment.records(is_last).map_err(DiskFault::system(&path))?;
        let Some(first) = records.first() else {
            if is_last && segment.end <= BEGIN_BYTES {
                // The machine stopped while the segment was being created.
                return std::fs::remove_file(&path).map_err(DiskFault::system(&path));
            }
            return Err(corrupt("it is not a segment of a block store"));
        };
        let begin = segment.body(first.body_at, &first.head).map_err(DiskFault::system(&path))?;
        let begin = begin.filter(|_| first.is(Kind::Begin)).and_then(|body| decode_begin(&body));
        self.payload_bytes = begin.ok_or_else(|| corrupt("it has an unsupported format version"))?;
        let end = records.last().map_or(0, RecordAt::end);
        if end < segment.end {
            // A segment is synced before the next one begins.
            let is_torn = is_last && segment.synced_behind(end).map_err(DiskFault::system(&path))? <= end;
            if !is_torn {
                return Err(corrupt("it is damaged"));
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
                        self.insert_block(id, Location { segment: number, found });
                    }
                }
                Kind::Root => self.root = BlockId::from_bits(found.head.id),
                Kind::Free => {
                    self.usage.add_free_record(number, found.head.record_bytes());
                    let body = segment.body(found.body_at, &found.head);
                    // The blocks of a damaged free record stay until a sweep finds them unreachable.
                    let body = body.map_err(DiskFault::system(&path))?.unwrap_or_default();
                    for id in record::ids_of(&body) {
                        self.remove_block(id);
                    }
                }
            }
        }
        self.segments.insert(number, segment);
        Ok(())
    }

    fn insert_block(&mut self, id: BlockId, location: Location) {
        self.usage.add(location.segment, location.found.head.record_bytes());
        if let Some(before) = self.blocks.insert(id, location) {
            self.usage.release(before.segment, before.found.head.record_bytes());
        }
    }

    fn remove_block(&mut self, id: BlockId) {
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

    pub(super) fn reader(&self, id: BlockId) -> Option<BlockReader> {
        let Location { segment, found } = *self.blocks.get(&id)?;
        Some(BlockReader { segment: self.segments.get(&segment)?.clone(), found })
    }

    /// Returns the segment that is written to.
    pub(super) fn active_segment(&self) -> Result<Segment, StoreFault> {
        if self.is_broken {
            return Err(StoreFault::Broken("the disk failed earlier"));
        }
        self.last().cloned().ok_or(StoreFault::Broken("the log has no segment"))
    }

    /// Records that a segment is synced up to its length at that time.
    pub(super) fn note_synced(&mut self, synced: &Segment) {
        if self.last().is_some_and(|last| last.number == synced.number) {
            self.synced_end = self.synced_end.max(synced.end);
        }
    }

    /// Records the synced length on a clean close, so that later damage is distinguishable from an incomplete
    /// write.
    pub(super) fn close(&mut self) {
        let is_synced = self.last().is_some_and(|last| last.end == self.synced_end);
        if let Some(root) = self.root.filter(|_| is_synced) {
            // Optional: without this record, a damaged end counts as an incomplete write.
            let _undone = self.append(&[(Kind::Root, root.bits(), record::synced(self.synced_end))]);
        }
    }

    pub(super) fn mark_broken(&mut self) {
        self.is_broken = true;
    }

    pub(super) fn register(&mut self, blocks: &[(BlockId, Bytes)]) -> Result<(), StoreFault> {
        if blocks.iter().any(|(id, _)| self.blocks.contains_key(id)) {
            return Err(StoreFault::Broken("a block id that was used before"));
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

    /// Removes blocks. If the free record cannot be written, they reappear when the store is opened again.
    pub(super) fn deregister(&mut self, ids: &[BlockId]) {
        for ids in ids.chunks(FREED_MAX) {
            let _result = self.append(&[(Kind::Free, 0, record::freed(ids))]);
            for id in ids {
                self.remove_block(*id);
            }
        }
    }

    fn append_root(&mut self, root: BlockId) -> Result<(), StoreFault> {
        // The synced length must refer to the segment that the root is written to.
        match self.begin_segment_if_full() {
            Err(StoreFault::Full) if self.reserve.release() => self.begin_segment_if_full()?,
            outcome => outcome?,
        }
        self.append(&[(Kind::Root, root.bits(), record::synced(self.synced_end))])
    }

    /// Begins the next segment if the last one is full.
    fn begin_segment_if_full(&mut self) -> Result<(), StoreFault> {
        if self.last().is_none_or(|last| last.end >= self.segment_bytes) {
            self.begin_next()?;
        }
        Ok(())
    }

    /// Appends records in one write, atomically. Releases the reserve if the disk is full.
    fn append(&mut self, records: &[(Kind, u64, Bytes)]) -> Result<(), StoreFault> {
        match self.append_once(records) {
            Err(StoreFault::Full) if self.reserve.release() => self.append_once(records),
            outcome => outcome,
        }
    }

    fn append_once(&mut self, records: &[(Kind, u64, Bytes)]) -> Result<(), StoreFault> {
        if self.is_broken {
            return Err(StoreFault::Broken("the disk failed earlier"));
        }
        self.begin_segment_if_full()?;
        let Some(last) = self.last().cloned() else {
            return Err(StoreFault::Broken("the log has no segment"));
        };
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
                self.usage.add_free_record(last.number, (record::HEAD_BYTES + body.len()) as u64);
            }
            if let (Kind::Block, Some(id)) = (kind, BlockId::from_bits(*id))
                && let Some(found) = record_in(&bytes, at, last.end, last.number)
            {
                self.insert_block(id, Location { segment: last.number, found });
            }
        }
        Ok(())
    }

    /// Truncates the segment after a failed write.
    fn undo(&mut self, last: &Segment, error: &std::io::Error) -> StoreFault {
        if last.file.set_len(last.end).is_err() {
            self.is_broken = true;
        }
        match error.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded if !self.is_broken => {
                StoreFault::Full
            }
            _ => StoreFault::Broken("writing to the disk failed"),
        }
    }

    fn last(&self) -> Option<&Segment> {
        self.segments.last_key_value().map(|(_, last)| last)
    }

    /// Begins the next segment. Syncs the previous one first, so that it cannot be torn.
    fn begin_next(&mut self) -> Result<(), StoreFault> {
        self.sync_last()?;
        let next = self.last().map_or(1, |last| last.number + 1);
        self.begin(next).map_err(|error| match error.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => StoreFault::Full,
            _ => StoreFault::Broken("a log segment cannot be created"),
        })
    }

    fn sync_last(&mut self) -> Result<(), StoreFault> {
        let last = self.active_segment()?;
        last.file.sync_data().map_err(|_| {
            self.is_broken = true;
            StoreFault::Broken("syncing to the disk failed")
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
        // A segment with records must have its first record even after a crash.
        segment.file.sync_all()?;
        segment.end = bytes.len() as u64;
        self.synced_end = segment.end;
        self.usage.grow(number, segment.end);
        self.segments.insert(number, segment);
        Ok(())
    }
}

/// Decodes the payload in the first record of a segment.
fn decode_begin(body: &[u8]) -> Option<usize> {
    let (version, payload) = body.split_at_checked(4)?;
    let payload = u32::from_le_bytes(payload.try_into().ok()?) as usize;
    let is_known = version == VERSION.to_le_bytes();
    (is_known && (PAYLOAD_BYTES_MIN..=PAYLOAD_BYTES_MAX).contains(&payload)).then_some(payload)
}

/// Decodes the record at `at` in bytes that were written at `from`.
fn record_in(bytes: &[u8], at: u64, from: u64, segment: u64) -> Option<RecordAt> {
    let begin = usize::try_from(at - from).ok()?;
    let head = bytes.get(begin..)?.first_chunk().and_then(|head| Head::decode(segment, head))?;
    Some(RecordAt { head, body_at: at + record::HEAD_BYTES as u64 })
}
