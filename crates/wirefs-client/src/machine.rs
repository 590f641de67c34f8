//! The inputs of the machine: calls, messages from the server, and time.

mod connections;
mod disk_cache;
mod late;
mod recall;
mod replay;

pub use replay::{Again, Redone};

use crate::call::{Call, CallId, Caller};
use crate::core::Client;
use crate::operation::{self, stateless};
use crate::output::{DataKey, Output};
use crate::pending::Pending;
use crate::requests::{Outstanding, Requests};
use crate::view::View;
use bytes::Bytes;
use std::time::Duration;
use wirefs_cache::TreeNodeId;
use wirefs_metrics::Cause;
use wirefs_op::message::find::FindMode;
use wirefs_op::message::get::GotMode;
use wirefs_op::message::ping::Tping;
use wirefs_op::wire::Malformed;
use wirefs_op::{Errno, NOTAG, Reply, Request, Time};

impl View {
    fn measure(&mut self, requests: &mut Requests, outstanding: &Outstanding, reply: &Reply, last: bool) {
        let now = self.mount.now;
        if outstanding.first_reply && outstanding.is_prompt() {
            requests.incoming.rtt_sample(outstanding.arrival, now);
            requests.outgoing.rtt_sample(outstanding.departure, now);
        }
        let has_data = matches!(reply, Reply::Get(_) | Reply::Find(_));
        if last && has_data && outstanding.asked_bytes() >= 64 * 1024 {
            requests.incoming.reply_received(outstanding.arrival, now);
        }
        if let (Request::Put(put), Reply::Put(_)) = (&outstanding.request, reply) {
            requests.outgoing.data_received(put.data.0.len() as u64);
            requests.outgoing.reply_received(outstanding.departure, now);
        }
    }
}

impl Client {
    /// Returns the next action for the driver.
    pub fn poll(&mut self) -> Option<Output> {
        self.settle();
        self.outputs.pop()
    }

    /// Begins the mount. A ping makes the leases valid, so that the first call need not wait for that. If nothing is
    /// known of the tree, its top is prefetched.
    ///
    /// # Cost
    /// 1 round trip in the background, with leases. For the top at most 17 requests, one after the other, and 256
    /// KiB.
    pub fn greet(&mut self, now: Time) {
        self.view.mount.now = now;
        if !self.view.leases.are_agreed() || !self.requests.link.is_up() {
            return;
        }
        self.sender().send(Request::Ping(Tping {}), Pending::IGNORE);
        self.sender().ask_top();
    }

    /// Takes a call. Its answer is among the outputs, now or after later inputs.
    ///
    /// # Cost
    /// 0 round trips with valid cached data; else as the operation's file says.
    pub fn call(&mut self, now: Time, id: CallId, caller: Caller, call: Call<'_>) {
        self.view.mount.now = now;
        self.outputs.counters.calls += 1;
        self.requests.begin_input(self.view.mount.now, Cause::Queue, Some(id));
        if !matches!(call, Call::Forget { .. } | Call::Interrupt { .. }) {
            self.calls.begin(id, late::patience(now, &call));
        }
        if stateless::goes_on(&call) {
            self.view.files.stateless.goes_on(caller.pid);
        }
        // Also where nothing was listed yet: a listing may overtake the change.
        if self.view.mount.config.mode.takes_leases()
            && let Some(dirs) = stateless::changes_names_in(&call)
        {
            dirs.into_iter().flatten().for_each(|dir| self.view.files.stateless.is_alone(dir));
            self.calls.change_names(id, dirs);
        }
        operation::start(self, id, caller, call);
        self.settle();
        self.end_past_deadline(id);
        self.view.keep_within_bounds(&self.calls, &mut self.outputs);
    }

    /// Takes a message from the server.
    ///
    /// # Errors
    /// The server broke the protocol; the connection is useless now.
    pub fn receive(&mut self, now: Time, body: Bytes) -> Result<(), Malformed> {
        self.view.mount.now = now;
        self.requests.link.received(now);
        self.take_in(None, body)
    }

    /// Takes a message that came over a data connection.
    ///
    /// # Errors
    /// The server broke the protocol; that connection is useless now.
    pub fn receive_data(&mut self, now: Time, key: DataKey, body: Bytes) -> Result<(), Malformed> {
        self.view.mount.now = now;
        if self.requests.data_replied(now, key) { self.take_in(Some(key), body) } else { Ok(()) }
    }

