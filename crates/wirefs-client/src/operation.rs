//! The operations: one file each, with its call, its request and its reply.

pub(crate) mod access;
pub(crate) mod allocate;
pub(crate) mod as_opened;
pub(crate) mod attributes;
pub(crate) mod barrier;
pub(crate) mod commit;
pub(crate) mod concerned;
pub(crate) mod confirm;
pub(crate) mod copy;
pub(crate) mod displaced;
pub(crate) mod fetch;
pub(crate) mod find;
pub(crate) mod flush;
pub(crate) mod gather;
pub(crate) mod interrupt;
pub(crate) mod link;
pub(crate) mod list;
pub(crate) mod lock;
pub(crate) mod lookup;
pub(crate) mod make;
pub(crate) mod open;
pub(crate) mod publish;
pub(crate) mod read;
pub(crate) mod readlink;
pub(crate) mod refused;
pub(crate) mod release;
pub(crate) mod remove;
pub(crate) mod rename;
pub(crate) mod seek;
pub(crate) mod session;
pub(crate) mod statfs;
pub(crate) mod uncommitted;
pub(crate) mod unopened;
pub(crate) mod write;
pub(crate) mod xattr;

use crate::call::{Answer, Call, CallId, Caller, UNOPENED};
use crate::core::Client;
use crate::pending::{
    Confirming, Continuation, Figures, ListingReader, LockWanted, Pending, Seeking, Syncing, Unlocking,
    Withdrawing,
};
use crate::requests::Outstanding;

use wirefs_cache::TreeNodeId;
use wirefs_op::{Errno, Reply, Request};

/// The nodes that the kernel uses by a call: it knows them.
fn used(call: &Call<'_>) -> [Option<TreeNodeId>; 2] {
    match *call {
        Call::Forget { .. } | Call::Interrupt { .. } => [None, None],
        Call::Rename { parent, to_parent, .. } => [Some(parent), Some(to_parent)],
        Call::Link { node, parent, .. } => [Some(node), Some(parent)],
        Call::CopyRange { from, to, .. } => [Some(from), Some(to)],
        Call::Lookup { parent, .. }
        | Call::Mknod { parent, .. }
        | Call::Mkdir { parent, .. }
        | Call::Symlink { parent, .. }
        | Call::Create { parent, .. }
        | Call::Tmpfile { parent, .. }
        | Call::Unlink { parent, .. }
        | Call::Rmdir { parent, .. } => [Some(parent), None],
        Call::Getattr { node, .. }
        | Call::Setattr { node, .. }
        | Call::Readlink { node }
        | Call::Open { node, .. }
        | Call::Read { node, .. }
        | Call::Write { node, .. }
        | Call::Flush { node, .. }
        | Call::Release { node, .. }
        | Call::Fsync { node, .. }
        | Call::Opendir { node }
        | Call::Readdir { node, .. }
        | Call::Releasedir { node, .. }
        | Call::Fsyncdir { node, .. }
        | Call::Syncfs { node }
        | Call::Statfs { node }
        | Call::Setxattr { node, .. }
        | Call::Getxattr { node, .. }
        | Call::Listxattr { node, .. }
        | Call::Removexattr { node, .. }
        | Call::Access { node, .. }
        | Call::Getlk { node, .. }
        | Call::Setlk { node, .. }
        | Call::Fallocate { node, .. }
        | Call::Lseek { node, .. } => [Some(node), None],
    }
}

/// Starts a call.
pub(crate) fn start(client: &mut Client, id: CallId, caller: Caller, call: Call<'_>) {
    for node in used(&call).into_iter().flatten() {
        client.names.used(node);
        client.unshelve(node);
    }
    gather::before(client, &call);
    if let Err(errno) = try_start(client, id, caller, call) {
        client.fail(id, errno);
    }
}

