//! Leases: which session holds what, and which changes wait until others have forgotten.
//!
//! A holder is a session by its id: it outlives the session's files and locks, so that a client that comes back after
//! hours has to ask about nothing that nobody changed.
//!
//! ```text
//!   job runs ── touch: somebody else knows it ──► Rrecall to those; the job comes back (Input::Parked)
//!      ▲                                               │ keeps its turn in its session's lane
//!      └── Execute, from its beginning ◄── all have answered (Trecalled), or their leases have run out
//! ```

mod aside;
mod recovery;

use super::job::Pause;
use super::{ConnectionKey, JobKey, Output, Sessions};
use crate::blame::Parting;
use crate::tree::{Outside, Parked, SessionKey, Touched};
use std::collections::{BTreeMap, BTreeSet};
use wirefs_lease::{
    ExclusiveSession, Grantor, GrantorOutput, HolderKey, JoinOutcome, LeaseConfig, LeaseItem, Serial,
    TouchOutcome,
};
use wirefs_op::message::attach::{Leases, Watch};
use wirefs_op::message::recall::{END_SESSION, OWN_CHANGE, RELEASE_ALL, RecallItem, Rrecall};
use wirefs_op::message::version::SessionId;
use wirefs_op::{FileId, NOTAG, Reply, Stat, Time};

/// On what terms a server leases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Which changes are noticed that are not made through this server.
    pub watch: Watch,
    /// Until then no change passes: the server before this one did not end cleanly, so what it leased may be believed
    /// still.
    pub recovering_until: Option<Time>,
}

impl Terms {
    /// A server after which no lease is out from before; each change of its tree is noticed.
    pub fn new(watch: Watch) -> Terms {
        Terms { watch, recovering_until: None }
    }
}

/// The leases of all sessions.
#[derive(Debug)]
pub(super) struct Leasing {
    pub(super) grantor: Grantor,
    /// Which session is alone.
    pub(super) solitude: ExclusiveSession,
    watch: Watch,
    recovering_until: Option<Time>,
    /// Who may believe what the server before this one promised, if that is known: those that have not come back and forgotten it.
    awaited: Option<BTreeSet<SessionId>>,
    term_ms: u32,
    pub(super) by_id: BTreeMap<SessionId, HolderKey>,
    ids: BTreeMap<HolderKey, SessionId>,
    /// Where those are reached that are attached.
    present: BTreeMap<HolderKey, Present>,
    holders_begun: u64,
}

impl Leasing {
    pub(super) fn new(terms: Terms) -> Leasing {
        let config = LeaseConfig::default();
        Leasing {
            grantor: Grantor::new(config, terms.recovering_until),
            solitude: ExclusiveSession::new(config),
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

    /// Where a holder is reached, if it is attached.
    pub(super) fn connection_of(&self, holder: HolderKey) -> Option<ConnectionKey> {
        self.present.get(&holder).map(|present| present.connection)
    }

    fn forget(&mut self, holder: HolderKey) {
        self.solitude.end(holder);
        self.present.remove(&holder);
        if let Some(id) = self.ids.remove(&holder) {
            self.by_id.remove(&id);
        }
    }
}

/// A holder that is attached.
#[derive(Clone, Copy, Debug)]
struct Present {
    connection: ConnectionKey,
    /// Recalls that were sent over this connection and not answered.
    recalls: usize,
}

/// Why something is recalled: what a job of this holder's touches.
struct Cause<'a> {
    holder: HolderKey,
    touched: &'a [Touched],
}

impl Cause<'_> {
    /// Whether a recall tells the holder of nothing but its own change.
    fn is_all_of(&self, holder: HolderKey, items: &[LeaseItem]) -> bool {
        let is_own = |item: &LeaseItem| {
            self.touched.iter().any(|what| what.recall_own && what.id == item.id && what.name == item.name)
        };
        holder == self.holder && !items.is_empty() && items.iter().all(is_own)
    }
}

