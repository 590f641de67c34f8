//! Listings: names with their attributes.

use std::sync::Arc;

use wirefs_op::listing::ListingWriter;
use wirefs_op::message::get::{GotMode, Tget};
use wirefs_op::path::is_name;
use wirefs_op::{DirEntry, Errno};
use wirefs_server::GetReplies;

use super::{At, Failure, lock};
use crate::limits::{ENTRIES_MAX, LISTINGS_MAX, READDIRS_FIRST, READDIRS_MAX};
use crate::message::Request;
use crate::remote::Handle;
use crate::wire::{Fault, Sent};

/// A directory that is being read.
struct Reading {
    ino: u64,
    handle: Handle,
    sent: Vec<Sent>,
    entries: Vec<DirEntry>,
}

impl At<'_> {
    /// Sends the entries behind the request's offset, which counts entries.
    pub(super) fn list(
        &self,
        request: &Tget,
        path: &[u8],
        ino: u64,
        pieces: &mut GetReplies<'_>,
    ) -> Result<(), Failure> {
        let entries = self.listing(path, ino, request.offset)?;
        let mut writer = ListingWriter::new(pieces.bytes_max());
        let first = usize::try_from(request.offset).unwrap_or(usize::MAX);
        for entry in entries.get(first..).unwrap_or_default() {
            if writer.push(entry) {
                continue;
            }
            if writer.is_empty() {
                return Err(Errno::Invalid.into());
            }
            self.keep_listing(ino, &entries);
            if pieces.send(writer.finish(), false)? {
                return Ok(());
            }
            writer = ListingWriter::new(pieces.bytes_max());
            if !writer.push(entry) {
                return Ok(pieces.end(GotMode::DATA.and(GotMode::MORE))?);
            }
        }
        lock(&self.client.listings).remove(&ino);
        pieces.send(writer.finish(), true)?;
        Ok(())
    }

    /// Returns a whole listing. One that goes on is as it was at its beginning.
    fn listing(&self, path: &[u8], ino: u64, offset: u64) -> Result<Arc<Vec<DirEntry>>, Failure> {
        let known = lock(&self.client.listings).get(&ino).cloned().filter(|_| offset > 0);
        if let Some(known) = known {
            return Ok(known);
        }
        let read = self.read_directories(&[(path.to_vec(), ino)])?.pop();
        Ok(Arc::new(read.unwrap_or(Err(Failure::Errno(Errno::Io)))?))
    }

    fn keep_listing(&self, ino: u64, entries: &Arc<Vec<DirEntry>>) {
        let mut listings = lock(&self.client.listings);
        if listings.len() >= LISTINGS_MAX && !listings.contains_key(&ino) {
            listings.pop_first();
        }
        listings.insert(ino, Arc::clone(entries));
    }

    /// Reads several directories side by side.
    ///
    /// # Errors
    /// The connection is lost. The outcome of each directory is in the result.
    ///
    /// # Cost
    /// 2 round trips, and more for each 1,000 entries or so of the longest directory.
    pub(super) fn read_directories(
        &self,
        directories: &[(Vec<u8>, u64)],
    ) -> Result<Vec<Result<Vec<DirEntry>, Failure>>, Failure> {
        let opens = directories.iter().map(|(path, _)| self.remote.send(&Request::Opendir { path }));
        let opens: Vec<Sent> = opens.collect::<Result<_, _>>()?;
        let mut readings: Vec<Result<Reading, Failure>> = Vec::with_capacity(opens.len());
        for (open, (_, ino)) in opens.into_iter().zip(directories) {
            readings.push(match self.remote.opened(open) {
                Ok(handle) => {
                    let mut reading = Reading { ino: *ino, handle, sent: Vec::new(), entries: Vec::new() };
                    self.read_on(&mut reading, READDIRS_FIRST)?;
                    Ok(reading)
                }
                Err(Fault::Lost) => return Err(Failure::Lost),
                Err(refused) => Err(refused.into()),
            });
        }
        readings.into_iter().map(|reading| self.finish(reading?)).map(one_lost).collect()
    }

    fn read_on(&self, reading: &mut Reading, count: usize) -> Result<(), Failure> {
        for _ in 0..count {
            let handle = reading.handle.bytes();
            reading.sent.push(self.remote.send(&Request::Readdir { handle })?);
        }
        Ok(())
    }

    /// Reads a directory to its end.
    fn finish(&self, mut reading: Reading) -> Result<Vec<DirEntry>, Failure> {
        let mut count = READDIRS_FIRST;
        loop {
            let mut is_at_end = false;
            for sent in std::mem::take(&mut reading.sent) {
                let names = sent.names()?;
                is_at_end |= names.is_empty();
                for entry in names.into_iter().filter(|entry| is_name(&entry.name)) {
                    let stat = entry.attributes.stat(self.tree.ids.child(reading.ino, &entry.name));
                    let next = reading.entries.len() as u64 + 1;
                    reading.entries.push(DirEntry { name: entry.name.to_vec(), next, stat });
                }
            }
            if is_at_end {
                return Ok(reading.entries);
            }
            if reading.entries.len() > ENTRIES_MAX {
                return Err(Errno::TooBig.into());
            }
            count = (count * 2).min(READDIRS_MAX);
            self.read_on(&mut reading, count)?;
        }
    }
}

/// Takes a lost connection out of the outcome of one directory.
fn one_lost(outcome: Result<Vec<DirEntry>, Failure>) -> Result<Result<Vec<DirEntry>, Failure>, Failure> {
    if outcome == Err(Failure::Lost) { Err(Failure::Lost) } else { Ok(outcome) }
}
