//! Answers to Tlock. A thread blocks here while its lock is held by another owner.

use super::{Holder, LockTable};
use crate::tree::{Replies, SessionKey};
use wirefs_op::message::lock::{LockAction, Rlock, Tlock};
use wirefs_op::{Errno, FileId, LockKind, Reply, Stat};

/// Returns the current attributes of the file in a Tlock.
pub type StatOfLocked<'a> = &'a dyn Fn() -> Result<Stat, Errno>;

impl LockTable {
    /// Answers a Tlock. The reply to a granted lock has the file's attributes, leased if the tree grants leases.
    pub fn answer(
        &self,
        session: SessionKey,
        request: &Tlock,
        stat: StatOfLocked<'_>,
        replies: &mut dyn Replies,
    ) {
        let reply = match self.reply_to(session, request, stat, replies) {
            Ok(Some(answer)) => Reply::Lock(answer),
            Ok(None) => return,
            Err(errno) => Reply::Error(errno.into()),
        };
        // A closed connection needs no reply.
        let _gone = replies.send(reply);
    }

    /// Returns the reply; `None` if it was sent already or the request was canceled.
    fn reply_to(
        &self,
        session: SessionKey,
        request: &Tlock,
        stat: StatOfLocked<'_>,
        replies: &mut dyn Replies,
    ) -> Result<Option<Rlock>, Errno> {
        let range = request.range;
        if range.start > range.end {
            return Err(Errno::Invalid);
        }
        if i64::try_from(range.start).is_err() {
            return Err(Errno::Overflow);
        }
        let id: FileId = match request.target.id {
            Some(id) => id,
            None => stat()?.id,
        };
        let holder = Holder::new(id, session, request.owner, request.family);
        Ok(match (request.action, range.kind) {
            (LockAction::Test, LockKind::Unlock) => return Err(Errno::Invalid),
            (LockAction::Test, _) => Some(Rlock { conflict: self.test(holder, range), stat: None }),
            (LockAction::Set | LockAction::Wait, LockKind::Unlock) => {
                self.unlock(holder, range)?;
                Some(Rlock { conflict: None, stat: None })
            }
            (LockAction::Set, LockKind::Read | LockKind::Write) => {
                self.lock(holder, range)?;
                Some(locked(stat, replies))
            }
            (LockAction::Wait, LockKind::Read | LockKind::Write) => {
                self.wait_for_lock(request, holder, stat, replies)?;
                None
            }
        })
    }

    /// Waits for a lock and replies, unless the request is canceled meanwhile.
    fn wait_for_lock(
        &self,
        request: &Tlock,
        holder: Holder,
        stat: StatOfLocked<'_>,
        replies: &mut dyn Replies,
    ) -> Result<(), Errno> {
        let before = loop {
            match self.lock(holder, request.range) {
                Err(Errno::WouldBlock) if replies.is_stopped() => return Ok(()),
                Err(Errno::WouldBlock) => {
                    replies.release_slot();
                    replies.wait();
                }
                outcome => break outcome?,
            }
        };
        let reply = locked(stat, replies);
        if replies.send(Reply::Lock(reply)).is_err() {
            // Canceled after the lock was taken: the client will not release a lock that it does not know of.
            self.undo(holder, request.range, &before);
        }
        Ok(())
    }
}

/// Builds the reply to a granted lock, with the current attributes.
fn locked(stat: StatOfLocked<'_>, replies: &mut dyn Replies) -> Rlock {
    let mut stat: Option<Stat> = stat().ok();
    replies.grant(&mut stat.iter_mut().filter(|stat| stat.id.fs == 0));
    Rlock { conflict: None, stat }
}
