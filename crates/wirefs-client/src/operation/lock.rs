//! Locks. The server grants them, so that all clients see them; while the server has delegated the whole file, they are
//! granted here ([`crate::view::locks`]). When the server grants a lock, the cached contents of the file are dropped
//! unless they are leased. A release is ordered after the writes under the lock.

use crate::answering::Answerer;
use crate::call::{Answer, CallId, Handle};
use crate::core::Client;
use crate::pending::{LockWanted, Locking, Pending, Unlocking};
use crate::requests::Requests;
use crate::sending::Sender;
use crate::view::View;
use crate::view::locks::{Asked, Key, Locks, Refusal, Step};
use wirefs_cache::{Freshness, TreeNodeId};
use wirefs_op::message::lock::{LockAction, Rlock, Tlock};
use wirefs_op::message::target::{NOFD, Target};
use wirefs_op::{Errno, LockFamily, LockKind, LockRange, Request, Stat, Time, TreePath};

/// # Cost
/// 0 round trips where the lock is delegated, else 1.
pub(crate) fn test(client: &mut Client, call: CallId, node: TreeNodeId, handle: Handle, wanted: LockWanted) {
    let LockWanted { owner, family, range } = wanted;
    ask(client, Locks::key(node, family), Asked::Test { call, handle, owner, range });
}

/// # Cost
/// 0 round trips where the lock is delegated; else 1, and as long as another holds it. A release: 0, since it takes its turn behind what was
/// written under the lock, and the server cannot refuse it.
pub(crate) fn set(
    client: &mut Client,
    call: CallId,
    node: TreeNodeId,
    handle: Handle,
    wanted: LockWanted,
    wait: bool,
) {
    let LockWanted { owner, family, range } = wanted;
    let range = whole_for(family, range);
    if range.kind == LockKind::Unlock {
        release(client, node, handle, LockWanted { range, ..wanted });
        return client.answerer().answer(call, Answer::Done);
    }
    if family == LockFamily::Posix {
        client.view.files.locks_through(node, owner, handle);
    }
    ask(client, Locks::key(node, family), Asked::Lock { call, handle, owner, range, waits: wait });
}

/// `flock` is about all of the file, whatever the request says.
fn whole_for(family: LockFamily, range: LockRange) -> LockRange {
    match family {
        LockFamily::Posix => range,
        LockFamily::Flock => LockRange { start: 0, end: u64::MAX, ..range },
    }
}

fn release(client: &mut Client, node: TreeNodeId, handle: Handle, wanted: LockWanted) {
    let LockWanted { owner, family, range } = wanted;
    ask(client, Locks::key(node, family), Asked::Unlock { handle, owner, range });
}

fn ask(client: &mut Client, key: Key, asked: Asked) {
    let (now, may_delegate) = (client.view.mount.now, client.view.may_delegate(&client.requests));
    let step = client.view.locks.file(key).ask(now, may_delegate, asked);
    tell_reductions(&mut client.sender(), key, Some(asked.handle()));
    go(client, key, step);
}

/// Does what the locks of this file want done.
fn go(client: &mut Client, key: Key, step: Step) {
    let (node, family) = (key.node(), key.family());
    match step {
        Step::Waits => {}
        Step::Released => client.view.locks.answered += 1,
        Step::Granted(call) => {
            client.view.locks.answered += 1;
            client.answerer().answer(call, Answer::Done);
        }
        Step::Found(call, conflict) => {
            client.view.locks.answered += 1;
            client.answerer().answer(call, Answer::Lock(conflict));
        }
        Step::Refused(call, Refusal::Held) => client.answerer().fail(call, Errno::WouldBlock),
        Step::Refused(call, Refusal::Full) => client.answerer().fail(call, Errno::NoLocks),
        Step::Delegate { call, handle, owner, range, waits, whole } => {
            let wanted = LockWanted { owner, family, range };
            let locking = Locking {
                call,
                node,
                handle,
                wanted,
                action: LockAction::Set,
                then_waits: waits,
                delegates: true,
                withdrawn: false,
            };
            request(client, locking, whole);
        }
        Step::Ask(Asked::Lock { call, handle, owner, range, waits }) => {
            let action = if waits { LockAction::Wait } else { LockAction::Set };
            exactly(client, key, (call, handle), LockWanted { owner, family, range }, action);
        }
        Step::Ask(Asked::Test { call, handle, owner, range }) => {
            let wanted = LockWanted { owner, family, range };
            exactly(client, key, (call, handle), wanted, LockAction::Test);
        }
        Step::Ask(Asked::Unlock { handle, owner, range }) => {
            unlock(&mut client.sender(), node, Some(handle), LockWanted { owner, family, range });
        }
    }
}

