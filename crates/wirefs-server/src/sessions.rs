//! The machine that all connections and sessions of one server go through.

mod alone;
mod attaching;
mod conversation;
mod data;
mod fence;
mod job;
mod lane;
mod lease;
mod noting;
mod session;

use crate::blame::Parting;
use crate::limits::{BACKLOG_ALL_BYTES_MAX, BACKLOG_BYTES_MAX, BACKLOG_WAITING_BYTES_MAX};
use crate::notes::{Note, Noted};
use crate::tree::{Attached, Outside, SessionKey};
pub use alone::Neighbours;
use bytes::Bytes;
use conversation::Conversation;
use job::Pending;
pub use job::{Job, JobKey};
use lease::Leasing;
pub use lease::Terms;
use session::Session;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use wirefs_op::message::version::{BootId, SessionId};
use wirefs_op::{Errno, FileId, Reply, Request, Tag, Time, TreePath};

/// One connection, named by the driver; never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnectionKey(pub u64);

/// All that can happen to a server.
#[derive(Clone, Debug)]
pub enum Input {
    /// A client has connected.
    Connected(ConnectionKey),
    /// Its peer has proved to own this key. Before any message of the connection is handed in.
    Identified(ConnectionKey, [u8; 32]),
    /// The socket buffers of this connection keep what is sent over it from filling the wire. Told as long as it is so, now and then.
    Limited(ConnectionKey),
    /// A message came: its body, without the size word.
    Received(ConnectionKey, Bytes),
    /// The connection is gone.
    Disconnected(ConnectionKey),
    /// What was noted of the session that a connection asks for ([`Output::Recollect`]); `None`: nothing is known of it.
    Noted {
        /// Which connection.
        connection: ConnectionKey,
        /// Which session.
        session: SessionId,
        /// What its notes come to.
        noted: Option<Box<Noted>>,
    },
    /// The tree has answered an [`Output::Attach`].
    Attached {
        /// Whose.
        connection: ConnectionKey,
        /// For which session.
        session: SessionKey,
        /// What it said.
        result: Result<Attached, Errno>,
    },
    /// The last reply to a job is about to be queued, which may take a while. Its tag may come again from now on; a
    /// Tflush for it still waits for [`Replied`](Input::Replied).
    Answering(JobKey),
    /// The last reply to a job stands in its connection's queue. Handed in before the client can have seen that
    /// reply, unless [`Answering`](Input::Answering) was.
    Replied(JobKey),
    /// The only reply to a change, which is done with that: it is sent from here, and once more if the change comes again.
    Answered(JobKey, Reply),
    /// An ordered job needs its turn no longer, although it goes on.
    TurnPassed(JobKey),
    /// The tree gave a job back, with its request as it was, since others have to hear of what it would change.
    Parked(JobKey, Request),
    /// Something changed that no job changed.
    Outside(Outside),
    /// Whether other servers serve the same tree, as of now.
    Neighbours(Neighbours),
    /// The client of this session has come to another server.
    Moved(SessionId),
    /// The work on a job is over, whether it was answered or stopped.
    Finished(JobKey),
    /// Time has passed.
    Tick,
    /// The server is about to stop: nothing more is taken, waiting locks are given up, the rest finishes.
    Drain,
    /// The server stops: all connections and sessions end.
    Stop,
}