impl Sessions {
    /// Whether anybody may believe anything still, so that a server that takes this one's place must wait.
    pub fn are_leases_out(&self) -> bool {
        let is_out = |leasing: &Leasing| !leasing.grantor.is_idle() || !leasing.solitude.is_shared();
        self.leasing.as_ref().is_some_and(is_out)
    }

    /// Which of these objects somebody was promised to hear about, and was not told yet.
    pub fn are_known(&self, ids: &[FileId]) -> Vec<bool> {
        let is_known =
            |id: &FileId| self.leasing.as_ref().is_some_and(|leasing| leasing.grantor.is_leased(*id));
        ids.iter().map(is_known).collect()
    }

    /// Whether clients that are there have not said yet that they have forgotten what they were told to.
    pub fn is_recalling(&self) -> bool {
        let is_recalling = |leasing: &Leasing| {
            let is_giving_way = leasing.solitude.is_recalling() && leasing.solitude.is_connected();
            is_giving_way || leasing.present.values().any(|present| present.recalls > 0)
        };
        self.leasing.as_ref().is_some_and(is_recalling)
    }

    /// Says what a running job is about to change, before it changes any of it ([`Replies::touch`](crate::Replies::touch)).
    ///
    /// # Errors
    /// Others have to hear of it first: the tree gives the job back as it was, and the driver hands in
    /// [`Input::Parked`](super::Input::Parked). Its turn stays with the job.
    pub fn touch(&mut self, now: Time, job: JobKey, touched: &[Touched]) -> Result<(), Parked> {
        let holder = self.changer(job);
        let is_alone = self.is_alone(now, holder);
        let (Some(leasing), Some(pending)) = (&mut self.leasing, self.jobs.get_mut(&job)) else {
            return Ok(());
        };
        if touched.is_empty() {
            return Ok(());
        }
        // Who is alone knows of its own changes, but for those that surprise it.
        if is_alone && !touched.iter().any(|what| what.recall_own) {
            pending.touched_alone.extend_from_slice(touched);
            return Ok(());
        }
        let mut all = std::mem::take(&mut pending.touched_alone);
        all.extend_from_slice(touched);
        let verdict = leasing.grantor.touch(now, job, holder, &all);
        pending.pause = if verdict == TouchOutcome::Clear { Pause::None } else { Pause::Coming };
        let cause = holder.map(|holder| Cause { holder, touched: &all });
        self.follow_leases_of(now, cause);
        if verdict == TouchOutcome::Clear { Ok(()) } else { Err(Parked) }
    }

    /// Whether nobody is there who could know anything of what a job changes, but whoever gets its reply; nor anybody who
    /// could change something beside it.
    fn is_alone(&self, now: Time, holder: Option<HolderKey>) -> bool {
        let Some(leasing) = &self.leasing else { return true };
        // That one's reports are told apart by what is known to be changing.
        if leasing.watch == Watch::Directories {
            return false;
        }
        let others = leasing.ids.len() - usize::from(holder.is_some());
        self.sessions.len() == 1 && others == 0 && leasing.recovering_until.is_none_or(|until| until <= now)
    }

    /// Somebody else comes: what running jobs have touched counts as if it had been touched with others there.
    pub(super) fn end_solitude(&mut self, now: Time) {
        let has_touched = self.jobs.iter().filter(|(_, pending)| !pending.touched_alone.is_empty());
        for job in has_touched.map(|(key, _)| *key).collect::<Vec<JobKey>>() {
            let holder = self.changer(job);
            let (Some(leasing), Some(pending)) = (&mut self.leasing, self.jobs.get_mut(&job)) else {
                continue;
            };
            let touched = std::mem::take(&mut pending.touched_alone);
            // Nobody has been granted anything yet, so there is nobody to wait for; if it is parked nonetheless, it goes on.
            if leasing.grantor.touch(now, job, holder, &touched) == TouchOutcome::Parked {
                pending.pause = Pause::Coming;
            }
        }
        self.follow_leases(now);
    }

