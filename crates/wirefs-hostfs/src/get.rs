//! Tget: walk, open, attributes and data in one request.

mod listing;
mod pieces;

use crate::attributes::statx;
use crate::detection::Coverage;
use crate::failure::{Failure, uninterrupted};
use crate::open_files::{Access, OpenFile};
use crate::resolve::Object;
use crate::session::Session;
use bytes::Bytes;
pub(crate) use listing::{Name, next_names};
use pieces::Pieces;
use rustix::buffer::spare_capacity;
use rustix::fd::AsFd;
use std::iter::once;
use std::sync::Arc;
use wirefs_op::message::get::{GetMode, Tget};
use wirefs_op::message::target::Place;
use wirefs_op::{Errno, Kind};
use wirefs_server::Replies;
use wirefs_slab::Slab;

/// The smallest read in bytes: a file without a size (in `/proc`) may still have contents.
const READ_BYTES_MIN: usize = 4096;
/// From this many remaining bytes on, a file is read into reused memory.
const LARGE_BYTES: u64 = 64 * 1024;

impl Session {
    pub(crate) fn get(&self, request: &Tget, replies: &mut dyn Replies) -> Result<(), Failure> {
        let mut pieces = Pieces::new(request, replies);
        let wants = |mode| request.mode.has(mode);
        let attributes_alone = wants(GetMode::STAT) && !wants(GetMode::DATA) && !wants(GetMode::MORE);
        if wants(GetMode::ENTRY) {
            return self.get_entry(request, attributes_alone, &mut pieces);
        }
        if attributes_alone && let Some(mut stat) = self.stat_path(&request.target)? {
            let coverage = self.export.detection.object_coverage();
            if coverage == Coverage::Nothing || coverage.covers(&stat) {
                self.lease(coverage, pieces.replies(), &mut once(&mut stat));
                pieces.set_stat(stat);
                return pieces.end_without_data();
            }
        }
        let object = self.locate(&request.target)?;
        self.get_object(request, &object, &mut pieces)
    }

    /// Looks up a name in the directory with the client's expected id.
    fn get_entry(
        &self,
        request: &Tget,
        attributes_alone: bool,
        pieces: &mut Pieces<'_>,
    ) -> Result<(), Failure> {
        let place = Place { path: request.target.path.clone(), dir: request.target.id };
        let entry = self.entry(&place)?;
        pieces.are_names_leased = self.lease_names(&entry.dir, pieces.replies());
        if attributes_alone {
            match self.stat_child_leased(&entry, pieces.replies()) {
                Ok(stat) => pieces.set_stat(stat),
                Err(Failure::Errno(Errno::NotFound)) => return pieces.end_absent(),
                Err(failure) => return Err(failure),
            }
            return pieces.end_without_data();
        }
        match self.child(&entry) {
            Ok(object) => {
                let object = self.covered_in(&entry.dir, object, pieces.replies());
                self.get_object(request, &object, pieces)
            }
            Err(Errno::NotFound) => pieces.end_absent(),
            Err(error) => Err(error.into()),
        }
    }

    fn get_object(&self, request: &Tget, object: &Object, pieces: &mut Pieces<'_>) -> Result<(), Failure> {
        match object.kind {
            Kind::File | Kind::Directory => self.get_opened(request, object, pieces),
            Kind::Symlink if request.mode.has(GetMode::DATA) => {
                self.add_stat(request, object, pieces)?;
                get_target(request, object, pieces)
            }
            Kind::Symlink | Kind::Fifo | Kind::Socket | Kind::CharDevice | Kind::BlockDevice => {
                self.add_stat(request, object, pieces)?;
                pieces.end_without_data()
            }
        }
    }

    /// Adds the attributes, if requested, before the data. So the data may be newer than the attributes, never
    /// older, and a client that keeps both notices that at the next validation.
    fn add_stat(&self, request: &Tget, object: &Object, pieces: &mut Pieces<'_>) -> Result<(), Failure> {
        if request.mode.has(GetMode::STAT) {
            let stat = self.stat_leased(object, pieces.replies())?;
            pieces.set_stat(stat);
        }
        Ok(())
    }

