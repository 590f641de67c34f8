//! Tattach: held while another session is alone, then brought to the tree, then answered.

use super::conversation::Stage;
use super::{ConnectionKey, JobKey, Output, Sessions};
use crate::blame::PeerFault;
use crate::tree::{Attached, SessionKey};
use wirefs_op::message::attach::Rattach;
use wirefs_op::message::error::Rerror;
use wirefs_op::{Errno, Reply, Tag, Time, TreePath};

impl Sessions {
    /// Tattach.
    pub(super) fn attach(
        &mut self,
        now: Time,
        connection: ConnectionKey,
        tag: Tag,
        path: TreePath,
    ) -> Result<(), PeerFault> {
        let Some(conversation) = self.conversations.get(&connection) else {
            return Ok(());
        };
        let session = match conversation.stage {
            Stage::Agreed(session) => session,
            Stage::Fresh | Stage::Recollecting(_) => return Err(PeerFault::NotVersion),
            Stage::Held(..) | Stage::Attaching(..) | Stage::Attached(_) | Stage::Joined(_) => {
                return Err(PeerFault::SecondAttach);
            }
        };
        let root = self.sessions.get(&session).and_then(|owner| owner.root.as_ref());
        if root.is_some_and(|(root, _)| *root != path) {
            return self.reply(connection, tag, Reply::Error(Rerror::from(Errno::Invalid)));
        }
        if self.waits_for_loner(now, session) {
            self.enter(connection, Stage::Held(session, tag, path));
        } else {
            self.ask_tree(connection, session, tag, path);
        }
        Ok(())
    }

    /// Has the tree asked. The driver hands in nothing more of this connection before it has answered.
    pub(super) fn ask_tree(
        &mut self,
        connection: ConnectionKey,
        session: SessionKey,
        tag: Tag,
        path: TreePath,
    ) {
        let Some(owner) = self.sessions.get_mut(&session) else { return };
        let before = owner.root.as_ref().map(|(_, attached)| attached.clone());
        owner.attaching += 1;
        owner.known_to_tree = true;
        let job = JobKey(self.jobs_begun);
        self.jobs_begun += 1;
        self.begin_leasing(job);
        self.enter(connection, Stage::Attaching(session, tag, path.clone(), job));
        self.outputs.push_back(Output::Attach { connection, session, path, before });
    }

    /// The tree has answered ([`Input::Attached`](super::Input::Attached)).
    pub(super) fn attached(
        &mut self,
        now: Time,
        connection: ConnectionKey,
        session: SessionKey,
        result: Result<Attached, Errno>,
    ) {
        if let Some(owner) = self.sessions.get_mut(&session) {
            owner.attaching = owner.attaching.saturating_sub(1);
        }
        self.end_if_over(session);
        let stage = self.conversations.get(&connection).map(|conversation| conversation.stage.clone());
        let Some(Stage::Attaching(_, tag, path, job)) = stage else {
            return;
        };
        let (stage, reply) = match result {
            Ok(mut attached) => {
                let may_lease = self.conversations.get(&connection).is_some_and(|it| it.leases);
                let leases = if may_lease { self.join_leasing(now, session, connection) } else { None };
                let is_promised = attached.root.leased && leases.is_some();
                attached.root.leased = is_promised && self.grant_root(now, session, job, attached.root.id);
                if let Some(owner) = self.sessions.get_mut(&session) {
                    owner.root = Some((path, attached.clone()));
                }
                let reply = Reply::Attach(Rattach {
                    root: attached.root,
                    uid: attached.uid,
                    gid: attached.gid,
                    acts_for_callers: attached.acts_for_callers,
                    read_only: attached.read_only,
                    leases,
                });
                (Stage::Attached(session), reply)
            }
            Err(errno) => (Stage::Agreed(session), Reply::Error(Rerror::from(errno))),
        };
        self.enter(connection, stage);
        self.outputs.push_back(Output::Reply { connection, tag, reply });
        // Behind the reply: what a client that came back has missed.
        self.end_leasing(now, job);
        self.greet_loner(now, connection);
    }
}
