//! A client in the same process. The thread that flushes a request executes it, and the thread that has the reply
//! delivers it.
//!
//! ```text
//!  push (under the client's lock) ─► flush ─┬─► receive ─► execute here ─► send queue ─► handler: the client's core
//!                                           └─► too many threads execute, or the request may block: reader ─► pool
//! ```
//! Frames are received one at a time, in the order of their pushes, and their requests run concurrently. The reader is
//! the thread that reads the carrier's source. It receives the requests that a flushing thread must not execute, and
//! waits while the client is backpressured.
//!
//! Lock order: intake, core, send queue. The queue of frames and the reader's work may be locked below each of them.
//! The reply queue is above the client's core while the handler is set, and otherwise above no lock.

use super::connection::Connection;
use super::core::{Effects, Task};
use super::options::{InProcessExecution, PeerRights};
use super::reader;
use super::shared::Shared;
use bytes::Bytes;
use std::cell::Cell;
use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;
use wirefs_carrier::{
    Carrier, CarrierLost, Closer, FrameHandler, FrameSink, FrameSource, InProcessPeer, PeerInfo, SendProgress,
};
use wirefs_op::Frame;
use wirefs_op::Weight;
use wirefs_server::ServerInput;

thread_local! {
    /// The connection whose request this thread executes; 0: none. Frames that the thread pushes meanwhile it receives
    /// itself afterwards.
    static EXECUTING: Cell<usize> = const { Cell::new(0) };
}

/// Both directions between the server and a client in the same process.
struct InProcessConnection {
    shared: Arc<Shared>,
    connection: OnceLock<Arc<Connection>>,
    /// Frames that the client has sent and no thread has received.
    frames: Mutex<VecDeque<Frame>>,
    intake: Mutex<Intake>,
    /// Threads that execute the requests that they flushed.
    executing: AtomicUsize,
    reply_queue: Mutex<ReplyQueue>,
    reader_work: Mutex<ReaderWork>,
    /// Signaled when there is work for the reader.
    woken: Condvar,
}

#[derive(Default)]
struct Intake {
    /// The client is backpressured: only the reader receives, after it has waited.
    is_held: bool,
}

/// Replies that wait for the client's handler.
#[derive(Default)]
struct ReplyQueue {
    replies: VecDeque<Bytes>,
    handler: Option<FrameHandler>,
}

/// The result of receiving a frame.
struct Received {
    /// The task that the receiving thread executes itself.
    own: Option<Task>,
    /// The client is backpressured, and the reader must be woken.
    is_backpressured: bool,
}

/// The work of the reader.
#[derive(Default)]
struct ReaderWork {
    is_woken: bool,
    has_replies: bool,
    is_closed: bool,
}

/// Connects a client to the server.
pub(super) fn join(shared: &Arc<Shared>) -> io::Result<Carrier> {
    let pair = Arc::new(InProcessConnection {
        shared: Arc::clone(shared),
        connection: OnceLock::new(),
        frames: Mutex::default(),
        intake: Mutex::default(),
        executing: AtomicUsize::new(0),
        reply_queue: Mutex::default(),
        reader_work: Mutex::default(),
        woken: Condvar::new(),
    });
    let closes = Arc::downgrade(&pair);
    let closer = Closer::new(move || {
        if let Some(pair) = closes.upgrade() {
            pair.close();
        }
    });
    let far = Carrier {
        source: Box::new(NoSource),
        sink: Box::new(ToClient(Arc::clone(&pair))),
        closer: closer.clone(),
        peer: peer_info(),
    };
    let Some((connection, _)) = reader::enter(shared, far, PeerRights::default()) else {
        return Err(io::Error::from(io::ErrorKind::ConnectionRefused));
    };
    let _first = pair.connection.set(connection);
    Ok(Carrier {
        source: Box::new(FromServer { pair: Arc::clone(&pair), is_left: false }),
        sink: Box::new(ToServer(pair)),
        closer,
        peer: peer_info(),
    })
}

