//! The server: the core, its jobs at the tree, and its restarts.

mod granting;
mod lives;
pub(crate) mod outside;
pub(crate) mod plain;

use crate::flaw::Flaw;
use crate::truth::{By, Change, Fact};
use crate::world::{Event, World};
use bytes::Bytes;
use granting::Granting;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use wirefs_model::ModelTree;
use wirefs_op::message::attach::Watch;
use wirefs_op::message::lock::{LockAction, Rlock};
use wirefs_op::message::version::{BootId, SessionId};
use wirefs_op::{FileId, NOTAG, Order, Reply, Request, Tag, Time, Timestamp};
use wirefs_server::{
    ConnectionKey, ExternalChange, Job, JobKey, LeaseTerms, SavedLedger, ServerInput, ServerOutput,
    SessionKey, Sessions, Tree, repeat,
};

/// The time of day at which a run begins.
const BEGINNING: Timestamp = Timestamp { secs: 1_700_000_000, nanos: 0 };
/// The interval of the server's timer.
const TICK: Duration = Duration::from_millis(500);
/// The time for which a waiting lock is held by others, in microseconds.
const LOCKED: (u64, u64) = (0, 400_000);
/// The delay of the watch, in microseconds.
const WATCH: (u64, u64) = (0, 300_000);
/// The maximum wait of a change: until the leases of a silent client have expired, or until a responding one is expelled, with some
/// margin.
const WAIT_MAX: Duration = Duration::from_secs(75);
/// The maximum wait for clients that respond, beside the time of their answers.
const WAIT_CALM: Duration = Duration::from_secs(4);
/// A change that waited this long waited for a silent client.
const WAITED_OUT: Duration = Duration::from_secs(9);

/// Returns the time of day by the server's clock.
pub(crate) fn time_of_day(now: Time) -> Timestamp {
    BEGINNING.after(now.since(Time(0)))
}

/// The server, its tree, and its pending work.
pub(crate) struct Server {
    pub(crate) sessions: Sessions,
    pub(crate) tree: ModelTree,
    /// State that outlives the process, but not the machine.
    pub(crate) notes: BTreeMap<SessionId, SavedLedger>,
    pub(crate) boot: BootId,
    /// The number of starts of the process.
    pub(crate) life: u64,
    pub(crate) is_up: bool,
    /// The sessions with leases, as the next process finds them in its notes.
    promised: BTreeSet<SessionId>,
    /// The same of earlier processes, as far as their leases may be valid.
    left: BTreeSet<SessionId>,
    /// The server drains.
    is_draining: bool,
    /// The end of a bounded drain.
    drains_until: Option<Time>,
    stopped: BTreeSet<JobKey>,
    /// The times at which changes were parked.
    waiting: BTreeMap<JobKey, Time>,
    /// The sessions that the tree knows. For each: the first job of each client host and start. A restarted client may take up the session of
    /// its predecessor, whose last jobs run after that.
    attached: BTreeMap<SessionKey, BTreeMap<JobKey, (usize, u64)>>,
    connections: u64,
    /// The change whose reply is sent next.
    answering: Option<usize>,
    /// The number of changes by programs at the server that the watch has not reported.
    unreported: usize,
    /// The times at which locks were granted, by client, start and file.
    granted: BTreeMap<(usize, u64, FileId), Vec<Time>>,
}

impl Server {
    pub(crate) fn new(tree: ModelTree) -> Server {
        let boot = BootId(1);
        Server {
            sessions: Sessions::leasing(boot, LeaseTerms::new(Watch::Filesystem)).saving_ledgers(),
            notes: BTreeMap::new(),
            tree,
            boot,
            life: 0,
            is_up: true,
            promised: BTreeSet::new(),
            left: BTreeSet::new(),
            is_draining: false,
            drains_until: None,
            stopped: BTreeSet::new(),
            waiting: BTreeMap::new(),
            attached: BTreeMap::new(),
            connections: 0,
            answering: None,
            unreported: 0,
            granted: BTreeMap::new(),
        }
    }

    pub(crate) fn new_connection(&mut self) -> ConnectionKey {
        self.connections += 1;
        ConnectionKey(self.connections)
    }

