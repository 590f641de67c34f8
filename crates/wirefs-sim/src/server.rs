//! The server: the core, its jobs at the tree, and what becomes of it.

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
    ConnectionKey, Input, Job, JobKey, Noted, Output, Outside, SessionKey, Sessions, Terms, Tree, repeat,
};

/// The time of day at which a run begins.
const BEGINNING: Timestamp = Timestamp { secs: 1_700_000_000, nanos: 0 };
/// How often the server's time passes.
const TICK: Duration = Duration::from_millis(500);
/// How long a lock that may wait does, as if others held it, in microseconds.
const LOCKED: (u64, u64) = (0, 400_000);
/// The watch notices within this, in microseconds.
const WATCH: (u64, u64) = (0, 300_000);
/// So long a change may wait for others: for a silent one until its leases are over, for one that is heard until it is
/// expelled, and what comes between.
const WAIT_MAX: Duration = Duration::from_secs(75);
/// So long one waits for others who are there and answer, beside the time that their answers take.
const WAIT_CALM: Duration = Duration::from_secs(4);
/// A change that waited so long waited for somebody silent.
const WAITED_OUT: Duration = Duration::from_secs(9);

/// The time of day by the server's clock.
pub(crate) fn time_of_day(now: Time) -> Timestamp {
    BEGINNING.after(now.since(Time(0)))
}

/// The server, its tree, and what it is about to do.
pub(crate) struct Server {
    pub(crate) sessions: Sessions,
    pub(crate) tree: ModelTree,
    /// What outlives the process, but not the machine.
    pub(crate) notes: BTreeMap<SessionId, Noted>,
    pub(crate) boot: BootId,
    /// Which life of the process.
    pub(crate) life: u64,
    pub(crate) is_up: bool,
    /// Whom it has promised something, as its next life finds it written.
    promised: BTreeSet<SessionId>,
    /// The same of lives before, as far as somebody may believe that still.
    left: BTreeSet<SessionId>,
    /// It is about to end in order.
    is_draining: bool,
    /// Until when it waits for what holds that up, where it does not wait for ever.
    drains_until: Option<Time>,
    stopped: BTreeSet<JobKey>,
    /// When changes were put aside first.
    waiting: BTreeMap<JobKey, Time>,
    /// The sessions that the tree knows. For each, from which job on its jobs come from which client, and which life of it: a life may
    /// take up the session of the one before, whose last jobs are carried out after that.
    attached: BTreeMap<SessionKey, BTreeMap<JobKey, (usize, u64)>>,
    connections: u64,
    /// The change whose reply is about to be sent.
    answering: Option<usize>,
    /// How much of what programs at the server changed the watch has still to report.
    unreported: usize,
    /// When locks were granted: to which client, in which life of it, and of which file.
    granted: BTreeMap<(usize, u64, FileId), Vec<Time>>,
}

