//! The requests that are being worked on, from admission to the end of the work.

use super::conversation::{Conversation, Outstanding};
use super::{ConnectionKey, Output, Sessions, fence};
use crate::blame::PeerFault;
use crate::creations::UnknownCreation;
use crate::ledger::{StrayNumber, Verdict};
use crate::notes::{Begun, unlease};
use crate::repeat;
use crate::tree::{SessionKey, Touched};
use wirefs_lease::HolderKey;
pub use wirefs_lease::JobKey;
use wirefs_op::message::error::Rerror;
use wirefs_op::message::flush::Rflush;
use wirefs_op::message::get::GetMode;
use wirefs_op::message::put::PutMode;
use wirefs_op::message::target::NOFD;
use wirefs_op::{Errno, Reply, Request, Tag, Time};
use wirefs_op::{Order, Weight};

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
    /// Whether the tree may give it back unchanged ([`Input::Parked`](super::Input::Parked)).
    pub may_park: bool,
    /// It was given back and begins anew.
    pub is_again: bool,
    /// Its reply counts even where the connection is gone: the client will ask for it on the next one.
    pub is_numbered: bool,
    /// Another process had begun it, and it may be done: to be carried out by [`repeat::serve`].
    pub undecided: Option<Begun>,
}

/// Whether a job waits until others have heard of what it would change.
#[derive(Debug, Default)]
pub(super) enum Pause {
    /// It does not.
    #[default]
    None,
    /// It will: the tree is about to give it back.
    Coming,
    /// It does, put aside.
    Away(Box<Request>),
    /// It need not any more, and the tree is about to give it back.
    Over,
}

/// What is known of a job between its admission and its end.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) session: SessionKey,
    /// On whose behalf it asks and changes.
    pub(super) holder: Option<HolderKey>,
    /// Where its replies go, as long as one is still owed.
    pub(super) connection: Option<ConnectionKey>,
    /// It came over another connection than its reply goes to.
    is_moved: bool,
    pub(super) pause: Pause,
    /// How often it was handed out.
    attempts: u32,
    /// What it touched while nobody else was there who could know anything about it.
    pub(super) touched_alone: Vec<Touched>,
    /// Nobody wants it any more, so it need not begin again.
    pub(super) is_withdrawn: bool,
    tag: Tag,
    /// The number of a change, where the client numbers them.
    pub(super) number: Option<u64>,
    /// Whether others may name by the number what it creates.
    pub(super) is_creation: bool,
    pub(super) is_lock: bool,
    /// Those behind it begin when it is over.
    is_barrier: bool,
    /// What it is about ([`repeat::about`]), of a change that has a number.
    pub(super) about: u64,
    /// Another process had begun it.
    pub(super) undecided: Option<Begun>,
    order: Order,
    weight: Weight,
    bytes: usize,
    /// The tags of the Tflush that wait for its end.
    flushes: Vec<Tag>,
}

impl Pending {
    /// Whether it waits for other clients.
    pub(super) fn is_paused(&self) -> bool {
        match self.pause {
            Pause::None => false,
            Pause::Coming | Pause::Away(_) | Pause::Over => true,
        }
    }
}

/// Whether a request creates something.
fn is_creation(request: &Request) -> bool {
    matches!(request, Request::Put(put) if put.mode.has(PutMode::CREATE))
}

