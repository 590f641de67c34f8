//! The locks of one family on one file.

use super::{
    CHANGED_FOR, DELEGATED_FOR, IDLE, PAUSE, QUEUED_MAX, RANGES_MAX, REFUSED_FOR, WRITTEN_FOR, whole,
};
use crate::call::{CallId, Handle};
use std::collections::{BTreeMap, VecDeque};
use wirefs_op::lock_ranges::restoring;
use wirefs_op::{LockKind, LockRange, LockRanges, Time};

/// A request of a program about locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// Takes a lock; `waits`: the call waits until the lock is granted.
    Lock { call: CallId, handle: Handle, owner: u64, range: LockRange, waits: bool },
    /// Tests for a conflicting lock.
    Test { call: CallId, handle: Handle, owner: u64, range: LockRange },
    /// A release, for which no call waits.
    Unlock { handle: Handle, owner: u64, range: LockRange },
}

impl Asked {
    /// The call that waits for it.
    pub(crate) fn call(&self) -> Option<CallId> {
        match self {
            Asked::Lock { call, .. } | Asked::Test { call, .. } => Some(*call),
            Asked::Unlock { .. } => None,
        }
    }

    /// The open file of the request.
    pub(crate) fn handle(&self) -> Handle {
        match self {
            Asked::Lock { handle, .. } | Asked::Test { handle, .. } | Asked::Unlock { handle, .. } => *handle,
        }
    }
}

/// The reason of a refused lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Another program of this mount holds a conflicting lock.
    Held,
    /// Too many requests wait.
    Full,
}

/// The next action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The lock is granted.
    Granted(CallId),
    /// The lock is refused.
    Refused(CallId, Refusal),
    /// The conflicting lock, or `None`.
    Found(CallId, Option<LockRange>),
    /// Request this lock on the whole file from the server, for the owner. Then call [`FileLocks::delegated`] or
    /// [`FileLocks::not_delegated`].
    Delegate { call: CallId, handle: Handle, owner: u64, range: LockRange, waits: bool, whole: LockRange },
    /// Send exactly this request to the server.
    Ask(Asked),
    /// Wait for the outcome of another request.
    Waits,
    /// The lock is released.
    Released,
}

/// A lock on the whole file that the server has for one owner.
#[derive(Clone, Copy, Debug)]
struct Delegated {
    owner: u64,
    kind: LockKind,
    since: Time,
    used: Time,
}

#[derive(Clone, Copy, Debug, Default)]
enum State {
    #[default]
    Exact,
    /// The former delegation, if any, is of the same owner.
    Asking {
        owner: u64,
        kind: LockKind,
        before: Option<Delegated>,
    },
    Delegated(Delegated),
}

/// A lock that is requested from the server.
#[derive(Debug)]
struct PendingLock {
    owner: u64,
    /// Ranges that the owner has released since.
    unlocked: Vec<LockRange>,
}

/// The locks of this mount's programs on one file.
#[derive(Debug, Default)]
pub(crate) struct FileLocks {
    /// The held ranges by owner; owners without ranges are absent.
    held: BTreeMap<u64, LockRanges>,
    state: State,
    queued: VecDeque<Asked>,
    under_way: BTreeMap<CallId, PendingLock>,
    /// No lock is delegated before.
    not_before: Time,
    /// When an exclusive lock was delegated the last time.
    written: Option<Time>,
    /// Releases to send before anything else, by owner, in order.
    reductions: Vec<(u64, LockRange)>,
    /// Locks of `flock(2)`: they cover the whole file, and change their kind only with a gap.
    is_flock: bool,
}

impl FileLocks {
    pub(super) fn of(is_flock: bool) -> FileLocks {
        FileLocks { is_flock, ..FileLocks::default() }
    }

    pub(crate) fn is_exact(&self) -> bool {
        matches!(self.state, State::Exact)
    }

    /// Whether an owner here holds a lock that conflicts with `wanted`.
    pub(super) fn is_excluded(&self, wanted: LockRange) -> bool {
        self.held.values().any(|held| held.conflict(wanted).is_some())
    }

    /// Whether no lock is held or requested, and no other information is worth keeping.
    pub(super) fn is_forgettable(&self, now: Time) -> bool {
        let is_idle = self.held.is_empty() && self.queued.is_empty() && self.under_way.is_empty();
        is_idle && self.is_exact() && now >= self.not_before && !self.is_written(now)
    }

    fn is_written(&self, now: Time) -> bool {
        self.written.is_some_and(|at| now < at + WRITTEN_FOR)
    }

    /// The releases and downgrades to send before all other requests of the same call, by owner.
    pub(crate) fn take_reductions(&mut self) -> Vec<(u64, LockRange)> {
        std::mem::take(&mut self.reductions)
    }

