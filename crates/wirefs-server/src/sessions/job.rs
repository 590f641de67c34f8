//! Requests from admission to their end.

mod pending;

use super::connection::{ConnectionState, Outstanding};
use super::{ConnectionKey, ServerOutput, Sessions, fence};
use crate::blame::PeerFault;
use crate::creations::UnknownCreation;
use crate::ledger::{StrayNumber, Verdict};
use crate::repeat;
use crate::saved_ledger::{StartedChange, unlease};
use crate::tree::SessionKey;
use bytes::Bytes;
use pending::ChangeInfo;
pub(super) use pending::{ParkState, Pending, ReplyRoute};
pub use wirefs_lease::JobKey;
use wirefs_op::message::error::Rerror;
use wirefs_op::message::flush::Rflush;
use wirefs_op::message::get::GetMode;
use wirefs_op::message::put::PutMode;
use wirefs_op::message::target::NOFD;
use wirefs_op::{Errno, Reply, Request, Tag, Time};
use wirefs_op::{Order, Weight};

/// A request to execute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// Its identifier.
    pub key: JobKey,
    /// Its session.
    pub session: SessionKey,
    /// The connection for its replies; `None` if that connection is gone.
    pub connection: Option<ConnectionKey>,
    /// The tag of its replies.
    pub tag: Tag,
    /// The request.
    pub request: Request,
    /// Its order relative to the session's other requests.
    pub order: Order,
    /// Its expected duration.
    pub weight: Weight,
    /// Whether the tree may return it unchanged ([`ServerInput::Parked`](super::ServerInput::Parked)).
    pub may_park: bool,
    /// Whether it was parked and starts again.
    pub is_retry: bool,
    /// Whether its reply is kept if the connection is gone, because the client will ask for it again.
    pub is_numbered: bool,
    /// The start record of a former process, which may have completed it. Such a job runs through
    /// [`repeat::serve`].
    pub undecided: Option<StartedChange>,
    /// The times before its execution.
    pub times: JobTimes,
}

/// The times of a request before its execution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobTimes {
    /// When it was received.
    pub received: Time,
    /// When it was parked for the first time.
    pub parked: Option<Time>,
    /// Whether the client wants to know the times ([`Rtimes`](wirefs_op::message::times::Rtimes)).
    pub are_requested: bool,
}

/// Whether a request creates an object.
fn is_creation(request: &Request) -> bool {
    matches!(request, Request::Put(put) if put.mode.has(PutMode::CREATE))
}

/// Whether a request is refused to a peer that may change nothing. Locks change no object.
fn is_change_of_tree(request: &Request) -> bool {
    request.is_change() && !matches!(request, Request::Lock(_))
}

/// Whether a request may change objects that other clients have leases on.
fn may_change(request: &Request) -> bool {
    match request {
        // A close may remove a name.
        Request::Get(get) => get.target.fd != NOFD && !get.mode.has(GetMode::MORE),
        Request::Lock(_) => false,
        other => other.order() == Order::Change,
    }
}

