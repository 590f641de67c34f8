//! Tlock: takes, tests and releases locks.

use crate::failure::Failure;
use crate::locks::{Had, Holder};
use crate::resolve::Object;
use crate::session::Session;
use std::sync::Arc;
use wirefs_op::message::lock::{LockAction, Rlock, Tlock};
use wirefs_op::{Errno, FileId, LockFamily, LockKind, LockRange, Reply};
use wirefs_server::Replies;

impl Session {
    pub(crate) fn lock(&self, request: &Tlock, replies: &mut dyn Replies) -> Result<(), Failure> {
        if request.range.start > request.range.end {
            return Err(Errno::Invalid.into());
        }
        if i64::try_from(request.range.start).is_err() {
            return Err(Errno::Overflow.into());
        }
        let reply = match (request.action, request.range.kind) {
            (LockAction::Test, _) => Rlock { conflict: self.test_lock(request)?, stat: None },
            (LockAction::Set | LockAction::Wait, LockKind::Unlock) => {
                self.unlock(request)?;
                Rlock { conflict: None, stat: None }
            }
            (LockAction::Set, LockKind::Read | LockKind::Write) => {
                let had = self.take_lock(request, || Err(Errno::WouldBlock.into()))?;
                self.locked(&had, replies)
            }
            (LockAction::Wait, LockKind::Read | LockKind::Write) => {
                return self.wait_for_lock(request, replies);
            }
        };
        Ok(replies.send(Reply::Lock(reply))?)
    }

    fn holder(&self, request: &Tlock, id: FileId) -> Holder {
        Holder { session: self.key, owner: request.owner, family: request.family, id }
    }

    /// The file's id: what the client says, else what is at the path.
    fn lock_id(&self, request: &Tlock) -> Result<FileId, Errno> {
        match request.target.id {
            Some(id) => Ok(id),
            None => self.locate(&request.target).map(|object| object.id),
        }
    }

    fn take_lock(
        &self,
        request: &Tlock,
        refused: impl FnMut() -> Result<(), Failure>,
    ) -> Result<Had, Failure> {
        let id = self.lock_id(request)?;
        let open = || self.locate(&request.target)?.open_for_locks(request.family);
        self.export.locks.lock(self.holder(request, id), request.range, &self.has_ended, open, refused)
    }

    fn locked(&self, had: &Had, replies: &mut dyn Replies) -> Rlock {
        let object = Object::of_open(Arc::clone(&had.file), self.export.promises.of_object());
        // Asked with the lock held: what was written under it before has an event in the queue, or its recall precedes this reply.
        let stat = match self.export.promises.is_quiet() {
            true => self.stat_promised(&object, replies),
            false => self.stat(&object),
        };
        Rlock { conflict: None, stat: stat.ok() }
    }

    fn unlock(&self, request: &Tlock) -> Result<(), Failure> {
        let id = self.lock_id(request)?;
        self.export.locks.unlock(self.holder(request, id), request.range)
    }

    fn test_lock(&self, request: &Tlock) -> Result<Option<LockRange>, Failure> {
        let id = self.lock_id(request)?;
        let holder = self.holder(request, id);
        match request.family {
            LockFamily::Flock => Ok(self.export.locks.held_by_others(&holder, request.range)),
            LockFamily::Posix => {
                let open = || self.locate(&request.target)?.open_for_locks(request.family);
                self.export.locks.test(holder, request.range, open)
            }
        }
    }

    fn wait_for_lock(&self, request: &Tlock, replies: &mut dyn Replies) -> Result<(), Failure> {
        let had = self.take_lock(request, || {
            if replies.is_stopped() {
                return Err(Failure::Stopped);
            }
            // The file is held, and what was sent before is done; what comes after may be the release that this waits for.
            replies.release_slot();
            replies.wait();
            Ok(())
        })?;
        let reply = self.locked(&had, replies);
        let sent = replies.send(Reply::Lock(reply));
        if sent.is_err() {
            // Withdrawn in the last moment: nobody knows that it was had, so nobody would release it.
            let id = self.lock_id(request)?;
            self.export.locks.give_back(self.holder(request, id), request.range, &had.before)?;
        }
        Ok(sent?)
    }
}