    fn take_in(&mut self, over: Option<DataKey>, body: Bytes) -> Result<(), Malformed> {
        self.outputs.counters.bytes_in += body.len() as u64 + 4;
        self.outputs.counters.frames_in += 1;
        let (tag, reply) = Reply::decode(body)?;
        if let (NOTAG, Reply::Error(error), None) = (tag, &reply, over) {
            return Err(self.blamed(error));
        }
        if let Reply::Recall(recall) = reply {
            if tag != NOTAG || !self.view.leases.are_agreed() || over.is_some() {
                return Err(Malformed { what: "a recall of what was never leased", at: 1 });
            }
            self.recalled(recall);
            return Ok(());
        }
        if let Reply::Alone(alone) = reply {
            // Also without a journal: the server waits for the answer of a session that is no longer exclusive.
            if tag != NOTAG || !self.view.leases.are_agreed() || over.is_some() {
                return Err(Malformed { what: "of being alone where that was not agreed on", at: 1 });
            }
            self.exclusivity_changed(alone);
            return Ok(());
        }
        if let Reply::Limited(_) = reply {
            if tag != NOTAG || self.view.mount.attachment.data_connections == 0 || over.is_some() {
                return Err(Malformed { what: "of a limit where that was not agreed on", at: 1 });
            }
            self.requests.data_limited(self.view.mount.now, &mut self.outputs);
            return Ok(());
        }
        if let Reply::Times(times) = &reply {
            return self.requests.timed(tag, over, times);
        }
        let last = match &reply {
            Reply::Get(got) => got.mode.has(GotMode::LAST),
            Reply::Find(found) => found.mode.has(FindMode::LAST),
            _ => true,
        };
        let bytes = match &reply {
            Reply::Get(got) => got.data.0.len(),
            Reply::Find(found) => found.data.0.len(),
            _ => 0,
        };
        self.requests.incoming.data_received(bytes as u64);
        let outstanding = self.requests.reply(self.view.mount.now, tag, over, last, bytes)?;
        if outstanding.request.is_change() {
            self.calls.changes_go_on(self.view.mount.now);
        }
        if outstanding.is_bulk() {
            self.requests.bulk_arrived(self.view.mount.now, over, bytes);
        }
        self.view.measure(&mut self.requests, &outstanding, &reply, last);
        if over.is_none() {
            self.view.answered(&mut self.outputs, outstanding.sent);
            self.view.exclusivity_not_granted(&mut self.requests, &mut self.outputs);
        }
        let before = self.outputs.len();
        if over.is_some() && outstanding.first_reply && !self.view.is_no_news(&outstanding.request, &reply) {
            self.ask_first(outstanding);
        } else {
            self.reply_arrived(outstanding, reply, last);
        }
        self.settle();
        self.outputs.put_answers_first(before);
        self.view.go_on_behind(&mut self.requests, &mut self.outputs);
        self.view.keep_read(&self.requests, &mut self.outputs);
        self.view.send_waiting(&mut self.requests, &mut self.outputs);
        self.view.keep_within_bounds(&self.calls, &mut self.outputs);
        Ok(())
    }

    /// Notes that the readers of this directory at the time of [`Output::AwaitReaders`] have their answers.
    pub fn readers_passed(&mut self, now: Time, dir: TreeNodeId, until: u64) {
        self.view.mount.now = now;
        self.view.files.stateless.passed(dir, until);
    }

    /// Lets time pass: deadlines, signs of life, what is too old to be kept.
    pub fn tick(&mut self, now: Time) {
        self.view.mount.now = now;
        self.watch_leases();
        self.watch_room();
        self.watch_durable();
        self.watch_locks();
        let (coherency, names) = (self.view.coherency(), &self.view.names);
        self.view.directories.expire(&coherency, |dir| names.node(dir).is_some());
        self.view.drop_unused();
        self.view.names.expire(now);
        self.view.bound_readings();
        self.view.keep_within_bounds(&self.calls, &mut self.outputs);
        let slept = self.watch_link();
        self.watch_data(slept);
        let (queries, calls) = late::take_late(&self.view.mount, &mut self.requests, &mut self.calls, slept);
        for pending in queries {
            self.request_lost(pending, Errno::TimedOut);
        }
        for call in calls {
            operation::write::end_throttled(&mut self.answerer(), call);
            self.abandon(now, call, Errno::TimedOut);
        }
        self.settle();
    }

    /// When [`Client::tick`] is due.
    pub fn deadline(&self) -> Option<Time> {
        Some(self.view.mount.now + Duration::from_millis(500))
    }

    /// Fails a call whose result may still come. Tells whether it was waiting.
    pub fn abandon(&mut self, now: Time, id: CallId, errno: Errno) -> bool {
        self.view.mount.now = now;
        let waits = self.calls.is_waiting(id);
        if waits {
            let changing = self.calls.changing(id);
            self.answerer().fail(id, errno);
            self.calls.abandon(id);
            if let Some(dirs) = changing {
                self.calls.change_names(id, dirs);
            }
        }
        waits
    }
}
