//! The server's side of leases: grants, recalls, and the changes that wait for recalls.

mod changes;
mod delivery;
mod directory_locks;
mod external;
mod grants;
mod held_leases;
mod holder_state;
mod holders;
mod job;
mod missed;
mod name_recalls;
mod offenders;
mod touched;
mod version_chain;

use crate::limits;
use crate::recall::{LeaseItem, Serial};
use bytes::Bytes;
use changes::Changes;
use directory_locks::{DirectoryLocks, Ticket};
use external::UnattributedReport;
use holder_state::{HolderState, TickOutcome};
pub use holders::JoinOutcome;
use job::Job;
use offenders::Offenders;
pub use offenders::PartyKey;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;
use version_chain::VersionChains;
use wirefs_op::{FileId, Time};

/// A holder: a session that takes leases. The driver chooses the key, which stays the same when the session
/// reconnects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HolderKey(pub u64);

/// A request in execution. The driver chooses the key and never reuses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct JobKey(pub u64);

/// The grantor's timeouts and limits. The default takes all values from [`limits`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseConfig {
    /// See [`limits::TERM`]; sent to clients when they attach.
    pub term: Duration,
    /// See [`limits::MARGIN`].
    pub margin: Duration,
    /// See [`limits::ANSWER`].
    pub answer: Duration,
    /// See [`limits::ANSWER_MAX`].
    pub answer_max: Duration,
    /// See [`limits::REMOVE_AFTER`].
    pub remove_after: Duration,
    /// See [`limits::HOLDERS_MAX`].
    pub holders_max: usize,
    /// See [`limits::LEASES_MAX`].
    pub leases_max: usize,
}

impl Default for LeaseConfig {
    fn default() -> LeaseConfig {
        LeaseConfig {
            term: limits::TERM,
            margin: limits::MARGIN,
            answer: limits::ANSWER,
            answer_max: limits::ANSWER_MAX,
            remove_after: limits::REMOVE_AFTER,
            holders_max: limits::HOLDERS_MAX,
            leases_max: limits::LEASES_MAX,
        }
    }
}

/// An object that a job is about to change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Touched {
    /// The object; for a change of a name, its directory.
    pub id: FileId,
    /// The name whose entry changes. `None`: all attributes and contents of the object may change.
    pub name: Option<Bytes>,
    /// Excludes other jobs that touch the same object exclusively, from this touch to the job's end. Used for
    /// directories whose names change.
    pub exclusive: bool,
    /// Also recalls the lease of the holder that requested the change. Used for objects that the requester
    /// cannot foresee, such as the file that a rename replaces. The job does not wait for this recall,
    /// because the recall arrives before the reply; if the connection breaks, the recall is sent again.
    pub recall_own: bool,
}

/// The result of [`Grantor::touch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TouchOutcome {
    /// The job may change the object: no other holder has a lease on it, and none is granted before the job
    /// ends.
    Clear,
    /// The job must wait. It must change nothing and run again from its beginning at
    /// [`GrantorOutput::Retry`].
    Parked,
}

/// The actions that a grantor requests from the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GrantorOutput {
    /// Send a recall to a holder.
    Recall {
        /// The holder.
        holder: HolderKey,
        /// The serial that the holder's answer repeats.
        serial: Serial,
        /// The objects and names to invalidate; empty: everything.
        items: Vec<LeaseItem>,
    },
    /// Run this parked job again from its beginning.
    Retry(JobKey),
    /// Close the connection of this holder and answer nothing more that arrives on it.
    Expel(HolderKey),
    /// The state of this holder was discarded; its next join starts without leases.
    HolderRemoved(HolderKey),
    /// Check the current version of this object and report it with [`Grantor::external_change`]. The object
    /// changed while a job of the server also changed it, so the reported change may be either.
    Verify(LeaseItem),
}

/// The leases of one server.
///
/// # Contract
/// - The driver polls after each call and puts recalls in that order into the holder's connection, ahead of
///   queued messages. A reply that is queued after a recall never overtakes it; one that was queued before
///   may arrive later.
/// - For each request of a holder except the one by which it [`join`](Self::join)s, the driver first calls
///   [`renew`](Self::renew) and polls, so that missed recalls leave before the reply.
/// - A job that reads calls [`begin`](Self::begin), reads, calls [`grant`](Self::grant) and queues its reply
///   in one step with it, then calls [`end`](Self::end).
/// - A job that changes calls [`begin`](Self::begin), resolves the objects that it will change, and calls
///   [`touch`](Self::touch) until all are [`TouchOutcome::Clear`]. Only then does it change anything.
///   [`end`](Self::end) follows the last change, also after a failure. Each attempt starts with `begin`.
/// - A job that has already changed something and cannot be parked may go on; the driver calls
///   [`proceeded`](Self::proceeded) before its end.
/// - A job touches on behalf of a holder only while the requesting connection is still the holder's.
///   Afterwards it passes `None`, since no reply informs the holder of the result.
/// - After a touch that locked a directory, the job looks up again the names that it resolved before it had
///   the lock.
///
/// # Cost
/// A grant costs two lookups in small maps and one in a set for each object; a touch costs one lookup for
/// each holder.
#[derive(Debug)]
pub struct Grantor {
    config: LeaseConfig,
    /// No change runs before this time, after an unclean restart.
    recovering_until: Option<Time>,
    holders: BTreeMap<HolderKey, HolderState>,
    offenders: Offenders,
    /// Holders with recalls that were not returned by [`poll`](Self::poll) yet.
    unsent: BTreeSet<HolderKey>,
    jobs: BTreeMap<JobKey, Job>,
    /// The jobs that touch each object, each with the holder that may be granted the object nonetheless.
    touching: BTreeMap<FileId, Vec<(JobKey, Option<HolderKey>)>>,
    parked: BTreeMap<Ticket, JobKey>,
    directory_locks: DirectoryLocks,
    tickets: u64,
    changes: Changes,
    own: VersionChains,
    /// External change reports that may describe changes of the server's own jobs.
    unattributed: BTreeMap<LeaseItem, UnattributedReport>,
    outputs: VecDeque<GrantorOutput>,
}