    /// Handles a request. `may_delegate`: the session is exclusive.
    pub(crate) fn ask(&mut self, now: Time, may_delegate: bool, asked: Asked) -> Step {
        if matches!(self.state, State::Asking { .. }) {
            return self.queue(asked);
        }
        match asked {
            Asked::Lock { call, handle, owner, range, waits } => {
                if let Some(step) = self.lock_delegated(now, call, owner, range, waits) {
                    return step;
                }
                self.lock_undelegated(now, may_delegate, (call, handle), owner, range, waits)
            }
            Asked::Test { call, owner, range, .. } => match self.test(owner, range) {
                Some(found) => Step::Found(call, found),
                None => Step::Ask(asked),
            },
            Asked::Unlock { owner, range, .. } => self.unlock(now, asked, owner, range),
        }
    }

    fn queue(&mut self, asked: Asked) -> Step {
        let is_repeated = asked.call().is_none() && self.queued.back() == Some(&asked);
        match asked.call() {
            Some(call) if self.queued.len() >= QUEUED_MAX => Step::Refused(call, Refusal::Full),
            _ if is_repeated => Step::Waits,
            _ => {
                self.queued.push_back(asked);
                Step::Waits
            }
        }
    }

    /// The next queued request, once the outcome of the delegation request is known.
    pub(crate) fn next_queued(&mut self) -> Option<Asked> {
        if matches!(self.state, State::Asking { .. }) { None } else { self.queued.pop_front() }
    }

    /// Withdraws the request of a call. Returns false if the call does not wait here.
    pub(crate) fn withdraw(&mut self, call: CallId) -> bool {
        let before = self.queued.len();
        self.queued.retain(|asked| asked.call() != Some(call));
        self.queued.len() < before
    }

    /// Decides a request by the delegation, if there is one.
    fn lock_delegated(
        &mut self,
        now: Time,
        call: CallId,
        owner: u64,
        range: LockRange,
        waits: bool,
    ) -> Option<Step> {
        let State::Delegated(delegated) = &mut self.state else { return None };
        if delegated.owner != owner {
            let conflict = self.held.get(&delegated.owner).and_then(|held| held.conflict(range));
            return (conflict.is_some() && !waits).then_some(Step::Refused(call, Refusal::Held));
        }
        let is_wider = delegated.kind == LockKind::Write && !self.is_flock;
        let is_covered = is_wider || range.kind == delegated.kind;
        let held = self.held.entry(owner).or_default();
        if !is_covered || held.len() >= RANGES_MAX {
            return None;
        }
        delegated.used = now;
        held.set(range);
        Some(Step::Granted(call))
    }

    fn lock_undelegated(
        &mut self,
        now: Time,
        may_delegate: bool,
        (call, handle): (CallId, Handle),
        owner: u64,
        range: LockRange,
        waits: bool,
    ) -> Step {
        let before = match self.state {
            State::Delegated(delegated) if delegated.owner == owner => Some(delegated),
            State::Delegated(_) => {
                self.reduce();
                None
            }
            State::Exact | State::Asking { .. } => None,
        };
        self.drop_empty();
        let is_only = self.held.keys().all(|holder| *holder == owner) && self.under_way.is_empty();
        let few = self.held.get(&owner).is_none_or(|held| held.len() < RANGES_MAX);
        if may_delegate && is_only && few && now >= self.not_before {
            let kind = self.delegation_kind(now, owner, range.kind);
            self.state = State::Asking { owner, kind, before };
            return Step::Delegate { call, handle, owner, range, waits, whole: whole(kind, range.pid) };
        }
        self.reduce();
        self.under_way.insert(call, PendingLock { owner, unlocked: Vec::new() });
        Step::Ask(Asked::Lock { call, handle, owner, range, waits })
    }

    /// The kind of the delegation to request for a lock of this kind. A writer gets an exclusive one, since a shared
    /// delegation would downgrade the exclusive locks that the owner holds.
    fn delegation_kind(&self, now: Time, owner: u64, wanted: LockKind) -> LockKind {
        let writes = |held: &LockRanges| held.conflict(whole(LockKind::Read, 0)).is_some();
        let is_writer = self.is_written(now) || self.held.get(&owner).is_some_and(writes);
        if is_writer && !self.is_flock { LockKind::Write } else { wanted }
    }

    /// Returns the conflicting lock, if any; `None` if only the server knows.
    fn test(&mut self, owner: u64, range: LockRange) -> Option<Option<LockRange>> {
        let others = self.held.iter().filter(|(holder, _)| **holder != owner);
        let conflict = others.filter_map(|(_, held)| held.conflict(range)).min_by_key(|held| held.start);
        if conflict.is_some() {
            return Some(conflict);
        }
        let State::Delegated(delegated) = self.state else { return None };
        if delegated.kind == LockKind::Write || range.kind == LockKind::Read {
            return Some(None);
        }
        // The request follows what this gives up, so the server finds what is held and no more.
        if delegated.owner != owner {
            self.reduce();
        }
        None
    }

