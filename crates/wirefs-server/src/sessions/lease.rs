//! Leases of sessions, and changes that wait for recall answers.
//!
//! A holder is identified by the session id. It outlives the session's files and locks, so that a client that
//! returns after hours need not validate unchanged objects.
//!
//! ```text
//!   job runs ── touch: another holder has a lease ──► Rrecall to the holders; the job is parked
//!      ▲                                                  │ it keeps the write slot of its session
//!      └── Execute, from its beginning ◄── all have answered (Trecalled), or their leases have expired
//! ```

mod parked;
mod recovery;

use super::job::ParkState;
use super::{ConnectionKey, JobKey, ServerOutput, Sessions};
use crate::blame::CloseReason;
use crate::tree::{ExternalChange, Parked, SessionKey, Touched};
use std::collections::{BTreeMap, BTreeSet};
use wirefs_lease::{
    ExclusiveSession, Grantor, GrantorOutput, HolderKey, JoinOutcome, LeaseConfig, LeaseItem, Serial,
    TouchOutcome,
};
use wirefs_op::message::attach::{Leases, Watch};
use wirefs_op::message::recall::{END_SESSION, OWN_CHANGE, RELEASE_ALL, RecallItem, Rrecall};
use wirefs_op::message::version::SessionId;
use wirefs_op::{FileId, NOTAG, Reply, Stat, Time};

/// The terms on which a server grants leases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseTerms {
    /// The external changes that the tree detects.
    pub watch: Watch,
    /// Changes wait until this time, because clients may hold leases of the previous server, which ended uncleanly.
    pub recovering_until: Option<Time>,
}

impl LeaseTerms {
    /// Terms without leases of a previous server.
    pub fn new(watch: Watch) -> LeaseTerms {
        LeaseTerms { watch, recovering_until: None }
    }
}

/// The leases of all sessions.
#[derive(Debug)]
pub(super) struct Leasing {
    pub(super) grantor: Grantor,
    /// The exclusive session.
    pub(super) exclusive: ExclusiveSession,
    watch: Watch,
    recovering_until: Option<Time>,
    /// The sessions that may hold leases of the previous server and have not invalidated them, if they are known.
    awaited: Option<BTreeSet<SessionId>>,
    term_ms: u32,
    pub(super) by_id: BTreeMap<SessionId, HolderKey>,
    ids: BTreeMap<HolderKey, SessionId>,
    /// The holders with an attached connection.
    present: BTreeMap<HolderKey, Present>,
    holders_begun: u64,
}

impl Leasing {
    pub(super) fn new(terms: LeaseTerms) -> Leasing {
        let config = LeaseConfig::default();
        Leasing {
            grantor: Grantor::new(config, terms.recovering_until),
            exclusive: ExclusiveSession::new(config),
            watch: terms.watch,
            recovering_until: terms.recovering_until,
            awaited: None,
            term_ms: u32::try_from(config.term.as_millis()).unwrap_or(u32::MAX),
            by_id: BTreeMap::new(),
            ids: BTreeMap::new(),
            present: BTreeMap::new(),
            holders_begun: 0,
        }
    }

    fn holder(&mut self, id: SessionId) -> HolderKey {
        if let Some(known) = self.by_id.get(&id) {
            return *known;
        }
        let new = HolderKey(self.holders_begun);
        self.holders_begun += 1;
        self.by_id.insert(id, new);
        self.ids.insert(new, id);
        new
    }

    /// The connection of a holder, if it is attached.
    pub(super) fn connection_of(&self, holder: HolderKey) -> Option<ConnectionKey> {
        self.present.get(&holder).map(|present| present.connection)
    }

    fn forget(&mut self, holder: HolderKey) {
        self.exclusive.end(holder);
        self.present.remove(&holder);
        if let Some(id) = self.ids.remove(&holder) {
            self.by_id.remove(&id);
        }
    }
}

/// A holder with an attached connection.
#[derive(Clone, Copy, Debug)]
struct Present {
    connection: ConnectionKey,
    /// Unanswered recalls over this connection.
    recalls: usize,
}

/// The cause of recalls: the objects that a job of this holder touches.
struct Cause<'a> {
    holder: HolderKey,
    touched: &'a [Touched],
}

impl Cause<'_> {
    /// Whether a recall concerns only side effects of the holder's own change.
    fn is_all_of(&self, holder: HolderKey, items: &[LeaseItem]) -> bool {
        let is_own = |item: &LeaseItem| {
            self.touched.iter().any(|what| what.recall_own && what.id == item.id && what.name == item.name)
        };
        holder == self.holder && !items.is_empty() && items.iter().all(is_own)
    }
}