    /// Marks what a running job's reply may tell under a lease ([`Replies::grant`](crate::Replies::grant)).
    pub fn grant(&mut self, now: Time, job: JobKey, stats: &mut dyn Iterator<Item = &mut Stat>) {
        let Some(holder) = self.promise(job) else {
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

    /// Whether a running job's reply may tell what a name in this directory means under a lease
    /// ([`Replies::grant_place`](crate::Replies::grant_place)).
    pub fn grant_place(&mut self, now: Time, job: JobKey, dir: FileId) -> bool {
        let Some(holder) = self.promise(job) else {
            return false;
        };
        let Some(leasing) = &mut self.leasing else { return false };
        let granted = leasing.grantor.grant(now, job, holder, &[dir]);
        self.follow_leases(now);
        granted.contains(&true)
    }

    /// Who knows of this job's changes without being told: whoever gets its reply. Whose connection is gone gets none, and so
    /// must hear of its own change like all others; so must a session that takes no leases just now.
    fn changer(&self, job: JobKey) -> Option<HolderKey> {
        let pending = self.jobs.get(&job)?;
        let (connection, holder) = (pending.connection?, pending.holder?);
        (self.present_at(holder) == Some(connection)).then_some(holder)
    }

    /// Who may be promised something by this job's reply. Nobody once the server is about to stop, and nobody over a
    /// connection that is gone.
    fn promise(&self, job: JobKey) -> Option<HolderKey> {
        self.changer(job).filter(|_| self.is_serving())
    }

    /// A running job has changed something ([`Replies::changed`](crate::Replies::changed)).
    pub fn changed(&mut self, now: Time, touched: &Touched, before: Option<u64>, after: Option<u64>) {
        if let Some(leasing) = &mut self.leasing {
            leasing.grantor.own_change(now, touched.id, touched.name.as_ref(), before, after);
        }
    }

    /// Something changed that no client of this server changed ([`Input::Outside`](super::Input::Outside)).
    pub(super) fn changed_outside(&mut self, now: Time, outside: Outside) {
        let Some(leasing) = &mut self.leasing else { return };
        match outside {
            Outside::Changed { id, name, version } => {
                leasing.grantor.external_change(now, id, name.as_ref(), version);
            }
            Outside::Lost => leasing.grantor.recall_everything(now),
        }
        self.follow_leases(now);
    }

    /// Whether [`deadline`](Self::deadline) may be earlier since something was reported from outside.
    pub fn is_in_doubt(&self) -> bool {
        self.leasing.as_ref().is_some_and(|leasing| leasing.grantor.has_unattributed_reports())
    }

    /// A job begins, or begins anew.
    pub(super) fn begin_leasing(&mut self, job: JobKey) {
        if let Some(leasing) = &mut self.leasing {
            leasing.grantor.begin(job);
        }
    }

    /// A job is over.
    pub(super) fn end_leasing(&mut self, now: Time, job: JobKey) {
        let pause = self.jobs.get(&job).map(|pending| &pending.pause);
        let has_gone_on = matches!(pause, Some(Pause::Coming | Pause::Over));
        if let Some(leasing) = &mut self.leasing {
            if has_gone_on {
                leasing.grantor.proceeded(job);
            }
            leasing.grantor.end(job);
            self.follow_leases(now);
        }
    }

    /// A session has attached over a connection that takes leases.
    pub(super) fn join_leasing(
        &mut self,
        now: Time,
        session: SessionKey,
        connection: ConnectionKey,
    ) -> Option<Leases> {
        self.end_solitude(now);
        let (leasing, owner) = (self.leasing.as_mut()?, self.sessions.get_mut(&session)?);
        let holder = leasing.holder(owner.id);
        let joined = leasing.grantor.join(now, holder);
        if joined == JoinOutcome::Full {
            leasing.forget(holder);
            return None;
        }
        leasing.present.insert(holder, Present { connection, recalls: 0 });
        leasing.returns(now, holder, owner.id);
        owner.holder = Some(holder);
        let (term_ms, watch) = (leasing.term_ms, leasing.watch);
        Some(Leases { term_ms, kept: joined == JoinOutcome::Retained, watch })
    }

    /// Promises a session that has just attached to tell of changes to its root.
    pub(super) fn grant_root(&mut self, now: Time, session: SessionKey, job: JobKey, root: FileId) -> bool {
        // What is promised while the server is about to stop would not be taken back any more.
        let is_serving = self.is_serving();
        let holder = self.sessions.get(&session).and_then(|owner| owner.holder).filter(|_| is_serving);
        match (&mut self.leasing, holder) {
            (Some(leasing), Some(holder)) => leasing.grantor.grant(now, job, holder, &[root]).contains(&true),
            (Some(_) | None, _) => false,
        }
    }

    /// A message came over this connection: its leases count on.
    pub(super) fn heard(&mut self, now: Time, connection: ConnectionKey) {
        let Some(holder) = self.holder_over(connection) else { return };
        if let Some(leasing) = &mut self.leasing {
            leasing.grantor.renew(now, holder);
            leasing.solitude.renew(now, holder);
            self.follow_leases(now);
        }
    }

    /// Trecalled.
    pub(super) fn recalled(&mut self, now: Time, connection: ConnectionKey, serial: u64) {
        if serial == END_SESSION {
            return self.ends(now, connection);
        }
        let serial = serial & !OWN_CHANGE;
        let Some(holder) = self.holder_over(connection) else { return };
        if self.gives_way(now, holder, Serial(serial)) {
            return;
        }
        if serial == RELEASE_ALL {
            self.rests_alone(holder);
        }
        if let Some(leasing) = &mut self.leasing {
            if serial == RELEASE_ALL {
                leasing.grantor.release_all(holder);
                return self.follow_leases(now);
            }
            leasing.grantor.recall_answered(now, holder, Serial(serial));
            leasing.has_answered(holder);
            if let Some(present) = leasing.present.get_mut(&holder) {
                present.recalls = present.recalls.saturating_sub(1);
            }
            self.follow_leases(now);
            self.settle_solitude(now);
        }
    }

    /// The connection of a holder is gone.
    pub(super) fn part_leasing(&mut self, now: Time, connection: ConnectionKey) {
        let Some(holder) = self.holder_over(connection) else { return };
        if let Some(leasing) = &mut self.leasing {
            leasing.present.remove(&holder);
            leasing.grantor.disconnected(now, holder);
            leasing.solitude.disconnected(holder);
            self.follow_leases(now);
        }
    }

    /// Who holds leases over this connection.
    pub(super) fn holder_over(&self, connection: ConnectionKey) -> Option<HolderKey> {
        let session = self.conversations.get(&connection)?.session()?;
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
        leasing.grantor.deadline().into_iter().chain(leasing.solitude.deadline()).min()
    }

    /// Takes everything back from everybody.
    pub(super) fn recall_everything(&mut self, now: Time) {
        if let Some(leasing) = &mut self.leasing {
            leasing.grantor.recall_everything(now);
            self.follow_leases(now);
        }
    }

    /// Does what the grantor says, in its order.
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
                    self.outputs.push_back(Output::Verify { id, name });
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
        self.outputs.push_back(Output::Reply { connection, tag: NOTAG, reply });
    }

    fn expel(&mut self, now: Time, holder: HolderKey) {
        let present = self.leasing.as_mut().and_then(|leasing| {
            leasing.solitude.disconnected(holder);
            leasing.present.remove(&holder)
        });
        if let Some(Present { connection, .. }) = present {
            self.part(now, connection, Parting::Unresponsive);
        }
    }
}
