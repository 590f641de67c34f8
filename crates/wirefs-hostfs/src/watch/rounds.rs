//! The watcher's thread.

use super::batch::Telling;
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

/// Between two rounds. Within it a program fills no queue: the kernel takes some 0.5 us to queue one change, and has room
/// for 16,384 unless told otherwise.
const PAUSE: Duration = Duration::from_millis(4);
/// Things that one round gathers before it tells of them; it may be exceeded by what one read brings, and by what was read meanwhile.
pub(super) const BATCH_MAX: usize = 8192;
/// Bytes that are read from the kernel's queue at once; the longest event has less than 1 KiB.
pub(super) const READ_BYTES: usize = 64 << 10;

/// A caller of [`Running::settle`] waits this long at most: the thread may be waiting for what the caller holds.
const SETTLE_MAX: Duration = Duration::from_secs(1);

/// What is to follow a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rest {
    /// The queue was empty.
    Pause,
    /// It was not.
    GoOn,
}

/// A queue of the kernel's and the way to understand it.
pub(super) trait News: Send + 'static {
    /// Readable when there are news.
    fn queue(&self) -> BorrowedFd<'_>;

    /// When to make a round without news.
    fn deadline(&self, now: Instant) -> Option<Instant>;

    /// Takes what is queued, up to [`BATCH_MAX`], and tells of it.
    ///
    /// # Errors
    /// The queue cannot be read any more.
    fn round(&mut self, telling: &mut Telling<'_>) -> Result<Rest, Errno>;
}

/// Requests to the thread.
#[derive(Debug, Default)]
struct Asked {
    /// To end.
    stop: bool,
    /// How often callers have asked for all that is queued to be reported.
    settle: u64,
    /// Which of these requests are answered: all up to this one.
    settled: u64,
}

/// How others reach the thread.
#[derive(Debug)]
struct Control {
    asked: Mutex<Asked>,
    /// Signalled when requests are answered, or the thread ends.
    answered: Condvar,
    /// Wakes the thread.
    wake: OwnedFd,
    has_failed: AtomicBool,
    /// Events may be out of the queue and not reported yet.
    is_telling: AtomicBool,
}

impl Control {
    fn asked(&self) -> MutexGuard<'_, Asked> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self) {
        // Only a counter at its limit takes no more, and that wakes too.
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
    }

    /// Takes in what wakes the thread.
    fn is_awake(&self) {
        let _ = rustix::io::read(&self.wake, &mut [0; 8][..]);
    }
}

/// A thread that makes rounds; dropping it ends it.
#[derive(Debug)]
pub(super) struct Running {
    thread: Option<JoinHandle<()>>,
    control: Arc<Control>,
}

impl Running {
    /// Starts the thread; `root` is the exported directory, open. `None`: the system has no room for a thread.
    pub(super) fn start(news: impl News, root: OwnedFd, tell: ObserveChange) -> Option<Running> {
        let control = Arc::new(Control {
            asked: Mutex::default(),
            answered: Condvar::new(),
            wake: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).ok()?,
            has_failed: AtomicBool::new(false),
            is_telling: AtomicBool::new(false),
        });
        let rounds = Rounds {
            news,
            mounts: Mounts::below(root),
            tell,
            control: Arc::clone(&control),
            end: End(Arc::clone(&control)),
        };
        let thread = std::thread::Builder::new().name("watcher".into()).spawn(move || rounds.run()).ok()?;
        Some(Running { thread: Some(thread), control })
    }

    pub(super) fn has_failed(&self) -> bool {
        self.control.has_failed.load(Ordering::SeqCst)
    }

    /// Waits until all that the queue holds now is reported; `false`: it is not, after [`SETTLE_MAX`].
    pub(super) fn settle(&self) -> bool {
        let mut asked = self.control.asked();
        asked.settle += 1;
        let ticket = asked.settle;
        self.control.wake();
        let waits = |asked: &mut Asked| asked.settled < ticket && !self.has_failed();
        let (asked, _) = self
            .control
            .answered
            .wait_timeout_while(asked, SETTLE_MAX, waits)
            .unwrap_or_else(PoisonError::into_inner);
        asked.settled >= ticket
    }

    /// Whether each event that was in this queue, the one it reads, before the call was reported.
    pub(super) fn is_quiet(&self, queue: BorrowedFd<'_>) -> bool {
        let mut fds = [PollFd::from_borrowed_fd(queue, PollFlags::IN)];
        let is_empty =
            wait_for(&mut fds, Some(Duration::ZERO)).is_ok() && fds.iter().all(|fd| fd.revents().is_empty());
        // In this order: events that were taken out of the queue were taken out by a thread that had said so before.
        is_empty && !self.control.is_telling.load(Ordering::SeqCst) && !self.has_failed()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.control.asked().stop = true;
        self.control.wake();
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != std::thread::current().id()
        {
            // What it told with may have panicked; nothing is left to be done about that.
            let _ = thread.join();
        }
    }
}

