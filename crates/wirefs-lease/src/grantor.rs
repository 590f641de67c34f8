//! The server's side: who was granted what, who has to be told before it changes, and who waits for that.

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
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;
use version_chain::VersionChains;
use wirefs_op::{FileId, Time};

/// One holder: a session that takes leases. Named by the driver; the same when the session is taken up again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HolderKey(pub u64);

/// One request that is worked on. Named by the driver; never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct JobKey(pub u64);

/// How long the grantor waits, and how much it keeps. All from `limits`, unless a test wants it otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseConfig {
    /// See [`limits::TERM`]; clients are told the same.
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

/// Something that a job is about to change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Touched {
    /// The object; of a name the directory that it is in.
    pub id: FileId,
    /// The one name whose meaning changes. Without it everything of the object may change.
    pub name: Option<Bytes>,
    /// No other job that touches the same object exclusively runs between this touch and the end: for directories whose
    /// names change.
    pub exclusive: bool,
    /// The holder on whose behalf it is changed does not know that this is what changes, such as the file that a rename
    /// replaces: its own lease is recalled as well. The job does not wait for that, since the recall is there before the
    /// reply; if neither comes through, the recall comes again.
    pub recall_own: bool,
}

/// Whether a job may change what it touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TouchOutcome {
    /// Nobody else believes anything about it, and nobody is granted it before the job ends.
    Clear,
    /// Not yet. The job must change nothing, be put away, and be carried out from its beginning at [`GrantorOutput::Retry`].
    Parked,
}

/// All that a grantor does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GrantorOutput {
    /// Tell a holder to forget.
    Recall {
        /// Whom.
        holder: HolderKey,
        /// What its answer repeats.
        serial: Serial,
        /// What it has to forget; none: everything that it has.
        items: Vec<LeaseItem>,
    },
    /// Carry out this parked job from its beginning.
    Retry(JobKey),
    /// Close the connection of this holder, and answer nothing more that comes over it.
    Expel(HolderKey),
    /// Nothing is known of this holder any more; if it joins, it starts afresh.
    HolderRemoved(HolderKey),
    /// Look at this again and say with [`Grantor::external_change`] how it is now: it changed while a job of ours changed
    /// the object too, and it may have been either.
    Verify(LeaseItem),
}

/// The leases of one server.
///
/// # What the driver owes
/// - It polls after each call, and puts recalls in that order into the holder's connection, ahead of what waits there.
///   A reply that is queued after a recall never overtakes it; one that was queued before may come later.
/// - For each request of a holder, but the one by which it [`join`](Self::join)s, it calls [`renewed_at`](Self::heard) before
///   anything else that concerns it, and polls, so that what the holder missed goes out ahead of the reply.
/// - A job that reads calls [`begin`](Self::begin), reads, calls [`grant`](Self::grant) and queues its reply in one step
///   with it, then calls [`end`](Self::end).
/// - A job that changes calls [`begin`](Self::begin), finds what it will change, calls [`touch`](Self::touch) until it is
///   all [`TouchOutcome::Clear`], and only then changes anything; [`end`](Self::end) comes after the last change, also when it
///   failed. Each attempt begins anew.
/// - A job that cannot be put away, since it has changed something before, may go on: [`proceeded`](Self::went_on) is called
///   before its end.
/// - It touches on behalf of a holder only while the connection that asked is still the holder's; after that on behalf of
///   nobody, since nobody learns from a reply what the change led to.
/// - What a job found without exclusive right to its directory it looks for again after the touch that gave the right.
///
/// # Cost
/// A granted object costs a look-up in two small maps and one in a set; a touch one look-up for each holder.
#[derive(Debug)]
pub struct Grantor {
    config: LeaseConfig,
    /// Until then no change passes.
    recovering_until: Option<Time>,
    holders: BTreeMap<HolderKey, HolderState>,
    /// Holders with recalls that were not handed out.
    unsent: BTreeSet<HolderKey>,
    jobs: BTreeMap<JobKey, Job>,
    /// Which jobs touch an object, and who may be granted it nonetheless.
    touching: BTreeMap<FileId, Vec<(JobKey, Option<HolderKey>)>>,
    parked: BTreeMap<Ticket, JobKey>,
    directory_locks: DirectoryLocks,
    tickets: u64,
    changes: Changes,
    own: VersionChains,
    /// Reports that may be of own changes.
    unattributed: BTreeMap<LeaseItem, UnattributedReport>,
    outputs: VecDeque<GrantorOutput>,
}

impl Grantor {
    /// A grantor without holders. After an unclean end of the server, leases of its last run may still be believed: then
    /// no change passes before `recovering_until`, which is `term + margin` after the start.
    pub fn new(config: LeaseConfig, recovering_until: Option<Time>) -> Grantor {
        Grantor {
            config,
            recovering_until,
            holders: BTreeMap::new(),
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

    /// The next thing to do.
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

    /// When to call [`tick`](Self::tick) next.
    pub fn deadline(&self) -> Option<Time> {
        let holders = self.holders.values().map(|state| state.deadline(&self.config));
        holders.chain(self.recovering_until).chain(self.reports_expire_at()).min()
    }

    /// Lets time pass: silent holders are fenced, those that do not answer expelled, the long silent forgotten.
    pub fn tick(&mut self, now: Time) {
        self.recovering_until = self.recovering_until.filter(|until| now < *until);
        self.expire_reports(now);
        let outcome = self.holders.iter_mut().map(|(key, state)| (*key, state.tick(now, &self.config)));
        for (key, outcome) in outcome.collect::<Vec<_>>() {
            match outcome {
                TickOutcome::Stays => {}
                TickOutcome::Expelled => {
                    self.outputs.push_back(GrantorOutput::Expel(key));
                    self.detach(now, key);
                }
                TickOutcome::Removed => {
                    self.outputs.push_back(GrantorOutput::HolderRemoved(key));
                    self.remove(key);
                }
            }
        }
        self.retry();
    }

    /// Whether a holder was granted this object, and nothing of it was recalled as a whole since.
    pub fn is_leased(&self, id: FileId) -> bool {
        self.holders.values().any(|state| state.leases().contains(id))
    }

    /// Objects that all holders know, and those that they are told to forget with everything else.
    pub fn leased_objects(&self) -> usize {
        self.holders.values().map(|state| state.leases().len()).sum()
    }

    /// Bytes that the sets of known objects take.
    pub fn lease_bytes(&self) -> usize {
        self.holders.values().map(|state| state.leases().bytes()).sum()
    }

    /// Whether this holder can be told things, and nobody else believes anything.
    pub fn is_sole_holder(&self, holder: HolderKey) -> bool {
        let holds_nothing = |(key, state): (&HolderKey, &HolderState)| *key == holder || state.is_idle();
        self.holders.get(&holder).is_some_and(HolderState::is_grantable)
            && self.recovering_until.is_none()
            && self.holders.iter().all(holds_nothing)
    }

    /// A number for something else than a recall that this holder is told and answers.
    pub fn next_serial(&mut self, holder: HolderKey) -> Option<Serial> {
        self.holders.get_mut(&holder).map(HolderState::next_serial)
    }

    /// Holders at present, the silent ones included.
    pub fn holders(&self) -> usize {
        self.holders.len()
    }

    /// Jobs that wait at present.
    pub fn parked(&self) -> usize {
        self.parked.len()
    }

    /// Whether no lease is out and none may be believed, so that a server that starts anew need not wait.
    pub fn is_idle(&self) -> bool {
        self.recovering_until.is_none() && self.holders.values().all(HolderState::is_idle)
    }
}

#[cfg(test)]
mod tests;
