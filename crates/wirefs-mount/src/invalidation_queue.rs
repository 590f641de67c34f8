//! The invalidation queue, as the threads of a mount share it.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use wirefs_client::call::{Answer, CallId, Invalidate};
use wirefs_client::invalidation_queue::{self as machine, FRAME_MAX, ITEM_MAX, QueueStep, WatchStep};
use wirefs_op::{Frame, Time};

use super::server_sink::ServerSink;
use super::waiter::Waiter;

/// An item of the queue. A frame has the sink of the connection on which its invalidations were requested.
pub(super) type QueuedItem = machine::QueuedItem<(CallId, Waiter, Answer), (ServerSink, Frame)>;

/// Overdue frames.
pub(super) type Overdue = machine::Overdue<(ServerSink, Frame)>;

#[derive(Default)]
struct State {
    queue: machine::InvalidationQueue<(CallId, Waiter, Answer), (ServerSink, Frame)>,
    is_stopped: bool,
}

/// The queue behind its lock.
pub(super) struct InvalidationQueue {
    started: Instant,
    state: Mutex<State>,
    /// Signaled when there is an item to execute.
    item_added: Condvar,
    /// Signaled when there is a frame to watch.
    frame_added: Condvar,
}

impl Default for InvalidationQueue {
    fn default() -> InvalidationQueue {
        InvalidationQueue {
            started: Instant::now(),
            state: Mutex::default(),
            item_added: Condvar::new(),
            frame_added: Condvar::new(),
        }
    }
}

impl InvalidationQueue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Time {
        self.time_of(Instant::now())
    }

    fn time_of(&self, at: Instant) -> Time {
        Time::default() + at.saturating_duration_since(self.started)
    }

    /// Returns the instant of a time of the queue.
    pub(super) fn instant_of(&self, time: Time) -> Instant {
        self.started + time.since(Time::default())
    }

    pub(super) fn push(&self, item: QueuedItem) {
        let is_frame = matches!(item, QueuedItem::Frame(_));
        let mut state = self.lock();
        state.queue.push(self.now(), item);
        self.item_added.notify_one();
        if is_frame {
            self.frame_added.notify_one();
        }
    }

    /// Repeats the invalidation of a name at a time, before the answers and frames that wait.
    pub(super) fn repeat_at(&self, what: Invalidate, at: Instant) {
        self.lock().queue.repeat_at(what, self.time_of(at));
    }

    /// Announces a push; the queue is not idle until [`end_push`](Self::end_push).
    pub(super) fn begin_push(&self) {
        self.lock().queue.begin_push();
    }

    /// Ends an announced push.
    pub(super) fn end_push(&self) {
        self.lock().queue.end_push();
    }

    /// Returns whether no invalidation is pending.
    pub(super) fn is_idle(&self) -> bool {
        self.lock().queue.is_idle()
    }

    /// Ends the previous item, and waits for the next one; `None` when stopped. `drop_names` invalidates all names at
    /// once, and returns whether it did.
    pub(super) fn next(&self, drop_names: impl Fn() -> bool) -> Option<QueuedItem> {
        let mut state = self.lock();
        state.queue.finish();
        while !state.is_stopped {
            state = match state.queue.next(self.now()) {
                QueueStep::Execute(item) => return Some(item),
                QueueStep::DropNames => {
                    state.queue.names_dropped(drop_names());
                    state
                }
                QueueStep::Wait(None) => self.item_added.wait(state).unwrap_or_else(PoisonError::into_inner),
                QueueStep::Wait(Some(until)) => {
                    let wait = until.since(self.now());
                    self.item_added.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        None
    }

    /// Waits until frames are overdue, and takes them out; `None` when stopped.
    pub(super) fn next_overdue(&self) -> Option<Overdue> {
        let mut state = self.lock();
        while !state.is_stopped {
            state = match state.queue.overdue(self.now(), ITEM_MAX, FRAME_MAX) {
                WatchStep::Send(overdue) => return Some(overdue),
                WatchStep::Idle => self.frame_added.wait(state).unwrap_or_else(PoisonError::into_inner),
                WatchStep::Wait(wait) => {
                    self.frame_added.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        None
    }

    /// Stops the queue, and sends its answers: their calls are done, and the kernel's caches end with the mount.
    pub(super) fn stop(&self) {
        let mut state = self.lock();
        state.is_stopped = true;
        let answers = state.queue.stop();
        self.item_added.notify_all();
        self.frame_added.notify_all();
        drop(state);
        answers.into_iter().for_each(|(_, waiter, answer)| waiter.answer(answer));
    }
}

#[cfg(test)]
mod tests;