impl Sessions {
    /// Admits a request of an attached connection: executes it or queues it for the write slot.
    pub(super) fn admit(
        &mut self,
        now: Time,
        (connection, session): (ConnectionKey, SessionKey),
        tag: Tag,
        request: Request,
        bytes: usize,
    ) -> Result<(), PeerFault> {
        let (order, key) = (request.order(), JobKey(self.jobs_begun));
        let Some(owner) = self.sessions.get_mut(&session) else { return Ok(()) };
        let Some(state) = self.connections.get_mut(&connection) else { return Ok(()) };
        let number = if order == Order::Change { state.next_number() } else { None };
        let is_creation = state.may_use_provisional_ids() && is_creation(&request);
        let fingerprint = number.map_or(0, |_| repeat::fingerprint(&request));
        let undecided = match number.map(|number| (number, owner.ledger.take(number, key, fingerprint))) {
            None | Some((_, Ok(Verdict::New))) => None,
            Some((_, Ok(Verdict::Undecided(started)))) => Some(started),
            Some((number, Ok(Verdict::InProgress(key)))) => {
                return self.redirect_reply(connection, tag, key, number);
            }
            Some((number, Ok(Verdict::Done(mut reply)))) => {
                unlease(&mut reply);
                if is_creation {
                    owner.note_creation(number, &reply);
                }
                owner.fence.reply_sent(Some(number), fence::is_barrier(&request), &reply);
                self.outputs.push_back(ServerOutput::Reply { connection, tag, reply: *reply });
                return Ok(());
            }
            Some((number, Err(StrayNumber))) => return Err(PeerFault::StrayNumber(number)),
        };
        if !owner.begin_job(order, bytes) {
            return self.reply(connection, tag, Reply::Error(Rerror::from(Errno::NoMemory)));
        }
        self.jobs_begun += 1;
        state.tags.insert(tag, Outstanding::Job(key));
        let pending = Pending {
            session,
            holder: owner.holder,
            route: ReplyRoute { connection: Some(connection), tag, is_moved: false, flushes: Vec::new() },
            change: ChangeInfo {
                number,
                fingerprint,
                undecided,
                is_creation,
                is_lock: matches!(request, Request::Lock(_)),
                is_barrier: fence::is_barrier(&request),
                is_refused: state.peer.is_read_only && is_change_of_tree(&request),
            },
            park_state: ParkState::Running,
            attempts: 0,
            deferred_touches: Vec::new(),
            is_withdrawn: false,
            order,
            weight: request.traits().weight,
            bytes,
            times: JobTimes { received: now, parked: None, are_requested: state.times },
        };
        self.jobs.insert(key, pending);
        match order {
            Order::Free => self.begin(key, request),
            Order::Change | Order::Ordered => {
                owner.write_slot.push(key, request);
                self.advance(session);
            }
        }
        Ok(())
    }

    /// Copies a request that must wait for the write slot out of the receive buffer. Large messages share the buffer, and
    /// one that waits would keep all of it in memory, although only its own bytes are counted.
    pub(super) fn unpinned(
        &self,
        session: SessionKey,
        request: Request,
        body: &Bytes,
    ) -> Result<Request, PeerFault> {
        let waits = request.traits().order != Order::Free
            && self.sessions.get(&session).is_some_and(|owner| owner.write_slot.holder().is_some());
        if !waits {
            return Ok(request);
        }
        Ok(Request::decode(Bytes::copy_from_slice(body))?.1)
    }

    /// Sends the reply of a running change to the connection that repeated it.
    fn redirect_reply(
        &mut self,
        connection: ConnectionKey,
        tag: Tag,
        key: JobKey,
        number: u64,
    ) -> Result<(), PeerFault> {
        let (Some(pending), Some(state)) = (self.jobs.get_mut(&key), self.connections.get_mut(&connection))
        else {
            return Err(PeerFault::StrayNumber(number));
        };
        if pending.route.connection.is_some() {
            return Err(PeerFault::StrayNumber(number));
        }
        (pending.route.connection, pending.route.tag, pending.route.is_moved) = (Some(connection), tag, true);
        state.tags.insert(tag, Outstanding::Job(key));
        Ok(())
    }

    /// Hands out a job.
    pub(super) fn execute(&mut self, key: JobKey, request: Request) {
        self.begin_leasing(key);
        let Some(pending) = self.jobs.get_mut(&key) else {
            return;
        };
        pending.attempts += 1;
        self.outputs.push_back(ServerOutput::Execute(Job {
            key,
            session: pending.session,
            connection: pending.route.connection,
            tag: pending.route.tag,
            order: pending.order,
            weight: pending.weight,
            may_park: self.leasing.is_some() && may_change(&request),
            is_retry: pending.attempts > 1,
            is_numbered: pending.change.number.is_some(),
            undecided: pending.change.undecided,
            times: pending.times,
            request,
        }));
    }