impl Grantor {
    /// Creates a grantor without holders. After an unclean end of the server, clients may still use leases of
    /// its last run: no change then runs before `recovering_until`, which is `term + margin` after the start.
    pub fn new(config: LeaseConfig, recovering_until: Option<Time>) -> Grantor {
        Grantor {
            config,
            recovering_until,
            holders: BTreeMap::new(),
            offenders: Offenders::default(),
            unsent: BTreeSet::new(),
            jobs: BTreeMap::new(),
            touching: BTreeMap::new(),
            parked: BTreeMap::new(),
            directory_locks: DirectoryLocks::default(),
            tickets: 0,
            changes: Changes::default(),
            own: VersionChains::default(),
            unattributed: BTreeMap::new(),
            outputs: VecDeque::new(),
        }
    }

    /// Returns the next action for the driver.
    pub fn poll(&mut self) -> Option<GrantorOutput> {
        while self.outputs.is_empty()
            && let Some(key) = self.unsent.pop_first()
        {
            if let Some(state) = self.holders.get_mut(&key) {
                state.flush(&mut self.outputs);
            }
        }
        self.outputs.pop_front()
    }

    /// Returns the time when [`tick`](Self::tick) is due.
    pub fn deadline(&self) -> Option<Time> {
        let holders = self.holders.values().map(|state| state.deadline(&self.config));
        holders.chain(self.recovering_until).chain(self.reports_expire_at()).min()
    }

    /// Advances the clock: fences silent holders, expels holders that do not answer recalls, removes holders
    /// that were silent for long.
    pub fn tick(&mut self, now: Time) {
        self.recovering_until = self.recovering_until.filter(|until| now < *until);
        self.expire_reports(now);
        let outcome = self.holders.iter_mut().map(|(key, state)| (*key, state.tick(now, &self.config)));
        for (key, outcome) in outcome.collect::<Vec<_>>() {
            match outcome {
                TickOutcome::Stays => {}
                TickOutcome::Fenced => {
                    if self.jobs.values().any(|work| work.waits_for(key)) {
                        self.punish(now, key);
                    }
                }
                TickOutcome::Expelled => {
                    self.punish(now, key);
                    self.expel(now, key);
                }
                TickOutcome::Outdated => self.expel(now, key),
                TickOutcome::Removed => {
                    self.outputs.push_back(GrantorOutput::HolderRemoved(key));
                    self.remove(key);
                }
            }
        }
        self.retry();
    }

    fn expel(&mut self, now: Time, holder: HolderKey) {
        self.outputs.push_back(GrantorOutput::Expel(holder));
        self.detach(now, holder);
    }

    /// Records that a change waited in vain for a holder: its party gets no leases for some time, and those that its
    /// other holders have are recalled now.
    fn punish(&mut self, now: Time, holder: HolderKey) {
        let Some(party) = self.holders.get(&holder).map(|state| state.party().clone()) else { return };
        for (key, state) in
            self.holders.iter_mut().filter(|(key, it)| **key != holder && *it.party() == party)
        {
            state.recall_all(now);
            self.unsent.insert(*key);
        }
        self.offenders.punish(now, party);
    }

    /// Returns true if a holder's party gets no leases for missing a recall.
    fn is_punished(&self, now: Time, state: &HolderState) -> bool {
        self.offenders.is_punished(now, state.party())
    }

    /// Returns true if a holder was granted this object and the whole object was not recalled since.
    pub fn is_leased(&self, id: FileId) -> bool {
        self.holders.values().any(|state| state.leases().contains(id))
    }

    /// Returns the number of granted leases over all holders, including those in an unanswered recall of
    /// everything.
    pub fn leased_objects(&self) -> usize {
        self.holders.values().map(|state| state.leases().len()).sum()
    }

    /// Returns the memory of the lease sets in bytes.
    pub fn lease_bytes(&self) -> usize {
        self.holders.values().map(|state| state.leases().bytes()).sum()
    }

    /// Returns true if this holder is connected, may get leases, and no other holder may use any lease.
    pub fn is_sole_holder(&self, now: Time, holder: HolderKey) -> bool {
        let holds_nothing = |(key, state): (&HolderKey, &HolderState)| *key == holder || state.is_idle();
        self.holders.get(&holder).is_some_and(|state| state.is_grantable() && !self.is_punished(now, state))
            && self.recovering_until.is_none()
            && self.holders.iter().all(holds_nothing)
    }

    /// Returns a fresh serial for a message to this holder that is not a recall but is answered like one.
    pub fn next_serial(&mut self, holder: HolderKey) -> Option<Serial> {
        self.holders.get_mut(&holder).map(HolderState::next_serial)
    }

    /// Returns the number of holders, including silent ones.
    pub fn holders(&self) -> usize {
        self.holders.len()
    }

    /// Returns the number of jobs that wait.
    pub fn parked(&self) -> usize {
        self.parked.len()
    }

    /// Returns true if no client can use any lease, so that a restarted server need not wait.
    pub fn is_idle(&self) -> bool {
        self.recovering_until.is_none() && self.holders.values().all(HolderState::is_idle)
    }
}

#[cfg(test)]
mod tests;