/// However the thread ends, nothing is watched from then on.
struct End(Arc<Control>);

impl Drop for End {
    fn drop(&mut self) {
        // Under the lock, so that a caller that is about to wait sees it.
        let asked = self.0.asked();
        self.0.has_failed.store(true, Ordering::SeqCst);
        drop(asked);
        self.0.answered.notify_all();
    }
}

/// What one wait brought.
struct Woken {
    asked: bool,
    news: bool,
    mounts: bool,
}

struct Rounds<N> {
    news: N,
    mounts: Option<Mounts>,
    tell: ObserveChange,
    control: Arc<Control>,
    end: End,
}

impl<N: News> Rounds<N> {
    fn run(mut self) {
        if self.rounds().is_err() {
            // Said first, so that nobody is promised anything between the two.
            drop(self.end);
            Telling::new(&mut self.tell).lost();
        }
    }

    /// Makes rounds until it is stopped.
    fn rounds(&mut self) -> Result<(), Errno> {
        loop {
            let now = Instant::now();
            let woken =
                self.wait(self.deadline(now).map(|deadline| deadline.saturating_duration_since(now)))?;
            if woken.asked {
                self.control.is_awake();
            }
            // Read before the round: what is queued by then is reported in it.
            let (stop, settle, is_asked) = {
                let asked = self.control.asked();
                (asked.stop, asked.settle, asked.settled < asked.settle)
            };
            if stop {
                return Ok(());
            }
            let now = Instant::now();
            let is_due = self.news.deadline(now).is_some_and(|deadline| deadline <= now);
            let mut rest = Rest::Pause;
            if woken.news || is_asked || is_due {
                self.control.is_telling.store(true, Ordering::SeqCst);
                rest = self.news.round(&mut Telling::new(&mut self.tell))?;
                let is_behind = self.news.deadline(Instant::now()).is_some();
                self.control.is_telling.store(is_behind, Ordering::SeqCst);
            }
            if rest == Rest::Pause {
                self.settled(settle);
            }
            if let Some(mounts) = &mut self.mounts
                && mounts.have_changed(woken.mounts)
            {
                Telling::new(&mut self.tell).lost();
            }
            if rest == Rest::Pause {
                self.pauses()?;
            }
        }
    }

    /// All that was queued when this request was read is reported.
    fn settled(&self, request: u64) {
        let mut asked = self.control.asked();
        if asked.settled < request {
            asked.settled = request;
            self.control.answered.notify_all();
        }
    }

    fn deadline(&self, now: Instant) -> Option<Instant> {
        let mounts = self.mounts.as_ref().and_then(|mounts| mounts.deadline(now));
        self.news.deadline(now).into_iter().chain(mounts).min()
    }

    fn wait(&self, at_most: Option<Duration>) -> Result<Woken, Errno> {
        let mut fds = vec![
            PollFd::new(&self.control.wake, PollFlags::IN),
            PollFd::from_borrowed_fd(self.news.queue(), PollFlags::IN),
        ];
        if let Some(mounts) = &self.mounts {
            fds.push(PollFd::from_borrowed_fd(mounts.as_fd(), PollFlags::PRI));
        }
        wait_for(&mut fds, at_most)?;
        let is_ready = |at: usize| fds.get(at).is_some_and(|fd| !fd.revents().is_empty());
        Ok(Woken { asked: is_ready(0), news: is_ready(1), mounts: is_ready(2) })
    }

    /// Lets news gather, unless something is asked of the thread.
    fn pauses(&self) -> Result<(), Errno> {
        let mut fds = [PollFd::new(&self.control.wake, PollFlags::IN)];
        wait_for(&mut fds, Some(PAUSE))
    }
}

/// Waits until one of them is ready, or the time is over.
fn wait_for(fds: &mut [PollFd<'_>], at_most: Option<Duration>) -> Result<(), Errno> {
    let timeout = at_most.and_then(|at_most| Timespec::try_from(at_most).ok());
    uninterrupted(|| poll(fds, timeout.as_ref())).map(drop)
}
