//! The watcher's thread.

use super::batch::RoundReport;
use super::mounts::Mounts;
use crate::failure::uninterrupted;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use wirefs_server::ObserveChange;

/// The pause between two rounds. A program cannot fill the queue in this time: the kernel takes some 0.5 µs to
/// queue an event, and by default has room for 16,384.
const PAUSE: Duration = Duration::from_millis(4);
/// Events that one round collects before it reports them. The last read, and reads during the reports, may exceed
/// it.
pub(super) const BATCH_MAX: usize = 8192;
/// Bytes of one read from the kernel's queue; the longest event has less than 1 KiB.
pub(super) const READ_BYTES: usize = 64 << 10;

/// The longest wait in [`Running::settle`]: the thread may be waiting for a lock of the caller.
const SETTLE_MAX: Duration = Duration::from_secs(1);

/// The state of the kernel's queue after a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QueueState {
    /// The queue is empty.
    Empty,
    /// The queue may have more events.
    NotEmpty,
}

/// A kernel queue and the interpretation of its events.
pub(super) trait EventReader: Send + 'static {
    /// The descriptor that is readable while events are queued.
    fn queue(&self) -> BorrowedFd<'_>;

    /// When to make a round without new events.
    fn deadline(&self, now: Instant) -> Option<Instant>;

    /// Reads events, up to [`BATCH_MAX`], and reports them.
    ///
    /// # Errors
    /// The queue cannot be read any more.
    fn round(&mut self, report: &mut RoundReport<'_>) -> Result<QueueState, Errno>;
}

/// Requests to the thread.
#[derive(Debug, Default)]
struct ThreadRequests {
    /// End the thread.
    stop: bool,
    /// The number of requests to report all queued events.
    settle: u64,
    /// The number of these requests that are complete.
    settled: u64,
}

/// The state that other threads share with the watcher's thread.
#[derive(Debug)]
struct Control {
    requests: Mutex<ThreadRequests>,
    /// Signaled when requests are complete, or when the thread ends.
    answered: Condvar,
    /// Wakes the thread.
    wake: OwnedFd,
    has_failed: AtomicBool,
    /// Whether events that were read may not be reported yet.
    is_reporting: AtomicBool,
}

impl Control {
    fn requests(&self) -> MutexGuard<'_, ThreadRequests> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self) {
        // The write fails only if the counter is at its limit, and then the thread is awake.
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
    }

    /// Resets the wake-up counter.
    fn clear_wake(&self) {
        let _ = rustix::io::read(&self.wake, &mut [0; 8][..]);
    }
}

/// A running thread; dropping it ends the thread.
#[derive(Debug)]
pub(super) struct Running {
    thread: Option<JoinHandle<()>>,
    control: Arc<Control>,
}

impl Running {
    /// Starts the thread; `root` is an open descriptor of the exported directory. `None`: the system cannot start a
    /// thread.
    pub(super) fn start(reader: impl EventReader, root: OwnedFd, observer: ObserveChange) -> Option<Running> {
        let control = Arc::new(Control {
            requests: Mutex::default(),
            answered: Condvar::new(),
            wake: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).ok()?,
            has_failed: AtomicBool::new(false),
            is_reporting: AtomicBool::new(false),
        });
        let rounds = Rounds {
            reader,
            mounts: Mounts::below(root),
            observer,
            control: Arc::clone(&control),
            end: End(Arc::clone(&control)),
        };
        let thread = std::thread::Builder::new().name("watcher".into()).spawn(move || rounds.run()).ok()?;
        Some(Running { thread: Some(thread), control })
    }

    pub(super) fn has_failed(&self) -> bool {
        self.control.has_failed.load(Ordering::SeqCst)
    }

    /// Waits until all queued events are reported. Returns false after [`SETTLE_MAX`].
    pub(super) fn settle(&self) -> bool {
        let mut asked = self.control.requests();
        asked.settle += 1;
        let ticket = asked.settle;
        self.control.wake();
        let waits = |asked: &mut ThreadRequests| asked.settled < ticket && !self.has_failed();
        let (asked, _) = self
            .control
            .answered
            .wait_timeout_while(asked, SETTLE_MAX, waits)
            .unwrap_or_else(PoisonError::into_inner);
        asked.settled >= ticket
    }

    /// Whether each event that was in the queue before the call has been reported.
    pub(super) fn is_quiet(&self, queue: BorrowedFd<'_>) -> bool {
        let mut fds = [PollFd::from_borrowed_fd(queue, PollFlags::IN)];
        let is_empty =
            wait_for(&mut fds, Some(Duration::ZERO)).is_ok() && fds.iter().all(|fd| fd.revents().is_empty());
        // INVARIANT: the order matters. The thread sets the flag before it takes events out of the queue.
        is_empty && !self.control.is_reporting.load(Ordering::SeqCst) && !self.has_failed()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.control.requests().stop = true;
        self.control.wake();
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != std::thread::current().id()
        {
            // The callback may have panicked; there is no remedy.
            let _ = thread.join();
        }
    }
}

