//! A queue of frames with many producers and one sink.
//!
//! The first thread that flushes writes for all threads, without blocking. When the kernel's buffer is full, the parked
//! writer thread takes over and waits.
//!
//! | writer state | `flush` | next state |
//! |---|---|---|
//! | `Idle` | takes the writer and drains the queue | `Idle`, `Blocked` or `Closed`, by the flushing thread; `Writing`, by the writer thread, which frees memory |
//! | `Writing` | returns: the writing thread checks the queue again before `Idle` | by the writing thread |
//! | `Blocked` | returns | `Writing`, by the writer thread |
//! | `Closed` | returns | none: closed or lost |
//!
//! INVARIANT: the writer becomes `Idle` only under the lock that `push` takes, and only if the queue is empty then. So
//! every pushed frame has a thread that will write it.

mod thread;
mod writer;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use wirefs_op::Frame;

use crate::carrier::FrameSink;
use crate::closer::Closer;
use crate::limits::{BULK_BATCH_BYTES, INLINE_BYTES_MAX, SEND_QUEUE_BYTES_MAX};
use crate::lost::CarrierLost;
use writer::Writer;

/// The priority of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Small requests and replies: sent before all bulk frames that the kernel does not have yet.
    Urgent,
    /// Data transfers.
    Bulk,
}

/// A queue with many producers and one sink. Order is kept within a class. Clones share the queue; dropping the last
/// one closes it.
#[derive(Clone)]
pub struct SendQueue {
    handle: Arc<ClosingHandle>,
}

/// The part that clones share and the writer thread does not, so that the thread ends with the last clone.
struct ClosingHandle {
    shared: Arc<Shared>,
    closer: Closer,
}

impl Drop for ClosingHandle {
    fn drop(&mut self) {
        self.shared.close();
        self.closer.close();
    }
}

struct Shared {
    state: Mutex<QueueState>,
    /// Signaled when the writer is `Blocked`, `Closed`, or `Idle` with something to free.
    work: Condvar,
    /// Signaled when bulk frames have left the queue or the writer is `Idle` or `Closed`.
    room: Condvar,
    frames: AtomicU64,
    bytes: AtomicU64,
}

struct QueueState {
    urgent: VecDeque<Frame>,
    bulk: VecDeque<Frame>,
    urgent_bytes: usize,
    bulk_bytes: usize,
    /// Bytes with the writer, not yet taken by the sink.
    writer_bytes: usize,
    /// Threads that wait for `room`; with none, the wake-up system call is skipped.
    room_waiters: usize,
    writer_state: WriterState,
    /// The thread wakes by itself to free what an idle sink does not need.
    is_free_timed: bool,
    /// The cause of a lost carrier, until the writer thread has reported it.
    lost: Option<CarrierLost>,
}

enum WriterState {
    Idle(Box<Writer>),
    Writing,
    Blocked(Box<Writer>),
    Closed,
}

/// The result of a drain.
enum DrainResult {
    /// Everything is written, or the queue is closed.
    Done,
    /// The kernel's buffer is full, or this thread has reached its limit.
    HandOver(Box<Writer>),
}

impl SendQueue {
    /// Starts the writer thread of a queue for `sink`. `on_lost` is called at most once, from that thread, when a write
    /// finds the carrier lost; not when this side closes it. The carrier is aborted before ([`Closer::is_aborted`]), so
    /// `receive` ends.
    ///
    /// # Cost
    /// One thread, asleep unless the carrier blocks, or frees memory after it was busy.
    pub fn start(
        sink: Box<dyn FrameSink>,
        closer: Closer,
        on_lost: impl FnOnce(CarrierLost) + Send + 'static,
    ) -> Self {
        let shared = Arc::new(Shared {
            state: Mutex::new(QueueState {
                urgent: VecDeque::new(),
                bulk: VecDeque::new(),
                urgent_bytes: 0,
                bulk_bytes: 0,
                writer_bytes: 0,
                room_waiters: 0,
                writer_state: WriterState::Idle(Box::new(Writer::new(sink))),
                is_free_timed: false,
                lost: None,
            }),
            work: Condvar::new(),
            room: Condvar::new(),
            frames: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
        });
        thread::start(&shared, closer.clone(), Box::new(on_lost));
        Self { handle: Arc::new(ClosingHandle { shared, closer }) }
    }

    /// Queues a frame; [`flush`](Self::flush) sends it. Cheap, never blocks, makes no system call: may be called under
    /// the lock that fixes the order. After a close or a loss the frame is dropped.
    pub fn push(&self, frame: Frame, class: Class) {
        self.handle.shared.lock().push(frame, class);
    }

