//! The watcher's thread.

use super::batch::{Tell, Telling};
use super::mounts::Mounts;
use crate::failure::uninterrupted;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Between two rounds. Within it a program fills no queue: the kernel takes some 0.5 us to queue one change, and has room
/// for 16,384 unless told otherwise.
const PAUSE: Duration = Duration::from_millis(4);
/// Things that one round gathers before it tells of them; it may be exceeded by what one read brings, and by what was read meanwhile.
pub(super) const BATCH_MAX: usize = 8192;
/// Bytes that are read from the kernel's queue at once; the longest event has less than 1 KiB.
pub(super) const READ_BYTES: usize = 64 << 10;

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

/// A thread that makes rounds; dropping it ends it.
#[derive(Debug)]
pub(super) struct Running {
    thread: Option<JoinHandle<()>>,
    /// Wakes the thread so that it ends.
    stop: Arc<OwnedFd>,
    has_failed: Arc<AtomicBool>,
    is_telling: Arc<AtomicBool>,
}

impl Running {
    /// Starts the thread; `root` is the exported directory, open. `None`: the system has no room for a thread.
    pub(super) fn start(news: impl News, root: OwnedFd, tell: Tell) -> Option<Running> {
        let stop = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).ok()?);
        let has_failed = Arc::new(AtomicBool::new(false));
        let is_telling = Arc::new(AtomicBool::new(false));
        let rounds = Rounds {
            news,
            is_telling: Arc::clone(&is_telling),
            stop: Arc::clone(&stop),
            mounts: Mounts::below(root),
            tell,
            end: End(Arc::clone(&has_failed)),
        };
        let thread = std::thread::Builder::new().name("watcher".into()).spawn(move || rounds.run()).ok()?;
        Some(Running { thread: Some(thread), stop, has_failed, is_telling })
    }

    pub(super) fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::SeqCst)
    }

    /// Whether each event that was in this queue, the one it reads, before the call was reported.
    pub(super) fn is_quiet(&self, queue: BorrowedFd<'_>) -> bool {
        let mut fds = [PollFd::from_borrowed_fd(queue, PollFlags::IN)];
        let is_empty =
            wait_for(&mut fds, Some(Duration::ZERO)).is_ok() && fds.iter().all(|fd| fd.revents().is_empty());
        // In this order: events that were taken out of the queue were taken out by a thread that had said so before.
        is_empty && !self.is_telling.load(Ordering::SeqCst) && !self.has_failed()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Only a counter at its limit takes no more, and that wakes too.
        let _ = rustix::io::write(&*self.stop, &1_u64.to_ne_bytes());
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != std::thread::current().id()
        {
            // What it told with may have panicked; nothing is left to be done about that.
            let _ = thread.join();
        }
    }
}

/// However the thread ends, nothing is watched from then on.
struct End(Arc<AtomicBool>);

impl Drop for End {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// What one wait brought.
struct Woken {
    stop: bool,
    news: bool,
    mounts: bool,
}

struct Rounds<N> {
    news: N,
    /// Events may be out of the queue and not reported yet.
    is_telling: Arc<AtomicBool>,
    stop: Arc<OwnedFd>,
    mounts: Option<Mounts>,
    tell: Tell,
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
            if woken.stop {
                return Ok(());
            }
            let now = Instant::now();
            let is_due = self.news.deadline(now).is_some_and(|deadline| deadline <= now);
            let mut rest = Rest::Pause;
            if woken.news || is_due {
                self.is_telling.store(true, Ordering::SeqCst);
                rest = self.news.round(&mut Telling::new(&mut self.tell))?;
                let is_behind = self.news.deadline(Instant::now()).is_some();
                self.is_telling.store(is_behind, Ordering::SeqCst);
            }
            if let Some(mounts) = &mut self.mounts
                && mounts.have_changed(woken.mounts)
            {
                Telling::new(&mut self.tell).lost();
            }
            if rest == Rest::Pause && self.pauses()? {
                return Ok(());
            }
        }
    }

    fn deadline(&self, now: Instant) -> Option<Instant> {
        let mounts = self.mounts.as_ref().and_then(|mounts| mounts.deadline(now));
        self.news.deadline(now).into_iter().chain(mounts).min()
    }

    fn wait(&self, at_most: Option<Duration>) -> Result<Woken, Errno> {
        let mut fds = vec![
            PollFd::new(&*self.stop, PollFlags::IN),
            PollFd::from_borrowed_fd(self.news.queue(), PollFlags::IN),
        ];
        if let Some(mounts) = &self.mounts {
            fds.push(PollFd::from_borrowed_fd(mounts.as_fd(), PollFlags::PRI));
        }
        wait_for(&mut fds, at_most)?;
        let is_ready = |at: usize| fds.get(at).is_some_and(|fd| !fd.revents().is_empty());
        Ok(Woken { stop: is_ready(0), news: is_ready(1), mounts: is_ready(2) })
    }

    /// Lets news gather; `true`: it was stopped meanwhile.
    fn pauses(&self) -> Result<bool, Errno> {
        let mut fds = [PollFd::new(&*self.stop, PollFlags::IN)];
        wait_for(&mut fds, Some(PAUSE))?;
        Ok(fds.iter().any(|fd| !fd.revents().is_empty()))
    }
}

/// Waits until one of them is ready, or the time is over.
fn wait_for(fds: &mut [PollFd<'_>], at_most: Option<Duration>) -> Result<(), Errno> {
    let timeout = at_most.and_then(|at_most| Timespec::try_from(at_most).ok());
    uninterrupted(|| poll(fds, timeout.as_ref())).map(drop)
}
