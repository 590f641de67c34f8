//! The replies of one job.

use super::connection::Connection;
use super::core::{Effects, StopFlag, Task};
use super::execute::is_last;
use super::shared::Shared;
use super::spent::Spent;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};
use wirefs_carrier::Class;
use wirefs_op::message::error::Rerror;
use wirefs_op::{Errno, FileId, Frame, Reply, Stat, Tag};
use wirefs_op::{Order, Weight};
use wirefs_server::{JobKey, JobTimes, Parked, PriorState, Replies, ServerInput, Stopped, Touched};

/// The maximum size of urgent data, in bytes.
const URGENT_BYTES_MAX: usize = 4096;
/// The interval at which a waiting lock is tried again: programs on this machine may release a lock, and no event
/// reports that.
const WAIT_MAX: Duration = Duration::from_millis(100);

/// Whether a thread may block until its peer reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaitPolicy {
    /// A worker, of which each session has a share.
    ForPeer,
    /// A reader. Its request has a single reply, for which there is room.
    Never,
}

/// The terms of a job's replies.
struct JobTerms {
    key: JobKey,
    tag: Tag,
    order: Order,
    is_numbered: bool,
    weight: Weight,
    times: JobTimes,
}

/// The replies to one job.
pub(super) struct JobReplies<'a> {
    shared: &'a Arc<Shared>,
    job: JobTerms,
    stop_flag: Arc<StopFlag>,
    connection: Option<Arc<Connection>>,
    wait_policy: WaitPolicy,
    /// A reply was sent that was not the last.
    streams: bool,
    /// The last reply was given, or is not wanted.
    ended: bool,
    /// The job waits until other clients have invalidated.
    parked: bool,
    /// The time at which the first reply was ready.
    answered: Option<Instant>,
    /// The count of lock releases when the last attempt began.
    seen: Option<u64>,
    spent: Spent,
}

impl<'a> JobReplies<'a> {
    pub(super) fn new(shared: &'a Arc<Shared>, task: &Task, wait_policy: WaitPolicy) -> JobReplies<'a> {
        let waits = task.job.weight == Weight::Blocking;
        JobReplies {
            shared,
            job: JobTerms {
                key: task.job.key,
                tag: task.job.tag,
                order: task.job.order,
                is_numbered: task.job.is_numbered,
                weight: task.job.weight,
                times: task.job.times,
            },
            stop_flag: Arc::clone(&task.stop_flag),
            connection: task.connection.clone(),
            wait_policy,
            streams: false,
            ended: false,
            parked: false,
            answered: None,
            seen: waits.then(|| shared.lock_releases.subscribe()),
            spent: Spent::begin(&task.job.times),
        }
    }

    /// Returns whether the client still waits for a last reply.
    pub(super) fn is_owed(&self) -> bool {
        !self.ended && !self.is_stopped()
    }

    /// Returns whether the tree returned the job unexecuted.
    pub(super) fn is_parked(&self) -> bool {
        self.parked && self.answered.is_none()
    }

    /// The time at which the first reply was ready, before it was sent.
    pub(super) fn answered(&self) -> Option<Instant> {
        self.answered
    }

    /// Replies with an error, if the reply is still wanted.
    pub(super) fn fail(&mut self, errno: Errno) {
        match self.send(Reply::Error(Rerror::from(errno))) {
            Ok(()) | Err(Stopped) => {}
        }
    }

    /// Returns the report of the times for the client, if it wants one and they are worth one. `is_parked`: the job
    /// begins to wait for other clients.
    fn times(&self, is_parked: bool) -> Option<Frame> {
        let times = self
            .job
            .times
            .are_requested
            .then(|| self.spent.times(&self.job.times, self.shared.now(), is_parked))??;
        Some(Reply::Times(times).encode(self.job.tag))
    }

    /// Tells the client that the job begins to wait for other clients.
    pub(super) fn report_parked(&self) {
        if let (Some(connection), Some(times)) = (&self.connection, self.times(true)) {
            connection.send_queue.push(times, Class::Urgent);
            connection.send_queue.flush();
        }
    }

    /// Sends the last reply and informs the sessions, in an order in which neither a request that uses the tag again
    /// nor a flush of it can come between.
    fn send_last(&self, connection: &Connection, reply: &Reply, class: Class) {
        let frame = reply.encode(self.job.tag);
        let times = self.times(false);
        let mut effects = Effects::default();
        if class == Class::Bulk && self.wait_policy == WaitPolicy::ForPeer {
            self.shared.handle(ServerInput::Answering(self.job.key));
            times.into_iter().for_each(|times| connection.send_queue.push(times, class));
            connection.send_queue.push_wait(frame, class);
            let now = self.shared.now();
            self.shared.core().handle(now, ServerInput::Replied(self.job.key), &mut effects);
        } else {
            let mut core = self.shared.core();
            times.into_iter().for_each(|times| connection.send_queue.push(times, class));
            connection.send_queue.push(frame, class);
            core.handle(self.shared.now(), ServerInput::Replied(self.job.key), &mut effects);
        }
        connection.send_queue.flush();
        self.shared.perform(effects);
    }
}

impl JobReplies<'_> {
    /// Passes the reply to a change to the sessions, which know the client's present connection.
    fn send_change(&mut self, reply: Reply) -> Result<(), Stopped> {
        if self.ended {
            return Err(Stopped);
        }
        self.ended = true;
        let is_gone = self.connection.as_ref().is_none_or(|connection| connection.is_gone());
        let mut effects = Effects::default();
        let times = self.times(false);
        let mut core = self.shared.core();
        if let (Some(connection), Some(times)) = (&self.connection, times) {
            connection.send_queue.push(times, Class::Urgent);
        }
        core.handle(self.shared.now(), ServerInput::Answered(self.job.key, reply), &mut effects);
        drop(core);
        self.shared.perform(effects);
        if is_gone && !self.job.is_numbered { Err(Stopped) } else { Ok(()) }
    }
}