    /// Returns the time of the first lock on a file that this start of a client was granted since `since`.
    pub(crate) fn granted_since(&self, host: usize, life: u64, file: FileId, since: Time) -> Option<Time> {
        self.granted.get(&(host, life, file))?.iter().find(|at| **at >= since).copied()
    }

    /// Returns whether no work is pending.
    pub(crate) fn is_idle(&self) -> bool {
        self.is_up && self.sessions.jobs() == 0 && self.waiting.is_empty() && !self.sessions.is_recalling()
    }
}

impl World {
    /// Returns the server's time.
    pub(crate) fn server_now(&self) -> Time {
        match self.flaw {
            Some(Flaw::FencesEarly) => Time(self.now.0 * 2),
            _ => self.now,
        }
    }

    pub(crate) fn tell_server(&mut self, input: ServerInput) {
        let now = self.server_now();
        self.server.sessions.handle(now, input);
        self.follow_server();
    }

    /// Executes the server's outputs.
    pub(crate) fn follow_server(&mut self) {
        while let Some(output) = self.server.sessions.poll() {
            self.carry_out(output);
        }
    }

    fn carry_out(&mut self, output: ServerOutput) {
        let life = self.server.life;
        match output {
            ServerOutput::Reply { connection, tag, reply } => self.reply(connection, tag, &reply),
            ServerOutput::Execute(job) if job.is_retry && self.flaw == Some(Flaw::LosesTheParked) => {}
            ServerOutput::Execute(job) => {
                self.record_sender(&job);
                let is_lock = matches!(&job.request, Request::Lock(lock) if lock.action == LockAction::Wait);
                let delay = self.delay(if is_lock { LOCKED } else { self.plan.server });
                self.after(delay, Event::Execute(life, Box::new(job)));
            }
            ServerOutput::Stop(key) => {
                self.server.stopped.insert(key);
            }
            ServerOutput::Attach { connection, session, path, .. } => {
                self.server.attached.entry(session).or_default();
                self.promises();
                let result = self.server.tree.attach(session, &path);
                let now = self.server_now();
                self.server.sessions.handle(now, ServerInput::Attached { connection, session, result });
            }
            ServerOutput::EndSession(session) => self.end_session(session),
            ServerOutput::AppendLedger(..) if self.flaw == Some(Flaw::LedgerOff) => {}
            ServerOutput::LoadLedger { connection, session } => {
                let noted = self.server.notes.get(&session).cloned().map(Box::new);
                self.server.notes.entry(session).or_default();
                let now = self.server_now();
                self.server
                    .sessions
                    .handle(now, ServerInput::LedgerLoaded { connection, session, saved: noted });
            }
            ServerOutput::AppendLedger(session, note) => {
                self.server.notes.entry(session).or_default().apply(note)
            }
            ServerOutput::LedgerClosed(_) => {}
            // Only with several servers.
            ServerOutput::AwaitColocated(_) | ServerOutput::ExclusiveEnded => {}
            ServerOutput::Verify { id, name } => {
                let delay = self.delay(WATCH);
                let outside = ExternalChange::Changed { id, name, version: None };
                self.server.unreported += 1;
                self.after(delay, Event::Outside(life, outside));
            }
            ServerOutput::Close { connection, why } => {
                self.counts.closes += 1;
                self.note(|| format!("server closes connection {}: {why}", connection.0));
                self.close(connection, crate::wire::Direction::Down);
                self.tidy_wire(connection);
            }
        }
    }

    /// Records the client of a session's jobs. The first request of each start is a query, so it runs while its connection exists.
    fn record_sender(&mut self, job: &Job) {
        let Some(wire) = job.connection.and_then(|connection| self.wires.get(&connection)) else { return };
        let jobs = self.server.attached.entry(job.session).or_default();
        if jobs.values().next_back() != Some(&(wire.host, wire.life)) {
            jobs.insert(job.key, (wire.host, wire.life));
        }
    }

    /// Returns the client and the start of a job's sender.
    fn sender(&self, job: &Job) -> Option<(usize, u64)> {
        let jobs = self.server.attached.get(&job.session)?;
        jobs.range(..=job.key).next_back().or_else(|| jobs.first_key_value()).map(|(_, sender)| *sender)
    }

