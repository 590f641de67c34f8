//! Replies: each continues the operation that sent the request.

use crate::call::Answer;
use crate::core::Client;
use crate::operation::{
    allocate, attributes, barrier, commit, confirm, conflict_copies, copy, fetch, find, handles, interrupt,
    link, list, lock, lookup, make, open, publish, read, readlink, refused, remove, rename, statfs, unstable,
    write, xattr,
};
use crate::pending::{Confirming, Continuation, Figures, Pending, Seeking, Syncing, Unlocking, Withdrawing};
use crate::policies::affected;
use crate::requests::{GivenUp, Outstanding};
use crate::sending::Sender;
use wirefs_op::message::target::NOFD;
use wirefs_op::{Errno, Reply, Request};

impl Client {
    /// Continues with a reply. An `Err` of an operation is the answer to its call.
    pub(crate) fn reply_arrived(&mut self, outstanding: Outstanding, reply: Reply, last: bool) {
        refused::watch(&mut self.view, &mut self.outputs, &outstanding, &reply);
        if let Reply::Error(error) = reply {
            if affected::may_be_done(&outstanding.request, error.errno) {
                affected::invalidate(&mut self.view, &mut self.outputs, &outstanding.pending);
            }
            return self.request_failed(outstanding.pending, error.errno);
        }
        if has_done_too_much(&outstanding.request, &reply) {
            return self.request_lost(outstanding.pending, Errno::Protocol);
        }
        let (sent, order) = (outstanding.told_since, outstanding.order);
        let Outstanding { pending, tag, request, .. } = outstanding;
        note(&mut self.sender(), &pending, &request, (&reply, last), order);
        match (pending, reply) {
            (Pending::Ignore(_) | Pending::Close(_), _) => {}
            (Pending::Lookup(p), Reply::Get(r)) => lookup::finish(self, p, sent, r, last),
            (Pending::Getattr(p), Reply::Get(r)) => attributes::got(self, p, sent, r),
            (Pending::Setattr(p), Reply::Put(r)) => attributes::was_set(&mut self.answerer(), p, sent, r),
            (Pending::Readlink(p), Reply::Get(r)) => readlink::finish(self, p, sent, r),
            (Pending::Make(p), Reply::Put(r)) => make::finish(self, p, sent, r),
            (Pending::Remove(p), Reply::Remove(r)) => remove::finish(self, p, sent, r),
            (Pending::Rename(p), Reply::Rename(r)) => rename::finish(&mut self.answerer(), p, sent, r),
            (Pending::Link(p), Reply::Link(r)) => link::finish(&mut self.answerer(), p, sent, r),
            (Pending::Open(p), Reply::Get(r)) => open::finish_reading(self, p, sent, r, last),
            (Pending::Open(p), Reply::Put(r)) => open::finish_writing(self, p, sent, r),
            (Pending::AcquireFd(p), Reply::Get(r)) => handles::acquired(&mut self.sender(), p, r.fd),
            (Pending::Fetch(p), Reply::Get(r)) => fetch::finish(&mut self.sender(), tag, p, sent, r, last),
            (Pending::ReadExactly(p), Reply::Get(r)) => read::finish_exact(self, tag, p, r, last),
            (Pending::Write(p), Reply::Put(r)) => write::finish(self, p, sent, r),
            (Pending::List(p), Reply::Get(r)) => list::finish(self, tag, p, sent, r, last),
            (Pending::Find(p), Reply::Find(r)) => find::finish(self, tag, p, sent, r, last),
            (Pending::Prefetch(p), Reply::Get(r)) => open::came_ahead(&mut self.sender(), p, sent, r, last),
            (Pending::Xattr(p), Reply::Xattr(r)) => xattr::finish(&mut self.answerer(), p, sent, r),
            (Pending::Statfs(Figures(call)), Reply::Statfs(r)) => {
                statfs::finish(&mut self.answerer(), call, sent, r)
            }
            (Pending::Lock(p), Reply::Lock(r)) => lock::finish(self, p, sent, r),
            (Pending::Unlock(Unlocking(node)), Reply::Lock(_)) => lock::unlocked(&mut self.view, node),
            (Pending::Withdraw(Withdrawing(oldtag)), Reply::Flush(_)) => {
                interrupt::finish(&mut self.sender(), oldtag)
            }
            (Pending::Allocate(p), Reply::Allocate(r)) => allocate::finish(&mut self.answerer(), p, sent, r),
            (Pending::Copy(p), Reply::Copy(r)) => copy::finish(&mut self.answerer(), p, sent, r),
            (Pending::Seek(Seeking(call)), Reply::Seek(r)) => {
                self.answerer().answer(call, Answer::Offset(r.offset))
            }
            (Pending::Publish(p), Reply::Put(r)) => {
                publish::was_put(&mut self.sender(), p, sent, &request, &r)
            }
            (Pending::Publish(p), Reply::Rename(r)) => publish::was_moved(&mut self.sender(), p, sent, &r),
            (Pending::Replaced(p), Reply::Get(r)) => conflict_copies::looked(self, p, r),
            (Pending::Replaced(p), Reply::Remove(r)) => conflict_copies::removed(self, p, sent, r),
            (Pending::Replaced(p), Reply::Rename(r)) => conflict_copies::kept(self, p, sent, &r),
            (Pending::Commit(p), Reply::Commit(r)) => commit::finish(self, p, order, r),
            (Pending::Barrier(_), Reply::Put(_)) => barrier::finish(&mut self.view),
            (Pending::Confirm(Confirming(number)), reply) => {
                confirm::finish(&mut self.sender(), number, sent, &request, &reply)
            }
            (Pending::Room(_), Reply::Statfs(r)) => {
                self.view.figures = Some((r.figures, sent));
                self.view.room_known(true);
            }
            (Pending::Durable(Syncing(below)), Reply::Commit(r)) => {
                self.view.are_durable(&self.requests, &mut self.outputs, below, Some(r.boot))
            }
            // A reply of another kind than was asked for: the server's fault, the caller's loss.
            (pending, _) => self.request_failed(pending, Errno::Protocol),
        }
    }

