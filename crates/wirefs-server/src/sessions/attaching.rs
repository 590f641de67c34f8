//! Tattach: held while another session is exclusive, then sent to the tree, then answered.

use super::connection::Stage;
use super::{ConnectionKey, JobKey, ServerOutput, Sessions};
use crate::blame::PeerFault;
use crate::tree::{Attached, SessionKey};
use wirefs_op::message::attach::Rattach;
use wirefs_op::message::error::Rerror;
use wirefs_op::{Errno, Reply, Tag, Time, TreePath};

impl Sessions {
    /// Handles Tattach.
    pub(super) fn attach(
        &mut self,
        now: Time,
        connection: ConnectionKey,
        tag: Tag,
        path: TreePath,
    ) -> Result<(), PeerFault> {
        let Some(state) = self.connections.get(&connection) else {
            return Ok(());
        };
        let session = match state.stage {
            Stage::Negotiated(session) => session,
            Stage::Fresh | Stage::LoadingLedger(_) => return Err(PeerFault::NotVersion),
            Stage::Held(..) | Stage::Attaching(..) | Stage::Attached(_) | Stage::Data(_) => {
                return Err(PeerFault::SecondAttach);
            }
        };
        let root = self.sessions.get(&session).and_then(|owner| owner.root.as_ref());
        if root.is_some_and(|(root, _)| *root != path) {
            return self.reply(connection, tag, Reply::Error(Rerror::from(Errno::Invalid)));
        }
        if self.must_wait_for_exclusive(now, session) {
            self.enter(connection, Stage::Held(session, tag, path));
        } else {
            self.ask_tree(connection, session, tag, path);
        }
        Ok(())
    }

    /// Sends the attach to the tree. The driver hands in no further input of this connection before the answer.
    pub(super) fn ask_tree(
        &mut self,
        connection: ConnectionKey,
        session: SessionKey,
        tag: Tag,
        path: TreePath,
    ) {
        let Some(owner) = self.sessions.get_mut(&session) else { return };
        let before = owner.root.as_ref().map(|(_, attached)| attached.clone());
        owner.load.attaching += 1;
        owner.known_to_tree = true;
        let job = JobKey(self.jobs_begun);
        self.jobs_begun += 1;
        self.begin_leasing(job);
        self.enter(connection, Stage::Attaching(session, tag, path.clone(), job));
        self.outputs.push_back(ServerOutput::Attach { connection, session, path, before });
    }

    /// Handles the answer of the tree ([`ServerInput::Attached`](super::ServerInput::Attached)).
    pub(super) fn attached(
        &mut self,
        now: Time,
        connection: ConnectionKey,
        session: SessionKey,
        result: Result<Attached, Errno>,
    ) {
        if let Some(owner) = self.sessions.get_mut(&session) {
            owner.load.attaching = owner.load.attaching.saturating_sub(1);
        }
        self.end_if_over(session);
        let stage = self.connections.get(&connection).map(|state| state.stage.clone());
        let Some(Stage::Attaching(_, tag, path, job)) = stage else {
            return;
        };
        let (stage, reply) = match result {
            Ok(mut attached) => {
                let is_restricted = self.connections.get(&connection).is_some_and(|it| it.peer.is_read_only);
                let may_lease = self.connections.get(&connection).is_some_and(|it| it.leases);
                let leases = if may_lease { self.join_leasing(now, session, connection) } else { None };
                let is_leasable = attached.root.leased && leases.is_some();
                attached.root.leased = is_leasable && self.grant_root(now, session, job, attached.root.id);
                if let Some(owner) = self.sessions.get_mut(&session) {
                    owner.root = Some((path, attached.clone()));
                }
                let reply = Reply::Attach(Rattach {
                    root: attached.root,
                    uid: attached.uid,
                    gid: attached.gid,
                    acts_for_callers: attached.acts_for_callers,
                    read_only: attached.read_only || is_restricted,
                    leases,
                });
                (Stage::Attached(session), reply)
            }
            Err(errno) => (Stage::Negotiated(session), Reply::Error(Rerror::from(errno))),
        };
        self.enter(connection, stage);
        if let Some(state) = self.connections.get_mut(&connection) {
            state.since = now;
        }
        self.outputs.push_back(ServerOutput::Reply { connection, tag, reply });
        // After the reply: recalls that a returning client missed.
        self.end_leasing(now, job);
        self.resume_exclusive(now, connection);
    }
}
