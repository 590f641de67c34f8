//! The state machine of all connections and sessions of one server.

mod attaching;
mod connection;
mod data;
mod exclusive;
mod fence;
mod job;
mod lease;
mod ledger_records;
mod party;
mod session;
mod write_slot;

use crate::blame::CloseReason;
use crate::limits::{BACKLOG_ALL_BYTES_MAX, BACKLOG_BYTES_MAX, BACKLOG_WAITING_BYTES_MAX};
use crate::saved_ledger::{LedgerRecord, SavedLedger};
use crate::tree::{Attached, ExternalChange, SessionKey};
use bytes::Bytes;
use connection::ConnectionState;
pub use exclusive::Colocation;
use job::Pending;
pub use job::{Job, JobKey, JobTimes};
pub use lease::LeaseTerms;
use lease::Leasing;
use party::Party;
use session::Session;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use wirefs_op::message::version::{BootId, SessionId};
use wirefs_op::{Errno, FileId, Reply, Request, Tag, Time, TreePath};

/// The identifier of a connection. The driver chooses it and never reuses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnectionKey(pub u64);

/// Events for the server.
#[derive(Clone, Debug)]
pub enum ServerInput {
    /// A client connected.
    Connected(ConnectionKey),
    /// The peer proved that it owns this key. Comes before the first message of the connection.
    Identified(ConnectionKey, [u8; 32]),
    /// The peer has this address, and its carrier proves no key. Comes before the first message of the connection.
    Addressed(ConnectionKey, String),
    /// The peer may change nothing: its changes fail with `EROFS`. Comes before the first message of the connection.
    Restricted(ConnectionKey),
    /// The peer may not use this tree any more: its session ends.
    Revoked(ConnectionKey),
    /// The socket buffers limit the throughput of this connection. Repeated while that is so.
    Limited(ConnectionKey),
    /// A message arrived: its body, without the size word.
    Received(ConnectionKey, Bytes),
    /// The connection is gone.
    Disconnected(ConnectionKey),
    /// The answer to [`ServerOutput::LoadLedger`]. `None`: no ledger was saved.
    LedgerLoaded {
        /// The connection that named the session.
        connection: ConnectionKey,
        /// The session.
        session: SessionId,
        /// The sum of its ledger records.
        saved: Option<Box<SavedLedger>>,
    },
    /// The answer to [`ServerOutput::LoadLedger`]: a co-located server has the session open, for another key.
    SessionForeign(ConnectionKey),
    /// The tree answered a [`ServerOutput::Attach`].
    Attached {
        /// The connection of the Tattach.
        connection: ConnectionKey,
        /// The session of the Tattach.
        session: SessionKey,
        /// The result of the attach.
        result: Result<Attached, Errno>,
    },
    /// The last reply to a job is about to be queued, which may block. From now on the client may reuse the tag. A
    /// Tflush for the job still waits for [`Replied`](ServerInput::Replied).
    Answering(JobKey),
    /// The last reply to a job is in its connection's send queue. Must precede the client's next use of the tag,
    /// unless [`Answering`](ServerInput::Answering) did.
    Replied(JobKey),
    /// The only reply to a change. The server sends it now, and again if the client repeats the change.
    Answered(JobKey, Reply),
    /// An ordered job continues without the write slot.
    SlotReleased(JobKey),
    /// The tree returned a job with its original request, because other clients must answer recalls first.
    Parked(JobKey, Request),
    /// The tree detected an external change.
    ExternalChange(ExternalChange),
    /// The state of co-located servers of the same tree changed.
    Colocation(Colocation),
    /// The client of this session connected to another server of the same tree.
    Moved(SessionId),
    /// A job has ended, with or without a reply.
    Finished(JobKey),
    /// Time has passed.
    Tick,
    /// The server is about to stop: accepts no requests, cancels waiting locks, finishes the others.
    Drain,
    /// The server stops: all connections and sessions end.
    Stop,
}