    /// Records the session of a lease that is about to be granted, and drops sessions whose leases have expired.
    fn promises(&mut self) {
        let believers = self.server.sessions.possible_holders();
        if !believers.is_subset(&self.server.promised) {
            if !self.server.sessions.is_recovering(self.server_now()) {
                self.server.left.clear();
            }
            self.server.promised = believers;
        }
    }

    /// Sends a reply of the core itself.
    fn reply(&mut self, connection: ConnectionKey, tag: Tag, reply: &Reply) {
        match reply {
            Reply::Recall(_) => self.counts.recalls += 1,
            Reply::Error(error) if tag == NOTAG => {
                // Only for lack of room for a former session's state.
                let text = error.ename.to_string();
                self.note(|| format!("server refuses connection {}: {text}", connection.0));
            }
            Reply::Put(_) | Reply::Remove(_) | Reply::Rename(_) | Reply::Link(_) => {
                self.counts.replayed += u64::from(self.server.answering.is_none());
            }
            _ => {}
        }
        let change = if matches!(reply, Reply::Recall(_)) { None } else { self.server.answering.take() };
        self.send_down(connection, tag, reply, change);
    }

    pub(crate) fn server_receives(&mut self, connection: ConnectionKey, body: Bytes) {
        let is_there = self.wires.get(&connection).is_some_and(|wire| wire.at_server);
        if is_there && self.server.is_up {
            self.tell_server(ServerInput::Received(connection, body));
        }
    }

    /// Ends a connection at the server.
    pub(crate) fn server_loses(&mut self, connection: ConnectionKey) {
        let Some(wire) = self.wires.get_mut(&connection).filter(|wire| wire.at_server) else { return };
        wire.at_server = false;
        self.tell_server(ServerInput::Disconnected(connection));
        self.tidy_wire(connection);
    }

    pub(crate) fn execute(&mut self, life: u64, job: Box<Job>) {
        if life != self.server.life {
            return;
        }
        if self.server.stopped.remove(&job.key) {
            return self.tell_server(ServerInput::Finished(job.key));
        }
        self.note(|| format!("server does {:?} {}", job.key, job.request.name()));
        let now = self.server_now();
        let (key, flaw) = (job.key, self.flaw);
        let sender = self.sender(&job);
        let mut granting = Granting {
            sessions: &mut self.server.sessions,
            flaw,
            now,
            job: key,
            replies: Vec::new(),
            is_parked: false,
        };
        let request = job.request.clone();
        self.server.tree.set_time(time_of_day(self.now));
        match (&job.undecided, &job.request) {
            // No locks of other clients here.
            (_, Request::Lock(lock)) => {
                let is_quiet = self.server.unreported == 0;
                let stat = granting.stat_of_locked(&self.server.tree, job.session, lock, is_quiet);
                granting.replies.push(Reply::Lock(Rlock { conflict: None, stat }));
                if let Some((stat, (host, life))) = stat.zip(sender) {
                    self.server.granted.entry((host, life, stat.id)).or_default().push(self.now);
                }
            }
            (Some(begun), _) => repeat::serve(&self.server.tree, job.session, request, begun, &mut granting),
            (None, _) => self.server.tree.serve(job.session, request, &mut granting),
        }
        let Granting { replies, is_parked, .. } = granting;
        self.follow_server();
        if is_parked {
            self.counts.parked += u64::from(!job.is_retry);
            self.server.waiting.entry(key).or_insert(self.now);
            self.note(|| format!("server parks {key:?}"));
            return self.tell_server(ServerInput::Parked(key, job.request.clone()));
        }
        self.resume_job(key);
        let change = self.changed(&job);
        let delay = self.delay(self.plan.server);
        self.after(delay, Event::Queue(life, job, replies, change));
    }

    /// Ends the wait of a job.
    fn resume_job(&mut self, key: JobKey) {
        let Some(since) = self.server.waiting.remove(&key) else { return };
        let waited = self.now.since(since);
        self.counts.waited_out += u64::from(waited > WAITED_OUT);
        self.note(|| format!("server goes on with {key:?}, which waited for {} ms", waited.as_millis()));
        self.check_wait(key, waited);
    }