fn peer_info() -> PeerInfo {
    PeerInfo { carrier: "memory", address: "this process".to_owned(), identity: None, pinned_in: None }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl InProcessConnection {
    /// Receives the next frame; `None` if there is none, or the client is backpressured.
    fn receive_next(self: &Arc<Self>) -> Option<Received> {
        let connection = self.connection.get()?;
        let mut effects = Effects::default();
        let (is_backpressured, is_watched) = {
            let mut intake = lock(&self.intake);
            if intake.is_held {
                return None;
            }
            let frame = lock(&self.frames).pop_front()?;
            connection.received_bytes.fetch_add(frame.wire_len() as u64, Ordering::Relaxed);
            let mut core = self.shared.core();
            core.handle(
                self.shared.now(),
                ServerInput::Received(connection.key, frame.to_body()),
                &mut effects,
            );
            intake.is_held = core.sessions.is_backlogged(connection.key);
            (intake.is_held, core.watchers > 0)
        };
        if is_watched {
            self.shared.announce();
        }
        for (key, session) in std::mem::take(&mut effects.restores) {
            self.shared.restore_session(key, session);
        }
        self.shared.attach_waiting(std::mem::take(&mut effects.attaches));
        let own = match effects.tasks.as_slice() {
            [_] if matches!(self.shared.options.in_process, InProcessExecution::Workers) => None,
            [task] if !is_backpressured && task.job.weight != Weight::Blocking => effects.tasks.pop(),
            _ => None,
        };
        self.shared.perform(effects);
        Some(Received { own, is_backpressured })
    }

    /// Receives frames in the reader's thread: waits while the client is backpressured, and passes tasks to the pool.
    fn read(self: &Arc<Self>) {
        loop {
            if lock(&self.intake).is_held {
                self.wait_for_room();
                lock(&self.intake).is_held = false;
            }
            match self.receive_next() {
                Some(Received { own: Some(task), .. }) => self.shared.submit(task),
                Some(Received { own: None, .. }) => {}
                None if lock(&self.intake).is_held => {}
                None => return,
            }
        }
    }

    fn wait_for_room(&self) {
        if let Some(connection) = self.connection.get() {
            let key = connection.key;
            self.shared.wait_while(None, |core| !connection.is_gone() && core.sessions.is_backlogged(key));
        }
    }

    /// Wakes the reader.
    fn wake_reader(&self) {
        lock(&self.reader_work).is_woken = true;
        self.woken.notify_one();
    }

    fn close(&self) {
        lock(&self.reader_work).is_closed = true;
        self.woken.notify_one();
        if let Some(connection) = self.connection.get() {
            connection.leave();
        }
        self.shared.announce();
    }

    /// Delivers a reply to the client.
    fn deliver(&self, body: Bytes) -> Result<(), CarrierLost> {
        if self.is_closed() {
            return Err(CarrierLost::Closed);
        }
        let handler = {
            let mut reply_queue = lock(&self.reply_queue);
            let Some(handler) = &reply_queue.handler else {
                reply_queue.replies.push_back(body);
                drop(reply_queue);
                lock(&self.reader_work).has_replies = true;
                self.woken.notify_one();
                return Ok(());
            };
            Arc::clone(handler)
        };
        if handler(body) { Ok(()) } else { Err(CarrierLost::PeerClosed) }
    }

    fn is_closed(&self) -> bool {
        lock(&self.reader_work).is_closed
    }

    /// Registers this thread as an executing one; `false` if there are too many.
    fn begin_executing(&self, helpers_max: usize) -> bool {
        let more = |count| (count < helpers_max).then_some(count + 1);
        self.executing.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).is_ok()
    }
}

/// The client's sink.
struct ToServer(Arc<InProcessConnection>);

/// The handle that the client's threads share. It holds no strong reference: the carrier does.
struct PeerHandle(Weak<InProcessConnection>);

impl InProcessPeer for PeerHandle {
    fn push(&self, frame: Frame) {
        if let Some(pair) = self.0.upgrade() {
            lock(&pair.frames).push_back(frame);
        }
    }