fn exactly(
    client: &mut Client,
    key: Key,
    (call, handle): (CallId, Handle),
    wanted: LockWanted,
    action: LockAction,
) {
    let node = key.node();
    let locking =
        Locking { call, node, handle, wanted, action, then_waits: false, delegates: false, withdrawn: false };
    request(client, locking, wanted.range);
}

/// Asks for `range` on account of a lock.
fn request(client: &mut Client, locking: Locking, range: LockRange) {
    let wanted = LockWanted { range, ..locking.wanted };
    match tlock(&client.view, locking.node, Some(locking.handle), wanted, locking.action) {
        Ok(lock) => {
            let is_copy = client.view.files.is_copy(locking.handle);
            if let Some(id) = lock.target.id.filter(|_| is_copy && locking.action != LockAction::Test) {
                client.view.locks.asks_of(locking.key(), wanted.owner, id);
            }
            client.sender().send(Request::Lock(lock), Pending::Lock(locking));
        }
        Err(errno) => failed(client, locking, errno),
    }
}

fn tlock(
    view: &View,
    node: TreeNodeId,
    handle: Option<Handle>,
    wanted: LockWanted,
    action: LockAction,
) -> Result<Tlock, Errno> {
    let LockWanted { owner, family, range } = wanted;
    Ok(Tlock { target: view.target(node, handle)?, action, family, owner, range })
}

pub(crate) fn finish(client: &mut Client, locking: Locking, sent: Time, reply: Rlock) {
    let Locking { call, node, handle, wanted, action, withdrawn, delegates, .. } = locking;
    let key = locking.key();
    if action == LockAction::Test {
        return client.answerer().answer(call, Answer::Lock(reply.conflict));
    }
    granted(&mut client.sender(), node, sent, reply.stat);
    if delegates {
        return delegated(client, &locking);
    }
    client.view.locks.file(key).asked(call, Some(wanted.range), action == LockAction::Set);
    if withdrawn {
        release(client, node, handle, LockWanted { range: everything(wanted.range), ..wanted });
        return client.answerer().fail(call, Errno::Interrupted);
    }
    client.calls.answer_after(&mut client.outputs, call, Answer::Done);
}

/// The server granted a lock. Data read under it is asked for after the grant, or is leased and the server has recalled all changes made
/// before. All other data is dropped, here and in the kernel, before the caller goes on. Equal versions are not enough: a `write` at the
/// server changes the file's times before its data.
fn granted(sender: &mut Sender<'_>, node: TreeNodeId, sent: Time, stat: Option<Stat>) {
    let stat = stat.filter(|stat| sender.view.names.of_file(stat.id) == Some(node));
    let told = stat.map(|stat| (stat, sender.view.known(&stat, sent)));
    if told.is_some_and(|(stat, known)| is_unchanged(sender.view, node, &stat, known)) {
        return;
    }
    let is_writing = sender.view.files.is_writing(node);
    let told = told.filter(|_| !is_writing);
    let counts = sender.view.names.locked(
        node,
        told.as_ref().map(|(stat, known)| (stat, *known)),
        sender.view.mount.now,
    );
    sender.view.files.locked(node);
    if let Some((stat, known)) = told.filter(|_| counts) {
        let coherency = sender.view.coherency();
        sender.view.files.observe(node, stat.version, known, &coherency);
    }
    sender.outdated(node);
    sender.outputs.invalidate_pages(node);
}