    fn check_wait(&mut self, key: JobKey, waited: Duration) {
        let calm = WAIT_CALM
            + Duration::from_micros(4 * (self.plan.wire.1 + self.plan.kernel.1 + self.plan.server.1));
        let most = if self.plan.faults.is_calm() { calm } else { WAIT_MAX };
        if waited > most {
            self.fail(format!("{key:?} waited for others for {} ms", waited.as_millis()));
        }
    }

    /// Checks that no job has waited for too long.
    fn check_waits(&mut self) {
        let waits: Vec<(JobKey, Duration)> =
            self.server.waiting.iter().map(|(key, since)| (*key, self.now.since(*since))).collect();
        for (key, waited) in waits {
            self.check_wait(key, waited);
        }
    }

    /// Compares the tree after a job that may have changed it.
    fn changed(&mut self, job: &Job) -> Option<usize> {
        let mut change = None;
        let mut by = By::Nobody;
        if let (Some((host, life)), Order::Change) = (self.sender(job), job.order) {
            change = Some(self.truth.changes.len());
            by = By::Client(self.truth.changes.len());
            // Its connection may be gone, and another one brings the reply.
            let is_gone = self.hosts.get(host).is_none_or(|host| {
                host.life != life || !job.connection.is_some_and(|connection| host.uses(connection))
            });
            let answered = is_gone.then(|| self.now + self.plan.outcome_delay_max());
            self.truth.changes.push(Change { host, life, answered });
        } else if job.order == Order::Free {
            return None;
        }
        self.counts.changes += u64::from(job.order == Order::Change);
        let facts = self.truth.look(&self.server.tree, self.now, by);
        self.note(|| format!("server has changed {facts:?} by {by:?}"));
        if let Some(change) = change {
            self.applied(change, &job.request);
        }
        self.check_kernels(&facts);
        change
    }

    /// Queues the replies to a job on its connection.
    pub(crate) fn queue(&mut self, life: u64, job: &Job, replies: Vec<Reply>, change: Option<usize>) {
        if life != self.server.life {
            return;
        }
        for mut reply in replies {
            if let Reply::Commit(commit) = &mut reply {
                commit.boot = self.server.boot;
            }
            match (job.order, job.connection) {
                // The core knows where a change is waited for.
                (Order::Change, _) => {
                    self.server.answering = change;
                    self.tell_server(ServerInput::Answered(job.key, reply));
                    self.server.answering = None;
                }
                (Order::Ordered | Order::Free, Some(connection)) => {
                    self.send_down(connection, job.tag, &reply, change);
                }
                (Order::Ordered | Order::Free, None) => {}
            }
        }
        self.tell_server(ServerInput::Finished(job.key));
    }

    pub(crate) fn tick_server(&mut self, life: u64) {
        if life != self.server.life || !self.server.is_up {
            return;
        }
        self.tell_server(ServerInput::Tick);
        self.check_waits();
        self.ends_in_order();
        self.after(TICK, Event::TickServer(life));
    }

    /// Ends a session at the tree, and reports the changes of its closing as external ones.
    fn end_session(&mut self, session: SessionKey) {
        self.server.attached.remove(&session);
        self.server.tree.end(session);
        let facts = self.truth.look(&self.server.tree, self.now, By::Outside);
        self.watch(&facts);
    }

    /// Lets the watch report changes after a delay.
    pub(crate) fn watch(&mut self, facts: &[Fact]) {
        if self.flaw == Some(Flaw::WatchesNothing) {
            return;
        }
        let life = self.server.life;
        for fact in facts {
            let (id, name) = match fact {
                Fact::Name(dir, name) => (*dir, Some(Bytes::copy_from_slice(name))),
                Fact::Object(id) => (*id, None),
            };
            let delay = self.delay(WATCH);
            self.server.unreported += 1;
            self.after(delay, Event::Outside(life, ExternalChange::Changed { id, name, version: None }));
        }
    }

    pub(crate) fn outside_is_noticed(&mut self, life: u64, outside: ExternalChange) {
        if life == self.server.life && self.server.is_up {
            self.server.unreported -= 1;
            self.note(|| format!("server learns of {outside:?}"));
            self.tell_server(ServerInput::ExternalChange(outside));
        }
    }
}