impl Sessions {
    /// Whether any client may hold leases, so that the next server must wait.
    pub fn has_leases_out(&self) -> bool {
        let is_out = |leasing: &Leasing| !leasing.grantor.is_idle() || !leasing.exclusive.is_shared();
        self.leasing.as_ref().is_some_and(is_out)
    }

    /// For each object, whether a client has a lease on it.
    pub fn are_leased(&self, ids: &[FileId]) -> Vec<bool> {
        let is_known =
            |id: &FileId| self.leasing.as_ref().is_some_and(|leasing| leasing.grantor.is_leased(*id));
        ids.iter().map(is_known).collect()
    }

    /// Whether a connected client has not answered a recall.
    pub fn is_recalling(&self) -> bool {
        let is_recalling = |leasing: &Leasing| {
            let is_recalling_exclusive = leasing.exclusive.is_recalling() && leasing.exclusive.is_connected();
            is_recalling_exclusive || leasing.present.values().any(|present| present.recalls > 0)
        };
        self.leasing.as_ref().is_some_and(is_recalling)
    }

    /// States the objects that a running job is about to change ([`Replies::touch`](crate::Replies::touch)).
    ///
    /// # Errors
    /// Other clients must answer a recall first. The tree returns the job unchanged, and the driver hands in
    /// [`ServerInput::Parked`](super::ServerInput::Parked). The job keeps the write slot.
    pub fn touch(&mut self, now: Time, job: JobKey, touched: &[Touched]) -> Result<(), Parked> {
        let holder = self.change_holder(job);
        let is_alone = self.is_sole_session(now, holder);
        let (Some(leasing), Some(pending)) = (&mut self.leasing, self.jobs.get_mut(&job)) else {
            return Ok(());
        };
        if touched.is_empty() {
            return Ok(());
        }
        // The only client knows its own changes, except for their side effects.
        if is_alone && !touched.iter().any(|what| what.recall_own) {
            pending.deferred_touches.extend_from_slice(touched);
            return Ok(());
        }
        let mut all = std::mem::take(&mut pending.deferred_touches);
        all.extend_from_slice(touched);
        let verdict = leasing.grantor.touch(now, job, holder, &all);
        pending.park_state =
            if verdict == TouchOutcome::Clear { ParkState::Running } else { ParkState::Parking };
        let cause = holder.map(|holder| Cause { holder, touched: &all });
        self.follow_leases_of(now, cause);
        if verdict == TouchOutcome::Clear { Ok(()) } else { Err(Parked) }
    }

    /// Whether no other session exists, so that neither leases nor changes of others concern the job.
    fn is_sole_session(&self, now: Time, holder: Option<HolderKey>) -> bool {
        let Some(leasing) = &self.leasing else { return true };
        // With directory watches, the grantor needs the running changes to recognize reports of them.
        if leasing.watch == Watch::Directories {
            return false;
        }
        let others = leasing.ids.len() - usize::from(holder.is_some());
        self.sessions.len() == 1 && others == 0 && leasing.recovering_until.is_none_or(|until| until <= now)
    }

    /// Another session begins: reports deferred touches of running jobs to the grantor.
    pub(super) fn report_deferred_touches(&mut self, now: Time) {
        let has_touched = self.jobs.iter().filter(|(_, pending)| !pending.deferred_touches.is_empty());
        for job in has_touched.map(|(key, _)| *key).collect::<Vec<JobKey>>() {
            let holder = self.change_holder(job);
            let (Some(leasing), Some(pending)) = (&mut self.leasing, self.jobs.get_mut(&job)) else {
                continue;
            };
            let touched = std::mem::take(&mut pending.deferred_touches);
            // No other session has leases yet, so no job has to wait. A job that is parked nonetheless is resumed.
            if leasing.grantor.touch(now, job, holder, &touched) == TouchOutcome::Parked {
                pending.park_state = ParkState::Parking;
            }
        }
        self.follow_leases(now);
    }

    /// Grants leases on the attributes in a running job's reply ([`Replies::grant`](crate::Replies::grant)).
    pub fn grant(&mut self, now: Time, job: JobKey, stats: &mut dyn Iterator<Item = &mut Stat>) {
        let Some(holder) = self.grantee(job) else {
            return;
        };
        let Some(leasing) = &mut self.leasing else { return };
        let mut stats: Vec<&mut Stat> = stats.collect();
        let ids: Vec<FileId> = stats.iter().map(|stat| stat.id).collect();
        let granted = leasing.grantor.grant(now, job, holder, &ids);
        for (stat, granted) in stats.iter_mut().zip(granted) {
            stat.leased = granted;
        }
        self.follow_leases(now);
    }

