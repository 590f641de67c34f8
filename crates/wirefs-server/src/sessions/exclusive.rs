//! Exclusive sessions. The only session of a server becomes exclusive; other sessions wait until it has stopped to
//! be.
//!
//! ```text
//!   exclusive: programs are answered ─┐ another session's Tattach
//!              before the server is   ▼
//!                         Ralone 0 to the client; the Tattach is held
//!                                     │ Trecalled, or the recall timed out
//!                                     ▼
//!                         the held Tattach goes to the tree
//! ```

use super::session::Session;
use super::{ConnectionKey, ServerOutput, Sessions};
use crate::blame::CloseReason;
use crate::tree::SessionKey;
use wirefs_lease::exclusive_session::ExclusiveOutcome;
use wirefs_lease::{HolderKey, Serial};
use wirefs_op::message::alone::Ralone;
use wirefs_op::message::version::SessionId;
use wirefs_op::{NOTAG, Reply, Time};

/// Whether co-located servers serve the same tree. Their clients are not exclusive either.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colocation {
    /// There are none, and none starts without a request to this one.
    None,
    /// A server wants to start. It waits for [`ServerOutput::ExclusiveEnded`].
    Starting,
    /// There is at least one.
    Present,
    /// There may be one with an exclusive session. Until that is known, no session attaches here.
    Unknown,
}

impl Sessions {
    /// All sessions, with or without a connection.
    pub fn ids(&self) -> impl Iterator<Item = SessionId> {
        self.by_id.keys().copied()
    }

    /// The key that began a session; `None` if its client proved none, or there is no such session.
    pub fn owner(&self, session: SessionId) -> Option<[u8; 32]> {
        self.by_id.get(&session).and_then(|key| self.sessions.get(key))?.party.key()
    }

    /// Handles [`ServerInput::Colocation`](super::ServerInput::Colocation).
    pub(super) fn colocated_servers_changed(&mut self, now: Time, colocated: Colocation) {
        let was_there = self.colocated == Colocation::Present;
        self.colocated = colocated;
        match colocated {
            Colocation::Starting if was_there => self.attach_held(),
            Colocation::Starting => {
                self.recall_exclusive(now);
                self.attach_held();
            }
            Colocation::None | Colocation::Present => self.attach_held(),
            Colocation::Unknown => {}
        }
        self.grant_exclusive(now);
    }

    /// Ends a session whose client connected to a co-located server
    /// ([`ServerInput::Moved`](super::ServerInput::Moved)). There it waits for the exclusive session here, which is
    /// its own, and for its ledger, which this server owns until the session has ended.
    pub(super) fn moved(&mut self, now: Time, session: SessionId) {
        let Some(key) = self.by_id.get(&session).copied() else { return };
        if let Some(leasing) = &mut self.leasing
            && let Some(holder) = leasing.by_id.get(&session).copied()
        {
            leasing.exclusive.end(holder);
        }
        let connection = self.sessions.get(&key).and_then(Session::connection);
        if let Some(connection) = connection {
            self.close(now, connection, CloseReason::Replaced);
        }
        self.end(now, key);
        self.attach_held();
    }

    /// Makes a session exclusive if it has become the only one.
    pub(super) fn grant_exclusive(&mut self, now: Time) {
        let Some(holder) = self.sole_session(now) else { return };
        if let Some(leasing) = &mut self.leasing {
            leasing.exclusive.grant(now, holder);
            self.send_exclusive_notice();
        }
    }

    /// The holder of the only session, if the client wants it to be exclusive and nothing prevents that. No other
    /// session may have running requests or leases.
    fn sole_session(&self, now: Time) -> Option<HolderKey> {
        let leasing = self.leasing.as_ref().filter(|leasing| leasing.exclusive.is_shared())?;
        if !self.is_serving() || self.colocated != Colocation::None {
            return None;
        }
        let mut present = self.connections.values().filter(|state| state.is_attached_or_attaching());
        let (only, None) = (present.next()?, present.next()) else { return None };
        let session = only.session().filter(|_| only.wants_exclusive())?;
        let holder = self.sessions.get(&session)?.holder?;
        let is_busy = self.sessions.iter().any(|(key, other)| *key != session && other.load.jobs > 0);
        (!is_busy && leasing.connection_of(holder).is_some() && leasing.grantor.is_sole_holder(now, holder))
            .then_some(holder)
    }

    /// Sends Ralone: whether the session is exclusive, or must stop to be.
    fn send_exclusive_notice(&mut self) {
        let Some(leasing) = &mut self.leasing else { return };
        let Some(holder) = leasing.exclusive.holder() else { return };
        let (Some(connection), Some(serial)) =
            (leasing.connection_of(holder), leasing.grantor.next_serial(holder))
        else {
            return;
        };
        leasing.exclusive.notice_sent(serial);
        let alone = !leasing.exclusive.is_recalling();
        let reply = Reply::Alone(Ralone { serial: serial.0, alone });
        self.outputs.push_back(ServerOutput::Reply { connection, tag: NOTAG, reply });
    }