// tidy: long because it is the table of all calls.
fn try_start(client: &mut Client, id: CallId, caller: Caller, call: Call<'_>) -> Result<(), Errno> {
    match call {
        Call::Lookup { parent, name } => lookup::start(client, id, parent, name),
        Call::Forget { node, count } => {
            forget(client, node, count);
            Ok(())
        }
        Call::Getattr { node, handle } => attributes::get(client, id, node, handle),
        Call::Setattr { node, handle, set, kill_privileges } => {
            attributes::set(client, id, node, handle, set, kill_privileges)
        }
        Call::Readlink { node } => readlink::start(client, id, node),
        Call::Mknod { parent, name, mode, umask, rdev } => {
            make::node(client, id, caller, parent, name, (mode, umask, rdev))
        }
        Call::Mkdir { parent, name, mode, umask } => {
            make::directory(client, id, caller, parent, name, (mode, umask))
        }
        Call::Symlink { parent, name, target } => make::symlink(client, id, caller, parent, name, target),
        Call::Create { parent, name, mode, umask, how } => {
            make::file(client, id, caller, parent, name, (mode, umask), how)
        }
        Call::Tmpfile { parent, mode, umask, how } => {
            make::nameless(client, id, caller, parent, (mode, umask), how)
        }
        Call::Unlink { parent, name } => remove::start(client, id, parent, name, false),
        Call::Rmdir { parent, name } => remove::start(client, id, parent, name, true),
        Call::Rename { parent, name, to_parent, to_name, flags } => {
            rename::start(client, id, (parent, name), (to_parent, to_name), flags)
        }
        Call::Link { node, parent, name } => link::start(client, id, node, parent, name),
        Call::Open { node, how } => open::start(client, id, caller, node, how),
        Call::Read { node, handle, offset, count } => read::start(client, id, node, handle, offset, count),
        Call::Write { node, handle, offset, data, cached, kill_privileges } => {
            write::start(client, id, node, handle, offset, data, (cached, kill_privileges))
        }
        Call::Flush { node, handle, owner } => flush::start(client, id, node, handle, owner),
        Call::Release { node, handle, flock_owner } => release::file(client, id, node, handle, flock_owner),
        Call::Fsync { node, handle, data_only } => commit::file(client, id, node, handle, data_only),
        Call::Opendir { node } => list::open(client, ListingReader::Opendir(id), node),
        Call::Readdir { node, handle, offset, bytes_max, entry_bytes, with_stats } => {
            let thread = caller.pid;
            let number = None;
            let wanted = crate::files::WaitingReaddir {
                call: id,
                offset,
                bytes_max,
                entry_bytes,
                with_stats,
                number,
                thread,
            };
            match handle {
                UNOPENED => unopened::read(client, node, wanted),
                _ => list::read(client, node, handle, wanted),
            }
        }
        Call::Releasedir { node, handle } => release::directory(client, id, node, handle),
        Call::Fsyncdir { node, handle: _, data_only } => commit::directory(client, id, node, data_only),
        Call::Syncfs { node } => commit::filesystem(client, id, node),
        Call::Statfs { node } => statfs::start(client, id, node),
        Call::Setxattr { node, name, value, flags, kill_sgid } => {
            xattr::set(client, id, node, name, value, (flags, kill_sgid))
        }
        Call::Getxattr { node, name, size_max } => xattr::read(client, id, node, name, size_max),
        Call::Listxattr { node, size_max } => xattr::list(client, id, node, size_max),
        Call::Removexattr { node, name } => xattr::remove(client, id, node, name),
        Call::Access { node, mask } => access::start(client, id, caller, node, mask),
        Call::Getlk { node, handle, owner, family, range } => {
            lock::test(client, id, node, handle, LockWanted { owner, family, range });
            Ok(())
        }
        Call::Setlk { node, handle, owner, family, range, wait } => {
            lock::set(client, id, node, handle, LockWanted { owner, family, range }, wait);
            Ok(())
        }
        Call::Fallocate { node, handle, offset, length, mode } => {
            allocate::start(client, id, caller, (node, handle), (offset, length, mode))
        }
        Call::Lseek { node, handle, offset, whence } => seek::start(client, id, node, handle, offset, whence),
        Call::CopyRange { from, from_handle, from_offset, to, to_handle, to_offset, length } => copy::start(
            client,
            id,
            caller,
            (from, from_handle, from_offset),
            (to, to_handle, to_offset),
            length,
        ),
        Call::Interrupt { call } => {
            interrupt::start(client, call);
            Ok(())
        }
    }
}

fn forget(client: &mut Client, node: TreeNodeId, count: u64) {
    if client.names.node(node).is_some_and(|known| known.is_last_lookup(count)) {
        client.shelve(node);
    }
    client.names.forget(node, count);
    gone(client, node);
}

/// Forgets the contents of a node if that is gone.
pub(crate) fn gone(client: &mut Client, node: TreeNodeId) {
    if client.names.node(node).is_none() {
        client.files.node_forgotten(node);
        client.stored.node_forgotten(node);
    }
}

