//! Data connections: additional connections of a session that only read file data.
//!
//! A data connection belongs to the main connection of its session. Its client knows the session's secret id and
//! has proved the key of the main connection's peer. It ends with the main connection. It renews no leases: a
//! client that is unreachable over its main connection counts as disconnected.

use super::connection::{ConnectionState, Stage, packs};
use super::{ConnectionKey, ServerOutput, Sessions};
use crate::blame::{CloseReason, PeerFault};
use crate::limits::{CONNECTIONS_MAX, DATA_CONNECTIONS_MAX};
use crate::tree::SessionKey;
use wirefs_op::message::error::Rerror;
use wirefs_op::message::limited::Rlimited;
use wirefs_op::message::version::{FEATURE_JOIN, FEATURE_PACKED, Rversion, Tversion, VERSION};
use wirefs_op::wire::Text;
use wirefs_op::{Errno, NOTAG, Reply, Request, Time};

impl Sessions {
    /// Handles Tversion of a connection that wants to become a data connection.
    pub(super) fn join_data(
        &mut self,
        now: Time,
        connection: ConnectionKey,
        asked: &Tversion,
        msize: usize,
    ) -> Result<(), PeerFault> {
        match self.data_session(connection, asked) {
            Ok(session) => {
                let first = self.sessions.get(&session).and_then(|owner| owner.connection());
                let times = first.and_then(|first| self.connections.get(&first)).is_some_and(|it| it.times);
                self.enter(connection, Stage::Data(session));
                if let Some(joins) = self.connections.get_mut(&connection) {
                    (joins.msize, joins.data, joins.times) = (msize, true, times);
                }
                let answer = Rversion {
                    msize: u32::try_from(msize).unwrap_or(u32::MAX),
                    version: Text::new(VERSION),
                    features: FEATURE_JOIN | if packs(asked, msize) { FEATURE_PACKED } else { 0 },
                    boot: self.boot,
                    resumed: true,
                    number: 0,
                };
                self.reply(connection, NOTAG, Reply::Version(answer))
            }
            Err(errno) => {
                self.reply(connection, NOTAG, Reply::Error(Rerror::from(errno)))?;
                self.close(now, connection, CloseReason::NotJoined);
                Ok(())
            }
        }
    }

    /// The session that a connection may join.
    ///
    /// # Errors
    /// `ESTALE` for every mismatch, so that a guess reveals nothing; `EBUSY` if the session has enough connections.
    fn data_session(&self, connection: ConnectionKey, asked: &Tversion) -> Result<SessionKey, Errno> {
        let session = *self.by_id.get(&asked.session).ok_or(Errno::Stale)?;
        let first = self.sessions.get(&session).and_then(|owner| owner.connection());
        let first = first.and_then(|first| self.connections.get(&first)).ok_or(Errno::Stale)?;
        let joins = self.connections.get(&connection).ok_or(Errno::Stale)?;
        let is_attached = matches!(first.stage, Stage::Attached(_));
        if !is_attached || !first.data || joins.peer.party.key() != first.peer.party.key() {
            return Err(Errno::Stale);
        }
        let is_room = self.data_connections(session).count() < DATA_CONNECTIONS_MAX
            // The other half is reserved for main connections.
            && self.connections.len() <= CONNECTIONS_MAX / 2;
        if is_room { Ok(session) } else { Err(Errno::Busy) }
    }

    /// Suggests another data connection to the client ([`ServerInput::Limited`](super::ServerInput::Limited)), if
    /// it may have one.
    pub(super) fn limited(&mut self, connection: ConnectionKey) {
        let Some(state) = self.connections.get(&connection).filter(|it| it.data) else { return };
        let Some(session) = state.session() else { return };
        let first = self.sessions.get(&session).and_then(|owner| owner.connection());
        // An attaching client expects only Rattach, and may not open data connections yet.
        let is_attached = |first: &ConnectionKey| {
            self.connections.get(first).is_some_and(|it| matches!(it.stage, Stage::Attached(_)))
        };
        let first = first.filter(is_attached);
        if let Some(first) = first.filter(|_| self.data_connections(session).count() < DATA_CONNECTIONS_MAX) {
            let reply = Reply::Limited(Rlimited {});
            self.outputs.push_back(ServerOutput::Reply { connection: first, tag: NOTAG, reply });
        }
    }

    fn data_connections(&self, session: SessionKey) -> impl Iterator<Item = ConnectionKey> + '_ {
        let is_its = move |state: &ConnectionState| state.data_session() == Some(session);
        self.connections.iter().filter(move |(_, it)| is_its(it)).map(|(key, _)| *key)
    }

    /// Closes the data connections of a session whose main connection is gone.
    pub(super) fn close_data_connections(&mut self, now: Time, session: SessionKey) {
        let all: Vec<ConnectionKey> = self.data_connections(session).collect();
        for connection in all {
            self.close(now, connection, CloseReason::Replaced);
        }
    }
}

/// Whether a request is allowed on a data connection.
pub(super) fn is_allowed(request: &Request) -> bool {
    matches!(request, Request::Get(get) if get.is_bulk())
}
