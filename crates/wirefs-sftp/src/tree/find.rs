//! Tfind: the listings of a subtree, many directories side by side, level by level.

use std::collections::VecDeque;

use bytes::Bytes;
use wirefs_op::find_listing::{FindDirectory, FindWriter};
use wirefs_op::limits::DATA_BYTES_MAX;
use wirefs_op::message::find::{FindMode, Rfind, Tfind};
use wirefs_op::wire::Data;
use wirefs_op::{DirEntry, Errno, Kind, Reply, Stat, TreePath};
use wirefs_server::Replies;

use super::{At, Failure};
use crate::limits::{DIRECTORIES, FILES_AT_ONCE};
use crate::message::{Request, open};

/// Larger files carry no contents, in bytes.
const INLINE_BYTES_MAX: u64 = 32 * 1024;
/// Directories that wait to be listed. With more, the stream ends with MORE.
const PENDING_MAX: usize = 64 * 1024;

/// A directory to list.
struct PendingDirectory {
    path: TreePath,
    stat: Stat,
    /// Levels to descend below it.
    depth: u16,
}

/// A limit of the request was reached.
struct UsedUp;

/// The replies of one stream.
struct Stream<'a> {
    writer: FindWriter,
    bytes_remaining: usize,
    entries_remaining: u32,
    replies: &'a mut dyn Replies,
}

impl At<'_> {
    pub(super) fn find(&self, request: &Tfind, replies: &mut dyn Replies) -> Result<(), Failure> {
        self.ino_of(&request.target)?;
        let top = self.stat_at(&request.target.path)?;
        if top.kind != Kind::Directory {
            return Err(Errno::NotDirectory.into());
        }
        let bytes_remaining = request.bytes as usize;
        let writer = FindWriter::new(bytes_remaining.min(DATA_BYTES_MAX));
        let mut stream = Stream { writer, bytes_remaining, entries_remaining: request.entries, replies };
        let first = PendingDirectory { path: TreePath::root(), stat: top, depth: request.depth };
        let (mut pending, mut count) = (VecDeque::from([first]), DIRECTORIES.0);
        while !pending.is_empty() {
            if stream.replies.is_stopped() {
                return Err(Failure::Stopped);
            }
            let batch: Vec<_> = pending.drain(..pending.len().min(count)).collect();
            count = (count * 2).min(DIRECTORIES.1);
            if self.send_batch(request, &batch, &mut pending, &mut stream)?.is_err() {
                return stream.send(FindMode::LAST.and(FindMode::MORE));
            }
        }
        stream.send(FindMode::LAST)
    }

    fn send_batch(
        &self,
        request: &Tfind,
        batch: &[PendingDirectory],
        pending: &mut VecDeque<PendingDirectory>,
        stream: &mut Stream<'_>,
    ) -> Result<Result<(), UsedUp>, Failure> {
        let top = self.full(&request.target.path);
        let paths = batch.iter().map(|dir| (below(&top, dir.path.as_bytes()), dir.stat.id.ino));
        let paths: Vec<_> = paths.collect();
        let listings = self.read_directories(&paths)?;
        for ((dir, listing), (path, _)) in batch.iter().zip(listings).zip(&paths) {
            // A directory that is unreadable or gone is left out.
            let Ok(entries) = listing else { continue };
            let mut record =
                FindDirectory { path: dir.path.clone(), stat: dir.stat, begins: true, ends: false };
            if stream.begin(&record)?.is_err() {
                return Ok(Err(UsedUp));
            }
            record.begins = false;
            for part in entries.chunks(FILES_AT_ONCE) {
                let contents = self.contents(request, path, part)?;
                for (entry, contents) in part.iter().zip(contents) {
                    if stream.add(entry, contents.as_deref(), &record)?.is_err() {
                        return Ok(Err(UsedUp));
                    }
                }
            }
            stream.writer.end_directory();
            let Some(depth) = dir.depth.checked_sub(1) else { continue };
            let below = entries.iter().filter(|entry| entry.stat.kind == Kind::Directory);
            pending.extend(below.filter_map(|entry| {
                Some(PendingDirectory { path: dir.path.join(&entry.name)?, stat: entry.stat, depth })
            }));
            if pending.len() > PENDING_MAX {
                return Ok(Err(UsedUp));
            }
        }
        Ok(Ok(()))
    }

    /// Reads the small files among some entries, if the request wants contents.
    ///
    /// # Cost
    /// Two round trips if there are any.
    fn contents(
        &self,
        request: &Tfind,
        dir: &[u8],
        entries: &[DirEntry],
    ) -> Result<Vec<Option<Bytes>>, Failure> {
        let inline = u64::from(request.inline).min(INLINE_BYTES_MAX);
        // A file of size 0 may be one of /proc, whose contents are not known beforehand.
        let is_small = |stat: &Stat| stat.kind == Kind::File && (1..=inline).contains(&stat.size);
        let mut opens = Vec::with_capacity(entries.len());
        for entry in entries {
            let opened = is_small(&entry.stat)
                .then(|| self.remote.open(&below(dir, &entry.name), open::READ))
                .transpose()?;
            opens.push(opened);
        }
        let mut reads = Vec::with_capacity(entries.len());
        for (opened, entry) in opens.into_iter().zip(entries) {
            // A file that cannot be opened has no contents here; a program that opens it learns why.
            let handle = opened.and_then(|opened| self.remote.opened(opened).ok());
            let read = handle.map(|handle| {
                let length = entry.stat.size as u32;
                let read = self.remote.send(&Request::Read { handle: handle.bytes(), offset: 0, length })?;
                Ok::<_, Failure>((read, length, self.remote.fstat(&handle)?))
            });
            reads.push(read.transpose()?);
        }
        let taken = reads.into_iter().zip(entries).map(|(read, entry)| {
            let Some((read, length, after)) = read else { return Ok(None) };
            let (Ok(data), Ok(after)) = (read.data(length), after.attributes()) else { return Ok(None) };
            let is_same = after.stat(entry.stat.id.ino).version == entry.stat.version;
            Ok(Some(data).filter(|data| is_same && data.len() as u64 == entry.stat.size))
        });
        taken.collect()
    }
}

