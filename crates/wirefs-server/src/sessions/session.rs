//! Sessions: opened by a client's Tversion, resumed by another, ended when nobody came back in time.

use super::conversation::Conversation;
use super::fence::Fence;
use super::lane::Lane;
use super::{ConnectionKey, Output, Sessions};
use crate::blame::Parting;
use crate::creations::Creations;
use crate::ledger::Ledger;
use crate::limits::{FREE_BYTES_MAX, GRACE, ORPHANS_MAX, SESSIONS_MAX};
use crate::notes::Noted;
use crate::tree::{Attached, SessionKey};
use wirefs_lease::HolderKey;
use wirefs_op::Order;
use wirefs_op::message::put::Rput;
use wirefs_op::message::recall::RELEASE_ALL;
use wirefs_op::message::target::NOFD;
use wirefs_op::message::version::SessionId;
use wirefs_op::{Errno, Reply, Time, TreePath};

/// One session.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) id: SessionId,
    life: Life,
    /// What the client took as its root, and what the tree said to that.
    pub(super) root: Option<(TreePath, Attached)>,
    /// Whether the tree was ever asked to attach, so that it has to be told of the end.
    pub(super) known_to_tree: bool,
    /// Its client has sent a request over an attached connection, so it has seen the answers that told it of this session.
    pub(super) is_confirmed: bool,
    /// Attaches that the tree has not answered.
    pub(super) attaching: usize,
    pub(super) lane: Lane,
    /// What must not happen since a barrier has failed.
    pub(super) fence: Fence,
    pub(super) ledger: Ledger,
    /// What its changes have created, where it may name that before it knows it.
    pub(super) creations: Creations,
    /// Whom it is to whoever leases, if it takes leases.
    pub(super) holder: Option<HolderKey>,
    /// Jobs that are not finished.
    pub(super) jobs: usize,
    /// Closed when it is over: its client waits for that.
    pub(super) told_of_end: Option<ConnectionKey>,
    pub(super) backlog_bytes: usize,
    pub(super) free_bytes: usize,
}

/// Where a session is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    Connected(ConnectionKey),
    /// Without a connection; it ends at this time.
    Waiting(Time),
    /// Over, but for what still runs.
    Ending,
}

impl Session {
    /// Whether a client speaks for it.
    pub(super) fn is_connected(&self) -> bool {
        matches!(self.life, Life::Connected(_))
    }

    /// Where its client is.
    pub(super) fn connection(&self) -> Option<ConnectionKey> {
        match self.life {
            Life::Connected(connection) => Some(connection),
            Life::Waiting(_) | Life::Ending => None,
        }
    }

    /// Whether it is over, but for what still runs.
    pub(super) fn is_ending(&self) -> bool {
        self.life == Life::Ending
    }

    pub(super) fn expires(&self) -> Option<Time> {
        match self.life {
            Life::Waiting(until) => Some(until),
            Life::Connected(_) | Life::Ending => None,
        }
    }
}

impl Session {
    /// Counts a job whose request has so many bytes; false when there is no room for it.
    pub(super) fn begin_job(&mut self, order: Order, bytes: usize) -> bool {
        match order {
            Order::Free if self.free_bytes + bytes > FREE_BYTES_MAX => return false,
            Order::Free => self.free_bytes += bytes,
            Order::Change | Order::Ordered => self.backlog_bytes += bytes,
        }
        self.jobs += 1;
        true
    }

    /// A change of this number has created what its reply tells of.
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
    /// Opens the session of this id, with what was noted of it before, or resumes it. Returns its key, and whether its client knows
    /// it: a client whose handshake broke before the answer arrived still believes in the open files and locks of the session before.
    ///
    /// # Errors
    /// There is no room, or the session's earlier connections left too much work behind.
    pub(super) fn join(
        &mut self,
        now: Time,
        connection: ConnectionKey,
        id: SessionId,
        noted: Option<Noted>,
    ) -> Result<(SessionKey, bool), (Errno, Parting)> {
        if let Some(key) = self.by_id.get(&id).copied() {
            let is_confirmed = self.resume(now, connection, key)?;
            return Ok((key, is_confirmed));
        }
        if self.sessions.len() >= SESSIONS_MAX {
            return Err((Errno::FileTableFull, Parting::SessionsFull));
        }
        self.end_solitude(now);
        let key = SessionKey(self.sessions_begun);
        self.sessions_begun += 1;
        let session = Session {
            id,
            life: Life::Connected(connection),
            root: None,
            known_to_tree: false,
            is_confirmed: false,
            attaching: 0,
            lane: Lane::default(),
            fence: Fence::default(),
            creations: noted.as_ref().map(|noted| noted.created.clone()).unwrap_or_default(),
            ledger: noted.map(Ledger::from).unwrap_or_default(),
            holder: None,
            jobs: 0,
            told_of_end: None,
            backlog_bytes: 0,
            free_bytes: 0,
        };
        self.sessions.insert(key, session);
        self.by_id.insert(id, key);
        Ok((key, false))
    }

