//! Tget: attributes, data, listings, link targets.

use super::open_files::{Found, OpenFile};
use super::{At, Failure};
use bytes::Bytes;
use std::sync::Arc;
use wirefs_ninep::qid::{QID_DIRECTORY, QID_SYMLINK};
use wirefs_ninep::{Rmessage, Tmessage};
use wirefs_op::limits::DATA_BYTES_MAX;
use wirefs_op::message::get::{GetMode, GotMode, Rget, Tget};
use wirefs_op::message::target::{Fd, NOFD, Place};
use wirefs_op::wire::Data;
use wirefs_op::{Errno, Kind, Reply, Stat};
use wirefs_server::Replies;

/// The replies to one Tget.
pub(super) struct Pieces<'a> {
    fd: Fd,
    stat: Option<Stat>,
    left: u64,
    messages_left: Option<u16>,
    pub(super) replies: &'a mut dyn Replies,
}

impl<'a> Pieces<'a> {
    fn new(request: &Tget, replies: &'a mut dyn Replies) -> Pieces<'a> {
        let messages_left = (request.nmsgs > 0).then_some(request.nmsgs);
        Pieces { fd: NOFD, stat: None, left: u64::from(request.count), messages_left, replies }
    }

    /// The data of the next reply, at most, in bytes.
    pub(super) fn bytes_max(&self) -> usize {
        self.left.min(DATA_BYTES_MAX as u64) as usize
    }

    /// Sends data; true when it was the last that the request wants.
    pub(super) fn send(&mut self, data: Bytes, is_at_end: bool) -> Result<bool, Failure> {
        self.left = self.left.saturating_sub(data.len() as u64);
        let is_last = is_at_end || self.left == 0 || self.messages_left == Some(1);
        self.messages_left = self.messages_left.map(|left| left.saturating_sub(1));
        let mode = GotMode::DATA.and_if(!is_at_end, GotMode::MORE).and_if(is_last, GotMode::LAST);
        self.reply(mode, data)?;
        Ok(is_last)
    }

    /// Ends the answer without data, or without more.
    pub(super) fn end(&mut self, mode: GotMode) -> Result<(), Failure> {
        self.reply(mode.and(GotMode::LAST), Bytes::new())
    }

    fn reply(&mut self, mode: GotMode, data: Bytes) -> Result<(), Failure> {
        let reply = Rget { fd: self.fd, mode, stat: self.stat.take(), data: Data(data) };
        Ok(self.replies.send(Reply::Get(reply))?)
    }
}

impl At<'_> {
    pub(super) fn get(&self, request: &Tget, replies: &mut dyn Replies) -> Result<(), Failure> {
        let wants = |mode| request.mode.has(mode);
        let mut pieces = Pieces::new(request, replies);
        if wants(GetMode::ENTRY) {
            let place = Place { path: request.target.path.clone(), dir: request.target.id };
            return match self.locate_entry(&place) {
                Ok(found) => self.get_found(request, found, &mut pieces),
                Err(Errno::NotFound) => pieces.end(GotMode::ABSENT),
                Err(errno) => Err(errno.into()),
            };
        }
        match self.client.files.find(&request.target) {
            Some(file) => self.get_open(request, &file, &mut pieces),
            None => {
                let found = self.locate(&request.target)?;
                self.get_found(request, found, &mut pieces)
            }
        }
    }

    /// Of a file that the client has open: each read is one of the open fid.
    fn get_open(&self, request: &Tget, file: &Arc<OpenFile>, pieces: &mut Pieces<'_>) -> Result<(), Failure> {
        if request.mode.has(GetMode::STAT) {
            pieces.stat = Some(self.remote.stat(file.own.fid)?);
        }
        if request.mode.has(GetMode::MORE) {
            pieces.fd = request.target.fd;
        } else {
            self.client.files.close(request.target.fd);
        }
        if !request.mode.has(GetMode::DATA) {
            return pieces.end(GotMode::NONE);
        }
        if file.qid.kind & QID_DIRECTORY != 0 {
            return self.list(request, &file.own, pieces);
        }
        let again = if file.reads { None } else { Some(self.open(&request.target, true, false, 0)?) };
        self.read(request, again.as_ref().unwrap_or(file), pieces)
    }

    fn get_found(&self, request: &Tget, found: Found, pieces: &mut Pieces<'_>) -> Result<(), Failure> {
        let wants = |mode| request.mode.has(mode);
        let kind = match wants(GetMode::STAT) || !found.is_directory() {
            true => {
                let stat = self.remote.stat(found.own.fid)?;
                pieces.stat = wants(GetMode::STAT).then_some(stat);
                stat.kind
            }
            false => Kind::Directory,
        };
        if !wants(GetMode::DATA) && !wants(GetMode::MORE) {
            return pieces.end(GotMode::NONE);
        }
        if found.qid.kind & QID_SYMLINK != 0 && wants(GetMode::DATA) {
            let target = self.remote.ask(&Tmessage::Readlink { fid: found.own.fid })?;
            let Rmessage::Readlink { target } = target else { return Err(Errno::Protocol.into()) };
            return pieces.send(target.0, true).map(drop);
        }
        match kind {
            Kind::Directory => {
                if wants(GetMode::DATA) {
                    self.list(request, &found.own, pieces)
                } else {
                    pieces.end(GotMode::NONE)
                }
            }
            Kind::File => self.open_found(request, found, pieces),
            Kind::Symlink | Kind::Fifo | Kind::Socket | Kind::CharDevice | Kind::BlockDevice => {
                pieces.end(GotMode::NONE)
            }
        }
    }

    /// Opens a file to keep it, to read it, or both.
    fn open_found(&self, request: &Tget, found: Found, pieces: &mut Pieces<'_>) -> Result<(), Failure> {
        let wants = |mode| request.mode.has(mode);
        // Data that comes with an opening is prefetched, and no file may be read ahead whose reads may have effects.
        let is_synthetic = pieces.stat.is_some_and(|stat| stat.size == 0);
        if wants(GetMode::WHOLE) && is_synthetic {
            return pieces.end(GotMode::MORE);
        }
        self.remote.open(found.own.fid, 0)?;
        let file = Arc::new(OpenFile { own: found.own, qid: found.qid, reads: true, writes: false });
        if wants(GetMode::MORE) {
            pieces.fd = self.client.files.keep(Arc::clone(&file));
            if is_synthetic || !wants(GetMode::DATA) {
                return pieces.end(GotMode::NONE);
            }
        }
        self.read(request, &file, pieces)
    }

    /// Reads until the server gives less than it was asked for.
    fn read(&self, request: &Tget, file: &OpenFile, pieces: &mut Pieces<'_>) -> Result<(), Failure> {
        let mut offset = request.offset;
        loop {
            let wanted = pieces.bytes_max().min(self.remote.data_max() as usize) as u32;
            let data = {
                let replies = &*pieces.replies;
                self.remote.read(file.own.fid, offset, wanted, &|| replies.is_stopped())?
            };
            let is_at_end = data.len() < wanted as usize;
            if request.mode.has(GetMode::WHOLE) && !is_at_end {
                return pieces.end(GotMode::MORE);
            }
            offset += data.len() as u64;
            if pieces.send(data, is_at_end)? {
                return Ok(());
            }
        }
    }
}