/// Actions for the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerOutput {
    /// Send this reply.
    Reply {
        /// The connection to send over.
        connection: ConnectionKey,
        /// The request's tag, or `NOTAG`.
        tag: Tag,
        /// The reply.
        reply: Reply,
    },
    /// Attach to the tree, and hand in [`ServerInput::Attached`] before any other input of this connection.
    Attach {
        /// The connection of the Tattach.
        connection: ConnectionKey,
        /// The session of the Tattach.
        session: SessionKey,
        /// The root that the client asks for.
        path: TreePath,
        /// The result of the session's earlier attach, if there was one. The session is still attached; only the
        /// attributes of the root may have changed.
        before: Option<Attached>,
    },
    /// Execute this job, at the same time as others.
    Execute(Job),
    /// Cancel this job: its replies are not wanted.
    Stop(JobKey),
    /// End this session at the tree; none of its jobs runs.
    EndSession(SessionKey),
    /// Load the saved ledger of this session, and hand in [`ServerInput::LedgerLoaded`] before any other input of
    /// the connection. Only if ledgers are saved.
    LoadLedger {
        /// The connection that names the session.
        connection: ConnectionKey,
        /// The session.
        session: SessionId,
    },
    /// Append this record to the session's saved ledger before executing any later output. Only if ledgers are
    /// saved.
    AppendLedger(SessionId, LedgerRecord),
    /// No further records follow: the session has ended and none of its jobs runs.
    LedgerClosed(SessionId),
    /// A client of this session waits until the state of a co-located server is known
    /// ([`Colocation::Unknown`]).
    AwaitColocated(SessionId),
    /// No session is exclusive any more: a co-located server may start ([`Colocation::Starting`]).
    ExclusiveEnded,
    /// Call [`Tree::verify`](crate::Tree::verify) and hand in [`ServerInput::ExternalChange`].
    Verify {
        /// The object; with a name, the directory of the name.
        id: FileId,
        /// The name.
        name: Option<Bytes>,
    },
    /// Send queued replies, then close the connection.
    Close {
        /// The connection.
        connection: ConnectionKey,
        /// The reason.
        why: CloseReason,
    },
}

/// Whether the server accepts requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Serving,
    Draining,
    Stopped,
}

/// The sessions of one server.
///
/// The driver hands in events with [`handle`](Sessions::handle) and executes the outputs of
/// [`poll`](Sessions::poll) until it returns `None`. At [`deadline`](Sessions::deadline) it hands in
/// [`ServerInput::Tick`].
///
/// # Cost
/// A request costs three inputs and one output, each with a few lookups in ordered maps.
#[derive(Debug)]
pub struct Sessions {
    boot: BootId,
    phase: Phase,
    connections: BTreeMap<ConnectionKey, ConnectionState>,
    sessions: BTreeMap<SessionKey, Session>,
    by_id: BTreeMap<SessionId, SessionKey>,
    jobs: BTreeMap<JobKey, Pending>,
    leasing: Option<Leasing>,
    /// Whether ledgers outlive the process.
    saves_ledgers: bool,
    colocated: Colocation,
    outputs: VecDeque<ServerOutput>,
    sessions_begun: u64,
    jobs_begun: u64,
}

impl Sessions {
    /// A server without clients and without leases. `boot` is the boot id in Rversion.
    pub fn new(boot: BootId) -> Sessions {
        Sessions {
            boot,
            phase: Phase::Serving,
            connections: BTreeMap::new(),
            sessions: BTreeMap::new(),
            by_id: BTreeMap::new(),
            jobs: BTreeMap::new(),
            leasing: None,
            saves_ledgers: false,
            colocated: Colocation::None,
            outputs: VecDeque::new(),
            sessions_begun: 0,
            jobs_begun: 0,
        }
    }

    /// A server without clients that grants leases to clients that ask for them.
    pub fn leasing(boot: BootId, terms: LeaseTerms) -> Sessions {
        Sessions { leasing: Some(Leasing::new(terms)), ..Sessions::new(boot) }
    }

    /// Saves the ledgers for the next process. Must precede the first client.
    pub fn saving_ledgers(self) -> Sessions {
        Sessions { saves_ledgers: true, ..self }
    }

    /// Names the sessions that may hold leases of the previous server, which ended uncleanly. Changes wait only
    /// until each of them has returned and invalidated its cache. Must precede the first client.
    pub fn awaiting_holders(mut self, possible_holders: BTreeSet<SessionId>) -> Sessions {
        if let Some(leasing) = &mut self.leasing {
            leasing.await_holders(possible_holders);
        }
        self
    }

    /// Starts in the presence of co-located servers of the same tree.
    pub fn beside(self, colocated: Colocation) -> Sessions {
        Sessions { colocated, ..self }
    }

