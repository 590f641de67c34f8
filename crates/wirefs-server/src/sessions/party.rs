//! The party that connections and sessions count for, and its fair share of each table.
//!
//! A party takes at most as much of a table as it leaves to the others: one greedy party gets half of it, a second one
//! half of the rest. So a newcomer finds room whatever the others do.

use super::connection::Stage;
use super::{ConnectionKey, ServerOutput, Sessions};
use crate::blame::CloseReason;
use crate::limits::{CONNECTIONS_MAX, FIRST_ATTACH_MAX, SESSIONS_MAX};
use crate::tree::SessionKey;
use bytes::Bytes;
use wirefs_lease::PartyKey;
use wirefs_op::message::error::Rerror;
use wirefs_op::message::version::SessionId;
use wirefs_op::wire::Text;
use wirefs_op::{Errno, NOTAG, Reply, Time};

/// The peer that a connection belongs to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Party {
    /// A client in this process or over its standard streams. There is one of them, and it has no share.
    #[default]
    Own,
    /// The key that the peer proved.
    Key([u8; 32]),
    /// The address of a peer whose carrier proves no key.
    Address(String),
}

impl Party {
    /// The party of its leases. A session without a known peer is on its own.
    pub(super) fn party_key(&self, session: &SessionId) -> PartyKey {
        let (kind, name): (&[u8], &[u8]) = match self {
            Party::Own => (b"session ", &session.0),
            Party::Key(key) => (b"key ", key),
            Party::Address(address) => (b"address ", address.as_bytes()),
        };
        PartyKey(Bytes::from([kind, name].concat()))
    }

    /// The key that the peer proved.
    pub(super) fn key(&self) -> Option<[u8; 32]> {
        match self {
            Party::Key(key) => Some(*key),
            Party::Own | Party::Address(_) => None,
        }
    }
}

/// Whether a party with `own` entries in a table of `all` may have another one.
fn is_fair(own: usize, all: usize, max: usize) -> bool {
    own < max.saturating_sub(all)
}

impl Sessions {
    /// Notes the party of a new connection, and refuses it beyond the party's share.
    pub(super) fn belongs_to(&mut self, now: Time, connection: ConnectionKey, party: Party) {
        let all = self.connections.len().saturating_sub(1);
        let own = self.connections.values().filter(|state| state.peer.party == party).count();
        let Some(state) = self.connections.get_mut(&connection) else { return };
        state.peer.party = party;
        if !is_fair(own, all, CONNECTIONS_MAX) {
            let reply = refusal("this client has too many connections");
            self.outputs.push_back(ServerOutput::Reply { connection, tag: NOTAG, reply });
            self.close(now, connection, CloseReason::PartyFull);
        }
    }

    /// Whether a party may begin another session.
    pub(super) fn has_room_for_session(&self, party: &Party) -> bool {
        let own = self.sessions.values().filter(|owner| owner.party == *party).count();
        *party == Party::Own || is_fair(own, self.sessions.len(), SESSIONS_MAX)
    }

    /// The party of a session; `None` if there is no such session.
    pub fn party(&self, session: SessionKey) -> Option<PartyKey> {
        self.sessions.get(&session).map(|owner| owner.party.party_key(&owner.id))
    }

    /// The time by which a connection must have attached; `None` if it has, or the server owes it an answer.
    fn attach_due(&self, connection: ConnectionKey) -> Option<Time> {
        let state = self.connections.get(&connection)?;
        match state.stage {
            Stage::Fresh | Stage::Negotiated(_) => Some(state.since + FIRST_ATTACH_MAX),
            Stage::LoadingLedger(_)
            | Stage::Held(..)
            | Stage::Attaching(..)
            | Stage::Attached(_)
            | Stage::Data(_) => None,
        }
    }

    /// The time at which the next silent connection is closed.
    pub(super) fn silence_deadline(&self) -> Option<Time> {
        self.connections.keys().filter_map(|connection| self.attach_due(*connection)).min()
    }

    /// Closes the connections that have not attached in time.
    pub(super) fn close_silent(&mut self, now: Time) {
        let is_over = |key: &ConnectionKey| self.attach_due(*key).is_some_and(|due| due <= now);
        let silent: Vec<ConnectionKey> = self.connections.keys().copied().filter(is_over).collect();
        for connection in silent {
            self.close(now, connection, CloseReason::Silent);
        }
    }
}

fn refusal(text: &str) -> Reply {
    Reply::Error(Rerror { errno: Errno::TooManyOpen, ename: Text::new(text.as_bytes()) })
}