/// Whether all that is known of the file is leased, and nothing was recalled when the lock was granted.
fn is_unchanged(view: &View, node: TreeNodeId, stat: &Stat, told: Freshness) -> bool {
    let coherency = view.coherency();
    let is_leased = |known: Option<Freshness>| {
        known.is_some_and(|known| coherency.leases_valid && coherency.is_leased(known))
    };
    let attributes = view.names.node(node).filter(|known| known.stat.version == stat.version);
    let contents = view.files.known(node);
    is_leased(Some(told))
        && !view.files.is_writing(node)
        && attributes.is_some_and(|known| is_leased(known.freshness))
        && contents.is_some_and(|contents| is_leased(contents.valid))
        && view.files.is_of(node, stat.version)
}

/// The whole file is delegated.
fn delegated(client: &mut Client, locking: &Locking) {
    let Locking { call, node, handle, wanted, withdrawn, .. } = *locking;
    let (key, now) = (locking.key(), client.view.mount.now);
    // A killed caller releases no lock any more.
    let is_wanted = !withdrawn && client.calls.is_waiting(call);
    client.view.locks.file(key).delegated(now, is_wanted.then_some(wanted.range));
    if is_wanted {
        client.calls.answer_after(&mut client.outputs, call, Answer::Done);
    } else {
        client.answerer().fail(call, Errno::Interrupted);
    }
    if !client.view.may_delegate(&client.requests) || client.view.files.handles_of(node).next().is_none() {
        client.view.locks.file(key).reduce();
        tell_reductions(&mut client.sender(), key, Some(handle));
    }
    go_on(client, key);
}

/// Continues the requests that queued for the outcome of a delegation request.
fn go_on(client: &mut Client, key: Key) {
    while let Some(asked) = client.view.locks.file(key).next_queued() {
        if asked.call().is_none_or(|call| client.calls.is_waiting(call)) {
            ask(client, key, asked);
        }
    }
}

pub(crate) fn failed(client: &mut Client, locking: Locking, errno: Errno) {
    let Locking { call, withdrawn, then_waits, delegates, .. } = locking;
    let (key, now) = (locking.key(), client.view.mount.now);
    if delegates {
        let is_wanted = !withdrawn && client.calls.is_waiting(call);
        let asked = is_wanted.then(|| locking.asked(then_waits));
        let is_refused = errno == Errno::WouldBlock;
        let step = client.view.locks.file(key).not_delegated(now, is_refused, asked);
        tell_reductions(&mut client.sender(), key, Some(locking.handle));
        match step {
            Some(step) => go(client, key, step),
            None => client.answerer().fail(call, Errno::Interrupted),
        }
        return go_on(client, key);
    }
    client.view.locks.file(key).asked(call, None, true);
    client.answerer().fail(call, if withdrawn { Errno::Interrupted } else { errno });
}

/// Tells the server what is held no more of what was delegated.
fn tell_reductions(sender: &mut Sender<'_>, key: Key, handle: Option<Handle>) {
    let (node, family) = (key.node(), key.family());
    for (owner, range) in sender.view.locks.file(key).take_reductions() {
        unlock(sender, node, handle, LockWanted { owner, family, range });
    }
}

/// Releases or downgrades a lock. The server cannot refuse it, and no call waits for it.
fn unlock(sender: &mut Sender<'_>, node: TreeNodeId, handle: Option<Handle>, wanted: LockWanted) {
    let LockWanted { owner, family, range } = wanted;
    let lock = tlock(sender.view, node, handle, wanted, LockAction::Set);
    let id = sender.view.names.node(node).map(|known| known.stat.id);
    let is_all = (range.kind, range.start, range.end) == (ALL.kind, ALL.start, ALL.end);
    let former = sender.view.locks.former_files(Locks::key(node, family), owner, id, is_all);
    // A former file has no name, and needs none: the server finds locks by the file's id.
    let of_former = former.into_iter().map(|id| {
        let target = Target { path: TreePath::root(), fd: NOFD, id: Some(id) };
        Tlock { target, action: LockAction::Set, family, owner, range }
    });
    for lock in lock.into_iter().chain(of_former) {
        sender.view.names.hold(node);
        sender.send(Request::Lock(lock), Pending::Unlock(Unlocking(node)));
    }
}