    /// Processes an event at time `now`.
    pub fn handle(&mut self, now: Time, input: ServerInput) {
        match input {
            ServerInput::Connected(connection) => match self.phase {
                Phase::Serving => self.connected(now, connection),
                Phase::Draining | Phase::Stopped => {
                    let why = CloseReason::Stopping;
                    self.outputs.push_back(ServerOutput::Close { connection, why });
                }
            },
            ServerInput::Identified(connection, key) => self.belongs_to(now, connection, Party::Key(key)),
            ServerInput::Addressed(connection, address) => {
                self.belongs_to(now, connection, Party::Address(address))
            }
            ServerInput::Restricted(connection) => self.restricted(connection),
            ServerInput::Revoked(connection) => self.revoked(now, connection),
            ServerInput::Limited(connection) => self.limited(connection),
            ServerInput::Received(connection, body) => match self.phase {
                Phase::Serving => self.received(now, connection, body),
                Phase::Draining => self.received_late(now, connection, body),
                Phase::Stopped => {}
            },
            ServerInput::Disconnected(connection) => {
                self.disconnected(now, connection);
                self.grant_exclusive(now);
            }
            ServerInput::LedgerLoaded { connection, session, saved } => {
                self.ledger_loaded(now, connection, session, saved)
            }
            ServerInput::SessionForeign(connection) => self.session_foreign(now, connection),
            ServerInput::Attached { connection, session, result } => {
                self.attached(now, connection, session, result)
            }
            ServerInput::Answering(job) => self.answering(job),
            ServerInput::Replied(job) => self.replied(job),
            ServerInput::Answered(job, reply) => {
                // The change is done, so the receivers of its result may get leases.
                self.end_leasing(now, job);
                self.answered(job, reply);
            }
            ServerInput::SlotReleased(job) => {
                // The change is done, although the job continues.
                self.end_leasing(now, job);
                self.release_slot_early(job);
            }
            ServerInput::Parked(job, request) => self.parked(now, job, request),
            ServerInput::ExternalChange(outside) => self.changed_outside(now, outside),
            ServerInput::Colocation(colocated) => self.colocated_servers_changed(now, colocated),
            ServerInput::Moved(session) => self.moved(now, session),
            ServerInput::Finished(job) => self.finished(now, job),
            ServerInput::Tick => {
                self.close_silent(now);
                self.expire(now);
                self.tick_leases(now);
                self.tick_exclusive(now);
                self.grant_exclusive(now);
            }
            ServerInput::Drain => {
                if self.phase == Phase::Serving {
                    self.phase = Phase::Draining;
                    self.recall_everything(now);
                    self.recall_exclusive(now);
                }
                self.withdraw_waiting(now);
            }
            ServerInput::Stop => self.stop(now),
        }
    }

    /// The next action.
    pub fn poll(&mut self) -> Option<ServerOutput> {
        self.outputs.pop_front()
    }

    /// The time for the next [`ServerInput::Tick`].
    pub fn deadline(&self) -> Option<Time> {
        let sessions = self.sessions.values().filter_map(Session::expires);
        sessions.chain(self.lease_deadline()).chain(self.silence_deadline()).min()
    }

    fn is_serving(&self) -> bool {
        self.phase == Phase::Serving
    }

    fn is_stopped(&self) -> bool {
        self.phase == Phase::Stopped
    }

    /// Whether the driver must stop reading this connection. That is so while the session's ordered requests exceed
    /// `BACKLOG_BYTES_MAX`, or `BACKLOG_WAITING_BYTES_MAX` while they wait for other clients, and during an attach.
    pub fn is_backlogged(&self, connection: ConnectionKey) -> bool {
        let state = self.connections.get(&connection);
        if state.is_some_and(ConnectionState::is_attaching) {
            return true;
        }
        // Requests on a data connection need no write slot.
        if state.is_some_and(|state| state.data_session().is_some()) {
            return false;
        }
        let session = state.and_then(ConnectionState::session);
        let Some(owner) = session.and_then(|session| self.sessions.get(&session)) else {
            return false;
        };
        if owner.load.backlog_bytes <= BACKLOG_BYTES_MAX {
            return false;
        }
        let first = owner.write_slot.holder().and_then(|key| self.jobs.get(&key));
        let all: usize = self.sessions.values().map(|owner| owner.load.backlog_bytes).sum();
        let has_room = first.is_some_and(Pending::is_parked) && all <= BACKLOG_ALL_BYTES_MAX;
        !has_room || owner.load.backlog_bytes > BACKLOG_WAITING_BYTES_MAX
    }

    /// The number of connections.
    pub fn connections(&self) -> usize {
        self.connections.len()
    }

    /// Whether this session exists, with or without a connection.
    pub fn has_session(&self, session: &SessionId) -> bool {
        self.by_id.contains_key(session)
    }

    /// The number of sessions, with or without a connection.
    pub fn sessions(&self) -> usize {
        self.sessions.len()
    }

    /// The number of unfinished requests.
    pub fn jobs(&self) -> usize {
        self.jobs.len()
    }

    fn stop(&mut self, now: Time) {
        self.phase = Phase::Stopped;
        let connections: Vec<ConnectionKey> = self.connections.keys().copied().collect();
        for connection in connections {
            self.close(now, connection, CloseReason::Stopping);
        }
        let sessions: Vec<SessionKey> = self.sessions.keys().copied().collect();
        for session in sessions {
            self.end(now, session);
        }
        self.drop_parked(now);
    }
}

#[cfg(test)]
mod tests;
