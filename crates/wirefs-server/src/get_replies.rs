//! The replies to one Tget, for trees whose data arrives in pieces.

use crate::tree::{Replies, Stopped};
use bytes::Bytes;
use wirefs_op::limits::DATA_BYTES_MAX;
use wirefs_op::message::get::{GotMode, Rget, Tget};
use wirefs_op::message::target::{Fd, NOFD};
use wirefs_op::wire::Data;
use wirefs_op::{Reply, Stat};

/// The replies to one Tget.
pub struct GetReplies<'a> {
    /// The open file of all replies, or [`NOFD`].
    pub fd: Fd,
    /// The attributes for the first reply.
    pub stat: Option<Stat>,
    bytes_remaining: u64,
    messages_remaining: Option<u16>,
    replies: &'a mut dyn Replies,
}

impl<'a> GetReplies<'a> {
    /// Creates the replies to a request, within its limits.
    pub fn new(request: &Tget, replies: &'a mut dyn Replies) -> GetReplies<'a> {
        let messages_remaining = (request.nmsgs > 0).then_some(request.nmsgs);
        GetReplies {
            fd: NOFD,
            stat: None,
            bytes_remaining: u64::from(request.count),
            messages_remaining,
            replies,
        }
    }

    /// The maximal data of the next reply, in bytes.
    pub fn bytes_max(&self) -> usize {
        self.bytes_remaining.min(DATA_BYTES_MAX as u64) as usize
    }

    /// The maximal data of all further replies, in bytes.
    pub fn all_bytes_max(&self) -> u64 {
        let by_messages =
            self.messages_remaining.map_or(u64::MAX, |left| u64::from(left) * DATA_BYTES_MAX as u64);
        self.bytes_remaining.min(by_messages)
    }

    /// Returns whether the request was canceled.
    pub fn is_stopped(&self) -> bool {
        self.replies.is_stopped()
    }

    /// Sends data. Returns whether the request wants no more.
    ///
    /// # Errors
    /// The request was canceled.
    pub fn send(&mut self, data: Bytes, is_at_end: bool) -> Result<bool, Stopped> {
        self.bytes_remaining = self.bytes_remaining.saturating_sub(data.len() as u64);
        let is_last = is_at_end || self.bytes_remaining == 0 || self.messages_remaining == Some(1);
        self.messages_remaining = self.messages_remaining.map(|left| left.saturating_sub(1));
        let mode = GotMode::DATA.and_if(!is_at_end, GotMode::MORE).and_if(is_last, GotMode::LAST);
        self.reply(mode, data)?;
        Ok(is_last)
    }

    /// Ends the answer without data, or without more.
    ///
    /// # Errors
    /// The request was canceled.
    pub fn end(&mut self, mode: GotMode) -> Result<(), Stopped> {
        self.reply(mode.and(GotMode::LAST), Bytes::new())
    }

    fn reply(&mut self, mode: GotMode, data: Bytes) -> Result<(), Stopped> {
        let reply = Rget { fd: self.fd, mode, stat: self.stat.take(), data: Data(data) };
        self.replies.send(Reply::Get(reply))
    }
}
