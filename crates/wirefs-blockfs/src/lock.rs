//! Tlock: takes, tests and releases locks. A thread blocks here while its lock is held by another owner.

use crate::locks::Holder;
use crate::tree::BlockFs;
use wirefs_op::message::lock::{LockAction, Rlock, Tlock};
use wirefs_op::{Errno, LockKind, Reply, Stat};
use wirefs_server::{Replies, SessionKey};

impl BlockFs {
    pub(crate) fn lock(&self, session: SessionKey, request: &Tlock, replies: &mut dyn Replies) {
        let reply = match self.answer_lock(session, request, replies) {
            Ok(Some(answer)) => Reply::Lock(answer),
            Ok(None) => return,
            Err(errno) => Reply::Error(errno.into()),
        };
        // A closed connection needs no reply.
        let _gone = replies.send(reply);
    }

    /// Returns the reply; `None` if it was sent already or the request was canceled.
    fn answer_lock(
        &self,
        session: SessionKey,
        request: &Tlock,
        replies: &mut dyn Replies,
    ) -> Result<Option<Rlock>, Errno> {
        let range = request.range;
        if range.start > range.end {
            return Err(Errno::Invalid);
        }
        if i64::try_from(range.start).is_err() {
            return Err(Errno::Overflow);
        }
        let id = match request.target.id {
            Some(id) => id,
            None => self.tree().stat(session.0, &request.target)?.id,
        };
        let holder = Holder::new(id, session, request.owner, request.family);
        Ok(match (request.action, range.kind) {
            (LockAction::Test, LockKind::Unlock) => return Err(Errno::Invalid),
            (LockAction::Test, _) => Some(Rlock { conflict: self.locks().test(holder, range), stat: None }),
            (LockAction::Set | LockAction::Wait, LockKind::Unlock) => {
                self.locks().unlock(holder, range)?;
                Some(Rlock { conflict: None, stat: None })
            }
            (LockAction::Set, LockKind::Read | LockKind::Write) => {
                self.locks().lock(holder, range)?;
                Some(self.locked(session, request, replies))
            }
            (LockAction::Wait, LockKind::Read | LockKind::Write) => {
                self.wait_for_lock(session, request, holder, replies)?;
                None
            }
        })
    }

    /// Waits for a lock and replies, unless the request is canceled meanwhile.
    fn wait_for_lock(
        &self,
        session: SessionKey,
        request: &Tlock,
        holder: Holder,
        replies: &mut dyn Replies,
    ) -> Result<(), Errno> {
        let before = loop {
            match self.locks().lock(holder, request.range) {
                Err(Errno::WouldBlock) if replies.is_stopped() => return Ok(()),
                Err(Errno::WouldBlock) => {
                    replies.release_slot();
                    replies.wait();
                }
                outcome => break outcome?,
            }
        };
        let reply = self.locked(session, request, replies);
        if replies.send(Reply::Lock(reply)).is_err() {
            // Canceled after the lock was taken: the client will not release a lock that it does not know of.
            self.locks().undo(holder, request.range, &before);
        }
        Ok(())
    }

    /// Builds the reply to a granted lock, with the current attributes.
    fn locked(&self, session: SessionKey, request: &Tlock, replies: &mut dyn Replies) -> Rlock {
        let mut stat: Option<Stat> = self.tree().stat(session.0, &request.target).ok();
        replies.grant(&mut stat.iter_mut().filter(|stat| stat.id.fs == 0));
        Rlock { conflict: None, stat }
    }
}
