//! The requests that are being worked on, from admission to the end of the work.

use super::conversation::{Conversation, Outstanding};
use super::{ConnectionKey, Output, Sessions};
use crate::limits::FREE_BYTES_MAX;
use crate::order::{Order, Weight};
use crate::tree::SessionKey;
use wirefs_op::message::error::Rerror;
use wirefs_op::message::flush::Rflush;
use wirefs_op::{Errno, Reply, Request, Tag};

/// One admitted request: unique while the server runs, never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct JobKey(pub u64);

/// A request to be carried out now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// Which one.
    pub key: JobKey,
    /// Whose.
    pub session: SessionKey,
    /// Where its replies go; `None` when that connection is gone, so that nobody waits for them.
    pub connection: Option<ConnectionKey>,
    /// The tag of its replies.
    pub tag: Tag,
    /// What to do.
    pub request: Request,
    /// How it stands to the session's other requests.
    pub order: Order,
    /// How long it may take.
    pub weight: Weight,
}

/// What is known of a job between its admission and its end.
#[derive(Debug)]
pub(super) struct Pending {
    session: SessionKey,
    /// Where its replies go, as long as one is still owed.
    connection: Option<ConnectionKey>,
    tag: Tag,
    order: Order,
    weight: Weight,
    bytes: usize,
    /// The tags of the Tflush that wait for its end.
    flushes: Vec<Tag>,
}

impl Sessions {
    /// Takes a request of an attached connection: runs it, or lets it wait for its turn.
    pub(super) fn admit(
        &mut self,
        connection: ConnectionKey,
        session: SessionKey,
        tag: Tag,
        request: Request,
        bytes: usize,
    ) {
        let order = Order::of(&request);
        let key = JobKey(self.jobs_begun);
        let (Some(owner), Some(conversation)) =
            (self.sessions.get_mut(&session), self.conversations.get_mut(&connection))
        else {
            return;
        };
        match order {
            Order::Free if owner.free_bytes + bytes > FREE_BYTES_MAX => {
                let reply = Reply::Error(Rerror::from(Errno::NoMemory));
                self.outputs.push_back(Output::Reply { connection, tag, reply });
                return;
            }
            Order::Free => owner.free_bytes += bytes,
            Order::Change | Order::Turn => owner.backlog_bytes += bytes,
        }
        self.jobs_begun += 1;
        owner.jobs += 1;
        conversation.tags.insert(tag, Outstanding::Job(key));
        let pending = Pending {
            session,
            connection: Some(connection),
            tag,
            order,
            weight: Weight::of(&request),
            bytes,
            flushes: Vec::new(),
        };
        self.jobs.insert(key, pending);
        match order {
            Order::Free => self.execute(key, request),
            Order::Change | Order::Turn => {
                owner.lane.push(key, request);
                self.advance(session);
            }
        }
    }

    /// Hands a job out.
    fn execute(&mut self, key: JobKey, request: Request) {
        let Some(pending) = self.jobs.get(&key) else {
            return;
        };
        self.outputs.push_back(Output::Execute(Job {
            key,
            session: pending.session,
            connection: pending.connection,
            tag: pending.tag,
            order: pending.order,
            weight: pending.weight,
            request,
        }));
    }

    /// Starts the next ordered job when it is somebody's turn.
    fn advance(&mut self, session: SessionKey) {
        let next = self.sessions.get_mut(&session).and_then(|owner| owner.lane.next());
        if let Some((key, request)) = next {
            self.execute(key, request);
        }
    }

    /// The job gives its turn to the next one ([`TurnPassed`](super::Input::TurnPassed)).
    pub(super) fn turn_passed(&mut self, key: JobKey) {
        let Some(session) = self.jobs.get(&key).map(|pending| pending.session) else {
            return;
        };
        if self.sessions.get_mut(&session).is_some_and(|owner| owner.lane.pass(key)) {
            self.advance(session);
        }
    }

    /// The last reply is on its way: the tag may be used again, but a Tflush still has to wait for it
    /// ([`Answering`](super::Input::Answering)).
    pub(super) fn answering(&mut self, key: JobKey) {
        if let Some((conversation, pending)) = self.asker(key)
            && conversation.forget(pending.tag, key)
        {
            conversation.answering.insert(pending.tag, key);
        }
    }

