//! A client in this process: whoever sends a request carries it out, and whoever has the reply hands it over.
//!
//! ```text
//!  push (under the client's lock) ─► flush ─┬─► taken in ─► carried out here ─► outbox ─► hear: the client's core
//!                                           └─► too many do so, or it is not for them: the line's reader ─► pool
//! ```
//! Frames are taken in one at a time, in the order in which they were pushed; what comes of them runs side by side. The
//! line's reader is whoever reads the carrier's source: it takes in what no thread may carry out that flushes, and it waits
//! where a client has to wait.
//!
//! Lock order: intake, core, outbox; the queue of frames and the errands are taken under any of them and above none. The inbox
//! is above the client's core while it is opened, and else above none.

use super::connection::Connection;
use super::core::{Effects, Task};
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
use wirefs_server::Input;

thread_local! {
    /// The line whose requests this thread carries out; 0: none. What it pushes meanwhile it takes in itself afterwards.
    static CARRIED: Cell<usize> = const { Cell::new(0) };
}

/// Both directions between the server and one client of this process.
struct Line {
    shared: Arc<Shared>,
    connection: OnceLock<Arc<Connection>>,
    /// What the client sent and nobody took in yet.
    frames: Mutex<VecDeque<Frame>>,
    intake: Mutex<Intake>,
    /// Threads that carry out what they flushed.
    carrying: AtomicUsize,
    inbox: Mutex<Inbox>,
    errands: Mutex<Errands>,
    /// The reader has something to do.
    called: Condvar,
}

#[derive(Default)]
struct Intake {
    /// The client must wait: only the reader goes on, when it has waited.
    is_held: bool,
}

/// What the server sent before anybody heard, and who hears.
#[derive(Default)]
struct Inbox {
    mail: VecDeque<Bytes>,
    hear: Option<FrameHandler>,
}

/// What came of taking in a frame.
struct Taken {
    /// What is to be carried out by the one who took it in.
    own: Option<Task>,
    /// The client must wait; the reader has to be called.
    is_behind: bool,
}

/// What the reader has to do.
#[derive(Default)]
struct Errands {
    is_called: bool,
    has_mail: bool,
    is_closed: bool,
}

/// Joins a client to the server.
pub(super) fn join(shared: &Arc<Shared>) -> io::Result<Carrier> {
    let line = Arc::new(Line {
        shared: Arc::clone(shared),
        connection: OnceLock::new(),
        frames: Mutex::default(),
        intake: Mutex::default(),
        carrying: AtomicUsize::new(0),
        inbox: Mutex::default(),
        errands: Mutex::default(),
        called: Condvar::new(),
    });
    let closes = Arc::downgrade(&line);
    let closer = Closer::new(move || {
        if let Some(line) = closes.upgrade() {
            line.close();
        }
    });
    let far = Carrier {
        source: Box::new(Nobody),
        sink: Box::new(ToClient(Arc::clone(&line))),
        closer: closer.clone(),
        peer: here(),
    };
    let Some((connection, _)) = reader::enter(shared, far) else {
        return Err(io::Error::from(io::ErrorKind::ConnectionRefused));
    };
    let _first = line.connection.set(connection);
    Ok(Carrier {
        source: Box::new(FromServer { line: Arc::clone(&line), is_left: false }),
        sink: Box::new(ToServer(line)),
        closer,
        peer: here(),
    })
}

fn here() -> PeerInfo {
    PeerInfo { carrier: "memory", address: "this process".to_owned(), identity: None, pinned_in: None }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Line {
    /// Takes in the next frame; `None`: there is none, or the client must wait.
    fn take_in(self: &Arc<Self>) -> Option<Taken> {
        let connection = self.connection.get()?;
        let mut effects = Effects::default();
        let (is_behind, is_watched) = {
            let mut intake = lock(&self.intake);
            if intake.is_held {
                return None;
            }
            let frame = lock(&self.frames).pop_front()?;
            connection.received_bytes.fetch_add(frame.wire_len() as u64, Ordering::Relaxed);
            let mut core = self.shared.core();
            core.handle(self.shared.now(), Input::Received(connection.key, frame.to_body()), &mut effects);
            intake.is_held = core.sessions.is_behind(connection.key);
            (intake.is_held, core.watchers > 0)
        };
        if is_watched {
            self.shared.announce();
        }
        for (key, session) in std::mem::take(&mut effects.recollections) {
            self.shared.recollect(key, session);
        }
        self.shared.let_in(std::mem::take(&mut effects.attaches));
        let own = match effects.tasks.as_slice() {
            [task] if !is_behind && task.job.weight != Weight::Blocking => effects.tasks.pop(),
            _ => None,
        };
        self.shared.perform(effects);
        Some(Taken { own, is_behind })
    }

    /// The reader's part: has the client wait while it must, and gives to the pool what comes.
    fn read(self: &Arc<Self>) {
        loop {
            if lock(&self.intake).is_held {
                self.wait_for_room();
                lock(&self.intake).is_held = false;
            }
            match self.take_in() {
                Some(Taken { own: Some(task), .. }) => self.shared.submit(task),
                Some(Taken { own: None, .. }) => {}
                None if lock(&self.intake).is_held => {}
                None => return,
            }
        }
    }

    fn wait_for_room(&self) {
        if let Some(connection) = self.connection.get() {
            let key = connection.key;
            self.shared.wait_while(None, |core| !connection.is_gone() && core.sessions.is_behind(key));
        }
    }

    /// Has the reader look.
    fn call(&self) {
        lock(&self.errands).is_called = true;
        self.called.notify_one();
    }

    fn close(&self) {
        lock(&self.errands).is_closed = true;
        self.called.notify_one();
        if let Some(connection) = self.connection.get() {
            connection.leave();
        }
        self.shared.announce();
    }

    /// Hands a message to the client.
    fn hand(&self, body: Bytes) -> Result<(), CarrierLost> {
        if self.is_closed() {
            return Err(CarrierLost::Closed);
        }
        let hear = {
            let mut inbox = lock(&self.inbox);
            let Some(hear) = &inbox.hear else {
                inbox.mail.push_back(body);
                drop(inbox);
                lock(&self.errands).has_mail = true;
                self.called.notify_one();
                return Ok(());
            };
            Arc::clone(hear)
        };
        if hear(body) { Ok(()) } else { Err(CarrierLost::PeerClosed) }
    }

    fn is_closed(&self) -> bool {
        lock(&self.errands).is_closed
    }

    /// Counts this thread among those that carry out, if there may be one more.
    fn enter(&self, helpers_max: usize) -> bool {
        let more = |count| (count < helpers_max).then_some(count + 1);
        self.carrying.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).is_ok()
    }
}