/// An answer that nobody waits for any more: what it hands out is taken back.
pub(crate) fn undo(client: &mut Client, call: CallId, answer: Answer) {
    match answer {
        Answer::Entry(entry) => forget(client, entry.node, 1),
        Answer::Created(entry, handle, _) => {
            release::unwanted(client, call, handle);
            forget(client, entry.node, 1);
        }
        Answer::Opened(handle, _) => release::unwanted(client, call, handle),
        Answer::Listing(listed) => {
            for entry in listed.into_iter().filter_map(|listed| listed.entry) {
                forget(client, entry.node, 1);
            }
        }
        Answer::Fail(_)
        | Answer::Done
        | Answer::NoEntry(_)
        | Answer::Attr(..)
        | Answer::Data(_)
        | Answer::Size(_)
        | Answer::Count(_)
        | Answer::FsStat(_)
        | Answer::Lock(_)
        | Answer::ListingEnd
        | Answer::Offset(_) => {}
    }
}

/// Carries on with a reply. An `Err` of an operation is the answer to its call.
pub(crate) fn finish(client: &mut Client, outstanding: Outstanding, reply: Reply, last: bool) {
    refused::watch(client, &outstanding, &reply);
    if let Reply::Error(error) = reply {
        if concerned::may_be_done(&outstanding.request, error.errno) {
            concerned::doubt(client, &outstanding.pending);
        }
        return fail(client, outstanding.pending, error.errno);
    }
    if has_done_too_much(&outstanding.request, &reply) {
        return give_up(client, outstanding.pending, Errno::Protocol);
    }
    let (sent, order) = (outstanding.told_since, outstanding.order);
    let Outstanding { pending, tag, request, .. } = outstanding;
    uncommitted::note(client, &pending, &request, order);
    client.note_acquired(&request);
    if pending.leaves_fd() {
        release::fd_moved(client, &request, &reply);
    }
    match (pending, reply) {
        (Pending::Ignore(_) | Pending::Close(_), _) => {}
        (Pending::Lookup(p), Reply::Get(r)) => lookup::finish(client, p, sent, r, last),
        (Pending::Getattr(p), Reply::Get(r)) => attributes::got(client, p, sent, r),
        (Pending::Setattr(p), Reply::Put(r)) => attributes::was_set(client, p, sent, r),
        (Pending::Readlink(p), Reply::Get(r)) => readlink::finish(client, p, sent, r),
        (Pending::Make(p), Reply::Put(r)) => make::finish(client, p, sent, r),
        (Pending::Remove(p), Reply::Remove(r)) => remove::finish(client, p, sent, r),
        (Pending::Rename(p), Reply::Rename(r)) => rename::finish(client, p, sent, r),
        (Pending::Link(p), Reply::Link(r)) => link::finish(client, p, sent, r),
        (Pending::Open(p), Reply::Get(r)) => open::finish_reading(client, p, sent, r, last),
        (Pending::Open(p), Reply::Put(r)) => open::finish_writing(client, p, sent, r),
        (Pending::AcquireFd(p), Reply::Get(r)) => open::acquired(client, p, r.fd),
        (Pending::Fetch(p), Reply::Get(r)) => fetch::finish(client, tag, p, sent, r, last),
        (Pending::ReadExactly(p), Reply::Get(r)) => read::finish_exact(client, tag, p, r, last),
        (Pending::Write(p), Reply::Put(r)) => write::finish(client, p, sent, r),
        (Pending::List(p), Reply::Get(r)) => list::finish(client, tag, p, sent, r, last),
        (Pending::Find(p), Reply::Find(r)) => find::finish(client, tag, p, sent, r, last),
        (Pending::Prefetch(p), Reply::Get(r)) => open::came_ahead(client, p, sent, r, last),
        (Pending::Xattr(p), Reply::Xattr(r)) => xattr::finish(client, p, sent, r),
        (Pending::Statfs(Figures(call)), Reply::Statfs(r)) => statfs::finish(client, call, sent, r),
        (Pending::Lock(p), Reply::Lock(r)) => lock::finish(client, p, sent, r),
        (Pending::Unlock(Unlocking(node)), Reply::Lock(_)) => lock::unlocked(client, node),
        (Pending::Withdraw(Withdrawing(oldtag)), Reply::Flush(_)) => interrupt::finish(client, oldtag),
        (Pending::Allocate(p), Reply::Allocate(r)) => allocate::finish(client, p, sent, r),
        (Pending::Copy(p), Reply::Copy(r)) => copy::finish(client, p, sent, r),
        (Pending::Seek(Seeking(call)), Reply::Seek(r)) => client.answer(call, Answer::Offset(r.offset)),
        (Pending::Publish(p), Reply::Put(r)) => publish::was_put(client, p, sent, &request, &r),
        (Pending::Publish(p), Reply::Rename(r)) => publish::was_moved(client, p, sent, &r),
        (Pending::Replaced(p), Reply::Get(r)) => displaced::looked(client, p, r),
        (Pending::Replaced(p), Reply::Remove(r)) => displaced::removed(client, p, sent, r),
        (Pending::Replaced(p), Reply::Rename(r)) => displaced::kept(client, p, sent, &r),
        (Pending::Commit(p), Reply::Commit(r)) => commit::finish(client, p, order, r),
        (Pending::Barrier(_), Reply::Put(_)) => barrier::finish(client),
        (Pending::Confirm(Confirming(number)), reply) => {
            confirm::finish(client, number, sent, &request, &reply)
        }
        (Pending::Room(_), Reply::Statfs(r)) => {
            client.figures = Some((r.figures, sent));
            client.room_told(true);
        }
        (Pending::Durable(Syncing(below)), Reply::Commit(r)) => client.are_durable(below, Some(r.boot)),
        // A reply of another kind than was asked for: the server's fault, the caller's loss.
        (pending, _) => fail(client, pending, Errno::Protocol),
    }
}

