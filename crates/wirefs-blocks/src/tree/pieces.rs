//! The replies to one Tget: how many, how large, and what each says about what follows.

use super::listing::Listed;
use super::serve::{Answers, Stopped};
use crate::touch::{Parked, Touch};
use bytes::Bytes;
use wirefs_op::limits::DATA_BYTES_MAX;
use wirefs_op::message::get::{GotMode, Rget, Tget};
use wirefs_op::message::target::{Fd, NOFD};
use wirefs_op::wire::Data;
use wirefs_op::{FileId, Reply, Stat};

/// Cuts the answer into replies.
pub(super) struct Pieces<'a> {
    /// The open file to tell.
    pub(super) fd: Fd,
    /// The attributes to tell with the next reply.
    pub(super) stat: Option<Stat>,
    bytes_left: usize,
    /// Replies that may still be sent; `None` is no bound.
    messages_left: Option<u16>,
    /// To be told with the next reply.
    is_place_granted: bool,
    answers: &'a mut dyn Answers,
}

impl<'a> Pieces<'a> {
    pub(super) fn new(request: &Tget, answers: &'a mut dyn Answers) -> Pieces<'a> {
        Pieces {
            fd: NOFD,
            stat: None,
            bytes_left: usize::try_from(request.count).unwrap_or(usize::MAX),
            messages_left: (request.nmsgs > 0).then_some(request.nmsgs),
            is_place_granted: false,
            answers,
        }
    }

    /// Hears what the request is about to change.
    pub(super) fn touch(&mut self, touched: &[Touch]) -> Result<(), Parked> {
        self.answers.touch(touched)
    }

    /// The most data that all further replies may hold, in bytes.
    pub(super) fn bytes_left(&self) -> usize {
        match self.messages_left {
            Some(messages) => self.bytes_left.min(usize::from(messages) * DATA_BYTES_MAX),
            None => self.bytes_left,
        }
    }

    /// Sends data, in as many replies as it takes; true when nothing more is wanted. `ends`: nothing follows in the file
    /// or listing.
    pub(super) fn send(&mut self, data: Bytes, ends: bool) -> Result<bool, Stopped> {
        let mut rest = data;
        loop {
            let piece = rest.split_to(rest.len().min(DATA_BYTES_MAX));
            self.bytes_left = self.bytes_left.saturating_sub(piece.len());
            self.messages_left = self.messages_left.map(|left| left.saturating_sub(1));
            let is_at_end = ends && rest.is_empty();
            let is_last = is_at_end || self.bytes_left == 0 || self.messages_left == Some(0);
            let mode = GotMode::DATA.and_if(!is_at_end, GotMode::MORE).and_if(is_last, GotMode::LAST);
            self.reply(mode, piece)?;
            if is_last || rest.is_empty() {
                return Ok(is_last);
            }
        }
    }

    /// Ends the answer with attributes alone.
    pub(super) fn end_without_data(&mut self) -> Result<(), Stopped> {
        self.reply(GotMode::LAST, Bytes::new())
    }

    /// Ends the answer: there is no such name.
    pub(super) fn end_absent(&mut self) -> Result<(), Stopped> {
        self.stat = None;
        self.reply(GotMode::LAST.and(GotMode::ABSENT), Bytes::new())
    }

    /// Ends the answer with attributes alone, since the whole of the data would not fit.
    pub(super) fn end_without_whole(&mut self) -> Result<(), Stopped> {
        self.reply(GotMode::LAST.and(GotMode::MORE), Bytes::new())
    }

    /// Ends a listing whose next entry does not fit into what was asked.
    pub(super) fn end_listing(&mut self) -> Result<(), Stopped> {
        self.reply(GotMode::DATA.and(GotMode::MORE).and(GotMode::LAST), Bytes::new())
    }

    /// Sends entries, whose attributes may be believed as far as they are granted; true when nothing more is wanted.
    pub(super) fn send_listing(&mut self, mut listed: Listed) -> Result<bool, Stopped> {
        let stats = listed.entries.iter_mut().map(|entry| &mut entry.stat);
        self.answers.grant(&mut stats.filter(|stat| stat.id.fs == 0));
        self.send(listed.packed(), listed.ends)
    }

    /// Notes that the client may believe what it is told of names in this directory.
    pub(super) fn grant_place(&mut self, dir: FileId) {
        self.is_place_granted = dir.fs == 0 && self.answers.grant_place(dir);
    }

    fn reply(&mut self, mode: GotMode, data: Bytes) -> Result<(), Stopped> {
        let mode = mode.and_if(std::mem::take(&mut self.is_place_granted), GotMode::PLACE);
        self.answers.grant(&mut self.stat.iter_mut().filter(|stat| stat.id.fs == 0));
        let reply = Rget { fd: self.fd, mode, stat: self.stat.take(), data: Data(data) };
        self.answers.send(Reply::Get(reply))
    }
}
