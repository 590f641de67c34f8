//! Tlock: the locks of a session, in one stream to the gate.

use super::tree::{At, Failure, lock};
use crate::convert::{identity, stat_of};
use crate::proto;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;
use wirefs_op::message::lock::{LockAction, Rlock, Tlock};
use wirefs_op::{Errno, LockFamily, LockKind, LockRange};
use wirefs_server::Replies;

/// The requests and replies of one session's locks. Its end releases them.
pub(super) struct LockStream {
    requests: mpsc::Sender<proto::LockRequest>,
    replies: Streaming<proto::LockReply>,
}

impl At<'_> {
    pub(super) fn lock(&self, request: &Tlock, replies: &mut dyn Replies) -> Result<Rlock, Failure> {
        let ask = self.lock_request(request);
        let waits = request.action == LockAction::Wait && request.range.kind != LockKind::Unlock;
        if waits {
            replies.release_slot();
        }
        loop {
            let reply = self.ask_lock(&ask)?;
            if reply.errno != 0 {
                let number = u16::try_from(reply.errno).unwrap_or(u16::MAX);
                return Err(Errno::from_code(number).into());
            }
            let stat = reply.attributes.as_ref().map(stat_of);
            match request.action {
                _ if reply.granted => return Ok(Rlock { conflict: None, stat }),
                LockAction::Test => return Ok(Rlock { conflict: Some(conflict_of(&reply)?), stat: None }),
                LockAction::Set => return Err(Errno::WouldBlock.into()),
                LockAction::Wait if replies.is_stopped() => return Err(Failure::Stopped),
                LockAction::Wait => replies.wait(),
            }
        }
    }

    fn lock_request(&self, request: &Tlock) -> proto::LockRequest {
        let LockRange { kind, start, end, .. } = request.range;
        let kind = match kind {
            LockKind::Read => proto::LockKind::Shared,
            LockKind::Write => proto::LockKind::Exclusive,
            LockKind::Unlock => proto::LockKind::Unlock,
        };
        let family = match request.family {
            LockFamily::Posix => proto::LockFamily::Posix,
            LockFamily::Flock => proto::LockFamily::Flock,
        };
        proto::LockRequest {
            path: self.full(&request.target.path).into(),
            object: request.target.id.map(identity),
            kind: kind.into(),
            family: family.into(),
            start,
            length: if end == u64::MAX { 0 } else { end.saturating_sub(start) + 1 },
            owner: request.owner,
            test: request.action == LockAction::Test,
        }
    }

    fn ask_lock(&self, ask: &proto::LockRequest) -> Result<proto::LockReply, Failure> {
        let mut stream = lock(&self.session.locks);
        if stream.is_none() {
            let (requests, receiver) = mpsc::channel(1);
            let receiver = ReceiverStream::new(receiver);
            let replies = self.remote.ask(|mut client| async move { client.lock(receiver).await })?;
            *stream = Some(LockStream { requests, replies });
        }
        let LockStream { requests, replies } = stream.as_mut().ok_or(Failure::Lost)?;
        let (requests, ask) = (requests.clone(), ask.clone());
        self.remote.runtime.block_on(async {
            requests.send(ask).await.map_err(|_| Failure::Lost)?;
            // The stream ends with the gate.
            replies.message().await?.ok_or(Failure::Lost)
        })
    }
}

fn conflict_of(reply: &proto::LockReply) -> Result<LockRange, Errno> {
    let kind = match reply.kind() {
        proto::LockKind::Shared => LockKind::Read,
        proto::LockKind::Exclusive => LockKind::Write,
        proto::LockKind::Unlock => return Err(Errno::Protocol),
    };
    let end = match reply.length {
        0 => u64::MAX,
        length => reply.start.checked_add(length - 1).ok_or(Errno::Protocol)?,
    };
    Ok(LockRange { kind, start: reply.start, end, pid: 0 })
}
