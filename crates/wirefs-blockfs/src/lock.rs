//! Tlock: takes, tests and releases locks. Threads wait for them here.

use crate::locks::Holder;
use crate::tree::BlockFs;
use wirefs_op::message::lock::{LockAction, Rlock, Tlock};
use wirefs_op::{Errno, LockKind, Reply, Stat};
use wirefs_server::{Replies, SessionKey, Stopped};

/// Why a lock is not answered with success.
enum Failure {
    Errno(Errno),
    /// Nobody wants the answer.
    Stopped,
}

impl From<Errno> for Failure {
    fn from(errno: Errno) -> Failure {
        Failure::Errno(errno)
    }
}

impl From<Stopped> for Failure {
    fn from(_: Stopped) -> Failure {
        Failure::Stopped
    }
}

impl BlockFs {
    pub(crate) fn lock(&self, session: SessionKey, request: &Tlock, replies: &mut dyn Replies) {
        match self.answer_lock(session, request, replies) {
            Ok(()) | Err(Failure::Stopped) => {}
            Err(Failure::Errno(errno)) => {
                // Whoever is gone needs no answer.
                let _gone = replies.send(Reply::Error(errno.into()));
            }
        }
    }

    fn answer_lock(
        &self,
        session: SessionKey,
        request: &Tlock,
        replies: &mut dyn Replies,
    ) -> Result<(), Failure> {
        let range = request.range;
        if range.start > range.end {
            return Err(Errno::Invalid.into());
        }
        if i64::try_from(range.start).is_err() {
            return Err(Errno::Overflow.into());
        }
        let id = match request.target.id {
            Some(id) => id,
            None => self.tree().stat(session.0, &request.target)?.id,
        };
        let holder = Holder::new(id, session, request.owner, request.family);
        let reply = match (request.action, range.kind) {
            (LockAction::Test, LockKind::Unlock) => return Err(Errno::Invalid.into()),
            (LockAction::Test, _) => Rlock { conflict: self.locks().test(holder, range), stat: None },
            (LockAction::Set | LockAction::Wait, LockKind::Unlock) => {
                self.locks().unlock(holder, range);
                Rlock { conflict: None, stat: None }
            }
            (LockAction::Set, LockKind::Read | LockKind::Write) => {
                self.locks().lock(holder, range)?;
                self.locked(session, request, replies)
            }
            (LockAction::Wait, LockKind::Read | LockKind::Write) => {
                return self.wait_for_lock(session, request, holder, replies);
            }
        };
        Ok(replies.send(Reply::Lock(reply))?)
    }

    fn wait_for_lock(
        &self,
        session: SessionKey,
        request: &Tlock,
        holder: Holder,
        replies: &mut dyn Replies,
    ) -> Result<(), Failure> {
        let before = loop {
            match self.locks().lock(holder, request.range) {
                Err(Errno::WouldBlock) if replies.is_stopped() => return Err(Failure::Stopped),
                Err(Errno::WouldBlock) => replies.wait(),
                outcome => break outcome?,
            }
        };
        let reply = self.locked(session, request, replies);
        let sent = replies.send(Reply::Lock(reply));
        if sent.is_err() {
            // Withdrawn in the last moment: nobody knows that it was had, so nobody would release it.
            self.locks().give_back(holder, request.range, &before);
        }
        Ok(sent?)
    }

    /// The lock is had: with it go the attributes as they are now.
    fn locked(&self, session: SessionKey, request: &Tlock, replies: &mut dyn Replies) -> Rlock {
        let mut stat: Option<Stat> = self.tree().stat(session.0, &request.target).ok();
        replies.grant(&mut stat.iter_mut().filter(|stat| stat.id.fs == 0));
        Rlock { conflict: None, stat }
    }
}
