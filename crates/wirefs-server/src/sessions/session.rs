//! Sessions: created by Tversion, resumed by a later one, ended by the client or after a timeout.

use super::connection::ConnectionState;
use super::fence::Fence;
use super::party::Party;
use super::write_slot::WriteSlot;
use super::{ConnectionKey, ServerOutput, Sessions};
use crate::blame::CloseReason;
use crate::creations::Creations;
use crate::ledger::Ledger;
use crate::limits::{ORPHANS_MAX, SESSION_TIMEOUT, SESSIONS_MAX, UNORDERED_BYTES_MAX};
use crate::saved_ledger::{LedgerRecord, SavedLedger};
use crate::tree::{Attached, SessionKey};
use wirefs_lease::HolderKey;
use wirefs_op::Order;
use wirefs_op::message::put::Rput;
use wirefs_op::message::recall::RELEASE_ALL;
use wirefs_op::message::target::NOFD;
use wirefs_op::message::version::SessionId;
use wirefs_op::{Errno, Reply, Time, TreePath};

/// The state of one session.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) id: SessionId,
    /// The party that began it. No other key may resume it.
    pub(super) party: Party,
    state: SessionState,
    /// The root that the client attached, and the tree's answer.
    pub(super) root: Option<(TreePath, Attached)>,
    /// Whether an attach was sent to the tree, so that it must be notified of the end.
    pub(super) known_to_tree: bool,
    /// Whether the client sent a request over an attached connection, so that it knows this session.
    pub(super) is_confirmed: bool,
    pub(super) write_slot: WriteSlot,
    /// Requests that are refused after a failed barrier.
    pub(super) fence: Fence,
    pub(super) ledger: Ledger,
    /// The objects that its changes created, if requests may name them by number.
    pub(super) creations: Creations,
    /// Its lease holder, if it takes leases.
    pub(super) holder: Option<HolderKey>,
    pub(super) load: SessionLoad,
}

/// The unfinished work of a session.
#[derive(Debug, Default)]
pub(super) struct SessionLoad {
    /// Attaches without an answer of the tree.
    pub(super) attaching: usize,
    /// Unfinished jobs.
    pub(super) jobs: usize,
    /// Bytes of their ordered requests.
    pub(super) backlog_bytes: usize,
    /// Bytes of their unordered requests.
    pub(super) unordered_bytes: usize,
}

/// The lifecycle of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SessionState {
    Connected(ConnectionKey),
    /// Without a connection; expires at this time.
    Disconnected(Time),
    /// Ended, but some jobs still run. Then this connection, whose client ended the session, is closed.
    Ending(Option<ConnectionKey>),
}

impl Session {
    /// Whether it has a connection.
    pub(super) fn is_connected(&self) -> bool {
        matches!(self.state, SessionState::Connected(_))
    }

    /// Its connection.
    pub(super) fn connection(&self) -> Option<ConnectionKey> {
        match self.state {
            SessionState::Connected(connection) => Some(connection),
            SessionState::Disconnected(_) | SessionState::Ending(_) => None,
        }
    }

    /// Whether it has ended, but some jobs still run.
    pub(super) fn is_ending(&self) -> bool {
        matches!(self.state, SessionState::Ending(_))
    }

    pub(super) fn expires(&self) -> Option<Time> {
        match self.state {
            SessionState::Disconnected(until) => Some(until),
            SessionState::Connected(_) | SessionState::Ending(_) => None,
        }
    }
}

impl Session {
    /// Counts a job with a request of this size. Returns false if the limit is reached.
    pub(super) fn begin_job(&mut self, order: Order, bytes: usize) -> bool {
        match order {
            Order::Free if self.load.unordered_bytes + bytes > UNORDERED_BYTES_MAX => return false,
            Order::Free => self.load.unordered_bytes += bytes,
            Order::Change | Order::Ordered => self.load.backlog_bytes += bytes,
        }
        self.load.jobs += 1;
        true
    }

    /// Notes the object that a change created.
    pub(super) fn note_creation(&mut self, number: u64, reply: &Reply) {
        if let Reply::Put(Rput { stat: Some(stat), fd, .. }) = reply {
            self.creations.insert(number, stat.id);
            if *fd != NOFD {
                self.creations.opened(number, *fd);
            }
        }
    }
}

impl Sessions {
    /// Opens the session, with its saved ledger, or resumes it. Returns its key, and whether the client knows it. A
    /// client whose first handshake was cut off still relies on the files and locks of the session before.
    ///
    /// # Errors
    /// Another key began the session, the limit of sessions is reached, or too many jobs of earlier connections are still running.
    pub(super) fn join(
        &mut self,
        now: Time,
        connection: ConnectionKey,
        id: SessionId,
        saved: Option<SavedLedger>,
    ) -> Result<(SessionKey, bool), (Errno, CloseReason)> {
        let party =
            self.connections.get(&connection).map(|state| state.peer.party.clone()).unwrap_or_default();
        let identity = party.key();
        let live = self.by_id.get(&id).and_then(|key| self.sessions.get(key));
        if live.is_some_and(|owner| owner.party.key() != identity)
            || saved.as_ref().is_some_and(|saved| !saved.belongs_to(identity))
        {
            return Err((Errno::NotPermitted, CloseReason::NotOwner));
        }
        if let Some(key) = self.by_id.get(&id).copied() {
            let is_confirmed = self.resume(now, connection, key)?;
            return Ok((key, is_confirmed));
        }
        if self.sessions.len() >= SESSIONS_MAX {
            return Err((Errno::FileTableFull, CloseReason::SessionsFull));
        }
        if !self.has_room_for_session(&party) {
            return Err((Errno::TooManyOpen, CloseReason::PartyFull));
        }
        self.report_deferred_touches(now);
        let key = SessionKey(self.sessions_begun);
        self.sessions_begun += 1;
        let session = Session {
            id,
            party,
            state: SessionState::Connected(connection),
            root: None,
            known_to_tree: false,
            is_confirmed: false,
            write_slot: WriteSlot::default(),
            fence: Fence::default(),
            creations: saved.as_ref().map(|saved| saved.created.clone()).unwrap_or_default(),
            ledger: saved.map(Ledger::from).unwrap_or_default(),
            holder: None,
            load: SessionLoad::default(),
        };
        self.sessions.insert(key, session);
        self.by_id.insert(id, key);
        if let (true, Some(identity)) = (self.saves_ledgers, identity) {
            self.outputs.push_back(ServerOutput::AppendLedger(id, LedgerRecord::Owner(identity)));
        }
        Ok((key, false))
    }

