//! The entries of a directory with their attributes.

use super::pieces::Pieces;
use crate::attributes::stat_name;
use crate::failure::Failure;
use crate::open_files::OpenFile;
use crate::resolve::Object;
use crate::session::Session;
use rustix::fd::AsFd;
use rustix::fs::{RawDir, SeekFrom};
use std::ffi::CStr;
use wirefs_op::listing::ListingWriter;
use wirefs_op::message::get::{GetMode, Tget};
use wirefs_op::path::is_name;
use wirefs_op::{DirEntry, Errno};

/// Bytes per batch of raw entries: about a thousand names.
const BATCH_BYTES: usize = 64 * 1024;

/// Entries per grant of leases: one lock for all of them, and few useless leases when the answer is full.
const ENTRIES: usize = 256;

/// A directory entry without attributes.
#[derive(Debug)]
pub(crate) struct Name {
    /// Terminated by NUL.
    pub(crate) name: Vec<u8>,
    /// The position after it in the listing.
    pub(crate) next: u64,
}

impl Session {
    /// Sends the packed entries from `request.offset` on.
    pub(super) fn list(
        &self,
        request: &Tget,
        (seen, dir): (&Object, &OpenFile),
        pieces: &mut Pieces<'_>,
    ) -> Result<(), Failure> {
        let coverage = self.cover_names(seen, pieces.replies());
        let whole = request.mode.has(GetMode::WHOLE);
        let mut writer = ListingWriter::new(pieces.piece_bytes_max());
        let mut from = request.offset;
        let mut batch = Vec::new();
        loop {
            let names = next_names(dir, from, &mut batch)?;
            let Some(last) = names.last() else {
                return pieces.send(writer.finish(), true).map(drop);
            };
            from = last.next;
            let mut names = names.into_iter().peekable();
            while names.peek().is_some() {
                let entries = names.by_ref().take(ENTRIES).filter_map(|name| self.entry_stat(dir, name));
                let mut entries: Vec<DirEntry> = entries.collect();
                let mut stats = entries.iter_mut().map(|entry| &mut entry.stat);
                self.lease_entries((dir.as_fd(), dir.id), coverage, pieces.replies(), &mut stats);
                for entry in &entries {
                    if writer.push(entry) {
                        continue;
                    }
                    if whole {
                        return pieces.end_without_whole();
                    }
                    if writer.is_empty() {
                        return Err(Errno::Invalid.into());
                    }
                    if pieces.send(writer.finish(), false)? {
                        return Ok(());
                    }
                    writer = ListingWriter::new(pieces.piece_bytes_max());
                    if !writer.push(entry) {
                        // The rest of the requested bytes is too small for an entry.
                        return pieces.end_listing();
                    }
                }
            }
        }
    }

    /// The entry with its attributes; `None` if it is gone meanwhile.
    fn entry_stat(&self, dir: &OpenFile, Name { mut name, next }: Name) -> Option<DirEntry> {
        let terminated = CStr::from_bytes_with_nul(&name).ok()?;
        let stat = stat_name(dir.as_fd(), terminated, self.export.home).ok()?;
        name.pop();
        Some(DirEntry { name, next, stat })
    }
}

/// The next batch of names from `from` on, without `.` and `..`; empty at the end of the directory.
pub(crate) fn next_names(dir: &OpenFile, from: u64, batch: &mut Vec<u8>) -> Result<Vec<Name>, Failure> {
    batch.reserve(BATCH_BYTES);
    let _position = dir.position();
    // Another thread may have read through this descriptor meanwhile.
    rustix::fs::seek(dir, SeekFrom::Start(from))?;
    batch.clear();
    let mut entries = RawDir::new(dir, batch.spare_capacity_mut());
    let mut names = Vec::new();
    loop {
        let Some(entry) = entries.next() else {
            return Ok(names);
        };
        let entry = entry?;
        if is_name(entry.file_name().to_bytes()) {
            names.push(Name {
                name: entry.file_name().to_bytes_with_nul().to_vec(),
                next: entry.next_entry_cookie(),
            });
        }
        if entries.is_buffer_empty() && !names.is_empty() {
            return Ok(names);
        }
    }
}