impl Replies for JobReplies<'_> {
    fn send(&mut self, reply: Reply) -> Result<(), Stopped> {
        self.answered.get_or_insert_with(Instant::now);
        let last = is_last(&reply);
        if self.job.order == Order::Change && last {
            return self.send_change(reply);
        }
        let connection = match &self.connection {
            Some(connection) if !self.ended && !connection.is_gone() => connection,
            Some(_) | None => {
                self.ended |= last;
                return Err(Stopped);
            }
        };
        // A last reply may open a file, so it is sent even if the client has flushed the request; but then a lock must
        // be released again.
        if self.stop_flag.is_stopped() && (!last || self.job.weight == Weight::Blocking) {
            self.ended |= last;
            return Err(Stopped);
        }
        let class = class_of(&reply, self.streams || !last);
        if class == Class::Bulk && connection.limited.is_limited(self.shared.now()) {
            self.shared.handle(ServerInput::Limited(connection.key));
        }
        if last {
            self.send_last(connection, &reply, class);
            self.ended = true;
            return Ok(());
        }
        self.streams = true;
        let stall = self.spent.stall();
        let is_open = connection.send_queue.push_wait(reply.encode(self.job.tag), class);
        self.spent.resume(stall);
        if !is_open {
            return Err(Stopped);
        }
        connection.send_queue.flush();
        Ok(())
    }

    fn is_stopped(&self) -> bool {
        let gone = self.connection.as_ref().is_none_or(|connection| connection.is_gone());
        match self.job.order {
            Order::Change => false,
            Order::Ordered | Order::Free => gone || self.stop_flag.is_stopped(),
        }
    }

    fn release_slot(&mut self) {
        self.shared.handle(ServerInput::SlotReleased(self.job.key));
    }

    fn touch(&mut self, touched: &[Touched]) -> Result<(), Parked> {
        if !self.shared.leases() {
            return Ok(());
        }
        let mut effects = Effects::default();
        let outcome = self.shared.core().touch(self.shared.now(), self.job.key, touched, &mut effects);
        self.shared.perform(effects);
        self.parked = outcome.is_err();
        outcome
    }

    fn record_prior_state(&mut self, find: &mut dyn FnMut() -> Option<PriorState>) {
        if !self.job.is_numbered || self.shared.options.ledger.is_none() {
            return;
        }
        if let Some(found) = find() {
            let mut effects = Effects::default();
            self.shared.core().begins(self.job.key, &found, &mut effects);
            self.shared.perform(effects);
        }
    }

    fn grant(&mut self, stats: &mut dyn Iterator<Item = &mut Stat>) {
        if self.shared.leases() {
            let mut effects = Effects::default();
            self.shared.core().grant(self.shared.now(), self.job.key, stats, &mut effects);
            self.shared.perform(effects);
        }
    }

    fn grant_names(&mut self, dir: FileId) -> bool {
        if !self.shared.leases() {
            return false;
        }
        let mut effects = Effects::default();
        let is_granted = self.shared.core().grant_names(self.shared.now(), self.job.key, dir, &mut effects);
        self.shared.perform(effects);
        is_granted
    }

    fn changed(&mut self, touched: &Touched, before: Option<u64>, after: Option<u64>) {
        if self.shared.leases() {
            self.shared.core().sessions.changed(self.shared.now(), touched, before, after);
        }
    }

    fn wait(&mut self) {
        let seen = self.seen.unwrap_or_default();
        let stop_flag = &self.stop_flag;
        let known = self.shared.lock_releases.wait(seen, || stop_flag.is_stopped());
        if self.seen.is_some() {
            self.seen = Some(known);
        }
    }
}

