//! Tlock: takes, tests and releases locks. Threads wait for them here.

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
        // Whoever is gone needs no answer.
        let _gone = replies.send(reply);
    }

    /// What is to be answered; none when it was, or nobody wants it any more.
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

    /// Waits for a lock and answers, unless the request is given up meanwhile.
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
                    replies.pass_turn();
                    replies.wait();
                }
                outcome => break outcome?,
            }
        };
        let reply = self.locked(session, request, replies);
        if replies.send(Reply::Lock(reply)).is_err() {
            // Withdrawn in the last moment: nobody knows that it was had, so nobody would release it.
            self.locks().give_back(holder, request.range, &before);
        }
        Ok(())
    }

    /// The lock is had: with it go the attributes as they are now.
    fn locked(&self, session: SessionKey, request: &Tlock, replies: &mut dyn Replies) -> Rlock {
        let mut stat: Option<Stat> = self.tree().stat(session.0, &request.target).ok();
        replies.grant(&mut stat.iter_mut().filter(|stat| stat.id.fs == 0));
        Rlock { conflict: None, stat }
    }
}