    fn resume(
        &mut self,
        now: Time,
        connection: ConnectionKey,
        key: SessionKey,
    ) -> Result<bool, (Errno, CloseReason)> {
        let Some(owner) = self.sessions.get_mut(&key) else {
            return Err((Errno::Stale, CloseReason::SessionBusy));
        };
        if self.saves_ledgers {
            owner.ledger.begin();
        }
        let is_confirmed = owner.is_confirmed;
        let older = match owner.state {
            SessionState::Connected(older) => Some(older),
            SessionState::Disconnected(_) | SessionState::Ending(_) => None,
        };
        owner.state = SessionState::Connected(connection);
        if let Some(older) = older {
            self.close(now, older, CloseReason::Replaced);
        }
        let busy = self.sessions.get(&key).is_some_and(|owner| owner.load.jobs > ORPHANS_MAX);
        if busy {
            self.connection_lost(now, key, connection);
            return Err((Errno::Busy, CloseReason::SessionBusy));
        }
        Ok(is_confirmed)
    }

    /// Starts the timeout of a session whose connection is gone. A session that never attached ends at once.
    pub(super) fn connection_lost(&mut self, now: Time, session: SessionKey, connection: ConnectionKey) {
        let Some(owner) = self.sessions.get_mut(&session) else {
            return;
        };
        if owner.state != SessionState::Connected(connection) {
            return;
        }
        if owner.known_to_tree {
            owner.state = SessionState::Disconnected(now + SESSION_TIMEOUT);
        } else {
            self.end(now, session);
        }
    }

    /// Ends a session at its client's request: closes its files, releases its locks and leases.
    pub(super) fn end_by_client(&mut self, now: Time, connection: ConnectionKey) {
        let Some(session) = self.connections.get(&connection).and_then(ConnectionState::session) else {
            return;
        };
        self.recalled(now, connection, RELEASE_ALL);
        self.disconnected(now, connection);
        if let (Some(owner), Some(leasing)) = (self.sessions.get(&session), &mut self.leasing) {
            leasing.session_ended(&owner.id);
        }
        self.follow_leases(now);
        // The client waits for the close of the connection, which follows the last job.
        self.end_over(now, session, Some(connection));
        self.grant_exclusive(now);
    }

    /// Ends the session of a peer that may not use the tree any more. Its client keeps its leases until they expire: it
    /// cannot be asked to release them.
    pub(super) fn revoked(&mut self, now: Time, connection: ConnectionKey) {
        let Some(state) = self.connections.get(&connection) else {
            return;
        };
        let session = state.session().filter(|_| state.data_session().is_none());
        self.close(now, connection, CloseReason::Revoked);
        if let Some(session) = session {
            self.end(now, session);
        }
        self.grant_exclusive(now);
    }

    /// Ends the sessions whose timeout has passed ([`ServerInput::Tick`](super::ServerInput::Tick)).
    pub(super) fn expire(&mut self, now: Time) {
        let over = |owner: &Session| owner.expires().is_some_and(|until| until <= now);
        let keys: Vec<SessionKey> =
            self.sessions.iter().filter(|(_, owner)| over(owner)).map(|(key, _)| *key).collect();
        for key in keys {
            self.end(now, key);
        }
    }

    /// Ends a session: cancels its jobs except received changes, and tells the tree after the last one.
    pub(super) fn end(&mut self, now: Time, session: SessionKey) {
        self.end_over(now, session, None);
    }

    /// Ends a session, then closes a connection.
    fn end_over(&mut self, now: Time, session: SessionKey, connection: Option<ConnectionKey>) {
        let Some(owner) = self.sessions.get_mut(&session).filter(|owner| !owner.is_ending()) else {
            return;
        };
        owner.state = SessionState::Ending(connection);
        self.by_id.remove(&owner.id);
        self.withdraw_all(now, session);
        self.end_if_over(session);
    }

    /// Tells the tree of the end once no job of the session runs.
    pub(super) fn end_if_over(&mut self, session: SessionKey) {
        let Some(owner) = self.sessions.get(&session) else {
            return;
        };
        let SessionState::Ending(connection) = owner.state else { return };
        if owner.load.jobs > 0 || owner.load.attaching > 0 {
            return;
        }
        if owner.known_to_tree {
            self.outputs.push_back(ServerOutput::EndSession(session));
        }
        if let Some(connection) = connection {
            self.outputs.push_back(ServerOutput::Close { connection, why: CloseReason::Ended });
        }
        if self.saves_ledgers {
            self.outputs.push_back(ServerOutput::LedgerClosed(owner.id));
        }
        self.sessions.remove(&session);
    }
}