    /// No further reply comes: the tag is free, whoever flushed it hears of it
    /// ([`Replied`](super::Input::Replied)).
    pub(super) fn replied(&mut self, key: JobKey) {
        let Some((conversation, pending)) = self.asker(key) else {
            return;
        };
        conversation.forget(pending.tag, key);
        if conversation.answering.get(&pending.tag) == Some(&key) {
            conversation.answering.remove(&pending.tag);
        }
        let connection = pending.connection.take();
        let flushes = std::mem::take(&mut pending.flushes);
        for tag in &flushes {
            conversation.tags.remove(tag);
        }
        let Some(connection) = connection else { return };
        for tag in flushes {
            let reply = Reply::Flush(Rflush {});
            self.outputs.push_back(Output::Reply { connection, tag, reply });
        }
    }

    /// A job that still owes a reply, and the connection that it owes it to.
    fn asker(&mut self, key: JobKey) -> Option<(&mut Conversation, &mut Pending)> {
        let pending = self.jobs.get_mut(&key)?;
        let conversation = self.conversations.get_mut(&pending.connection?)?;
        Some((conversation, pending))
    }

    /// The work is over ([`Finished`](super::Input::Finished)).
    pub(super) fn finished(&mut self, key: JobKey) {
        self.replied(key);
        self.turn_passed(key);
        let Some(pending) = self.jobs.remove(&key) else {
            return;
        };
        let Some(owner) = self.sessions.get_mut(&pending.session) else {
            return;
        };
        owner.jobs -= 1;
        match pending.order {
            Order::Free => owner.free_bytes -= pending.bytes,
            Order::Change | Order::Turn => owner.backlog_bytes -= pending.bytes,
        }
        self.end_if_over(pending.session);
    }

    /// Tflush: answers once nothing more comes from the request that it names.
    pub(super) fn flush(&mut self, connection: ConnectionKey, tag: Tag, old: Tag) {
        let Some(conversation) = self.conversations.get_mut(&connection) else {
            return;
        };
        let waits_for = match conversation.tags.get(&old) {
            Some(Outstanding::Job(key) | Outstanding::Flush(key)) => Some(*key),
            None => conversation.answering.get(&old).copied(),
        };
        let Some((key, pending)) = waits_for.and_then(|key| Some((key, self.jobs.get_mut(&key)?))) else {
            let reply = Reply::Flush(Rflush {});
            self.outputs.push_back(Output::Reply { connection, tag, reply });
            return;
        };
        pending.flushes.push(tag);
        conversation.tags.insert(tag, Outstanding::Flush(key));
        self.withdraw(key);
    }

    /// Nobody waits for these jobs any more: what changes nothing is given up.
    pub(super) fn abandon(&mut self, keys: Vec<JobKey>) {
        for key in keys {
            if let Some(pending) = self.jobs.get_mut(&key) {
                pending.connection = None;
                pending.flushes.clear();
                self.withdraw(key);
            }
        }
    }

    /// Gives up on a job unless it is a change: those are carried out once they are received.
    pub(super) fn withdraw(&mut self, key: JobKey) {
        let Some(pending) = self.jobs.get(&key) else {
            return;
        };
        match pending.order {
            Order::Change => {}
            Order::Turn | Order::Free => {
                let owner = self.sessions.get_mut(&pending.session);
                if owner.is_some_and(|owner| owner.lane.remove(key)) {
                    self.finished(key);
                } else {
                    self.outputs.push_back(Output::Stop(key));
                }
            }
        }
    }

    /// Gives up on all jobs of a session that may be given up.
    pub(super) fn withdraw_all(&mut self, session: SessionKey) {
        self.withdraw_where(|pending| pending.session == session);
    }

    /// Gives up on all jobs that wait for somebody else.
    pub(super) fn withdraw_waiting(&mut self) {
        self.withdraw_where(|pending| pending.weight == Weight::Waits);
    }

    fn withdraw_where(&mut self, concerned: impl Fn(&Pending) -> bool) {
        let concerned = self.jobs.iter().filter(|(_, pending)| concerned(pending));
        let keys: Vec<JobKey> = concerned.map(|(key, _)| *key).collect();
        for key in keys {
            self.withdraw(key);
        }
    }
}