/// Whether a request may change what others know, beside what it does to its own session.
fn may_change(request: &Request) -> bool {
    match request {
        // Closing may remove a name.
        Request::Get(get) => get.target.fd != NOFD && !get.mode.has(GetMode::MORE),
        Request::Lock(_) => false,
        other => other.order() == Order::Change,
    }
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
    ) -> Result<(), PeerFault> {
        let (order, key) = (request.order(), JobKey(self.jobs_begun));
        let (Some(owner), Some(conversation)) =
            (self.sessions.get_mut(&session), self.conversations.get_mut(&connection))
        else {
            return Ok(());
        };
        let number = if order == Order::Change { conversation.next_number() } else { None };
        let is_creation = conversation.may_name_ahead() && is_creation(&request);
        let about = number.map_or(0, |_| repeat::about(&request));
        let undecided = match number.map(|number| (number, owner.ledger.take(number, key, about))) {
            None | Some((_, Ok(Verdict::New))) => None,
            Some((_, Ok(Verdict::Undecided(begun)))) => Some(begun),
            Some((number, Ok(Verdict::UnderWay(key)))) => {
                return self.answer_here(connection, tag, key, number);
            }
            Some((number, Ok(Verdict::Done(mut reply)))) => {
                unlease(&mut reply);
                if is_creation {
                    owner.note_creation(number, &reply);
                }
                owner.fence.saw(Some(number), fence::is_barrier(&request), &reply);
                self.outputs.push_back(Output::Reply { connection, tag, reply: *reply });
                return Ok(());
            }
            Some((number, Err(StrayNumber))) => return Err(PeerFault::StrayNumber(number)),
        };
        if !owner.begin_job(order, bytes) {
            return self.reply(connection, tag, Reply::Error(Rerror::from(Errno::NoMemory)));
        }
        self.jobs_begun += 1;
        conversation.tags.insert(tag, Outstanding::Job(key));
        let pending = Pending {
            session,
            holder: owner.holder,
            connection: Some(connection),
            is_moved: false,
            pause: Pause::None,
            attempts: 0,
            touched_alone: Vec::new(),
            is_withdrawn: false,
            tag,
            number,
            is_creation,
            is_lock: matches!(request, Request::Lock(_)),
            is_barrier: fence::is_barrier(&request),
            about,
            undecided,
            order,
            weight: request.traits().weight,
            bytes,
            flushes: Vec::new(),
        };
        self.jobs.insert(key, pending);
        match order {
            Order::Free => self.begin(key, request),
            Order::Change | Order::Ordered => {
                owner.lane.push(key, request);
                self.advance(session);
            }
        }
        Ok(())
    }

    /// A change that is under way came again: who sent it now gets the reply.
    fn answer_here(
        &mut self,
        connection: ConnectionKey,
        tag: Tag,
        key: JobKey,
        number: u64,
    ) -> Result<(), PeerFault> {
        let (Some(pending), Some(conversation)) =
            (self.jobs.get_mut(&key), self.conversations.get_mut(&connection))
        else {
            return Err(PeerFault::StrayNumber(number));
        };
        if pending.connection.is_some() {
            return Err(PeerFault::StrayNumber(number));
        }
        (pending.connection, pending.tag, pending.is_moved) = (Some(connection), tag, true);
        conversation.tags.insert(tag, Outstanding::Job(key));
        Ok(())
    }

    /// Hands a job out.
    pub(super) fn execute(&mut self, key: JobKey, request: Request) {
        self.begin_leasing(key);
        let Some(pending) = self.jobs.get_mut(&key) else {
            return;
        };
        pending.attempts += 1;
        self.outputs.push_back(Output::Execute(Job {
            key,
            session: pending.session,
            connection: pending.connection,
            tag: pending.tag,
            order: pending.order,
            weight: pending.weight,
            may_park: self.leasing.is_some() && may_change(&request),
            is_again: pending.attempts > 1,
            is_numbered: pending.number.is_some(),
            undecided: pending.undecided,
            request,
        }));
    }

    /// Hands a job out for the first time, or answers that what it names was never created, or what it relies on failed.
    fn begin(&mut self, key: JobKey, mut request: Request) {
        let pending = self.jobs.get(&key);
        let owner = pending.and_then(|pending| self.sessions.get(&pending.session));
        let number = pending.and_then(|pending| pending.number);
        let begins = owner.map_or(Ok(()), |owner| match owner.fence.passes(number, &request) {
            true => owner.creations.resolve(&mut request).map_err(|UnknownCreation| Errno::Stale),
            false => Err(Errno::Io),
        });
        match begins {
            Ok(()) => self.execute(key, request),
            Err(errno) => {
                self.answered(key, Reply::Error(Rerror::from(errno)));
                self.strike(key);
            }
        }
    }

    /// Starts the next ordered job when it is somebody's turn. Only then is everything created that was sent before it.
    fn advance(&mut self, session: SessionKey) {
        while let Some((key, request)) = self.sessions.get_mut(&session).and_then(|owner| owner.lane.next()) {
            self.begin(key, request);
        }
    }

    /// The job gives its turn to the next one.
    pub(super) fn turn_passed(&mut self, key: JobKey) {
        let Some(session) = self.jobs.get(&key).map(|pending| pending.session) else {
            return;
        };
        if self.sessions.get_mut(&session).is_some_and(|owner| owner.lane.pass(key)) {
            self.advance(session);
        }
    }

    /// The job goes on without its turn ([`TurnPassed`](super::Input::TurnPassed)). A creation keeps it until it has its
    /// reply, which those behind it may need to be understood; a barrier because it is one.
    pub(super) fn turn_passed_early(&mut self, key: JobKey) {
        if self.jobs.get(&key).is_some_and(|pending| !pending.is_creation && !pending.is_barrier) {
            self.is_overtaken(key);
            self.turn_passed(key);
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

    /// A change has its reply ([`Answered`](super::Input::Answered)).
    pub(super) fn answered(&mut self, key: JobKey, mut reply: Reply) {
        self.settle(key, &reply);
        if let Some(pending) = self.jobs.get(&key) {
            if let Some(owner) = self.sessions.get_mut(&pending.session) {
                owner.fence.saw(pending.number, pending.is_barrier, &reply);
            }
            if pending.is_moved {
                unlease(&mut reply);
            }
            if let Some(connection) = pending.connection {
                self.outputs.push_back(Output::Reply { connection, tag: pending.tag, reply });
            }
        }
        self.replied(key);
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
    pub(super) fn finished(&mut self, now: Time, key: JobKey) {
        // Before the next of its session begins, so that nobody waits for a change that is done.
        self.end_leasing(now, key);
        self.replied(key);
        self.turn_passed(key);
        let session = self.jobs.get(&key).map(|pending| (pending.session, pending.holder));
        self.strike(key);
        if let Some((session, holder)) = session {
            self.progressed(now, holder);
            // The others may have waited for the last of what a session left behind.
            if self.sessions.get(&session).is_none_or(|owner| !owner.is_connected()) {
                self.settle_solitude(now);
            }
        }
    }

    /// Forgets a job.
    fn strike(&mut self, key: JobKey) {
        let Some(pending) = self.jobs.remove(&key) else {
            return;
        };
        let Some(owner) = self.sessions.get_mut(&pending.session) else {
            return;
        };
        owner.lane.pass(key);
        owner.jobs -= 1;
        match pending.order {
            Order::Free => owner.free_bytes -= pending.bytes,
            Order::Change | Order::Ordered => owner.backlog_bytes -= pending.bytes,
        }
        self.end_if_over(pending.session);
    }

    /// Tflush: answers once nothing more comes from the request that it names.
    pub(super) fn flush(&mut self, now: Time, connection: ConnectionKey, tag: Tag, old: Tag) {
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
        self.withdraw(now, key);
    }

    /// Nobody waits for these jobs any more: what changes nothing is given up.
    pub(super) fn abandon(&mut self, now: Time, keys: Vec<JobKey>) {
        for key in keys {
            if let Some(pending) = self.jobs.get_mut(&key) {
                pending.connection = None;
                pending.flushes.clear();
                self.withdraw(now, key);
            }
        }
    }

    /// Gives up on a job unless it is a change: those are carried out once they are received.
    pub(super) fn withdraw(&mut self, now: Time, key: JobKey) {
        let Some(pending) = self.jobs.get_mut(&key) else {
            return;
        };
        match pending.order {
            Order::Change => {}
            Order::Ordered | Order::Free => {
                pending.is_withdrawn = true;
                let is_away = matches!(pending.pause, Pause::Away(_));
                let owner = self.sessions.get_mut(&pending.session);
                if is_away || owner.is_some_and(|owner| owner.lane.remove(key)) {
                    self.finished(now, key);
                } else {
                    self.outputs.push_back(Output::Stop(key));
                }
            }
        }
    }

    /// Gives up on all jobs of a session that may be given up.
    pub(super) fn withdraw_all(&mut self, now: Time, session: SessionKey) {
        self.withdraw_where(now, |pending| pending.session == session);
    }

    /// Gives up on all jobs that wait for somebody else.
    pub(super) fn withdraw_waiting(&mut self, now: Time) {
        self.withdraw_where(now, |pending| pending.weight == Weight::Blocking);
    }

    fn withdraw_where(&mut self, now: Time, concerned: impl Fn(&Pending) -> bool) {
        let concerned = self.jobs.iter().filter(|(_, pending)| concerned(pending));
        let keys: Vec<JobKey> = concerned.map(|(key, _)| *key).collect();
        for key in keys {
            self.withdraw(now, key);
        }
    }
}