    /// Hands out a job for the first time. A request that names an unknown creation, or that the fence refuses,
    /// fails.
    fn begin(&mut self, key: JobKey, mut request: Request) {
        let pending = self.jobs.get(&key);
        let owner = pending.and_then(|pending| self.sessions.get(&pending.session));
        let number = pending.and_then(|pending| pending.change.number);
        let record_prior_state = owner.map_or(Ok(()), |owner| match owner.fence.allows(number, &request) {
            true if pending.is_some_and(|pending| pending.change.is_refused) => Err(Errno::ReadOnly),
            true => owner.creations.resolve(&mut request).map_err(|UnknownCreation| Errno::Stale),
            false => Err(Errno::Io),
        });
        match record_prior_state {
            Ok(()) => self.execute(key, request),
            Err(errno) => {
                self.answered(key, Reply::Error(Rerror::from(errno)));
                self.remove_job(key);
            }
        }
    }

    /// Starts the next ordered job if the write slot is free. All changes sent before it are complete then, so
    /// creations that it names are known.
    fn advance(&mut self, session: SessionKey) {
        while let Some((key, request)) =
            self.sessions.get_mut(&session).and_then(|owner| owner.write_slot.grant_next())
        {
            self.begin(key, request);
        }
    }

    /// Releases the write slot and starts the next job.
    pub(super) fn release_slot(&mut self, key: JobKey) {
        let Some(session) = self.jobs.get(&key).map(|pending| pending.session) else {
            return;
        };
        if self.sessions.get_mut(&session).is_some_and(|owner| owner.write_slot.release(key)) {
            self.advance(session);
        }
    }

    /// Releases the write slot of a job that continues ([`SlotReleased`](super::ServerInput::SlotReleased)). A
    /// creation keeps the slot until its reply, which later requests may need. A barrier keeps it until its end.
    pub(super) fn release_slot_early(&mut self, key: JobKey) {
        if self
            .jobs
            .get(&key)
            .is_some_and(|pending| !pending.change.is_creation && !pending.change.is_barrier)
        {
            self.record_overtaken(key);
            self.release_slot(key);
        }
    }

    /// Frees the tag before the last reply is queued. A Tflush still waits for the reply
    /// ([`Answering`](super::ServerInput::Answering)).
    pub(super) fn answering(&mut self, key: JobKey) {
        if let Some((state, pending)) = self.requester(key)
            && state.forget(pending.route.tag, key)
        {
            state.answering.insert(pending.route.tag, key);
        }
    }

    /// Handles the reply to a change ([`Answered`](super::ServerInput::Answered)).
    pub(super) fn answered(&mut self, key: JobKey, mut reply: Reply) {
        self.record_reply(key, &reply);
        if let Some(pending) = self.jobs.get(&key) {
            if let Some(owner) = self.sessions.get_mut(&pending.session) {
                owner.fence.reply_sent(pending.change.number, pending.change.is_barrier, &reply);
            }
            if pending.route.is_moved {
                unlease(&mut reply);
            }
            if let Some(connection) = pending.route.connection {
                self.outputs.push_back(ServerOutput::Reply { connection, tag: pending.route.tag, reply });
            }
        }
        self.replied(key);
    }

    /// Frees the tag after the last reply, and answers each Tflush that waits for it
    /// ([`Replied`](super::ServerInput::Replied)).
    pub(super) fn replied(&mut self, key: JobKey) {
        let Some((state, pending)) = self.requester(key) else {
            return;
        };
        state.forget(pending.route.tag, key);
        if state.answering.get(&pending.route.tag) == Some(&key) {
            state.answering.remove(&pending.route.tag);
        }
        let connection = pending.route.connection.take();
        let flushes = std::mem::take(&mut pending.route.flushes);
        for tag in &flushes {
            state.tags.remove(tag);
        }
        let Some(connection) = connection else { return };
        for tag in flushes {
            let reply = Reply::Flush(Rflush {});
            self.outputs.push_back(ServerOutput::Reply { connection, tag, reply });
        }
    }