fn below(dir: &[u8], path: &[u8]) -> Vec<u8> {
    match path.is_empty() {
        true => dir.to_vec(),
        false => [dir.strip_suffix(b"/").unwrap_or(dir), b"/", path].concat(),
    }
}

impl Stream<'_> {
    fn begin(&mut self, record: &FindDirectory) -> Result<Result<(), UsedUp>, Failure> {
        if self.writer.directory(record) {
            return Ok(Ok(()));
        }
        self.send(FindMode::NONE)?;
        Ok(if self.writer.directory(record) { Ok(()) } else { Err(UsedUp) })
    }

    fn add(
        &mut self,
        entry: &DirEntry,
        contents: Option<&[u8]>,
        record: &FindDirectory,
    ) -> Result<Result<(), UsedUp>, Failure> {
        let Some(entries_remaining) = self.entries_remaining.checked_sub(1) else { return Ok(Err(UsedUp)) };
        self.entries_remaining = entries_remaining;
        let DirEntry { name, stat, .. } = entry;
        if self.writer.entry(name, stat, contents) {
            return Ok(Ok(()));
        }
        self.send(FindMode::NONE)?;
        let is_written = self.writer.directory(record)
            && (self.writer.entry(name, stat, contents) || self.writer.entry(name, stat, None));
        Ok(if is_written { Ok(()) } else { Err(UsedUp) })
    }

    fn send(&mut self, mode: FindMode) -> Result<(), Failure> {
        let full = std::mem::replace(&mut self.writer, FindWriter::new(0));
        let data = full.finish();
        self.bytes_remaining = self.bytes_remaining.saturating_sub(data.len());
        self.writer = FindWriter::new(self.bytes_remaining.min(DATA_BYTES_MAX));
        Ok(self.replies.send(Reply::Find(Rfind { mode, data: Data(data) }))?)
    }
}