/// Marks the watcher as failed at the end of the thread, for whatever reason.
struct End(Arc<Control>);

impl Drop for End {
    fn drop(&mut self) {
        // Under the lock, so that a caller that is about to wait sees it.
        let asked = self.0.requests();
        self.0.has_failed.store(true, Ordering::SeqCst);
        drop(asked);
        self.0.answered.notify_all();
    }
}

/// The reasons of one wake-up.
struct Woken {
    asked: bool,
    events: bool,
    mounts: bool,
}

struct Rounds<N> {
    reader: N,
    mounts: Option<Mounts>,
    observer: ObserveChange,
    control: Arc<Control>,
    end: End,
}

impl<N: EventReader> Rounds<N> {
    fn run(mut self) {
        if self.rounds().is_err() {
            // Marked as failed first, so that no lease is granted between the two.
            drop(self.end);
            RoundReport::new(&mut self.observer).lost();
        }
    }

    /// Makes rounds until the thread is stopped.
    fn rounds(&mut self) -> Result<(), Errno> {
        loop {
            let now = Instant::now();
            let woken =
                self.wait(self.deadline(now).map(|deadline| deadline.saturating_duration_since(now)))?;
            if woken.asked {
                self.control.clear_wake();
            }
            // Read before the round: the round reports all events that were queued by then.
            let (stop, settle, is_asked) = {
                let asked = self.control.requests();
                (asked.stop, asked.settle, asked.settled < asked.settle)
            };
            if stop {
                return Ok(());
            }
            let now = Instant::now();
            let is_due = self.reader.deadline(now).is_some_and(|deadline| deadline <= now);
            let mut state = QueueState::Empty;
            if woken.events || is_asked || is_due {
                self.control.is_reporting.store(true, Ordering::SeqCst);
                state = self.reader.round(&mut RoundReport::new(&mut self.observer))?;
                let is_behind = self.reader.deadline(Instant::now()).is_some();
                self.control.is_reporting.store(is_behind, Ordering::SeqCst);
            }
            if state == QueueState::Empty {
                self.complete_settle(settle);
            }
            if let Some(mounts) = &mut self.mounts
                && mounts.have_changed(woken.mounts)
            {
                RoundReport::new(&mut self.observer).lost();
            }
            if state == QueueState::Empty {
                self.pause()?;
            }
        }
    }

    /// Completes requests up to this one: all events that were queued before are reported.
    fn complete_settle(&self, request: u64) {
        let mut asked = self.control.requests();
        if asked.settled < request {
            asked.settled = request;
            self.control.answered.notify_all();
        }
    }

    fn deadline(&self, now: Instant) -> Option<Instant> {
        let mounts = self.mounts.as_ref().and_then(|mounts| mounts.deadline(now));
        self.reader.deadline(now).into_iter().chain(mounts).min()
    }

    fn wait(&self, at_most: Option<Duration>) -> Result<Woken, Errno> {
        let mut fds = vec![
            PollFd::new(&self.control.wake, PollFlags::IN),
            PollFd::from_borrowed_fd(self.reader.queue(), PollFlags::IN),
        ];
        if let Some(mounts) = &self.mounts {
            fds.push(PollFd::from_borrowed_fd(mounts.as_fd(), PollFlags::PRI));
        }
        wait_for(&mut fds, at_most)?;
        let is_ready = |at: usize| fds.get(at).is_some_and(|fd| !fd.revents().is_empty());
        Ok(Woken { asked: is_ready(0), events: is_ready(1), mounts: is_ready(2) })
    }

    /// Lets events collect, unless there is a request to the thread.
    fn pause(&self) -> Result<(), Errno> {
        let mut fds = [PollFd::new(&self.control.wake, PollFlags::IN)];
        wait_for(&mut fds, Some(PAUSE))
    }
}

/// Waits until a descriptor is ready, or the time is over.
fn wait_for(fds: &mut [PollFd<'_>], at_most: Option<Duration>) -> Result<(), Errno> {
    let timeout = at_most.and_then(|at_most| Timespec::try_from(at_most).ok());
    uninterrupted(|| poll(fds, timeout.as_ref())).map(drop)
}
