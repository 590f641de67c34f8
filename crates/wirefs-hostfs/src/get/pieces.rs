//! The replies to one Tget: their number, their sizes, and their flags.

use crate::failure::Failure;
use bytes::Bytes;
use wirefs_op::limits::DATA_BYTES_MAX;
use wirefs_op::message::get::{GotMode, Rget, Tget};
use wirefs_op::message::target::{Fd, NOFD};
use wirefs_op::wire::Data;
use wirefs_op::{Reply, Stat};
use wirefs_server::Replies;

/// Splits the answer into replies.
pub(crate) struct Pieces<'a> {
    /// The fd for the reply.
    pub(crate) fd: Fd,
    stat: Option<Stat>,
    size: Option<u64>,
    bytes_left: usize,
    /// Replies that may still be sent; `None` is no limit.
    messages_left: Option<u16>,
    /// Whether the client gets a lease on the names of the directory.
    pub(crate) are_names_leased: bool,
    replies: &'a mut dyn Replies,
}

impl<'a> Pieces<'a> {
    pub(crate) fn new(request: &Tget, replies: &'a mut dyn Replies) -> Pieces<'a> {
        Pieces {
            fd: NOFD,
            stat: None,
            size: None,
            bytes_left: usize::try_from(request.count).unwrap_or(usize::MAX),
            messages_left: (request.nmsgs > 0).then_some(request.nmsgs),
            are_names_leased: false,
            replies,
        }
    }

    /// The receiver of the replies.
    pub(crate) fn replies(&mut self) -> &mut dyn Replies {
        self.replies
    }

    /// Adds the attributes to the next reply.
    pub(crate) fn set_stat(&mut self, stat: Stat) {
        self.size = Some(stat.size);
        self.stat = Some(stat);
    }

    /// The size in the attributes, if they were requested.
    pub(crate) fn stat_size(&self) -> Option<u64> {
        self.size
    }

    /// The largest data of the next reply, in bytes.
    pub(crate) fn piece_bytes_max(&self) -> usize {
        self.bytes_left.min(DATA_BYTES_MAX)
    }

    /// Whether the next reply is the last requested one.
    pub(crate) fn is_last(&self) -> bool {
        self.messages_left == Some(1)
    }

    /// Sends one piece; returns whether it was the last. `is_at_end`: it ends the file or listing.
    ///
    /// # Errors
    /// No further replies are wanted.
    pub(crate) fn send(&mut self, data: Bytes, is_at_end: bool) -> Result<bool, Failure> {
        self.bytes_left = self.bytes_left.saturating_sub(data.len());
        let is_last = is_at_end || self.bytes_left == 0 || self.is_last();
        self.messages_left = self.messages_left.map(|left| left.saturating_sub(1));
        let mode = GotMode::DATA.and_if(!is_at_end, GotMode::MORE).and_if(is_last, GotMode::LAST);
        self.reply(mode, data)?;
        Ok(is_last)
    }

    /// Ends the answer without data.
    ///
    /// # Errors
    /// No further replies are wanted.
    pub(crate) fn end_without_data(&mut self) -> Result<(), Failure> {
        self.reply(GotMode::LAST, Bytes::new())
    }

    /// Ends the answer without data, because the whole data would not fit.
    ///
    /// # Errors
    /// No further replies are wanted.
    pub(crate) fn end_without_whole(&mut self) -> Result<(), Failure> {
        self.reply(GotMode::LAST.and(GotMode::MORE), Bytes::new())
    }

    /// Ends the answer to a lookup of an absent name.
    ///
    /// # Errors
    /// No further replies are wanted.
    pub(crate) fn end_absent(&mut self) -> Result<(), Failure> {
        self.reply(GotMode::LAST.and(GotMode::ABSENT), Bytes::new())
    }

    /// Ends a listing whose next entry exceeds the requested bytes.
    ///
    /// # Errors
    /// No further replies are wanted.
    pub(crate) fn end_listing(&mut self) -> Result<(), Failure> {
        self.reply(GotMode::DATA.and(GotMode::MORE).and(GotMode::LAST), Bytes::new())
    }

    fn reply(&mut self, mode: GotMode, data: Bytes) -> Result<(), Failure> {
        // Stated once: later pieces are of the same object.
        let mode = mode.and_if(std::mem::take(&mut self.are_names_leased), GotMode::PLACE);
        let reply = Rget { fd: self.fd, mode, stat: self.stat.take(), data: Data(data) };
        Ok(self.replies.send(Reply::Get(reply))?)
    }
}
