//! Data connections: further connections of a session, over which it reads file data and does nothing else.
//!
//! One belongs to the first connection of its session: who joins knows the session's secret and has proved the same key as the
//! first one's peer, and it ends with the first one. No sign of life counts that comes over it, and no lease depends on it: a client
//! that cannot be reached over its first connection is away, whatever it reads.

use super::conversation::{Conversation, Stage};
use super::{ConnectionKey, Output, Sessions};
use crate::blame::{Parting, PeerFault};
use crate::limits::{CONNECTIONS_MAX, DATA_CONNECTIONS_MAX};
use crate::tree::SessionKey;
use wirefs_op::message::error::Rerror;
use wirefs_op::message::limited::Rlimited;
use wirefs_op::message::version::{FEATURE_JOIN, Rversion, Tversion, VERSION};
use wirefs_op::wire::Text;
use wirefs_op::{Errno, NOTAG, Reply, Request, Time};

impl Sessions {
    /// Tversion of a connection that wants to be a session's data connection, with messages of `msize` bytes.
    pub(super) fn join_data(
        &mut self,
        now: Time,
        connection: ConnectionKey,
        asked: &Tversion,
        msize: usize,
    ) -> Result<(), PeerFault> {
        match self.data_session(connection, asked) {
            Ok(session) => {
                self.enter(connection, Stage::Joined(session));
                if let Some(joins) = self.conversations.get_mut(&connection) {
                    (joins.msize, joins.data) = (msize, true);
                }
                let answer = Rversion {
                    msize: u32::try_from(msize).unwrap_or(u32::MAX),
                    version: Text::new(VERSION),
                    features: FEATURE_JOIN,
                    boot: self.boot,
                    resumed: true,
                    number: 0,
                };
                self.reply(connection, NOTAG, Reply::Version(answer))
            }
            Err(errno) => {
                self.reply(connection, NOTAG, Reply::Error(Rerror::from(errno)))?;
                self.part(now, connection, Parting::NotJoined);
                Ok(())
            }
        }
    }

    /// The session that a connection may join.
    ///
    /// # Errors
    /// `ESTALE`, whatever it is that does not fit: who guesses learns nothing by it; `EBUSY` where there are enough.
    fn data_session(&self, connection: ConnectionKey, asked: &Tversion) -> Result<SessionKey, Errno> {
        let session = *self.by_id.get(&asked.session).ok_or(Errno::Stale)?;
        let first = self.sessions.get(&session).and_then(|owner| owner.connection());
        let first = first.and_then(|first| self.conversations.get(&first)).ok_or(Errno::Stale)?;
        let joins = self.conversations.get(&connection).ok_or(Errno::Stale)?;
        let is_attached = matches!(first.stage, Stage::Attached(_));
        if !is_attached || !first.data || joins.identity != first.identity {
            return Err(Errno::Stale);
        }
        let is_room = self.data_connections(session).count() < DATA_CONNECTIONS_MAX
            // Half of all is left for first connections.
            && self.conversations.len() <= CONNECTIONS_MAX / 2;
        if is_room { Ok(session) } else { Err(Errno::Busy) }
    }

    /// Another connection would bring more ([`Input::Limited`](super::Input::Limited)): the client is told, if it may have one.
    pub(super) fn limited(&mut self, connection: ConnectionKey) {
        let Some(conversation) = self.conversations.get(&connection).filter(|it| it.data) else { return };
        let Some(session) = conversation.session() else { return };
        let first = self.sessions.get(&session).and_then(|owner| owner.connection());
        // Until its tree is attached it expects the answer to that, and may make none anyhow.
        let is_attached = |first: &ConnectionKey| {
            self.conversations.get(first).is_some_and(|it| matches!(it.stage, Stage::Attached(_)))
        };
        let first = first.filter(is_attached);
        if let Some(first) = first.filter(|_| self.data_connections(session).count() < DATA_CONNECTIONS_MAX) {
            let reply = Reply::Limited(Rlimited {});
            self.outputs.push_back(Output::Reply { connection: first, tag: NOTAG, reply });
        }
    }

    fn data_connections(&self, session: SessionKey) -> impl Iterator<Item = ConnectionKey> + '_ {
        let is_its = move |conversation: &Conversation| conversation.joined() == Some(session);
        self.conversations.iter().filter(move |(_, it)| is_its(it)).map(|(key, _)| *key)
    }

    /// The session's first connection is gone, and these with it.
    pub(super) fn part_data(&mut self, now: Time, session: SessionKey) {
        let all: Vec<ConnectionKey> = self.data_connections(session).collect();
        for connection in all {
            self.part(now, connection, Parting::Replaced);
        }
    }
}

/// Whether a request may come over a data connection.
pub(super) fn may_carry(request: &Request) -> bool {
    matches!(request, Request::Get(get) if get.is_bulk())
}
