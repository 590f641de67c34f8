//! Tlock: takes, tests and releases locks.

use crate::failure::Failure;
use crate::locks::{AcquiredLock, Holder};
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
                let acquired = self.take_lock(request, || Err(Errno::WouldBlock.into()))?;
                self.locked(&acquired, replies)
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

    /// The file's id: from the request, else from the path.
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
    ) -> Result<AcquiredLock, Failure> {
        let id = self.lock_id(request)?;
        let open = || {
            let share = self.files.budget().take().ok_or(Errno::NoLocks)?;
            Ok((share, self.locate(&request.target)?.open_for_locks(request.family)?))
        };
        self.export.locks.lock(self.holder(request, id), request.range, &self.has_ended, open, refused)
    }

    fn locked(&self, acquired: &AcquiredLock, replies: &mut dyn Replies) -> Rlock {
        let object = Object::of_open(Arc::clone(&acquired.file), self.export.detection.object_coverage());
        // Read with the lock held: each write under an earlier lock has an event in the queue, or its recall
        // precedes this reply.
        let stat = match self.export.detection.is_quiet() {
            true => self.stat_leased(&object, replies),
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
        let acquired = self.take_lock(request, || {
            if replies.is_stopped() {
                return Err(Failure::Stopped);
            }
            // The file is open, and earlier changes are done. A later change may be the release that this request
            // waits for.
            replies.release_slot();
            replies.wait();
            Ok(())
        })?;
        let reply = self.locked(&acquired, replies);
        let sent = replies.send(Reply::Lock(reply));
        if sent.is_err() {
            // Canceled after the lock was acquired: the client does not know of it and would never release it.
            let id = self.lock_id(request)?;
            self.export.locks.restore(self.holder(request, id), request.range, &acquired.before)?;
        }
        Ok(sent?)
    }
}