    fn unlock(&mut self, now: Time, asked: Asked, owner: u64, range: LockRange) -> Step {
        let range = LockRange { kind: LockKind::Unlock, ..range };
        if let Some(held) = self.held.get_mut(&owner) {
            held.set(range);
        }
        self.drop_empty();
        for under_way in self.under_way.values_mut().filter(|under_way| under_way.owner == owner) {
            under_way.unlocked.push(range);
        }
        let State::Delegated(delegated) = &mut self.state else { return Step::Ask(asked) };
        if delegated.owner != owner {
            return Step::Ask(asked);
        }
        delegated.used = now;
        if self.held.is_empty() && now >= delegated.since + DELEGATED_FOR {
            self.delegates_not_before(now + PAUSE);
            self.reduce();
        }
        Step::Released
    }

    /// Takes in a delegation. `wanted`: the lock that led to its request, if a program still wants it.
    pub(crate) fn delegated(&mut self, now: Time, wanted: Option<LockRange>) {
        let State::Asking { owner, kind, before } = self.state else { return };
        let since = before.map_or(now, |delegated| delegated.since);
        self.state = State::Delegated(Delegated { owner, kind, since, used: now });
        if kind == LockKind::Write && wanted.is_some_and(|range| range.kind == LockKind::Write) {
            self.written = Some(now);
        }
        if let Some(range) = wanted {
            self.held.entry(owner).or_default().set(range);
        }
    }

    /// Takes in that the server refused the delegation (`is_refused`), or that the outcome is unknown. `wanted` is requested by itself.
    pub(crate) fn not_delegated(
        &mut self,
        now: Time,
        is_refused: bool,
        wanted: Option<Asked>,
    ) -> Option<Step> {
        let State::Asking { owner, kind, before } = self.state else { return None };
        // The former delegation ends as well, since others hold a part of the file. After an unknown outcome, this makes the state known.
        let unknown = Delegated { owner, kind, since: now, used: now };
        let delegated = if is_refused { before } else { Some(unknown) };
        self.state = delegated.map_or(State::Exact, State::Delegated);
        self.reduce();
        self.delegates_not_before(now + REFUSED_FOR);
        self.written = None;
        let asked = wanted?;
        if let Some(call) = asked.call() {
            self.under_way.insert(call, PendingLock { owner, unlocked: Vec::new() });
        }
        Some(Step::Ask(asked))
    }

    /// Takes in the reply to a lock without delegation. `range`: the range that was granted. `is_ordered`: releases since then were ordered
    /// after it.
    pub(crate) fn asked(&mut self, call: CallId, range: Option<LockRange>, is_ordered: bool) {
        let Some(PendingLock { owner, unlocked }) = self.under_way.remove(&call) else { return };
        let Some(range) = range else { return };
        let held = self.held.entry(owner).or_default();
        held.set(range);
        if is_ordered {
            unlocked.into_iter().for_each(|range| held.set(range));
        }
        self.drop_empty();
    }

    /// Ends the delegation if it was unused, or has lasted, for too long.
    pub(crate) fn pass(&mut self, now: Time) {
        let State::Delegated(delegated) = self.state else { return };
        let is_long = now >= delegated.since + DELEGATED_FOR + IDLE;
        if now >= delegated.used + IDLE || is_long {
            if is_long {
                self.delegates_not_before(now + PAUSE);
            }
            self.reduce();
        }
    }

    /// Notes that a program at the server changed the file. The delegation is reduced to the locks that programs here
    /// hold.
    pub(crate) fn changed_at_server(&mut self, now: Time) {
        self.delegates_not_before(now + CHANGED_FOR);
        self.reduce();
    }

    fn delegates_not_before(&mut self, at: Time) {
        self.not_before = self.not_before.max(at);
    }

    /// Reduces the delegation to the locks that its owner holds.
    pub(crate) fn reduce(&mut self) {
        let State::Delegated(Delegated { owner, kind, .. }) = self.state else { return };
        self.state = State::Exact;
        self.drop_empty();
        let held = self.held.get(&owner).map(LockRanges::to_vec).unwrap_or_default();
        let changes = restoring(whole(kind, 0), &held);
        // What is held as it is delegated needs no word.
        let changes = changes.into_iter().filter(|range| range.kind != kind);
        self.reductions.extend(changes.map(|range| (owner, range)));
    }

    /// Notes that the server no longer has any locks of this file.
    pub(super) fn forget_held(&mut self) {
        self.held.clear();
        match &mut self.state {
            State::Asking { before, .. } => *before = None,
            State::Exact | State::Delegated(_) => self.state = State::Exact,
        }
    }

    fn drop_empty(&mut self) {
        self.held.retain(|_, held| !held.is_empty());
    }
}
