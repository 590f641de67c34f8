//! Tget: attributes, data, listings, link targets.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use wirefs_op::limits::DATA_BYTES_MAX;
use wirefs_op::message::get::{GetMode, GotMode, Tget};
use wirefs_op::message::target::Place;
use wirefs_op::{Errno, Kind, Stat};
use wirefs_server::{GetReplies, Replies};

use super::locate::check_kind;
use super::{At, Failure, OpenFile};
use crate::attributes::kind_of;
use crate::limits::READ_AHEAD_BYTES;
use crate::message::{Request, Status, open};
use crate::wire::{Fault, Sent};

/// A path and its object.
struct Found {
    path: Vec<u8>,
    ino: u64,
}

/// One reply's data: reads in flight.
struct Piece {
    reads: Vec<(Sent, u32)>,
    bytes: u64,
}

impl At<'_> {
    pub(super) fn get(&self, request: &Tget, replies: &mut dyn Replies) -> Result<(), Failure> {
        let requests = |mode| request.mode.has(mode);
        let mut pieces = GetReplies::new(request, replies);
        if requests(GetMode::ENTRY) {
            return self.get_entry(request, &mut pieces);
        }
        if let Some(file) = self.client.find(&request.target) {
            return self.get_open(request, &file, &mut pieces);
        }
        let ino = self.ino_of(&request.target)?;
        let found = Found { path: self.full(&request.target.path), ino };
        let is_known_file = request.target.id.and_then(kind_of) == Some(Kind::File);
        if is_known_file && (requests(GetMode::DATA) || requests(GetMode::MORE)) {
            let opened = self.remote.open(&found.path, open::READ)?;
            let stat = self.remote.lstat(&found.path)?;
            let opened = self.remote.opened(opened);
            let stat = stat.attributes()?.stat(ino);
            check_kind(&stat, request.target.id)?;
            let file = OpenFile { handle: opened?, ino, reads: true, writes: false };
            return self.read_opened(request, file, stat, &mut pieces);
        }
        let stat = self.remote.lstat(&found.path)?.attributes()?.stat(ino);
        check_kind(&stat, request.target.id)?;
        self.get_found(request, &found, stat, &mut pieces)
    }

    fn get_entry(&self, request: &Tget, pieces: &mut GetReplies<'_>) -> Result<(), Failure> {
        let place = Place { path: request.target.path.clone(), dir: request.target.id };
        let named = self.named(&place)?;
        match self.remote.lstat(&named.path)?.attributes() {
            Ok(attributes) => {
                let ino = self.tree.ids.child(named.parent, named.name);
                let found = Found { path: named.path, ino };
                self.get_found(request, &found, attributes.stat(ino), pieces)
            }
            Err(Fault::Refused(Status::NoSuchFile)) => Ok(pieces.end(GotMode::ABSENT)?),
            Err(fault) => Err(fault.into()),
        }
    }

    /// Answers about a file that the session has open.
    fn get_open(
        &self,
        request: &Tget,
        file: &Arc<OpenFile>,
        pieces: &mut GetReplies<'_>,
    ) -> Result<(), Failure> {
        let requests = |mode| request.mode.has(mode);
        let stat = requests(GetMode::STAT).then(|| self.remote.fstat(&file.handle)).transpose()?;
        if requests(GetMode::MORE) {
            pieces.fd = request.target.fd;
        } else {
            self.client.files.close(request.target.fd);
        }
        if !requests(GetMode::DATA) {
            pieces.stat = stat.map(Sent::attributes).transpose()?.map(|stat| stat.stat(file.ino));
            return Ok(pieces.end(GotMode::NONE)?);
        }
        let again = if file.reads { None } else { Some(self.open_file(&request.target, true, false)?) };
        let file = again.as_ref().unwrap_or(file);
        let reads = self.begin_reads(file, request.offset, pieces, None)?;
        pieces.stat = stat.map(Sent::attributes).transpose()?.map(|stat| stat.stat(file.ino));
        self.finish_reads(request, file, reads, None, pieces)
    }

    fn get_found(
        &self,
        request: &Tget,
        found: &Found,
        stat: Stat,
        pieces: &mut GetReplies<'_>,
    ) -> Result<(), Failure> {
        let requests = |mode| request.mode.has(mode);
        if !requests(GetMode::DATA) && !requests(GetMode::MORE) {
            pieces.stat = Some(stat).filter(|_| requests(GetMode::STAT));
            return Ok(pieces.end(GotMode::NONE)?);
        }
        match stat.kind {
            Kind::File => {
                let handle = self.remote.opened(self.remote.open(&found.path, open::READ)?)?;
                let file = OpenFile { handle, ino: found.ino, reads: true, writes: false };
                return self.read_opened(request, file, stat, pieces);
            }
            Kind::Directory | Kind::Symlink | Kind::Fifo | Kind::Socket => {}
            Kind::CharDevice | Kind::BlockDevice => {}
        }
        pieces.stat = Some(stat).filter(|_| requests(GetMode::STAT));
        match stat.kind {
            Kind::Directory if requests(GetMode::DATA) => self.list(request, &found.path, found.ino, pieces),
            Kind::Symlink if requests(GetMode::DATA) => {
                let names = self.remote.send(&Request::Readlink { path: &found.path })?.names()?;
                let target = names.into_iter().next().ok_or(Errno::Protocol)?.name;
                if target.len() > DATA_BYTES_MAX {
                    return Err(Errno::NameTooLong.into());
                }
                pieces.send(target, true)?;
                Ok(())
            }
            _ => Ok(pieces.end(GotMode::NONE)?),
        }
    }

    /// Keeps a file that was opened now, reads it, or both.
    fn read_opened(
        &self,
        request: &Tget,
        file: OpenFile,
        stat: Stat,
        pieces: &mut GetReplies<'_>,
    ) -> Result<(), Failure> {
        let requests = |mode| request.mode.has(mode);
        let file = Arc::new(file);
        pieces.stat = Some(stat).filter(|_| requests(GetMode::STAT));
        if requests(GetMode::MORE) {
            pieces.fd = self.client.files.keep(Arc::clone(&file));
        }
        if !requests(GetMode::DATA) {
            return Ok(pieces.end(GotMode::NONE)?);
        }
        if requests(GetMode::WHOLE) && stat.size.saturating_sub(request.offset) > pieces.bytes_max() as u64 {
            return Ok(pieces.end(GotMode::MORE)?);
        }
        // Files below /proc have size 0 and contents.
        let size = Some(stat.size).filter(|size| *size > 0);
        let reads = self.begin_reads(&file, request.offset, pieces, size)?;
        self.finish_reads(request, &file, reads, size, pieces)
    }

    /// Sends the first reads of a request.
    fn begin_reads(
        &self,
        file: &OpenFile,
        offset: u64,
        pieces: &GetReplies<'_>,
        size: Option<u64>,
    ) -> Result<Reads, Failure> {
        let requested = pieces.all_bytes_max();
        let requested = size.map_or(requested, |size| requested.min(size.saturating_sub(offset).max(1)));
        let mut reads =
            Reads { offset, end: offset.saturating_add(requested), line: VecDeque::new(), in_flight: 0 };
        self.read_ahead(file, &mut reads)?;
        Ok(reads)
    }

    fn read_ahead(&self, file: &OpenFile, reads: &mut Reads) -> Result<(), Failure> {
        while reads.offset < reads.end && reads.in_flight < READ_AHEAD_BYTES {
            let bytes = (reads.end - reads.offset).min(DATA_BYTES_MAX as u64);
            let mut piece = Piece { reads: Vec::new(), bytes };
            let piece_end = reads.offset + bytes;
            while reads.offset < piece_end {
                let length = (piece_end - reads.offset).min(u64::from(self.remote.read_max)) as u32;
                let handle = file.handle.bytes();
                let sent = self.remote.send(&Request::Read { handle, offset: reads.offset, length })?;
                piece.reads.push((sent, length));
                reads.offset += u64::from(length);
            }
            reads.in_flight += bytes;
            reads.line.push_back(piece);
        }
        Ok(())
    }

    /// Sends the data of reads as it arrives.
    fn finish_reads(
        &self,
        request: &Tget,
        file: &OpenFile,
        mut reads: Reads,
        size: Option<u64>,
        pieces: &mut GetReplies<'_>,
    ) -> Result<(), Failure> {
        let mut offset = request.offset;
        while let Some(piece) = reads.line.pop_front() {
            if pieces.is_stopped() {
                return Err(Failure::Stopped);
            }
            reads.in_flight -= piece.bytes;
            let data = data_of(piece.reads)?;
            let is_short = (data.len() as u64) < piece.bytes;
            offset += data.len() as u64;
            let is_at_end = is_short || size.is_some_and(|size| offset >= size);
            if request.mode.has(GetMode::WHOLE) && !is_at_end {
                return Ok(pieces.end(GotMode::MORE)?);
            }
            if pieces.send(data, is_at_end)? {
                return Ok(());
            }
            self.read_ahead(file, &mut reads)?;
        }
        // Nothing was asked for.
        pieces.send(Bytes::new(), size.is_some_and(|size| offset >= size))?;
        Ok(())
    }
}

/// The reads of one request.
struct Reads {
    offset: u64,
    end: u64,
    line: VecDeque<Piece>,
    /// Bytes in flight.
    in_flight: u64,
}

/// Waits for the reads of one piece. The first short one is the end of the file.
fn data_of(reads: Vec<(Sent, u32)>) -> Result<Bytes, Failure> {
    let mut reads = reads.into_iter();
    let Some((first, length)) = reads.next() else { return Ok(Bytes::new()) };
    let data = first.data(length)?;
    if reads.len() == 0 || data.len() < length as usize {
        return Ok(data);
    }
    let mut all = BytesMut::from(&data[..]);
    for (read, length) in reads {
        let data = read.data(length)?;
        all.extend_from_slice(&data);
        if data.len() < length as usize {
            break;
        }
    }
    Ok(all.freeze())
}