    fn resume(
        &mut self,
        now: Time,
        connection: ConnectionKey,
        key: SessionKey,
    ) -> Result<bool, (Errno, Parting)> {
        let Some(owner) = self.sessions.get_mut(&key) else {
            return Err((Errno::Stale, Parting::SessionBusy));
        };
        if self.keeps_notes {
            owner.ledger.begin();
        }
        let is_confirmed = owner.is_confirmed;
        let older = match owner.life {
            Life::Connected(older) => Some(older),
            Life::Waiting(_) | Life::Ending => None,
        };
        owner.life = Life::Connected(connection);
        if let Some(older) = older {
            self.part(now, older, Parting::Replaced);
        }
        let busy = self.sessions.get(&key).is_some_and(|owner| owner.jobs > ORPHANS_MAX);
        if busy {
            self.leave(now, key, connection);
            return Err((Errno::Busy, Parting::SessionBusy));
        }
        Ok(is_confirmed)
    }

    /// The session's connection is gone: its grace begins. One that never attached holds nothing and ends.
    pub(super) fn leave(&mut self, now: Time, session: SessionKey, connection: ConnectionKey) {
        let Some(owner) = self.sessions.get_mut(&session) else {
            return;
        };
        if owner.life != Life::Connected(connection) {
            return;
        }
        if owner.known_to_tree {
            owner.life = Life::Waiting(now + GRACE);
        } else {
            self.end(now, session);
        }
    }

    /// A client says that its session is over: what it has open and locked goes, and others wait for nothing of it.
    pub(super) fn ends(&mut self, now: Time, connection: ConnectionKey) {
        let Some(session) = self.conversations.get(&connection).and_then(Conversation::session) else {
            return;
        };
        self.recalled(now, connection, RELEASE_ALL);
        self.disconnected(now, connection);
        // Closed behind the end, since that is what the client waits for, however long what still runs takes.
        if let Some(owner) = self.sessions.get_mut(&session) {
            owner.told_of_end = Some(connection);
            if let Some(leasing) = &mut self.leasing {
                leasing.has_ended(&owner.id);
            }
        }
        self.follow_leases(now);
        self.end(now, session);
        self.settle_solitude(now);
    }

    /// Ends the sessions whose grace is over ([`Input::Tick`](super::Input::Tick)).
    pub(super) fn expire(&mut self, now: Time) {
        let over = |owner: &Session| owner.expires().is_some_and(|until| until <= now);
        let keys: Vec<SessionKey> =
            self.sessions.iter().filter(|(_, owner)| over(owner)).map(|(key, _)| *key).collect();
        for key in keys {
            self.end(now, key);
        }
    }

    /// Ends a session: what may be given up is, changes that were received are still carried out, then the tree hears
    /// of it.
    pub(super) fn end(&mut self, now: Time, session: SessionKey) {
        let Some(owner) = self.sessions.get_mut(&session) else {
            return;
        };
        if owner.life == Life::Ending {
            return;
        }
        owner.life = Life::Ending;
        self.by_id.remove(&owner.id);
        self.withdraw_all(now, session);
        self.end_if_over(session);
    }

    /// Tells the tree of the end once nothing of the session runs any more.
    pub(super) fn end_if_over(&mut self, session: SessionKey) {
        let Some(owner) = self.sessions.get(&session) else {
            return;
        };
        if owner.life != Life::Ending || owner.jobs > 0 || owner.attaching > 0 {
            return;
        }
        if owner.known_to_tree {
            self.outputs.push_back(Output::EndSession(session));
        }
        if let Some(connection) = owner.told_of_end {
            self.outputs.push_back(Output::Close { connection, why: Parting::Ended });
        }
        if self.keeps_notes {
            self.outputs.push_back(Output::NotesEnd(owner.id));
        }
        self.sessions.remove(&session);
    }
}