impl Drop for JobReplies<'_> {
    fn drop(&mut self) {
        if self.seen.is_some() {
            self.shared.lock_releases.unsubscribe();
        }
    }
}

/// The class of a reply. Streams are bulk throughout, so that their messages keep their order.
fn class_of(reply: &Reply, streams: bool) -> Class {
    let data_bytes = match reply {
        Reply::Get(get) => get.data.0.len(),
        Reply::Xattr(xattr) => xattr.value.0.len(),
        Reply::Find(find) => find.data.0.len(),
        Reply::Version(_)
        | Reply::Attach(_)
        | Reply::Error(_)
        | Reply::Flush(_)
        | Reply::Ping(_)
        | Reply::Remove(_)
        | Reply::Put(_)
        | Reply::Rename(_)
        | Reply::Link(_)
        | Reply::Statfs(_)
        | Reply::Lock(_)
        | Reply::Allocate(_)
        | Reply::Copy(_)
        | Reply::Seek(_)
        | Reply::Commit(_)
        | Reply::Recall(_)
        | Reply::Alone(_)
        | Reply::Limited(_)
        | Reply::Times(_) => 0,
    };
    if streams || data_bytes > URGENT_BYTES_MAX { Class::Bulk } else { Class::Urgent }
}

/// Wakes waiting locks after a release. It is a count, so that a release between an attempt and the following sleep is
/// not missed.
#[derive(Debug, Default)]
pub(super) struct LockReleases {
    waiters: AtomicUsize,
    count: Mutex<u64>,
    announced: Condvar,
}

impl LockReleases {
    /// Registers a waiter, and returns the present count.
    fn subscribe(&self) -> u64 {
        let count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        self.waiters.fetch_add(1, Ordering::SeqCst);
        *count
    }

    fn unsubscribe(&self) {
        self.waiters.fetch_sub(1, Ordering::SeqCst);
    }

    /// Announces a release, or a stopped job.
    pub(super) fn announce(&self) {
        if self.waiters.load(Ordering::SeqCst) > 0 {
            *self.count.lock().unwrap_or_else(PoisonError::into_inner) += 1;
            self.announced.notify_all();
        }
    }

    /// Sleeps until the count differs from `seen`, and returns it.
    fn wait(&self, seen: u64, stopped: impl Fn() -> bool) -> u64 {
        let count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        let sleeps = |count: &mut u64| *count == seen && !stopped();
        let waited = self.announced.wait_timeout_while(count, WAIT_MAX, sleeps);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}
