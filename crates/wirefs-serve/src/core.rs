//! The core behind its lock: what it decides becomes effects, which are carried out after the lock is released.

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
    Attached, ConnectionKey, Found, Input, Job, JobKey, Output, Parked, Parting, SessionKey, Sessions,
    Touched,
};

/// A job that runs or waits for a worker, as the one sees it who may have to stop it.
#[derive(Debug, Default)]
pub(super) struct Ticket {
    stopped: AtomicBool,
}

impl Ticket {
    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }
}

/// A job with what is needed to carry it out.
pub(super) struct Task {
    pub(super) job: Job,
    pub(super) ticket: Arc<Ticket>,
    pub(super) connection: Option<Arc<Connection>>,
}

/// Who wants to attach, as which session, where, and what the tree said to that before.
pub(super) type Attach = (ConnectionKey, SessionKey, TreePath, Option<Attached>);

/// What is to be done once the lock is released.
#[derive(Default)]
pub(super) struct Effects {
    pub(super) flushes: Vec<Arc<Connection>>,
    pub(super) attaches: Vec<Attach>,
    pub(super) tasks: Vec<Task>,
    pub(super) ends: Vec<SessionKey>,
    /// Sessions whose notes are to be looked for, and who asks.
    pub(super) recollections: Vec<(ConnectionKey, SessionId)>,
    /// Sessions whose clients wait for a neighbour.
    pub(super) waits: Vec<SessionId>,
    /// Neighbours may begin.
    pub(super) gives_way: bool,
    /// Logs of sessions that are over.
    pub(super) logs: Vec<Log>,
    pub(super) closes: Vec<(Arc<Connection>, Parting)>,
    /// What the tree is to look at again.
    pub(super) verifies: Vec<(FileId, Option<Bytes>)>,
    /// A job was told to stop.
    pub(super) stopped: bool,
    /// Something is to be done earlier than was thought.
    pub(super) hurries: bool,
}

/// The machine and the threads' view of what it speaks about.
pub(super) struct Core {
    pub(super) sessions: Sessions,
    pub(super) connections: BTreeMap<ConnectionKey, Arc<Connection>>,
    tickets: BTreeMap<JobKey, Arc<Ticket>>,
    /// Where notes outlive the process; `None`: they do not.
    pub(super) ledgers: Option<Ledgers>,
    pub(super) requests: BTreeMap<&'static str, u64>,
    /// Bytes received and sent over connections that are gone.
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
            tickets: BTreeMap::new(),
            ledgers,
            requests: BTreeMap::new(),
            past_bytes: (0, 0),
            connections_begun: 0,
            stopping: false,
            watchers: 0,
        }
    }

    /// Hands in what happened. Replies go to their outboxes and stops to their tickets here, under the lock, so that
    /// neither can be overtaken; the rest becomes effects.
    pub(super) fn handle(&mut self, now: Time, input: Input, effects: &mut Effects) {
        // One that was given back gets another when it begins anew.
        if let Input::Finished(key) | Input::Parked(key, _) = &input {
            self.tickets.remove(key);
        }
        let may_doubt = matches!(input, Input::Outside(_));
        self.sessions.handle(now, input);
        effects.hurries |= may_doubt && self.sessions.is_in_doubt();
        self.follow(effects);
    }

    /// A job is about to change something.
    ///
    /// # Errors
    /// Others have to hear of it first.
    pub(super) fn touch(
        &mut self,
        now: Time,
        job: JobKey,
        touched: &[Touched],
        effects: &mut Effects,
    ) -> Result<(), Parked> {
        let outcome = self.sessions.touch(now, job, touched);
        self.follow(effects);
        outcome
    }

    /// A change is about to be carried out, having found this.
    pub(super) fn begins(&mut self, job: JobKey, found: &Found, effects: &mut Effects) {
        self.sessions.begins(job, found);
        self.follow(effects);
    }

    /// A job's reply is about to tell of these objects.
    pub(super) fn grant(
        &mut self,
        now: Time,
        job: JobKey,
        stats: &mut dyn Iterator<Item = &mut Stat>,
        effects: &mut Effects,
    ) {
        self.sessions.grant(now, job, stats);
        self.follow(effects);
    }

    /// A job's reply is about to tell of names in this directory.
    pub(super) fn grant_place(&mut self, now: Time, job: JobKey, dir: FileId, effects: &mut Effects) -> bool {
        let is_granted = self.sessions.grant_place(now, job, dir);
        self.follow(effects);
        is_granted
    }

    fn follow(&mut self, effects: &mut Effects) {
        while let Some(output) = self.sessions.poll() {
            match output {
                Output::Reply { connection, tag, reply } => {
                    effects.hurries |= sets_deadline(&reply);
                    if let Some(connection) = self.connections.get(&connection) {
                        connection.outbox.push(reply.encode(tag), class_at_once(&reply));
                        effects.flushes.push(Arc::clone(connection));
                    }
                }
                Output::Attach { connection, session, path, before } => {
                    effects.attaches.push((connection, session, path, before))
                }
                Output::Execute(job) => effects.tasks.push(self.task(job)),
                Output::Stop(key) => {
                    if let Some(ticket) = self.tickets.get(&key) {
                        ticket.stopped.store(true, Ordering::Release);
                        effects.stopped = true;
                    }
                }
                Output::EndSession(session) => effects.ends.push(session),
                Output::Recollect { connection, session } => {
                    effects.recollections.push((connection, session));
                }
                // Here, under the lock, so that it is written before the reply that follows is in its outbox.
                Output::Note(session, note) => {
                    if let Some(ledgers) = &mut self.ledgers {
                        ledgers.note(session, note, || self.sessions.noted(session));
                    }
                }
                Output::NotesEnd(session) => {
                    effects.logs.extend(self.ledgers.as_mut().and_then(|ledgers| ledgers.end(session)));
                }
                Output::Waits(session) => effects.waits.push(session),
                Output::GivesWay => effects.gives_way = true,
                Output::Verify { id, name } => effects.verifies.push((id, name)),
                Output::Close { connection, why } => {
                    if let Some(connection) = self.forget(connection) {
                        effects.closes.push((connection, why));
                    }
                }
            }
        }
    }

    fn task(&mut self, job: Job) -> Task {
        let ticket = Arc::new(Ticket::default());
        self.tickets.insert(job.key, Arc::clone(&ticket));
        if !job.is_again {
            *self.requests.entry(job.request.name()).or_default() += 1;
        }
        let connection = job.connection.and_then(|connection| self.connections.get(&connection)).cloned();
        Task { job, ticket, connection }
    }

    /// Strikes a connection off the list.
    pub(super) fn forget(&mut self, connection: ConnectionKey) -> Option<Arc<Connection>> {
        let connection = self.connections.remove(&connection)?;
        connection.leave();
        let (received, sent) = &mut self.past_bytes;
        *received += connection.received_bytes.load(Ordering::Relaxed);
        *sent += connection.outbox.sent().1;
        Some(connection)
    }
}

/// Whether the client that gets this must be heard again by some time.
fn sets_deadline(reply: &Reply) -> bool {
    match reply {
        Reply::Recall(_) => true,
        Reply::Alone(told) => !told.alone,
        Reply::Attach(attach) => attach.leases.is_some(),
        _ => false,
    }
}

/// The class of a reply that the core makes. Rflush promises that no reply to another request is still to come, so it
/// may not overtake the data of that one.
fn class_at_once(reply: &Reply) -> Class {
    if matches!(reply, Reply::Flush(_)) { Class::Bulk } else { Class::Urgent }
}
