//! The replies to one Tget: their number, their size, and their flags.

use super::listing::Listed;
use super::serve::{ReplySink, RequestAborted};
use crate::affected::{AffectedObject, Postponed};
use bytes::Bytes;
use wirefs_op::limits::DATA_BYTES_MAX;
use wirefs_op::message::get::{GotMode, Rget, Tget};
use wirefs_op::message::target::{Fd, NOFD};
use wirefs_op::wire::Data;
use wirefs_op::{FileId, Reply, Stat};

/// Splits the result of a Tget into replies.
pub(super) struct ReplyWriter<'a> {
    /// The fd to report.
    pub(super) fd: Fd,
    /// The attributes to send with the next reply.
    pub(super) stat: Option<Stat>,
    bytes_left: usize,
    /// Replies that may still be sent; `None`: unlimited.
    messages_left: Option<u16>,
    /// Whether the next reply grants a lease on names of the directory.
    are_names_granted: bool,
    replies: &'a mut dyn ReplySink,
}

impl<'a> ReplyWriter<'a> {
    pub(super) fn new(request: &Tget, replies: &'a mut dyn ReplySink) -> ReplyWriter<'a> {
        ReplyWriter {
            fd: NOFD,
            stat: None,
            bytes_left: usize::try_from(request.count).unwrap_or(usize::MAX),
            messages_left: (request.nmsgs > 0).then_some(request.nmsgs),
            are_names_granted: false,
            replies,
        }
    }

    /// Announces the objects that the request is about to modify.
    pub(super) fn announce(&mut self, affected: &[AffectedObject]) -> Result<(), Postponed> {
        self.replies.announce(affected)
    }

    /// The maximum data in all further replies, in bytes.
    pub(super) fn bytes_left(&self) -> usize {
        match self.messages_left {
            Some(messages) => self.bytes_left.min(usize::from(messages) * DATA_BYTES_MAX),
            None => self.bytes_left,
        }
    }

    /// Sends data in as many replies as necessary; returns `true` when the request is satisfied. `ends`: the
    /// data reaches the end of the file or listing.
    pub(super) fn send(&mut self, data: Bytes, ends: bool) -> Result<bool, RequestAborted> {
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

    /// Ends with attributes alone.
    pub(super) fn end_without_data(&mut self) -> Result<(), RequestAborted> {
        self.reply(GotMode::LAST, Bytes::new())
    }

    /// Ends with the result that the name does not exist.
    pub(super) fn end_absent(&mut self) -> Result<(), RequestAborted> {
        self.stat = None;
        self.reply(GotMode::LAST.and(GotMode::ABSENT), Bytes::new())
    }

    /// Ends with attributes alone, because the data exceeds the requested limit.
    pub(super) fn end_without_whole(&mut self) -> Result<(), RequestAborted> {
        self.reply(GotMode::LAST.and(GotMode::MORE), Bytes::new())
    }

    /// Ends a listing whose next entry exceeds the requested limit.
    pub(super) fn end_listing(&mut self) -> Result<(), RequestAborted> {
        self.reply(GotMode::DATA.and(GotMode::MORE).and(GotMode::LAST), Bytes::new())
    }

    /// Sends entries after marking leased attributes; returns `true` when the request is satisfied.
    pub(super) fn send_listing(&mut self, mut listed: Listed) -> Result<bool, RequestAborted> {
        let stats = listed.entries.iter_mut().map(|entry| &mut entry.stat);
        self.replies.grant(&mut stats.filter(|stat| stat.id.fs == 0));
        self.send(listed.packed(), listed.ends)
    }

    /// Requests a lease on the names of a directory for the client.
    pub(super) fn grant_names(&mut self, dir: FileId) {
        self.are_names_granted = dir.fs == 0 && self.replies.grant_names(dir);
    }

    fn reply(&mut self, mode: GotMode, data: Bytes) -> Result<(), RequestAborted> {
        let mode = mode.and_if(std::mem::take(&mut self.are_names_granted), GotMode::PLACE);
        self.replies.grant(&mut self.stat.iter_mut().filter(|stat| stat.id.fs == 0));
        let reply = Rget { fd: self.fd, mode, stat: self.stat.take(), data: Data(data) };
        self.replies.send(Reply::Get(reply))
    }
}