    /// Whether an attaching session must wait for an exclusive one, which is then recalled.
    pub(super) fn must_wait_for_exclusive(&mut self, now: Time, session: SessionKey) -> bool {
        let id = self.sessions.get(&session).map(|owner| owner.id);
        if self.colocated == Colocation::Unknown {
            self.outputs.extend(id.map(ServerOutput::AwaitColocated));
            return true;
        }
        let Some(leasing) = &mut self.leasing else { return false };
        let Some(holder) = leasing.exclusive.holder() else { return false };
        if id.is_some_and(|id| leasing.by_id.get(&id) == Some(&holder)) {
            return false;
        }
        self.recall_exclusive(now);
        self.leasing.as_ref().is_some_and(|leasing| !leasing.exclusive.is_shared())
    }

    /// Recalls the exclusive session.
    pub(super) fn recall_exclusive(&mut self, now: Time) {
        if self.leasing.as_mut().is_some_and(|leasing| leasing.exclusive.recall(now)) {
            self.send_exclusive_notice();
        }
        self.tick_exclusive(now);
    }

    /// Whether this connection's session is exclusive and under recall.
    pub(super) fn is_recalling_exclusive(&self, connection: ConnectionKey) -> bool {
        let holder = self.holder_over(connection);
        let Some(leasing) = &self.leasing else { return false };
        holder.is_some() && leasing.exclusive.holder() == holder && leasing.exclusive.is_recalling()
    }

    /// Renews the state of an exclusive session that has attached again. Its Rattach is queued.
    pub(super) fn resume_exclusive(&mut self, now: Time, connection: ConnectionKey) {
        let wants_exclusive = self.connections.get(&connection).is_some_and(|it| it.wants_exclusive());
        let holder = self.holder_over(connection);
        let Some(leasing) = &mut self.leasing else { return };
        match holder.filter(|holder| leasing.exclusive.holder() == Some(*holder)) {
            Some(holder) if wants_exclusive => {
                leasing.exclusive.reconnected(now, holder);
                self.send_exclusive_notice();
            }
            Some(holder) => {
                leasing.exclusive.end(holder);
                self.attach_held();
            }
            None => {}
        }
        self.grant_exclusive(now);
    }

    /// Handles Trecalled with this serial. Returns whether the serial belongs to an exclusive session.
    pub(super) fn exclusive_recall_answered(&mut self, now: Time, holder: HolderKey, serial: Serial) -> bool {
        let is_answer = self.leasing.as_mut().is_some_and(|it| it.exclusive.answered(holder, serial));
        if is_answer {
            self.attach_held();
            self.grant_exclusive(now);
        }
        is_answer
    }

    /// The client has no unconfirmed changes for now.
    pub(super) fn release_exclusive(&mut self, holder: HolderKey) {
        if let Some(leasing) = &mut self.leasing {
            leasing.exclusive.release(holder);
            self.attach_held();
        }
    }

    /// A job of the session has ended.
    pub(super) fn progressed(&mut self, now: Time, holder: Option<HolderKey>) {
        if let (Some(leasing), Some(holder)) = (&mut self.leasing, holder) {
            leasing.exclusive.progressed(now, holder);
        }
    }

    /// Applies the timeouts of an exclusive session.
    pub(super) fn tick_exclusive(&mut self, now: Time) {
        let Some(leasing) = &mut self.leasing else { return };
        match leasing.exclusive.tick(now) {
            ExclusiveOutcome::Stays => {}
            ExclusiveOutcome::Expelled(holder) => {
                if let Some(connection) = leasing.connection_of(holder) {
                    self.close(now, connection, CloseReason::Unresponsive);
                }
            }
            ExclusiveOutcome::Shared => self.attach_held(),
        }
    }

    /// Attaches held sessions, if no session is exclusive any more.
    fn attach_held(&mut self) {
        let is_alone = self.leasing.as_ref().is_some_and(|leasing| !leasing.exclusive.is_shared());
        if is_alone || self.colocated == Colocation::Unknown {
            return;
        }
        if self.colocated == Colocation::Starting {
            self.colocated = Colocation::Present;
            self.outputs.push_back(ServerOutput::ExclusiveEnded);
        }
        let held = self.connections.iter().filter_map(|(key, state)| Some((*key, state.held()?)));
        for (connection, (session, tag, path)) in held.collect::<Vec<_>>() {
            self.ask_tree(connection, session, tag, path);
        }
    }
}