/// All that a server does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send this now.
    Reply {
        /// To whom.
        connection: ConnectionKey,
        /// The request's tag, or `NOTAG`.
        tag: Tag,
        /// What.
        reply: Reply,
    },
    /// Ask the tree, and hand in [`Input::Attached`] before anything more of this connection.
    Attach {
        /// Whose.
        connection: ConnectionKey,
        /// For which session.
        session: SessionKey,
        /// What the client takes as its root.
        path: TreePath,
        /// What the tree said when the session attached before: it is attached still, only the root's attributes may
        /// have changed.
        before: Option<Attached>,
    },
    /// Carry this out, beside whatever else runs.
    Execute(Job),
    /// Nobody wants the replies to this job any more.
    Stop(JobKey),
    /// Nothing of this session runs any more: tell the tree that it is over.
    EndSession(SessionKey),
    /// Look whether notes of this session were kept, and hand in [`Input::Noted`] before anything more of the connection. Only
    /// where notes are kept.
    Recollect {
        /// Who asks for the session.
        connection: ConnectionKey,
        /// Which.
        session: SessionId,
    },
    /// Keep this note of the session's, before anything that follows is done. Only where notes are kept.
    Note(SessionId, Note),
    /// No more notes come of this session for now: it is over, and nothing of it runs.
    NotesEnd(SessionId),
    /// A client of this session waits for a neighbour ([`Neighbours::Unknown`]).
    Waits(SessionId),
    /// Nobody is alone here any more: the neighbours may begin ([`Neighbours::Coming`]).
    GivesWay,
    /// Ask the tree how this is now, and hand in [`Input::Outside`].
    Verify {
        /// The object; with a name, the directory that the name is in.
        id: FileId,
        /// The name.
        name: Option<Bytes>,
    },
    /// Send what is queued, then close.
    Close {
        /// Which.
        connection: ConnectionKey,
        /// Why.
        why: Parting,
    },
}

/// Whether the server takes requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Serving,
    Draining,
    Stopped,
}

/// The sessions of one server.
///
/// The driver hands in what happens with [`handle`](Sessions::handle), then does what [`poll`](Sessions::poll) returns
/// until it returns nothing, and hands in [`Input::Tick`] at [`deadline`](Sessions::deadline).
///
/// # Cost
/// A request costs three inputs and one output, each a few look-ups in ordered maps.
#[derive(Debug)]
pub struct Sessions {
    boot: BootId,
    phase: Phase,
    conversations: BTreeMap<ConnectionKey, Conversation>,
    sessions: BTreeMap<SessionKey, Session>,
    by_id: BTreeMap<SessionId, SessionKey>,
    jobs: BTreeMap<JobKey, Pending>,
    leasing: Option<Leasing>,
    /// Whether the driver keeps notes that outlive the process.
    keeps_notes: bool,
    neighbours: Neighbours,
    outputs: VecDeque<Output>,
    sessions_begun: u64,
    jobs_begun: u64,
}

impl Sessions {
    /// A server without clients, which leases nothing. `boot` names this run of it.
    pub fn new(boot: BootId) -> Sessions {
        Sessions {
            boot,
            phase: Phase::Serving,
            conversations: BTreeMap::new(),
            sessions: BTreeMap::new(),
            by_id: BTreeMap::new(),
            jobs: BTreeMap::new(),
            leasing: None,
            keeps_notes: false,
            neighbours: Neighbours::None,
            outputs: VecDeque::new(),
            sessions_begun: 0,
            jobs_begun: 0,
        }
    }

    /// A server without clients, which leases what they are told to those that ask for that.
    pub fn leasing(boot: BootId, terms: Terms) -> Sessions {
        Sessions { leasing: Some(Leasing::new(terms)), ..Sessions::new(boot) }
    }

    /// The same, and numbered changes are noted so that the next process knows of them. Before there are any clients.
    pub fn keeping_notes(self) -> Sessions {
        Sessions { keeps_notes: true, ..self }
    }

    /// The same after a server that did not end cleanly, if it is known whom it had promised something: changes wait no longer than
    /// until each of these has come back and has forgotten it. Before there are any clients.
    pub fn awaiting(mut self, believers: BTreeSet<SessionId>) -> Sessions {
        if let Some(leasing) = &mut self.leasing {
            leasing.await_only(believers);
        }
        self
    }

    /// The same beside other servers of the same tree.
    pub fn among(self, neighbours: Neighbours) -> Sessions {
        Sessions { neighbours, ..self }
    }