    /// Grants a lease on the names of a directory in a running job's reply
    /// ([`Replies::grant_names`](crate::Replies::grant_names)).
    pub fn grant_names(&mut self, now: Time, job: JobKey, dir: FileId) -> bool {
        let Some(holder) = self.grantee(job) else {
            return false;
        };
        let Some(leasing) = &mut self.leasing else { return false };
        let granted = leasing.grantor.grant(now, job, holder, &[dir]);
        self.follow_leases(now);
        granted.contains(&true)
    }

    /// The holder that learns of the job's changes from its reply. A session without its connection, or without
    /// leases now, must get recalls of its own changes.
    fn change_holder(&self, job: JobKey) -> Option<HolderKey> {
        let pending = self.jobs.get(&job)?;
        let (connection, holder) = (pending.route.connection?, pending.holder?);
        (self.present_at(holder) == Some(connection)).then_some(holder)
    }

    /// The holder that may get leases with this job's reply. `None` once the server is about to stop.
    fn grantee(&self, job: JobKey) -> Option<HolderKey> {
        self.change_holder(job).filter(|_| self.is_serving())
    }

    /// Reports a finished change of a running job ([`Replies::changed`](crate::Replies::changed)).
    pub fn changed(&mut self, now: Time, touched: &Touched, before: Option<u64>, after: Option<u64>) {
        if let Some(leasing) = &mut self.leasing {
            leasing.grantor.own_change(now, touched.id, touched.name.as_ref(), before, after);
        }
    }

    /// Handles an external change ([`ServerInput::ExternalChange`](super::ServerInput::ExternalChange)).
    pub(super) fn changed_outside(&mut self, now: Time, outside: ExternalChange) {
        let Some(leasing) = &mut self.leasing else { return };
        match outside {
            ExternalChange::Changed { id, name, version } => {
                leasing.grantor.external_change(now, id, name.as_ref(), version);
            }
            ExternalChange::Lost => leasing.grantor.recall_everything(now),
        }
        self.follow_leases(now);
    }

    /// Whether reports of external changes may have brought [`deadline`](Self::deadline) forward.
    pub fn has_unattributed_reports(&self) -> bool {
        self.leasing.as_ref().is_some_and(|leasing| leasing.grantor.has_unattributed_reports())
    }

    /// A job starts, or starts again.
    pub(super) fn begin_leasing(&mut self, job: JobKey) {
        if let Some(leasing) = &mut self.leasing {
            leasing.grantor.begin(job);
        }
    }

    /// A job has ended.
    pub(super) fn end_leasing(&mut self, now: Time, job: JobKey) {
        let park_state = self.jobs.get(&job).map(|pending| &pending.park_state);
        let has_gone_on = matches!(park_state, Some(ParkState::Parking | ParkState::Resumed));
        if let Some(leasing) = &mut self.leasing {
            if has_gone_on {
                leasing.grantor.proceeded(job);
            }
            leasing.grantor.end(job);
            self.follow_leases(now);
        }
    }

    /// Registers a session that attached over a connection with leases.
    pub(super) fn join_leasing(
        &mut self,
        now: Time,
        session: SessionKey,
        connection: ConnectionKey,
    ) -> Option<Leases> {
        self.report_deferred_touches(now);
        let (leasing, owner) = (self.leasing.as_mut()?, self.sessions.get_mut(&session)?);
        let holder = leasing.holder(owner.id);
        let joined = leasing.grantor.join(now, holder, owner.party.party_key(&owner.id));
        if joined == JoinOutcome::Full {
            leasing.forget(holder);
            return None;
        }
        leasing.present.insert(holder, Present { connection, recalls: 0 });
        leasing.holder_returned(now, holder, owner.id);
        owner.holder = Some(holder);
        let (term_ms, watch) = (leasing.term_ms, leasing.watch);
        Some(Leases { term_ms, kept: joined == JoinOutcome::Retained, watch })
    }

    /// Grants a lease on the root to a session that has just attached.
    pub(super) fn grant_root(&mut self, now: Time, session: SessionKey, job: JobKey, root: FileId) -> bool {
        // A stopping server could not recall it any more.
        let is_serving = self.is_serving();
        let holder = self.sessions.get(&session).and_then(|owner| owner.holder).filter(|_| is_serving);
        match (&mut self.leasing, holder) {
            (Some(leasing), Some(holder)) => leasing.grantor.grant(now, job, holder, &[root]).contains(&true),
            (Some(_) | None, _) => false,
        }
    }

    /// Renews the leases of a connection that sent a message.
    pub(super) fn renew_leases(&mut self, now: Time, connection: ConnectionKey) {
        let Some(holder) = self.holder_over(connection) else { return };
        if let Some(leasing) = &mut self.leasing {
            leasing.grantor.renew(now, holder);
            leasing.exclusive.renew(now, holder);
            self.follow_leases(now);
        }
    }

