//! The locks that the server holds: the reference tree has none.

use super::{Event, World};
use std::collections::BTreeMap;
use std::time::Duration;
use wirefs_op::message::get::{GetMode, Tget};
use wirefs_op::message::lock::{LockAction, Rlock, Tlock};
use wirefs_op::{Errno, FileId, LockFamily, LockKind, LockRange, LockRanges, Reply, Request};
use wirefs_server::{ExternalChange, Job, ServerInput, SessionKey};

/// The holders of locks of one family on one file.
type Holder = (SessionKey, u64, bool, FileId);

/// The session of programs at the server.
const LOCAL: SessionKey = SessionKey(901);

#[derive(Default)]
pub(crate) struct LockTable(BTreeMap<Holder, LockRanges>);

impl LockTable {
    fn conflict(&self, wanted: &Holder, range: LockRange) -> Option<LockRange> {
        let is_other = |holder: &Holder| holder != wanted && (holder.2, holder.3) == (wanted.2, wanted.3);
        self.0.iter().filter(|(holder, _)| is_other(holder)).find_map(|(_, held)| held.conflict(range))
    }

    pub(super) fn end(&mut self, session: SessionKey) {
        self.0.retain(|holder, _| holder.0 != session);
    }
}

impl World {
    /// `None`: it waits.
    pub(super) fn serve_lock(&mut self, job: &Job, lock: &Tlock) -> Option<Vec<Reply>> {
        let id = lock.target.id.expect("the client knows the file");
        let holder = (job.session, lock.owner, lock.family == LockFamily::Flock, id);
        let conflict = self.locks.conflict(&holder, lock.range);
        let is_release = lock.range.kind == LockKind::Unlock;
        match lock.action {
            LockAction::Test => return Some(vec![Reply::Lock(Rlock { conflict, stat: None })]),
            LockAction::Set if conflict.is_some() && !is_release => {
                return Some(vec![Reply::Error(Errno::WouldBlock.into())]);
            }
            LockAction::Wait if conflict.is_some() => {
                self.handle(ServerInput::SlotReleased(job.key));
                self.after(Duration::from_millis(10), Event::Execute(Box::new(job.clone())));
                return None;
            }
            LockAction::Set | LockAction::Wait => {}
        }
        self.locks.0.entry(holder).or_default().set(lock.range);
        let get = Tget { target: lock.target.clone(), mode: GetMode::STAT, nmsgs: 1, offset: 0, count: 0 };
        let asked = Job { request: Request::Get(get), ..job.clone() };
        let stat = self.serve_job(&asked)?.into_iter().find_map(|reply| match reply {
            Reply::Get(got) => got.stat,
            _ => None,
        });
        let stat = stat.filter(|_| !is_release);
        Some(vec![Reply::Lock(Rlock { conflict: None, stat })])
    }

    /// A program at the server takes or releases an `fcntl` lock of the file that was locked first, if it can.
    pub(crate) fn lock_at_server(&mut self, range: LockRange) -> bool {
        let (.., id) = *self.locks.0.keys().next().expect("somebody has locked it");
        let holder = (LOCAL, 1, false, id);
        let may = range.kind == LockKind::Unlock || self.locks.conflict(&holder, range).is_none();
        if may {
            self.locks.0.entry(holder).or_default().set(range);
        }
        may
    }

    /// A program at the server changes the file that was locked first, as far as its watch tells.
    pub(crate) fn change_at_server(&mut self) {
        let (.., id) = *self.locks.0.keys().next().expect("somebody has locked it");
        self.handle(ServerInput::ExternalChange(ExternalChange::Changed { id, name: None, version: None }));
    }

    /// The locks of the clients at the server.
    pub(crate) fn locked(&self) -> Vec<LockRange> {
        let clients = self.locks.0.iter().filter(|(holder, _)| holder.0 != LOCAL);
        clients.flat_map(|(_, held)| held.to_vec()).collect()
    }
}