    /// Takes what happened at `now`.
    pub fn handle(&mut self, now: Time, input: Input) {
        match input {
            Input::Connected(connection) => match self.phase {
                Phase::Serving => self.connected(connection),
                Phase::Draining | Phase::Stopped => {
                    let why = Parting::Stopping;
                    self.outputs.push_back(Output::Close { connection, why });
                }
            },
            Input::Identified(connection, identity) => self.identified(connection, identity),
            Input::Limited(connection) => self.limited(connection),
            Input::Received(connection, body) => match self.phase {
                Phase::Serving => self.received(now, connection, body),
                Phase::Draining => self.received_late(now, connection, body),
                Phase::Stopped => {}
            },
            Input::Disconnected(connection) => {
                self.disconnected(now, connection);
                self.settle_solitude(now);
            }
            Input::Noted { connection, session, noted } => self.recollected(now, connection, session, noted),
            Input::Attached { connection, session, result } => {
                self.attached(now, connection, session, result)
            }
            Input::Answering(job) => self.answering(job),
            Input::Replied(job) => self.replied(job),
            Input::Answered(job, reply) => {
                // It is done, so that who hears of it may be promised what it left.
                self.end_leasing(now, job);
                self.answered(job, reply);
            }
            Input::TurnPassed(job) => {
                // What it changes it has changed.
                self.end_leasing(now, job);
                self.turn_passed_early(job);
            }
            Input::Parked(job, request) => self.parked(now, job, request),
            Input::Outside(outside) => self.changed_outside(now, outside),
            Input::Neighbours(neighbours) => self.neighbours_are(now, neighbours),
            Input::Moved(session) => self.moved(now, session),
            Input::Finished(job) => self.finished(now, job),
            Input::Tick => {
                self.expire(now);
                self.tick_leases(now);
                self.pass_solitude(now);
                self.settle_solitude(now);
            }
            Input::Drain => {
                if self.phase == Phase::Serving {
                    self.phase = Phase::Draining;
                    self.recall_everything(now);
                    self.ask_loner(now);
                }
                self.withdraw_waiting(now);
            }
            Input::Stop => self.stop(now),
        }
    }

    /// The next thing to do.
    pub fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When to hand in the next [`Input::Tick`].
    pub fn deadline(&self) -> Option<Time> {
        let sessions = self.sessions.values().filter_map(Session::expires);
        sessions.chain(self.lease_deadline()).min()
    }

    fn is_serving(&self) -> bool {
        self.phase == Phase::Serving
    }

    fn is_stopped(&self) -> bool {
        self.phase == Phase::Stopped
    }

    /// Whether a connection's session has more ordered work waiting than `BACKLOG_BYTES_MAX`, or
    /// `BACKLOG_WAITING_BYTES_MAX` while that waits for other clients, or is about to attach: nothing more of it should be taken
    /// off the wire for now.
    pub fn is_behind(&self, connection: ConnectionKey) -> bool {
        let conversation = self.conversations.get(&connection);
        if conversation.is_some_and(Conversation::is_coming) {
            return true;
        }
        // What comes over a data connection waits for no turn.
        if conversation.is_some_and(|conversation| conversation.joined().is_some()) {
            return false;
        }
        let session = conversation.and_then(Conversation::session);
        let Some(owner) = session.and_then(|session| self.sessions.get(&session)) else {
            return false;
        };
        if owner.backlog_bytes <= BACKLOG_BYTES_MAX {
            return false;
        }
        let first = owner.lane.holder().and_then(|key| self.jobs.get(&key));
        let all: usize = self.sessions.values().map(|owner| owner.backlog_bytes).sum();
        let has_room = first.is_some_and(Pending::is_paused) && all <= BACKLOG_ALL_BYTES_MAX;
        !has_room || owner.backlog_bytes > BACKLOG_WAITING_BYTES_MAX
    }

    /// Connections at present.
    pub fn connections(&self) -> usize {
        self.conversations.len()
    }

    /// Sessions at present, those that wait for their client included.
    pub fn sessions(&self) -> usize {
        self.sessions.len()
    }

    /// Requests that are not finished.
    pub fn jobs(&self) -> usize {
        self.jobs.len()
    }

    fn stop(&mut self, now: Time) {
        self.phase = Phase::Stopped;
        let connections: Vec<ConnectionKey> = self.conversations.keys().copied().collect();
        for connection in connections {
            self.part(now, connection, Parting::Stopping);
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