    /// Like [`push`](Self::push), but waits while more than [`SEND_QUEUE_BYTES_MAX`] bytes of bulk are queued. Returns
    /// `false` if the queue is closed or its carrier lost.
    pub fn push_wait(&self, frame: Frame, class: Class) -> bool {
        if class == Class::Urgent {
            let mut state = self.handle.shared.lock();
            state.push(frame, class);
            return !state.is_closed();
        }
        let (mut state, is_open) = self.wait_until_within(class);
        state.push(frame, class);
        is_open
    }

    /// Waits while more than [`SEND_QUEUE_BYTES_MAX`] urgent bytes are queued. A server calls it before it reads the
    /// next request: the queue of a peer that does not read its replies would grow without bound. Bulk does not count:
    /// its producers wait in `push_wait`, and a small request must not wait for a large reply. Returns `false` if the
    /// queue is closed or its carrier lost.
    pub fn wait_for_room(&self) -> bool {
        self.wait_until_within(Class::Urgent).1
    }

    /// Waits while too much of this class is queued. Returns whether the queue is open.
    fn wait_until_within(&self, class: Class) -> (MutexGuard<'_, QueueState>, bool) {
        let shared = &self.handle.shared;
        let mut state = shared.lock();
        if state.is_full(class) {
            drop(state);
            // Some thread must write while this one waits.
            self.flush();
            state = shared.lock();
            state.room_waiters += 1;
            let is_waiting = |state: &mut QueueState| !state.is_closed() && state.is_full(class);
            state = shared.room.wait_while(state, is_waiting).unwrap_or_else(PoisonError::into_inner);
            state.room_waiters -= 1;
        }
        let is_open = !state.is_closed();
        (state, is_open)
    }

    /// Sends the queued frames until the kernel's buffer is full, including frames that other threads push meanwhile.
    /// Returns at once if another thread is writing: that thread sends ours too.
    pub fn flush(&self) {
        let shared = &self.handle.shared;
        let Some(writer) = shared.lock().take_idle() else { return };
        if let DrainResult::HandOver(writer) = shared.drain(writer, INLINE_BYTES_MAX) {
            shared.hand_over(writer);
        }
    }

    /// Returns the bytes pushed that the kernel does not have yet.
    pub fn queued_bytes(&self) -> usize {
        let state = self.handle.shared.lock();
        state.urgent_bytes + state.bulk_bytes + state.writer_bytes
    }

    /// Returns the frames and bytes that the sink has taken so far.
    pub fn sent(&self) -> (u64, u64) {
        let shared = &self.handle.shared;
        (shared.frames.load(Ordering::Relaxed), shared.bytes.load(Ordering::Relaxed))
    }

    /// Sends the queued frames, waits at most `timeout` for the carrier to take them, then closes. Returns `false` if
    /// some were not sent.
    pub fn finish(&self, timeout: Duration) -> bool {
        let sent_all = self.wait_until_sent(timeout);
        self.close();
        sent_all
    }

    /// Like [`finish`](Self::finish), and lets the peer read what was sent ([`Closer::close_lingering`]).
    pub fn finish_lingering(&self, timeout: Duration) -> bool {
        let sent_all = self.wait_until_sent(timeout);
        self.handle.shared.close();
        self.handle.closer.close_lingering();
        sent_all
    }

    fn wait_until_sent(&self, timeout: Duration) -> bool {
        let deadline = Instant::now() + timeout;
        self.flush();
        let shared = &self.handle.shared;
        let mut state = shared.lock();
        state.room_waiters += 1;
        let (mut state, _) = shared
            .room
            .wait_timeout_while(state, deadline.saturating_duration_since(Instant::now()), |state| {
                !matches!(state.writer_state, WriterState::Idle(_) | WriterState::Closed)
            })
            .unwrap_or_else(PoisonError::into_inner);
        state.room_waiters -= 1;
        matches!(state.writer_state, WriterState::Idle(_))
    }

    /// Drops the queued frames and closes the carrier.
    pub fn close(&self) {
        self.handle.shared.close();
        self.handle.closer.close();
    }
}

impl std::fmt::Debug for SendQueue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SendQueue").field("queued_bytes", &self.queued_bytes()).finish_non_exhaustive()
    }
}

impl QueueState {
    fn is_closed(&self) -> bool {
        matches!(self.writer_state, WriterState::Closed)
    }

    fn push(&mut self, frame: Frame, class: Class) {
        if self.is_closed() {
            return;
        }
        match class {
            Class::Urgent => {
                self.urgent_bytes += frame.wire_len();
                self.urgent.push_back(frame);
            }
            Class::Bulk => {
                self.bulk_bytes += frame.wire_len();
                self.bulk.push_back(frame);
            }
        }
    }