/// Whether the server says that it has done more than it was asked for.
fn has_done_too_much(request: &Request, reply: &Reply) -> bool {
    match (request, reply) {
        (Request::Put(asked), Reply::Put(put)) => u64::from(put.count) > asked.data.0.len() as u64,
        (Request::Copy(asked), Reply::Copy(copied)) => copied.count > asked.length,
        _ => false,
    }
}

/// The outcome of a request will not be told.
pub(crate) fn give_up(client: &mut Client, pending: Pending, errno: Errno) {
    concerned::doubt(client, &pending);
    fail(client, pending, errno);
}

/// A request failed.
pub(crate) fn fail(client: &mut Client, pending: Pending, errno: Errno) {
    match pending {
        Pending::Ignore(_) | Pending::Close(_) => {}
        Pending::Lookup(p) => lookup::failed(client, p, errno),
        Pending::Getattr(p) => attributes::not_got(client, p, errno),
        Pending::Setattr(p) => attributes::not_set(client, p, errno),
        Pending::Readlink(p) => attributes::fail_gone(client, p.call, p.node, errno),
        Pending::Make(p) => make::failed(client, p, errno),
        Pending::Remove(p) => remove::failed(client, p, errno),
        Pending::Rename(p) => rename::failed(client, p, errno),
        Pending::Link(p) => link::failed(client, p, errno),
        Pending::Open(p) => open::failed(client, p, errno),
        Pending::AcquireFd(p) => open::acquired(client, p, wirefs_op::message::target::NOFD),
        Pending::Fetch(p) => fetch::failed(client, p, errno),
        Pending::ReadExactly(p) => read::not_exact(client, p, errno),
        Pending::Write(p) => write::failed(client, p, errno),
        Pending::List(p) => list::failed(client, p, errno),
        Pending::Find(p) => find::failed(client, p, errno),
        Pending::Prefetch(p) => open::not_ahead(client, p),
        Pending::Xattr(p) => xattr::failed(client, p, errno),
        Pending::Statfs(Figures(call)) => statfs::failed(client, call, errno),
        Pending::Seek(Seeking(call)) => client.fail(call, errno),
        Pending::Lock(p) => lock::failed(client, p, errno),
        Pending::Unlock(Unlocking(node)) => lock::unlocked(client, node),
        Pending::Withdraw(Withdrawing(oldtag)) => interrupt::finish(client, oldtag),
        Pending::Allocate(p) => allocate::failed(client, p, errno),
        Pending::Copy(p) => copy::failed(client, p, errno),
        Pending::Commit(p) => commit::failed(client, p, errno),
        Pending::Barrier(p) => barrier::failed(client, p, errno),
        Pending::Publish(p) => publish::failed(client, p, errno),
        Pending::Replaced(p) => displaced::failed(client, p, errno),
        Pending::Confirm(Confirming(number)) => confirm::failed(client, number, errno),
        Pending::Room(_) => client.room_told(false),
        Pending::Durable(Syncing(below)) => client.are_durable(below, None),
    }
}
