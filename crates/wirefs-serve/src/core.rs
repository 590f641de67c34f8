//! The sessions behind their lock. Their outputs become effects, which are executed after the lock is released.

use super::connection::Connection;
use super::ledgers::{Ledgers, Log};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use wirefs_carrier::Class;
use wirefs_op::message::version::SessionId;
use wirefs_op::{FileId, Reply, Stat, Time, TreePath};
use wirefs_server::{
    Attached, CloseReason, ConnectionKey, Job, JobKey, Parked, PriorState, ServerInput, ServerOutput,
    SessionKey, Sessions, Touched,
};

/// Tells the thread that executes a job to stop.
#[derive(Debug, Default)]
pub(super) struct StopFlag {
    stopped: AtomicBool,
}

impl StopFlag {
    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }
}

/// A job with the state that its execution needs.
pub(super) struct Task {
    pub(super) job: Job,
    pub(super) stop_flag: Arc<StopFlag>,
    pub(super) connection: Option<Arc<Connection>>,
}

/// A pending attach: its connection, session and path, and the earlier attachment of a resumed session.
pub(super) type Attach = (ConnectionKey, SessionKey, TreePath, Option<Attached>);

/// A session, and the key that began it; `None` if its client proved none.
pub(super) type SessionOwner = (SessionId, Option<[u8; 32]>);

/// The work that follows an input, once the lock is released.
#[derive(Default)]
pub(super) struct Effects {
    pub(super) flushes: Vec<Arc<Connection>>,
    pub(super) attaches: Vec<Attach>,
    pub(super) tasks: Vec<Task>,
    pub(super) ends: Vec<SessionKey>,
    /// Sessions to restore from their ledgers, with the connections that asked.
    pub(super) restores: Vec<(ConnectionKey, SessionId)>,
    /// Sessions whose clients wait for a co-located server.
    pub(super) waits: Vec<SessionOwner>,
    /// Co-located servers may admit clients.
    pub(super) permits_secondaries: bool,
    /// Ledger files of ended sessions.
    pub(super) logs: Vec<Log>,
    pub(super) closes: Vec<(Arc<Connection>, CloseReason)>,
    /// Objects that the tree must check for changes.
    pub(super) verifies: Vec<(FileId, Option<Bytes>)>,
    /// A job was asked to stop.
    pub(super) stopped: bool,
    /// The clock's next deadline may be earlier than before.
    pub(super) wakes_clock: bool,
}

/// The sessions, and the threads' state of connections and jobs.
pub(super) struct Core {
    pub(super) sessions: Sessions,
    pub(super) connections: BTreeMap<ConnectionKey, Arc<Connection>>,
    stop_flags: BTreeMap<JobKey, Arc<StopFlag>>,
    /// The ledger files; `None` if ledgers exist only in memory.
    pub(super) ledgers: Option<Ledgers>,
    pub(super) requests: BTreeMap<&'static str, u64>,
    /// Bytes received and sent over closed connections.
    pub(super) past_bytes: (u64, u64),
    pub(super) connections_begun: u64,
    pub(super) stopping: bool,
    /// Threads that wait for work to end.
    pub(super) watchers: usize,
}

impl Core {
    pub(super) fn new(sessions: Sessions, ledgers: Option<Ledgers>) -> Core {
        Core {
            sessions,
            connections: BTreeMap::new(),
            stop_flags: BTreeMap::new(),
            ledgers,
            requests: BTreeMap::new(),
            past_bytes: (0, 0),
            connections_begun: 0,
            stopping: false,
            watchers: 0,
        }
    }

    /// Passes an input to the sessions. Replies enter their send queues, and stop flags are set, under this lock, so
    /// neither can be overtaken. All other outputs become effects.
    pub(super) fn handle(&mut self, now: Time, input: ServerInput, effects: &mut Effects) {
        // A parked job gets another stop flag when it runs again.
        if let ServerInput::Finished(key) | ServerInput::Parked(key, _) = &input {
            self.stop_flags.remove(key);
        }
        effects.wakes_clock |= matches!(input, ServerInput::Connected(_));
        let may_suspect = matches!(input, ServerInput::ExternalChange(_));
        self.sessions.handle(now, input);
        effects.wakes_clock |= may_suspect && self.sessions.has_unattributed_reports();
        self.drain_outputs(effects);
    }

    /// Announces the changes that a job is about to make.
    ///
    /// # Errors
    /// Other clients must invalidate first: the job is parked.
    pub(super) fn touch(
        &mut self,
        now: Time,
        job: JobKey,
        touched: &[Touched],
        effects: &mut Effects,
    ) -> Result<(), Parked> {
        let outcome = self.sessions.touch(now, job, touched);
        self.drain_outputs(effects);
        outcome
    }