    /// Handles Trecalled.
    pub(super) fn recalled(&mut self, now: Time, connection: ConnectionKey, serial: u64) {
        if serial == END_SESSION {
            return self.end_by_client(now, connection);
        }
        let serial = serial & !OWN_CHANGE;
        let Some(holder) = self.holder_over(connection) else { return };
        if self.exclusive_recall_answered(now, holder, Serial(serial)) {
            return;
        }
        if serial == RELEASE_ALL {
            self.release_exclusive(holder);
        }
        if let Some(leasing) = &mut self.leasing {
            if serial == RELEASE_ALL {
                leasing.grantor.release_all(holder);
                return self.follow_leases(now);
            }
            leasing.grantor.recall_answered(now, holder, Serial(serial));
            leasing.recall_answered(holder);
            if let Some(present) = leasing.present.get_mut(&holder) {
                present.recalls = present.recalls.saturating_sub(1);
            }
            self.follow_leases(now);
            self.grant_exclusive(now);
        }
    }

    /// The connection of a holder is gone.
    pub(super) fn leases_disconnected(&mut self, now: Time, connection: ConnectionKey) {
        let Some(holder) = self.holder_over(connection) else { return };
        if let Some(leasing) = &mut self.leasing {
            leasing.present.remove(&holder);
            leasing.grantor.disconnected(now, holder);
            leasing.exclusive.disconnected(holder);
            self.follow_leases(now);
        }
    }

    /// The holder that is attached over this connection.
    pub(super) fn holder_over(&self, connection: ConnectionKey) -> Option<HolderKey> {
        let session = self.connections.get(&connection)?.session()?;
        let holder = self.sessions.get(&session)?.holder?;
        (self.present_at(holder) == Some(connection)).then_some(holder)
    }

    fn present_at(&self, holder: HolderKey) -> Option<ConnectionKey> {
        self.leasing.as_ref()?.connection_of(holder)
    }

    pub(super) fn tick_leases(&mut self, now: Time) {
        if let Some(leasing) = &mut self.leasing {
            leasing.grantor.tick(now);
            self.follow_leases(now);
        }
    }

    pub(super) fn lease_deadline(&self) -> Option<Time> {
        let leasing = self.leasing.as_ref()?;
        leasing.grantor.deadline().into_iter().chain(leasing.exclusive.deadline()).min()
    }

    /// Recalls all leases.
    pub(super) fn recall_everything(&mut self, now: Time) {
        if let Some(leasing) = &mut self.leasing {
            leasing.grantor.recall_everything(now);
            self.follow_leases(now);
        }
    }

    /// Executes the outputs of the grantor in order.
    pub(super) fn follow_leases(&mut self, now: Time) {
        self.follow_leases_of(now, None);
    }

    fn follow_leases_of(&mut self, now: Time, cause: Option<Cause<'_>>) {
        while let Some(output) = self.leasing.as_mut().and_then(|leasing| leasing.grantor.poll()) {
            match output {
                GrantorOutput::Recall { holder, serial, items } => {
                    let is_own = cause.as_ref().is_some_and(|cause| cause.is_all_of(holder, &items));
                    self.recall(holder, serial, items, is_own);
                }
                GrantorOutput::Retry(job) => self.resume_job(job),
                GrantorOutput::Expel(holder) => self.expel(now, holder),
                GrantorOutput::HolderRemoved(holder) => {
                    if let Some(leasing) = &mut self.leasing {
                        leasing.forget(holder);
                    }
                }
                GrantorOutput::Verify(LeaseItem { id, name }) => {
                    self.outputs.push_back(ServerOutput::Verify { id, name });
                }
            }
        }
    }

    fn recall(&mut self, holder: HolderKey, serial: Serial, items: Vec<LeaseItem>, is_own: bool) {
        let Some(present) = self.leasing.as_mut().and_then(|leasing| leasing.present.get_mut(&holder)) else {
            return;
        };
        present.recalls += 1;
        let connection = present.connection;
        let items =
            items.into_iter().map(|LeaseItem { id, name }| RecallItem { id, name: name.map(Vec::from) });
        let serial = if is_own { serial.0 | OWN_CHANGE } else { serial.0 };
        let reply = Reply::Recall(Rrecall { serial, items: items.collect() });
        self.outputs.push_back(ServerOutput::Reply { connection, tag: NOTAG, reply });
    }

    fn expel(&mut self, now: Time, holder: HolderKey) {
        let present = self.leasing.as_mut().and_then(|leasing| {
            leasing.exclusive.disconnected(holder);
            leasing.present.remove(&holder)
        });
        if let Some(Present { connection, .. }) = present {
            self.close(now, connection, CloseReason::Unresponsive);
        }
    }
}
