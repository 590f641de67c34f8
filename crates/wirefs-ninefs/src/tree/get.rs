//! Tget: attributes, data, listings, link targets.

use super::open_files::{Found, OpenFile};
use super::{At, Failure};
use std::sync::Arc;
use wirefs_ninep::qid::{QID_DIRECTORY, QID_SYMLINK};
use wirefs_ninep::{Rmessage, Tmessage};
use wirefs_op::message::get::{GetMode, GotMode, Tget};
use wirefs_op::message::target::Place;
use wirefs_op::{Errno, Kind};
use wirefs_server::{GetReplies, Replies};

impl At<'_> {
    pub(super) fn get(&self, request: &Tget, replies: &mut dyn Replies) -> Result<(), Failure> {
        let wants = |mode| request.mode.has(mode);
        let mut pieces = GetReplies::new(request, replies);
        if wants(GetMode::ENTRY) {
            let place = Place { path: request.target.path.clone(), dir: request.target.id };
            return match self.locate_entry(&place) {
                Ok(found) => self.get_found(request, found, &mut pieces),
                Err(Errno::NotFound) => Ok(pieces.end(GotMode::ABSENT)?),
                Err(errno) => Err(errno.into()),
            };
        }
        match self.client.find(&request.target) {
            Some(file) => self.get_open(request, &file, &mut pieces),
            None => {
                let found = self.locate(&request.target)?;
                self.get_found(request, found, &mut pieces)
            }
        }
    }

    /// Of a file that the client has open: each read is one of the open fid.
    fn get_open(
        &self,
        request: &Tget,
        file: &Arc<OpenFile>,
        pieces: &mut GetReplies<'_>,
    ) -> Result<(), Failure> {
        if request.mode.has(GetMode::STAT) {
            pieces.stat = Some(self.remote.stat(file.own.fid)?);
        }
        if request.mode.has(GetMode::MORE) {
            pieces.fd = request.target.fd;
        } else {
            self.client.files.close(request.target.fd);
        }
        if !request.mode.has(GetMode::DATA) {
            return Ok(pieces.end(GotMode::NONE)?);
        }
        if file.qid.kind & QID_DIRECTORY != 0 {
            return self.list(request, &file.own, pieces);
        }
        let again = if file.reads { None } else { Some(self.open(&request.target, true, false, 0)?) };
        self.read(request, again.as_ref().unwrap_or(file), pieces)
    }

    fn get_found(&self, request: &Tget, found: Found, pieces: &mut GetReplies<'_>) -> Result<(), Failure> {
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
            return Ok(pieces.end(GotMode::NONE)?);
        }
        if found.qid.kind & QID_SYMLINK != 0 && wants(GetMode::DATA) {
            let target = self.remote.ask(&Tmessage::Readlink { fid: found.own.fid })?;
            let Rmessage::Readlink { target } = target else { return Err(Errno::Protocol.into()) };
            pieces.send(target.0, true)?;
            return Ok(());
        }
        match kind {
            Kind::Directory => {
                if wants(GetMode::DATA) {
                    self.list(request, &found.own, pieces)
                } else {
                    Ok(pieces.end(GotMode::NONE)?)
                }
            }
            Kind::File => self.open_found(request, found, pieces),
            Kind::Symlink | Kind::Fifo | Kind::Socket | Kind::CharDevice | Kind::BlockDevice => {
                Ok(pieces.end(GotMode::NONE)?)
            }
        }
    }

    /// Opens a file to keep it, to read it, or both.
    fn open_found(&self, request: &Tget, found: Found, pieces: &mut GetReplies<'_>) -> Result<(), Failure> {
        let wants = |mode| request.mode.has(mode);
        // Data that comes with an opening is prefetched, and no file may be read ahead whose reads may have effects.
        let is_synthetic = pieces.stat.is_some_and(|stat| stat.size == 0);
        if wants(GetMode::WHOLE) && is_synthetic {
            return Ok(pieces.end(GotMode::MORE)?);
        }
        self.remote.open(found.own.fid, 0)?;
        let file = Arc::new(OpenFile { own: found.own, qid: found.qid, reads: true, writes: false });
        if wants(GetMode::MORE) {
            pieces.fd = self.client.files.keep(Arc::clone(&file));
            if is_synthetic || !wants(GetMode::DATA) {
                return Ok(pieces.end(GotMode::NONE)?);
            }
        }
        self.read(request, &file, pieces)
    }

    /// Reads until the server gives less than it was asked for.
    fn read(&self, request: &Tget, file: &OpenFile, pieces: &mut GetReplies<'_>) -> Result<(), Failure> {
        let mut offset = request.offset;
        loop {
            let wanted = pieces.bytes_max().min(self.remote.data_max() as usize) as u32;
            let data = self.remote.read(file.own.fid, offset, wanted, &|| pieces.is_stopped())?;
            let is_at_end = data.len() < wanted as usize;
            if request.mode.has(GetMode::WHOLE) && !is_at_end {
                return Ok(pieces.end(GotMode::MORE)?);
            }
            offset += data.len() as u64;
            if pieces.send(data, is_at_end)? {
                return Ok(());
            }
        }
    }
}