impl Server {
    pub(crate) fn new(tree: ModelTree) -> Server {
        let boot = BootId(1);
        Server {
            sessions: Sessions::leasing(boot, Terms::new(Watch::Filesystem)).keeping_notes(),
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

    /// The first lock on a file that was granted to this life of a client since `since`.
    pub(crate) fn granted_since(&self, seat: usize, life: u64, file: FileId, since: Time) -> Option<Time> {
        self.granted.get(&(seat, life, file))?.iter().find(|at| **at >= since).copied()
    }

    /// Whether nothing is left to do for anybody.
    pub(crate) fn is_idle(&self) -> bool {
        self.is_up && self.sessions.jobs() == 0 && self.waiting.is_empty() && !self.sessions.is_recalling()
    }
}

impl World {
    /// The server's clock.
    pub(crate) fn server_now(&self) -> Time {
        match self.flaw {
            Some(Flaw::FencesEarly) => Time(self.now.0 * 2),
            _ => self.now,
        }
    }

    pub(crate) fn tell_server(&mut self, input: Input) {
        let now = self.server_now();
        self.server.sessions.handle(now, input);
        self.follow_server();
    }

    /// Does what the server says.
    pub(crate) fn follow_server(&mut self) {
        while let Some(output) = self.server.sessions.poll() {
            self.carry_out(output);
        }
    }

    fn carry_out(&mut self, output: Output) {
        let life = self.server.life;
        match output {
            Output::Reply { connection, tag, reply } => self.reply(connection, tag, &reply),
            Output::Execute(job) if job.is_again && self.flaw == Some(Flaw::LosesTheParked) => {}
            Output::Execute(job) => {
                self.belongs(&job);
                let is_lock = matches!(&job.request, Request::Lock(lock) if lock.action == LockAction::Wait);
                let delay = self.delay(if is_lock { LOCKED } else { self.plan.server });
                self.after(delay, Event::Execute(life, Box::new(job)));
            }
            Output::Stop(key) => {
                self.server.stopped.insert(key);
            }
            Output::Attach { connection, session, path, .. } => {
                self.server.attached.entry(session).or_default();
                self.promises();
                let result = self.server.tree.attach(session, &path);
                let now = self.server_now();
                self.server.sessions.handle(now, Input::Attached { connection, session, result });
            }
            Output::EndSession(session) => self.end_session(session),
            Output::Note(..) if self.flaw == Some(Flaw::LedgerOff) => {}
            Output::Recollect { connection, session } => {
                let noted = self.server.notes.get(&session).cloned().map(Box::new);
                self.server.notes.entry(session).or_default();
                let now = self.server_now();
                self.server.sessions.handle(now, Input::Noted { connection, session, noted });
            }
            Output::Note(session, note) => self.server.notes.entry(session).or_default().take(note),
            Output::NotesEnd(_) => {}
            // There are no other servers.
            Output::Waits(_) | Output::GivesWay => {}
            Output::Verify { id, name } => {
                let delay = self.delay(WATCH);
                let outside = Outside::Changed { id, name, version: None };
                self.server.unreported += 1;
                self.after(delay, Event::Outside(life, outside));
            }
            Output::Close { connection, why } => {
                self.record.closes += 1;
                self.note(|| format!("server closes connection {}: {why}", connection.0));
                self.close(connection, crate::wire::Way::Down);
                self.tidy_wire(connection);
            }
        }
    }

    /// Notes which client a session's jobs come from. The first request of each life is a query, so it is begun while its connection is there.
    fn belongs(&mut self, job: &Job) {
        let Some(wire) = job.connection.and_then(|connection| self.wires.get(&connection)) else { return };
        let jobs = self.server.attached.entry(job.session).or_default();
        if jobs.values().next_back() != Some(&(wire.seat, wire.life)) {
            jobs.insert(job.key, (wire.seat, wire.life));
        }
    }

    /// The client that a job comes from, and which life of it.
    fn asker(&self, job: &Job) -> Option<(usize, u64)> {
        let jobs = self.server.attached.get(&job.session)?;
        jobs.range(..=job.key).next_back().or_else(|| jobs.first_key_value()).map(|(_, asker)| *asker)
    }

    /// Somebody is about to be promised something: that is written down, and what means nothing any more is not kept.
    fn promises(&mut self) {
        let believers = self.server.sessions.believers();
        if !believers.is_subset(&self.server.promised) {
            if !self.server.sessions.is_recovering(self.server_now()) {
                self.server.left.clear();
            }
            self.server.promised = believers;
        }
    }

    /// What the server says by itself.
    fn reply(&mut self, connection: ConnectionKey, tag: Tag, reply: &Reply) {
        match reply {
            Reply::Recall(_) => self.record.recalls += 1,
            Reply::Error(error) if tag == NOTAG => {
                // Only what may be: no room for what the session left behind.
                let text = error.ename.to_string();
                self.note(|| format!("server refuses connection {}: {text}", connection.0));
            }
            Reply::Put(_) | Reply::Remove(_) | Reply::Rename(_) | Reply::Link(_) => {
                self.record.replayed += u64::from(self.server.answering.is_none());
            }
            _ => {}
        }
        let change = if matches!(reply, Reply::Recall(_)) { None } else { self.server.answering.take() };
        self.send_down(connection, tag, reply, change);
    }

    pub(crate) fn server_receives(&mut self, connection: ConnectionKey, body: Bytes) {
        let is_there = self.wires.get(&connection).is_some_and(|wire| wire.at_server);
        if is_there && self.server.is_up {
            self.tell_server(Input::Received(connection, body));
        }
    }

    /// The server finds a connection closed.
    pub(crate) fn server_loses(&mut self, connection: ConnectionKey) {
        let Some(wire) = self.wires.get_mut(&connection).filter(|wire| wire.at_server) else { return };
        wire.at_server = false;
        self.tell_server(Input::Disconnected(connection));
        self.tidy_wire(connection);
    }

    pub(crate) fn execute(&mut self, life: u64, job: Box<Job>) {
        if life != self.server.life {
            return;
        }
        if self.server.stopped.remove(&job.key) {
            return self.tell_server(Input::Finished(job.key));
        }
        self.note(|| format!("server does {:?} {}", job.key, job.request.name()));
        let now = self.server_now();
        let (key, flaw) = (job.key, self.flaw);
        let asker = self.asker(&job);
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
            // Locks keep nobody out here.
            (_, Request::Lock(lock)) => {
                let is_quiet = self.server.unreported == 0;
                let stat = granting.stat_of_locked(&self.server.tree, job.session, lock, is_quiet);
                granting.replies.push(Reply::Lock(Rlock { conflict: None, stat }));
                if let Some((stat, (seat, life))) = stat.zip(asker) {
                    self.server.granted.entry((seat, life, stat.id)).or_default().push(self.now);
                }
            }
            (Some(begun), _) => repeat::serve(&self.server.tree, job.session, request, begun, &mut granting),
            (None, _) => self.server.tree.serve(job.session, request, &mut granting),
        }
        let Granting { replies, is_parked, .. } = granting;
        self.follow_server();
        if is_parked {
            self.record.parked += u64::from(!job.is_again);
            self.server.waiting.entry(key).or_insert(self.now);
            self.note(|| format!("server puts {key:?} aside"));
            return self.tell_server(Input::Parked(key, job.request.clone()));
        }
        self.begins_at_last(key);
        let change = self.changed(&job);
        let delay = self.delay(self.plan.server);
        self.after(delay, Event::Queue(life, job, replies, change));
    }

    /// A job waits for nobody any more.
    fn begins_at_last(&mut self, key: JobKey) {
        let Some(since) = self.server.waiting.remove(&key) else { return };
        let waited = self.now.since(since);
        self.record.waited_out += u64::from(waited > WAITED_OUT);
        self.note(|| format!("server goes on with {key:?}, which waited for {} ms", waited.as_millis()));
        self.check_wait(key, waited);
    }

    fn check_wait(&mut self, key: JobKey, waited: Duration) {
        let calm = WAIT_CALM
            + Duration::from_micros(4 * (self.plan.wire.1 + self.plan.kernel.1 + self.plan.server.1));
        let most = if self.plan.troubles.is_calm() { calm } else { WAIT_MAX };
        if waited > most {
            self.fail(format!("{key:?} waited for others for {} ms", waited.as_millis()));
        }
    }

    /// Whatever waits has not waited for too long.
    fn check_waits(&mut self) {
        let waits: Vec<(JobKey, Duration)> =
            self.server.waiting.iter().map(|(key, since)| (*key, self.now.since(*since))).collect();
        for (key, waited) in waits {
            self.check_wait(key, waited);
        }
    }

    /// What a job may have changed is looked at.
    fn changed(&mut self, job: &Job) -> Option<usize> {
        let mut change = None;
        let mut by = By::Nobody;
        if let (Some((seat, life)), Order::Change) = (self.asker(job), job.order) {
            change = Some(self.truth.changes.len());
            by = By::Client(self.truth.changes.len());
            // Its connection may be gone, and another brings the reply.
            let is_gone = self.seats.get(seat).is_none_or(|seat| {
                seat.life != life || !job.connection.is_some_and(|connection| seat.uses(connection))
            });
            let answered = is_gone.then(|| self.now + self.plan.lost_is_told());
            self.truth.changes.push(Change { seat, life, answered });
        } else if job.order == Order::Free {
            return None;
        }
        self.record.changes += u64::from(job.order == Order::Change);
        let facts = self.truth.look(&self.server.tree, self.now, by);
        self.note(|| format!("server has changed {facts:?} by {by:?}"));
        if let Some(change) = change {
            self.applied(change, &job.request);
        }
        self.check_kernels(&facts);
        change
    }

    /// The replies to a job stand in its connection's queue.
    pub(crate) fn queue(&mut self, life: u64, job: &Job, replies: Vec<Reply>, change: Option<usize>) {
        if life != self.server.life {
            return;
        }
        for mut reply in replies {
            if let Reply::Commit(commit) = &mut reply {
                commit.boot = self.server.boot;
            }
            match (job.order, job.connection) {
                // The core knows where a change is waited for by now.
                (Order::Change, _) => {
                    self.server.answering = change;
                    self.tell_server(Input::Answered(job.key, reply));
                    self.server.answering = None;
                }
                (Order::Ordered | Order::Free, Some(connection)) => {
                    self.send_down(connection, job.tag, &reply, change);
                }
                (Order::Ordered | Order::Free, None) => {}
            }
        }
        self.tell_server(Input::Finished(job.key));
    }

    pub(crate) fn tick_server(&mut self, life: u64) {
        if life != self.server.life || !self.server.is_up {
            return;
        }
        self.tell_server(Input::Tick);
        self.check_waits();
        self.ends_in_order();
        self.after(TICK, Event::TickServer(life));
    }

    /// The tree forgets a session, and what its closing changes is reported as from outside.
    fn end_session(&mut self, session: SessionKey) {
        self.server.attached.remove(&session);
        self.server.tree.end(session);
        let facts = self.truth.look(&self.server.tree, self.now, By::Outside);
        self.watch(&facts);
    }

    /// The watch reports what it saw, in a while.
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
            self.after(delay, Event::Outside(life, Outside::Changed { id, name, version: None }));
        }
    }

    pub(crate) fn outside_is_noticed(&mut self, life: u64, outside: Outside) {
        if life == self.server.life && self.server.is_up {
            self.server.unreported -= 1;
            self.note(|| format!("server notices {outside:?}"));
            self.tell_server(Input::Outside(outside));
        }
    }
}