/// The client's way to the server.
struct ToServer(Arc<Line>);

/// The same, as many threads use it. It does not keep the line: its carrier does.
struct Way(Weak<Line>);

impl InProcessPeer for Way {
    fn push(&self, frame: Frame) {
        if let Some(line) = self.0.upgrade() {
            lock(&line.frames).push_back(frame);
        }
    }

    fn flush(&self, helpers_max: usize) {
        let Some(line) = self.0.upgrade() else { return };
        let own = Arc::as_ptr(&line).addr();
        match CARRIED.get() {
            carried if carried == own => {}
            0 if line.enter(helpers_max) => {
                CARRIED.set(own);
                while let Some(Taken { own, is_behind }) = line.take_in() {
                    if is_behind {
                        line.call();
                    }
                    if let Some(task) = own {
                        line.shared.work_through(task);
                    }
                }
                CARRIED.set(0);
                line.carrying.fetch_sub(1, Ordering::AcqRel);
            }
            _ => line.call(),
        }
    }

    fn announces_blocking(&self) -> bool {
        self.0.upgrade().is_some_and(|line| line.shared.says_before_waiting)
    }

    fn set_handler(&self, hear: FrameHandler) {
        let Some(line) = self.0.upgrade() else { return };
        // Held all the while, so that nothing overtakes what has come.
        let mut inbox = lock(&line.inbox);
        let is_heard = std::mem::take(&mut inbox.mail).into_iter().all(|body| hear(body));
        inbox.hear = Some(hear);
        drop(inbox);
        if let (false, Some(connection)) = (is_heard, line.connection.get()) {
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
        self.0.call();
        Ok(SendProgress::Drained)
    }

    fn wait_writable(&mut self, _timeout: Duration) -> Result<bool, CarrierLost> {
        Ok(true)
    }

    fn in_process(&self) -> Option<Arc<dyn InProcessPeer>> {
        Some(Arc::new(Way(Arc::downgrade(&self.0))))
    }
}

/// The server's way to the client.
struct ToClient(Arc<Line>);

impl FrameSink for ToClient {
    fn send(&mut self, queue: &mut VecDeque<Frame>) -> Result<SendProgress, CarrierLost> {
        while let Some(frame) = queue.pop_front() {
            self.0.hand(frame.to_body())?;
        }
        Ok(SendProgress::Drained)
    }

    fn wait_writable(&mut self, _timeout: Duration) -> Result<bool, CarrierLost> {
        Ok(true)
    }
}

/// What the client reads: it is the line's reader, and the connection lasts as long as this.
struct FromServer {
    line: Arc<Line>,
    is_left: bool,
}

impl FrameSource for FromServer {
    fn receive(&mut self) -> Result<Option<Bytes>, CarrierLost> {
        loop {
            if let Some(body) = lock(&self.line.inbox).mail.pop_front() {
                return Ok(Some(body));
            }
            let idle = |errands: &mut Errands| !errands.is_called && !errands.has_mail && !errands.is_closed;
            let errands = self.line.called.wait_while(lock(&self.line.errands), idle);
            let mut errands = errands.unwrap_or_else(PoisonError::into_inner);
            let Errands { is_called, is_closed, .. } = *errands;
            (errands.is_called, errands.has_mail) = (false, false);
            drop(errands);
            if is_closed {
                self.leave();
                return Err(CarrierLost::Closed);
            }
            if is_called {
                self.line.read();
            }
        }
    }
}

impl FromServer {
    /// The client is gone.
    fn leave(&mut self) {
        if let (false, Some(connection)) = (self.is_left, self.line.connection.get()) {
            self.is_left = true;
            reader::leave(&self.line.shared, connection);
        }
    }
}

impl Drop for FromServer {
    fn drop(&mut self) {
        self.leave();
    }
}

/// The server reads nothing: frames are taken in by those who flush them.
struct Nobody;

impl FrameSource for Nobody {
    fn receive(&mut self) -> Result<Option<Bytes>, CarrierLost> {
        Err(CarrierLost::Closed)
    }
}