    /// A job without its last reply, and the connection for it.
    fn requester(&mut self, key: JobKey) -> Option<(&mut ConnectionState, &mut Pending)> {
        let pending = self.jobs.get_mut(&key)?;
        let state = self.connections.get_mut(&pending.route.connection?)?;
        Some((state, pending))
    }

    /// Handles the end of a job ([`Finished`](super::ServerInput::Finished)).
    pub(super) fn finished(&mut self, now: Time, key: JobKey) {
        // Before the session's next job starts, so that it does not wait for this change.
        self.end_leasing(now, key);
        self.replied(key);
        self.release_slot(key);
        let session = self.jobs.get(&key).map(|pending| (pending.session, pending.holder));
        self.remove_job(key);
        if let Some((session, holder)) = session {
            self.progressed(now, holder);
            // This may have been the last job of a session that is gone.
            if self.sessions.get(&session).is_none_or(|owner| !owner.is_connected()) {
                self.grant_exclusive(now);
            }
        }
    }

    /// Removes a job.
    fn remove_job(&mut self, key: JobKey) {
        let Some(pending) = self.jobs.remove(&key) else {
            return;
        };
        let Some(owner) = self.sessions.get_mut(&pending.session) else {
            return;
        };
        owner.write_slot.release(key);
        owner.load.jobs -= 1;
        match pending.order {
            Order::Free => owner.load.unordered_bytes -= pending.bytes,
            Order::Change | Order::Ordered => owner.load.backlog_bytes -= pending.bytes,
        }
        self.end_if_over(pending.session);
    }

    /// Handles Tflush: answers when no further reply to the old tag can come.
    pub(super) fn flush(&mut self, now: Time, connection: ConnectionKey, tag: Tag, old: Tag) {
        let Some(state) = self.connections.get_mut(&connection) else {
            return;
        };
        let waits_for = match state.tags.get(&old) {
            Some(Outstanding::Job(key) | Outstanding::Flush(key)) => Some(*key),
            None => state.answering.get(&old).copied(),
        };
        let Some((key, pending)) = waits_for.and_then(|key| Some((key, self.jobs.get_mut(&key)?))) else {
            let reply = Reply::Flush(Rflush {});
            self.outputs.push_back(ServerOutput::Reply { connection, tag, reply });
            return;
        };
        pending.route.flushes.push(tag);
        state.tags.insert(tag, Outstanding::Flush(key));
        self.withdraw(now, key);
    }

    /// Drops the replies to these jobs, and cancels those that change nothing.
    pub(super) fn abandon(&mut self, now: Time, keys: Vec<JobKey>) {
        for key in keys {
            if let Some(pending) = self.jobs.get_mut(&key) {
                pending.route.connection = None;
                pending.route.flushes.clear();
                self.withdraw(now, key);
            }
        }
    }

    /// Cancels a job unless it is a change: a received change is always executed.
    pub(super) fn withdraw(&mut self, now: Time, key: JobKey) {
        let Some(pending) = self.jobs.get_mut(&key) else {
            return;
        };
        match pending.order {
            Order::Change => {}
            Order::Ordered | Order::Free => {
                pending.is_withdrawn = true;
                let is_away = matches!(pending.park_state, ParkState::Parked(_));
                let owner = self.sessions.get_mut(&pending.session);
                if is_away || owner.is_some_and(|owner| owner.write_slot.remove(key)) {
                    self.finished(now, key);
                } else {
                    self.outputs.push_back(ServerOutput::Stop(key));
                }
            }
        }
    }

    /// Cancels all jobs of a session, except changes.
    pub(super) fn withdraw_all(&mut self, now: Time, session: SessionKey) {
        self.withdraw_where(now, |pending| pending.session == session);
    }

    /// Cancels all jobs that may block for long, except changes.
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