    /// Ends a request whose outcome is unknown.
    pub(crate) fn request_lost(&mut self, pending: Pending, errno: Errno) {
        affected::invalidate(&mut self.view, &mut self.outputs, &pending);
        self.request_failed(pending, errno);
    }

    /// Ends a change whose outcome is unknown, and quarantines it if its program has continued.
    pub(crate) fn change_lost(&mut self, lost: GivenUp) {
        let GivenUp { request, pending, number } = lost;
        refused::keep(&mut self.view, &mut self.outputs, &pending, number, &request, None);
        self.request_lost(pending, Errno::Io);
    }

    /// Ends a request that failed.
    pub(crate) fn request_failed(&mut self, pending: Pending, errno: Errno) {
        match pending {
            Pending::Ignore(_) | Pending::Close(_) => {}
            Pending::Lookup(p) => lookup::failed(&mut self.answerer(), p, errno),
            Pending::Getattr(p) => attributes::not_got(&mut self.answerer(), p, errno),
            Pending::Setattr(p) => attributes::not_set(&mut self.answerer(), p, errno),
            Pending::Readlink(p) => attributes::fail_gone(&mut self.answerer(), p.call, p.node, errno),
            Pending::Make(p) => make::failed(&mut self.answerer(), p, errno),
            Pending::Remove(p) => remove::failed(&mut self.answerer(), p, errno),
            Pending::Rename(p) => rename::failed(&mut self.answerer(), p, errno),
            Pending::Link(p) => link::failed(&mut self.answerer(), p, errno),
            Pending::Open(p) => open::failed(&mut self.answerer(), p, errno),
            Pending::AcquireFd(p) => handles::acquired(&mut self.sender(), p, NOFD),
            Pending::Fetch(p) => fetch::failed(&mut self.sender(), p, errno),
            Pending::ReadExactly(p) => read::not_exact(&mut self.answerer(), p, errno),
            Pending::Write(p) => write::failed(&mut self.answerer(), p, errno),
            Pending::List(p) => list::failed(self, p, errno),
            Pending::Find(p) => find::failed(&mut self.sender(), p, errno),
            Pending::Prefetch(p) => open::not_ahead(&mut self.sender(), p),
            Pending::Xattr(p) => xattr::failed(&mut self.answerer(), p, errno),
            Pending::Statfs(Figures(call)) => statfs::failed(&mut self.answerer(), call, errno),
            Pending::Seek(Seeking(call)) => self.answerer().fail(call, errno),
            Pending::Lock(p) => lock::failed(self, p, errno),
            Pending::Unlock(Unlocking(node)) => lock::unlocked(&mut self.view, node),
            Pending::Withdraw(Withdrawing(oldtag)) => interrupt::finish(&mut self.sender(), oldtag),
            Pending::Allocate(p) => allocate::failed(&mut self.answerer(), p, errno),
            Pending::Copy(p) => copy::failed(&mut self.answerer(), p, errno),
            Pending::Commit(p) => commit::failed(&mut self.answerer(), p, errno),
            Pending::Barrier(p) => {
                barrier::failed(&mut self.view, &mut self.requests, &mut self.outputs, p, errno)
            }
            Pending::Publish(p) => publish::failed(&mut self.sender(), p, errno),
            Pending::Replaced(p) => conflict_copies::failed(self, p, errno),
            Pending::Confirm(Confirming(number)) => confirm::failed(&mut self.sender(), number, errno),
            Pending::Room(_) => self.view.room_known(false),
            Pending::Durable(Syncing(below)) => {
                self.view.are_durable(&self.requests, &mut self.outputs, below, None)
            }
        }
    }
}

/// Notes what any reply says about the file of its request, whichever operation continues.
fn note(
    sender: &mut Sender<'_>,
    pending: &Pending,
    request: &Request,
    (reply, last): (&Reply, bool),
    order: u64,
) {
    if request.is_change() {
        unstable::note(sender, pending, request, order);
        sender.view.note_acquired(request);
    }
    if pending.leaves_fd() {
        handles::fd_moved(sender, request, reply);
    }
    if last && matches!(pending, Pending::Ignore(_)) {
        handles::opened_late(sender, request, reply);
    }
}

/// Whether a reply claims that the server has done more than was requested.
fn has_done_too_much(request: &Request, reply: &Reply) -> bool {
    match (request, reply) {
        (Request::Put(asked), Reply::Put(put)) => u64::from(put.count) > asked.data.0.len() as u64,
        (Request::Copy(asked), Reply::Copy(copied)) => copied.count > asked.length,
        _ => false,
    }
}