    /// Records the state that a change finds before it is applied.
    pub(super) fn begins(&mut self, job: JobKey, found: &PriorState, effects: &mut Effects) {
        self.sessions.record_prior_state(job, found);
        self.drain_outputs(effects);
    }

    /// Leases the objects in a job's reply.
    pub(super) fn grant(
        &mut self,
        now: Time,
        job: JobKey,
        stats: &mut dyn Iterator<Item = &mut Stat>,
        effects: &mut Effects,
    ) {
        self.sessions.grant(now, job, stats);
        self.drain_outputs(effects);
    }

    /// Leases the names of a directory in a job's reply.
    pub(super) fn grant_names(&mut self, now: Time, job: JobKey, dir: FileId, effects: &mut Effects) -> bool {
        let is_granted = self.sessions.grant_names(now, job, dir);
        self.drain_outputs(effects);
        is_granted
    }

    fn drain_outputs(&mut self, effects: &mut Effects) {
        while let Some(output) = self.sessions.poll() {
            match output {
                ServerOutput::Reply { connection, tag, reply } => {
                    effects.wakes_clock |= sets_deadline(&reply);
                    if let Some(connection) = self.connections.get(&connection) {
                        connection.send_queue.push(reply.encode(tag), class_at_once(&reply));
                        effects.flushes.push(Arc::clone(connection));
                    }
                }
                ServerOutput::Attach { connection, session, path, before } => {
                    effects.attaches.push((connection, session, path, before))
                }
                ServerOutput::Execute(job) => effects.tasks.push(self.task(job)),
                ServerOutput::Stop(key) => {
                    if let Some(stop_flag) = self.stop_flags.get(&key) {
                        stop_flag.stopped.store(true, Ordering::Release);
                        effects.stopped = true;
                    }
                }
                ServerOutput::EndSession(session) => effects.ends.push(session),
                ServerOutput::LoadLedger { connection, session } => {
                    effects.restores.push((connection, session));
                }
                // Under the lock, so the ledger is written before the reply that follows enters its send queue.
                ServerOutput::AppendLedger(session, note) => {
                    if let Some(ledgers) = &mut self.ledgers {
                        ledgers.note(session, note, || self.sessions.saved_ledger(session));
                    }
                }
                ServerOutput::LedgerClosed(session) => {
                    effects.logs.extend(self.ledgers.as_mut().and_then(|ledgers| ledgers.end(session)));
                }
                ServerOutput::AwaitColocated(session) => {
                    effects.waits.push((session, self.sessions.owner(session)))
                }
                ServerOutput::ExclusiveEnded => effects.permits_secondaries = true,
                ServerOutput::Verify { id, name } => effects.verifies.push((id, name)),
                ServerOutput::Close { connection, why } => {
                    if let Some(connection) = self.remove_connection(connection) {
                        effects.closes.push((connection, why));
                    }
                }
            }
        }
    }

    fn task(&mut self, job: Job) -> Task {
        let stop_flag = Arc::new(StopFlag::default());
        self.stop_flags.insert(job.key, Arc::clone(&stop_flag));
        if !job.is_retry {
            *self.requests.entry(job.request.name()).or_default() += 1;
        }
        let connection = job.connection.and_then(|connection| self.connections.get(&connection)).cloned();
        Task { job, stop_flag, connection }
    }

    /// Removes a connection from the table.
    pub(super) fn remove_connection(&mut self, connection: ConnectionKey) -> Option<Arc<Connection>> {
        let connection = self.connections.remove(&connection)?;
        connection.leave();
        let (received, sent) = &mut self.past_bytes;
        *received += connection.received_bytes.load(Ordering::Relaxed);
        *sent += connection.send_queue.sent().1;
        Some(connection)
    }
}

/// Returns whether a reply starts a deadline for its client.
fn sets_deadline(reply: &Reply) -> bool {
    match reply {
        Reply::Recall(_) => true,
        Reply::Alone(alone) => !alone.alone,
        Reply::Attach(attach) => attach.leases.is_some(),
        _ => false,
    }
}

/// The class of a reply that the sessions make. Rflush promises that no reply to the flushed request follows, so it
/// must not overtake that request's data.
fn class_at_once(reply: &Reply) -> Class {
    if matches!(reply, Reply::Flush(_)) { Class::Bulk } else { Class::Urgent }
}
