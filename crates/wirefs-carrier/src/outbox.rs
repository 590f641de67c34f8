//! A queue with many producers in front of one sink.
//!
//! Whoever flushes first writes for everyone, in its own thread and without blocking. Only when the kernel takes no
//! more does the writer thread, parked until then, take over and wait.
//!
//! | the writer is | what `flush` does | who moves it on |
//! |---|---|---|
//! | `Idle` | takes it and drains the queue | the flusher, to `Idle`, `Waiting` or `Gone` |
//! | `Taken` | nothing: whoever has it looks at the queue again before putting it back | that thread |
//! | `Waiting` | nothing | the writer thread takes it |
//! | `Gone` | nothing | nobody: closed or lost |
//!
//! INVARIANT: the writer goes back to `Idle` only under the lock that `push` takes, and only when the queue is empty
//! there. So no push is ever left behind without someone who will write it.

mod thread;
mod writer;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use wirefs_op::Frame;

use crate::carrier::FrameSink;
use crate::closer::Closer;
use crate::limits::{BULK_BATCH_BYTES, INLINE_BYTES_MAX, OUTBOX_BYTES_MAX};
use crate::lost::CarrierLost;
use writer::Writer;

/// Which of two queues a frame goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Small requests and replies: sent before all bulk that is not yet with the kernel.
    Urgent,
    /// Data transfers.
    Bulk,
}

/// Many producers, one sink. Order is kept within a class. Clones share the queue; the last one dropped closes it.
#[derive(Clone)]
pub struct Outbox {
    owner: Arc<Owner>,
}

/// What the clones share; the writer thread does not, so that it ends with the last of them.
struct Owner {
    shared: Arc<Shared>,
    closer: Closer,
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.shared.close();
        self.closer.close();
    }
}

struct Shared {
    state: Mutex<State>,
    /// Signalled when the writer is `Waiting` or `Gone`.
    work: Condvar,
    /// Signalled when bulk has left the queue or the writer is `Idle` or `Gone`.
    room: Condvar,
    frames: AtomicU64,
    bytes: AtomicU64,
}

struct State {
    urgent: VecDeque<Frame>,
    bulk: VecDeque<Frame>,
    urgent_bytes: usize,
    bulk_bytes: usize,
    /// Bytes with the writer, not yet taken by the sink.
    writer_bytes: usize,
    /// Threads that wait for `room`: with none, waking is a system call for nothing.
    room_waiters: usize,
    place: Place,
    /// Why the carrier is lost, until the writer thread has told the owner.
    lost: Option<CarrierLost>,
}

enum Place {
    Idle(Box<Writer>),
    Taken,
    Waiting(Box<Writer>),
    Gone,
}

/// How a drain ended.
enum Drained {
    /// Everything is written, or the outbox is gone.
    Done,
    /// The kernel is full, or this thread has written its share.
    HandOver(Box<Writer>),
}

impl Outbox {
    /// Puts an outbox in front of `sink` and starts its writer thread. `on_lost` is called at most once, from that
    /// thread, when writing finds the carrier lost; not when this side closes it. The carrier was given up by then
    /// ([`Closer::is_given_up`]), so `receive` ends.
    ///
    /// # Cost
    /// One thread, asleep unless the carrier blocks.
    pub fn start(
        sink: Box<dyn FrameSink>,
        closer: Closer,
        on_lost: impl FnOnce(CarrierLost) + Send + 'static,
    ) -> Self {
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                urgent: VecDeque::new(),
                bulk: VecDeque::new(),
                urgent_bytes: 0,
                bulk_bytes: 0,
                writer_bytes: 0,
                room_waiters: 0,
                place: Place::Idle(Box::new(Writer::new(sink))),
                lost: None,
            }),
            work: Condvar::new(),
            room: Condvar::new(),
            frames: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
        });
        thread::start(&shared, closer.clone(), Box::new(on_lost));
        Self { owner: Arc::new(Owner { shared, closer }) }
    }

    /// Queues a frame; [`flush`](Self::flush) sends it. Cheap, never blocks, makes no system call: may be called under
    /// the lock that fixes the order. After a close or a loss the frame is dropped.
    pub fn push(&self, frame: Frame, class: Class) {
        self.owner.shared.lock().push(frame, class);
    }

    /// Like [`push`](Self::push), but waits while more than [`OUTBOX_BYTES_MAX`] bytes of bulk are queued. False: the
    /// outbox is closed or its carrier lost.
    pub fn push_wait(&self, frame: Frame, class: Class) -> bool {
        if class == Class::Urgent {
            let mut state = self.owner.shared.lock();
            state.push(frame, class);
            return !state.is_gone();
        }
        let (mut state, is_open) = self.wait_until_within(class);
        state.push(frame, class);
        is_open
    }

    /// Waits while more than [`OUTBOX_BYTES_MAX`] urgent bytes are queued. Whoever answers a peer that does not read its answers takes no
    /// more questions meanwhile, or the queue grows without bound. Bulk does not count: its makers wait for themselves, and a small
    /// question is not to wait until a large answer has left. False: the outbox is closed or its carrier lost.
    pub fn await_room(&self) -> bool {
        self.wait_until_within(Class::Urgent).1
    }

    /// Waits while too much of this class is queued. True: the outbox is open.
    fn wait_until_within(&self, class: Class) -> (MutexGuard<'_, State>, bool) {
        let shared = &self.owner.shared;
        let mut state = shared.lock();
        if state.is_full(class) {
            drop(state);
            // Someone must be writing while we wait.
            self.flush();
            state = shared.lock();
            state.room_waiters += 1;
            let is_waiting = |state: &mut State| !state.is_gone() && state.is_full(class);
            state = shared.room.wait_while(state, is_waiting).unwrap_or_else(PoisonError::into_inner);
            state.room_waiters -= 1;
        }
        let is_open = !state.is_gone();
        (state, is_open)
    }

    /// Sends what is queued as far as it goes without blocking, also what others push meanwhile. Returns at once when
    /// another thread is at it: that one sends ours too.
    pub fn flush(&self) {
        let shared = &self.owner.shared;
        let Some(writer) = shared.lock().take_idle() else { return };
        if let Drained::HandOver(writer) = shared.drain(writer, INLINE_BYTES_MAX) {
            shared.hand_over(writer);
        }
    }

    /// Bytes pushed but not yet with the kernel.
    pub fn queued_bytes(&self) -> usize {
        let state = self.owner.shared.lock();
        state.urgent_bytes + state.bulk_bytes + state.writer_bytes
    }

    /// Frames and bytes that the sink has taken so far.
    pub fn sent(&self) -> (u64, u64) {
        let shared = &self.owner.shared;
        (shared.frames.load(Ordering::Relaxed), shared.bytes.load(Ordering::Relaxed))
    }

    /// Sends what is queued, waiting at most `timeout` for the carrier to take it, then closes. False: not all was sent.
    pub fn finish(&self, timeout: Duration) -> bool {
        let deadline = Instant::now() + timeout;
        self.flush();
        let shared = &self.owner.shared;
        let mut state = shared.lock();
        state.room_waiters += 1;
        let (mut state, _) = shared
            .room
            .wait_timeout_while(state, deadline.saturating_duration_since(Instant::now()), |state| {
                !matches!(state.place, Place::Idle(_) | Place::Gone)
            })
            .unwrap_or_else(PoisonError::into_inner);
        state.room_waiters -= 1;
        let sent_all = matches!(state.place, Place::Idle(_));
        drop(state);
        self.close();
        sent_all
    }

    /// Drops what is queued and closes the carrier.
    pub fn close(&self) {
        self.owner.shared.close();
        self.owner.closer.close();
    }
}