    fn flush(&self, helpers_max: usize) {
        let Some(pair) = self.0.upgrade() else { return };
        let own = Arc::as_ptr(&pair).addr();
        match EXECUTING.get() {
            executing if executing == own => {}
            0 if pair.begin_executing(helpers_max) => {
                EXECUTING.set(own);
                while let Some(Received { own, is_backpressured }) = pair.receive_next() {
                    if is_backpressured {
                        pair.wake_reader();
                    }
                    if let Some(task) = own {
                        pair.shared.work_through(task);
                    }
                }
                EXECUTING.set(0);
                pair.executing.fetch_sub(1, Ordering::AcqRel);
            }
            _ => pair.wake_reader(),
        }
    }

    fn announces_blocking(&self) -> bool {
        self.0.upgrade().is_some_and(|pair| pair.shared.says_before_waiting)
    }

    fn set_handler(&self, handler: FrameHandler) {
        let Some(pair) = self.0.upgrade() else { return };
        // Locked throughout, so that no later reply overtakes the queued ones.
        let mut reply_queue = lock(&pair.reply_queue);
        let is_handled = std::mem::take(&mut reply_queue.replies).into_iter().all(|body| handler(body));
        reply_queue.handler = Some(handler);
        drop(reply_queue);
        if let (false, Some(connection)) = (is_handled, pair.connection.get()) {
            connection.closer.close();
        }
    }
}

impl FrameSink for ToServer {
    fn send(&mut self, queue: &mut VecDeque<Frame>) -> Result<SendProgress, CarrierLost> {
        if self.0.is_closed() {
            return Err(CarrierLost::Closed);
        }
        lock(&self.0.frames).extend(queue.drain(..));
        self.0.wake_reader();
        Ok(SendProgress::Drained)
    }

    fn wait_writable(&mut self, _timeout: Duration) -> Result<bool, CarrierLost> {
        Ok(true)
    }

    fn in_process(&self) -> Option<Arc<dyn InProcessPeer>> {
        Some(Arc::new(PeerHandle(Arc::downgrade(&self.0))))
    }
}

/// The server's sink.
struct ToClient(Arc<InProcessConnection>);

impl FrameSink for ToClient {
    fn send(&mut self, queue: &mut VecDeque<Frame>) -> Result<SendProgress, CarrierLost> {
        while let Some(frame) = queue.pop_front() {
            self.0.deliver(frame.to_body())?;
        }
        Ok(SendProgress::Drained)
    }

    fn wait_writable(&mut self, _timeout: Duration) -> Result<bool, CarrierLost> {
        Ok(true)
    }
}

/// The client's source. The thread that receives from it is the reader, and dropping it ends the connection.
struct FromServer {
    pair: Arc<InProcessConnection>,
    is_left: bool,
}

impl FrameSource for FromServer {
    fn receive(&mut self) -> Result<Option<Bytes>, CarrierLost> {
        loop {
            if let Some(body) = lock(&self.pair.reply_queue).replies.pop_front() {
                return Ok(Some(body));
            }
            let idle = |reader_work: &mut ReaderWork| {
                !reader_work.is_woken && !reader_work.has_replies && !reader_work.is_closed
            };
            let reader_work = self.pair.woken.wait_while(lock(&self.pair.reader_work), idle);
            let mut reader_work = reader_work.unwrap_or_else(PoisonError::into_inner);
            let ReaderWork { is_woken, is_closed, .. } = *reader_work;
            (reader_work.is_woken, reader_work.has_replies) = (false, false);
            drop(reader_work);
            if is_closed {
                self.leave();
                return Err(CarrierLost::Closed);
            }
            if is_woken {
                self.pair.read();
            }
        }
    }
}

impl FromServer {
    /// Ends the connection.
    fn leave(&mut self) {
        if let (false, Some(connection)) = (self.is_left, self.pair.connection.get()) {
            self.is_left = true;
            reader::leave(&self.pair.shared, connection);
        }
    }
}

impl Drop for FromServer {
    fn drop(&mut self) {
        self.leave();
    }
}

/// The server's source, which receives nothing: flushing threads receive the frames.
struct NoSource;

impl FrameSource for NoSource {
    fn receive(&mut self) -> Result<Option<Bytes>, CarrierLost> {
        Err(CarrierLost::Closed)
    }
}