    fn get_opened(&self, request: &Tget, object: &Object, pieces: &mut Pieces<'_>) -> Result<(), Failure> {
        let (with_data, keeps) = (request.mode.has(GetMode::DATA), request.mode.has(GetMode::MORE));
        let opened = match (with_data, keeps) {
            (_, true) => self.open_to_keep(object, Access::READ).map(Some),
            (true, false) => object.open(Access::READ).map(Some),
            (false, false) => Ok(None),
        };
        if let (Some(fd), false) = (object.fd, keeps) {
            self.touch_closed(fd, object.id, pieces.replies())?;
            self.close(fd, object.id, pieces.replies());
        }
        let file = match opened {
            Ok(Some(file)) => file,
            Ok(None) => {
                self.add_stat(request, object, pieces)?;
                return pieces.end_without_data();
            }
            // The data was optional: a caller without read permission still gets the attributes.
            Err(_) if request.mode.has(GetMode::WHOLE) && request.mode.has(GetMode::STAT) => {
                self.add_stat(request, object, pieces)?;
                return pieces.end_without_whole();
            }
            Err(error) => return Err(error.into()),
        };
        let seen = object.seen_through(Arc::clone(&file));
        self.add_stat(request, &seen, pieces)?;
        if keeps {
            pieces.fd = self.keep(object, &file);
        }
        match (with_data, file.kind == Kind::Directory) {
            (true, true) => self.list(request, (&seen, &file), pieces),
            (true, false) => read(request, &file, pieces),
            (false, _) => pieces.end_without_data(),
        }
    }
}

/// Sends a file's data in pieces.
fn read(request: &Tget, file: &OpenFile, pieces: &mut Pieces<'_>) -> Result<(), Failure> {
    let size = match pieces.stat_size() {
        Some(size) => size,
        None => statx(file.as_fd(), c"")?.stx_size,
    };
    if request.mode.has(GetMode::WHOLE)
        && size.saturating_sub(request.offset) > pieces.piece_bytes_max() as u64
    {
        return pieces.end_without_whole();
    }
    let mut offset = request.offset;
    let mut slab = None;
    loop {
        let bytes_max = pieces.piece_bytes_max();
        let bytes = if size.saturating_sub(offset) >= LARGE_BYTES {
            read_large_piece(file, offset, bytes_max, slab.get_or_insert_default())?
        } else {
            read_piece(file, offset, bytes_max, size)?
        };
        offset += bytes.len() as u64;
        let is_at_end = bytes.len() < bytes_max || offset >= size;
        if request.mode.has(GetMode::WHOLE) && !is_at_end {
            return pieces.end_without_whole();
        }
        if pieces.send(bytes, is_at_end)? {
            return Ok(());
        }
    }
}

/// As [`read_piece`], into reused memory: the kernel zeroes fresh pages, which takes longer than the read itself.
fn read_large_piece(
    file: &OpenFile,
    offset: u64,
    bytes_max: usize,
    slab: &mut Slab,
) -> Result<Bytes, Failure> {
    if i64::try_from(offset).is_err() {
        return Err(Errno::Invalid.into());
    }
    if slab.room_bytes() < bytes_max {
        *slab = Slab::new();
    }
    let mut filled = 0;
    while filled < bytes_max {
        let Some(room) = slab.room().get_mut(..bytes_max - filled) else { break };
        let count = uninterrupted(|| rustix::io::pread(file, &mut *room, offset + filled as u64))?;
        if count == 0 {
            break;
        }
        slab.filled(count);
        filled += count;
    }
    Ok(slab.share(filled))
}

/// Reads up to `bytes_max` or the end of the file. Fewer bytes mean the end.
fn read_piece(file: &OpenFile, offset: u64, bytes_max: usize, size: u64) -> Result<Bytes, Failure> {
    if i64::try_from(offset).is_err() {
        return Err(Errno::Invalid.into());
    }
    // One byte of room beyond the known size detects the end in one call.
    let expected = usize::try_from(size.saturating_sub(offset)).unwrap_or(usize::MAX);
    let mut room = expected.saturating_add(1).max(READ_BYTES_MIN).min(bytes_max);
    let mut bytes = Vec::with_capacity(room);
    while bytes.len() < room {
        let at = offset + bytes.len() as u64;
        if uninterrupted(|| rustix::io::pread(file, spare_capacity(&mut bytes), at))? == 0 {
            break;
        }
        if bytes.len() >= room && room < bytes_max {
            // The file has grown.
            bytes.reserve_exact(bytes_max - bytes.len());
            room = bytes_max;
        }
    }
    bytes.truncate(bytes_max);
    Ok(Bytes::from(bytes))
}

/// Sends a symbolic link's target.
fn get_target(request: &Tget, object: &Object, pieces: &mut Pieces<'_>) -> Result<(), Failure> {
    let target = rustix::fs::readlinkat(object, c"", Vec::new())?;
    let target = Bytes::from(target.into_bytes());
    if target.len() <= pieces.piece_bytes_max() {
        return pieces.send(target, true).map(drop);
    }
    if request.mode.has(GetMode::WHOLE) {
        return pieces.end_without_whole();
    }
    // A truncated target would lead elsewhere.
    Err(Errno::Range.into())
}