impl std::fmt::Debug for Outbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Outbox").field("queued_bytes", &self.queued_bytes()).finish_non_exhaustive()
    }
}

impl State {
    fn is_gone(&self) -> bool {
        matches!(self.place, Place::Gone)
    }

    fn push(&mut self, frame: Frame, class: Class) {
        if self.is_gone() {
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
        bytes > OUTBOX_BYTES_MAX
    }

    /// Takes the writer if nobody has it and there is something to write.
    fn take_idle(&mut self) -> Option<Box<Writer>> {
        if self.urgent.is_empty() && self.bulk.is_empty() {
            return None;
        }
        match std::mem::replace(&mut self.place, Place::Taken) {
            Place::Idle(writer) => Some(writer),
            other @ (Place::Taken | Place::Waiting(_) | Place::Gone) => {
                self.place = other;
                None
            }
        }
    }

    /// Gives the writer all urgent frames, and bulk up to one batch.
    fn load(&mut self, writer: &mut Writer) {
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
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes until the queue is empty, the sink is full, or about `bytes_max` bytes are written.
    fn drain(&self, mut writer: Box<Writer>, bytes_max: u64) -> Drained {
        let mut written = 0;
        loop {
            {
                let mut state = self.lock();
                if state.is_gone() {
                    return Drained::Done;
                }
                let were_full = [Class::Urgent, Class::Bulk].map(|class| state.is_full(class));
                // Of what is urgent nothing is left behind.
                state.load(&mut writer);
                if were_full != [Class::Urgent, Class::Bulk].map(|class| state.is_full(class)) {
                    self.wake_room(&state);
                }
                if writer.is_drained() {
                    state.place = Place::Idle(writer);
                    self.wake_room(&state);
                    return Drained::Done;
                }
            }
            if written >= bytes_max {
                return Drained::HandOver(writer);
            }
            match writer.write() {
                Ok(step) => {
                    self.frames.fetch_add(step.frames, Ordering::Relaxed);
                    self.bytes.fetch_add(step.bytes, Ordering::Relaxed);
                    written += step.bytes;
                    if step.blocked {
                        return Drained::HandOver(writer);
                    }
                }
                Err(lost) => {
                    self.lose(lost);
                    return Drained::Done;
                }
            }
        }
    }

    fn wake_room(&self, state: &State) {
        if state.room_waiters > 0 {
            self.room.notify_all();
        }
    }

    fn hand_over(&self, writer: Box<Writer>) {
        let mut state = self.lock();
        if !state.is_gone() {
            state.writer_bytes = writer.queued_bytes;
            state.place = Place::Waiting(writer);
            self.work.notify_one();
        }
    }

    fn lose(&self, lost: CarrierLost) {
        let mut state = self.lock();
        if !state.is_gone() {
            state.lost = Some(lost);
        }
        self.empty(state);
    }

    fn close(&self) {
        self.empty(self.lock());
    }

    fn empty(&self, mut state: MutexGuard<'_, State>) {
        let place = std::mem::replace(&mut state.place, Place::Gone);
        let dropped = (std::mem::take(&mut state.urgent), std::mem::take(&mut state.bulk));
        state.urgent_bytes = 0;
        state.bulk_bytes = 0;
        state.writer_bytes = 0;
        self.work.notify_all();
        self.wake_room(&state);
        drop(state);
        // Frames and the sink are freed outside the lock.
        drop((place, dropped));
    }
}