    fn is_full(&self, class: Class) -> bool {
        let bytes = match class {
            Class::Urgent => self.urgent_bytes,
            Class::Bulk => self.bulk_bytes,
        };
        bytes > SEND_QUEUE_BYTES_MAX
    }

    /// Takes the writer if it is idle and frames are queued.
    fn take_idle(&mut self) -> Option<Box<Writer>> {
        if self.urgent.is_empty() && self.bulk.is_empty() {
            return None;
        }
        match self.writer_state {
            WriterState::Idle(_) => self.take_writer(),
            WriterState::Writing | WriterState::Blocked(_) | WriterState::Closed => None,
        }
    }

    /// Takes the writer if no thread has it.
    fn take_writer(&mut self) -> Option<Box<Writer>> {
        match std::mem::replace(&mut self.writer_state, WriterState::Writing) {
            WriterState::Idle(writer) | WriterState::Blocked(writer) => Some(writer),
            other @ (WriterState::Writing | WriterState::Closed) => {
                self.writer_state = other;
                None
            }
        }
    }

    /// Gives the writer all urgent frames, and bulk up to one batch.
    fn refill(&mut self, writer: &mut Writer) {
        writer.urgent.append(&mut self.urgent);
        writer.queued_bytes += self.urgent_bytes;
        self.urgent_bytes = 0;
        let mut batch_bytes = writer.bulk.iter().map(Frame::wire_len).sum::<usize>();
        while batch_bytes < BULK_BATCH_BYTES {
            let Some(frame) = self.bulk.pop_front() else { break };
            batch_bytes += frame.wire_len();
            self.bulk_bytes -= frame.wire_len();
            writer.queued_bytes += frame.wire_len();
            writer.bulk.push_back(frame);
        }
        self.writer_bytes = writer.queued_bytes;
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes until the queue is empty, the sink is full, or about `bytes_max` bytes are written.
    fn drain(&self, mut writer: Box<Writer>, bytes_max: u64) -> DrainResult {
        let mut written = 0;
        loop {
            {
                let mut state = self.lock();
                if state.is_closed() {
                    return DrainResult::Done;
                }
                let were_full = [Class::Urgent, Class::Bulk].map(|class| state.is_full(class));
                // All urgent frames are taken.
                state.refill(&mut writer);
                if were_full != [Class::Urgent, Class::Bulk].map(|class| state.is_full(class)) {
                    self.notify_room(&state);
                }
                if writer.is_drained() {
                    if !state.is_free_timed && writer.free_due().is_some() {
                        self.work.notify_one();
                    }
                    state.writer_state = WriterState::Idle(writer);
                    self.notify_room(&state);
                    return DrainResult::Done;
                }
            }
            if written >= bytes_max {
                return DrainResult::HandOver(writer);
            }
            match writer.write() {
                Ok(step) => {
                    self.frames.fetch_add(step.frames, Ordering::Relaxed);
                    self.bytes.fetch_add(step.bytes, Ordering::Relaxed);
                    written += step.bytes;
                    if step.blocked {
                        return DrainResult::HandOver(writer);
                    }
                }
                Err(lost) => {
                    self.fail(lost);
                    return DrainResult::Done;
                }
            }
        }
    }

    fn notify_room(&self, state: &QueueState) {
        if state.room_waiters > 0 {
            self.room.notify_all();
        }
    }

    fn hand_over(&self, writer: Box<Writer>) {
        let mut state = self.lock();
        if !state.is_closed() {
            state.writer_bytes = writer.queued_bytes;
            state.writer_state = WriterState::Blocked(writer);
            self.work.notify_one();
        }
    }

    fn fail(&self, lost: CarrierLost) {
        let mut state = self.lock();
        if !state.is_closed() {
            state.lost = Some(lost);
        }
        self.discard_all(state);
    }

    fn close(&self) {
        self.discard_all(self.lock());
    }

    fn discard_all(&self, mut state: MutexGuard<'_, QueueState>) {
        let writer_state = std::mem::replace(&mut state.writer_state, WriterState::Closed);
        let dropped = (std::mem::take(&mut state.urgent), std::mem::take(&mut state.bulk));
        state.urgent_bytes = 0;
        state.bulk_bytes = 0;
        state.writer_bytes = 0;
        self.work.notify_all();
        self.notify_room(&state);
        drop(state);
        // Frames and the sink are freed outside the lock.
        drop((writer_state, dropped));
    }
}

#[cfg(test)]
mod tests;
