//! Locks: always the server's, so that all clients see them. Taking one validates the file's contents; releasing one
//! takes its turn behind what was written under it.

use crate::call::{Answer, CallId, Handle};
use crate::core::Client;
use crate::operation::Pending;
use wirefs_cache::{Known, NodeId};
use wirefs_op::message::lock::{LockAction, Rlock, Tlock};
use wirefs_op::{Errno, LockFamily, LockKind, LockRange, Request, Time};

/// Who wants which lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) owner: u64,
    pub(crate) family: LockFamily,
    pub(crate) range: LockRange,
}

#[derive(Clone, Debug)]
pub(crate) struct Locking {
    pub(crate) call: CallId,
    node: NodeId,
    handle: Handle,
    wanted: Wanted,
    action: LockAction,
    /// A first try for a caller that is ready to wait.
    then_waits: bool,
    /// The caller was interrupted: a lock that is granted nevertheless is given back.
    withdrawn: bool,
}

impl Locking {
    pub(crate) fn is_withdrawn(&self) -> bool {
        self.withdrawn
    }

    /// Whether it waits until others let go.
    pub(crate) fn is_waiting(&self) -> bool {
        self.action == LockAction::Wait || self.then_waits
    }

    /// The caller gives up.
    pub(crate) fn withdraw(&mut self) -> bool {
        let waits = self.action == LockAction::Wait && !self.withdrawn;
        self.then_waits = false;
        self.withdrawn = true;
        waits
    }
}

/// # Cost
/// 1 round trip.
pub(crate) fn test(
    client: &mut Client,
    call: CallId,
    node: NodeId,
    handle: Handle,
    wanted: Wanted,
) -> Result<(), Errno> {
    request(client, call, node, handle, wanted, LockAction::Test, false)
}

/// # Cost
/// 1 round trip, and as long as another holds it. A release: 0, since it takes its turn behind what was written under
/// the lock, and nobody can refuse it.
pub(crate) fn set(
    client: &mut Client,
    call: CallId,
    node: NodeId,
    handle: Handle,
    wanted: Wanted,
    wait: bool,
) -> Result<(), Errno> {
    if wanted.range.kind == LockKind::Unlock {
        unlock(client, node, handle, wanted);
        client.answer(call, Answer::Done);
        return Ok(());
    }
    if wanted.family == LockFamily::Posix {
        client.files.contents(node).lock_owners.insert(wanted.owner);
    }
    // A waiting lock takes no turn and could overtake a release of the same owner; a first try does not.
    let unlocking = client.files.contents(node).unlocking > 0;
    let action = if wait && !unlocking { LockAction::Wait } else { LockAction::Set };
    request(client, call, node, handle, wanted, action, wait && unlocking)
}

fn request(
    client: &mut Client,
    call: CallId,
    node: NodeId,
    handle: Handle,
    wanted: Wanted,
    action: LockAction,
    then_waits: bool,
) -> Result<(), Errno> {
    let lock = tlock(client, node, handle, wanted, action)?;
    let locking = Locking { call, node, handle, wanted, action, then_waits, withdrawn: false };
    client.send(Request::Lock(lock), Pending::Lock(locking));
    Ok(())
}

fn tlock(
    client: &Client,
    node: NodeId,
    handle: Handle,
    wanted: Wanted,
    action: LockAction,
) -> Result<Tlock, Errno> {
    let Wanted { owner, family, range } = wanted;
    Ok(Tlock { target: client.target(node, Some(handle))?, action, family, owner, range })
}

pub(crate) fn finish(client: &mut Client, locking: Locking, sent: Time, reply: Rlock) {
    let Locking { call, node, handle, wanted, action, withdrawn, then_waits: _ } = locking;
    if action == LockAction::Test {
        return client.answer(call, Answer::Lock(reply.conflict));
    }
    if withdrawn {
        let everything = LockRange { kind: LockKind::Unlock, ..wanted.range };
        unlock(client, node, handle, Wanted { range: everything, ..wanted });
        return client.fail(call, Errno::Interrupted);
    }
    match reply.stat {
        // Attributes as of when the lock was had: what changed before is dropped before its caller goes on.
        Some(stat) if !client.files.is_writing(node) => {
            let valid = client.files.known(node).and_then(|contents| contents.valid);
            let known = client.known(&stat, sent);
            let at = valid.map_or(sent, |valid| valid.at.max(sent));
            if client.names.of_file(stat.id) == Some(node) {
                client.learn(&stat, Known { at, ..known });
            }
        }
        // Leases hold whatever is on its way.
        Some(_) if client.config.mode.takes_leases() => {}
        Some(_) | None => {
            client.names.doubt(node);
            client.files.doubt_contents(node);
            super::fetch::invalidate_pages(client, node);
        }
    }
    client.answer_after(call, Answer::Done);
}

pub(crate) fn failed(client: &mut Client, locking: Locking, errno: Errno) {
    let Locking { call, node, handle, wanted, then_waits, withdrawn, action: _ } = locking;
    if withdrawn {
        return client.fail(call, Errno::Interrupted);
    }
    if then_waits && errno == Errno::WouldBlock {
        let waiting = request(client, call, node, handle, wanted, LockAction::Wait, false);
        return match waiting {
            Ok(()) => {}
            Err(errno) => client.fail(call, errno),
        };
    }
    client.fail(call, errno);
}

fn unlock(client: &mut Client, node: NodeId, handle: Handle, wanted: Wanted) {
    if let Ok(lock) = tlock(client, node, handle, wanted, LockAction::Set) {
        client.files.contents(node).unlocking += 1;
        client.names.hold(node);
        client.send(Request::Lock(lock), Pending::Unlock(node));
    }
}

/// The caller of a waiting lock gives up before it is sent, or sent again: then the server may have it.
pub(crate) fn given_up(client: &mut Client, locking: &Locking) {
    let everything = LockRange { kind: LockKind::Unlock, ..locking.wanted.range };
    unlock(client, locking.node, locking.handle, Wanted { range: everything, ..locking.wanted });
    client.fail(locking.call, Errno::Interrupted);
}

/// A release was answered.
pub(crate) fn unlocked(client: &mut Client, node: NodeId) {
    let contents = client.files.contents(node);
    contents.unlocking = contents.unlocking.saturating_sub(1);
    client.names.release(node);
}

fn everything(pid: u32) -> LockRange {
    LockRange { kind: LockKind::Unlock, start: 0, end: u64::MAX, pid }
}

/// A descriptor is closed: its owner's POSIX locks on the file fall, as POSIX has it.
pub(crate) fn release_all(
    client: &mut Client,
    node: NodeId,
    handle: Handle,
    owner: u64,
) -> Result<(), Errno> {
    unlock(client, node, handle, Wanted { owner, family: LockFamily::Posix, range: everything(0) });
    Ok(())
}

/// An open file is gone: so is its flock.
pub(crate) fn release_flock(client: &mut Client, node: NodeId, handle: Handle, owner: u64) {
    unlock(client, node, handle, Wanted { owner, family: LockFamily::Flock, range: everything(0) });
}