/// The caller of a waiting lock gives up before it is sent, or sent again: then the server may have it.
pub(crate) fn given_up(client: &mut Client, locking: Locking) {
    if locking.delegates {
        return failed(client, Locking { withdrawn: true, ..locking }, Errno::Interrupted);
    }
    let Locking { call, node, handle, wanted, .. } = locking;
    client.view.locks.file(locking.key()).asked(call, None, true);
    release(client, node, handle, LockWanted { range: everything(wanted.range), ..wanted });
    client.answerer().fail(call, Errno::Interrupted);
}

/// The caller of a lock gives up that waits for the outcome of another one.
pub(crate) fn withdraw(answerer: &mut Answerer<'_>, call: CallId) {
    for key in answerer.view.locks.keys() {
        if answerer.view.locks.file(key).withdraw(call) {
            return answerer.fail(call, Errno::Interrupted);
        }
    }
}

/// A release was answered.
pub(crate) fn unlocked(view: &mut View, node: TreeNodeId) {
    view.names.release(node);
    view.drop_if_gone(node);
}

fn everything(range: LockRange) -> LockRange {
    LockRange { kind: LockKind::Unlock, ..range }
}

const ALL: LockRange = LockRange { kind: LockKind::Unlock, start: 0, end: u64::MAX, pid: 0 };

/// A descriptor is closed: its owner's POSIX locks on the file fall, as POSIX has it.
pub(crate) fn release_all(client: &mut Client, node: TreeNodeId, handle: Handle, owner: u64) {
    release(client, node, handle, LockWanted { owner, family: LockFamily::Posix, range: ALL });
}

/// Releases the locks of owners that used a released open file last: they have closed it, possibly without a flush.
pub(crate) fn release_unheard(client: &mut Client, node: TreeNodeId, handle: Handle) {
    for owner in client.view.files.lockers_through(node, handle) {
        client.view.files.contents(node).lockers.leaves(owner);
        release_all(client, node, handle, owner);
    }
}

/// An open file is gone: so is its flock.
pub(crate) fn release_flock(client: &mut Client, node: TreeNodeId, handle: Handle, owner: u64) {
    release(client, node, handle, LockWanted { owner, family: LockFamily::Flock, range: ALL });
}

/// An open file is about to be gone: with the last one of a file goes what is delegated of it.
pub(crate) fn closes(sender: &mut Sender<'_>, node: TreeNodeId, handle: Handle) {
    if sender.view.files.handles_of(node).all(|open| open == handle) {
        for key in sender.view.locks.keys_of(node) {
            let now = sender.view.mount.now;
            sender.view.locks.file(key).reduce();
            tell_reductions(sender, key, Some(handle));
            sender.view.locks.trim(key, now);
        }
        sender.view.locks.forget_former_files(node);
    }
}

/// A program at the server changed these files.
pub(crate) fn changed_at_server(sender: &mut Sender<'_>, nodes: &[TreeNodeId]) {
    let now = sender.view.mount.now;
    for key in nodes.iter().flat_map(|node| sender.view.locks.keys_of(*node)).collect::<Vec<_>>() {
        sender.view.locks.file(key).changed_at_server(now);
        tell_reductions(sender, key, None);
    }
}

impl View {
    /// Whether the client may request a delegation: it keeps out only server programs, and these for a moment.
    fn may_delegate(&self, requests: &Requests) -> bool {
        self.mount.config.journal
            && self.exclusive.unconfirmed.is_alone()
            && requests.link.is_up()
            && self.leases.are_valid(self.mount.now)
    }
}

impl Client {
    /// Ends all delegations, since the session is no longer exclusive or the connection is lost.
    pub(crate) fn end_delegations(&mut self) {
        for key in self.view.locks.keys() {
            self.view.locks.file(key).reduce();
            tell_reductions(&mut self.sender(), key, None);
        }
    }

    /// Lets the time of delegated locks pass.
    pub(crate) fn watch_locks(&mut self) {
        let now = self.view.mount.now;
        for key in self.view.locks.keys() {
            self.view.locks.file(key).pass(now);
            tell_reductions(&mut self.sender(), key, None);
            self.view.locks.trim(key, now);
        }
    }
}
