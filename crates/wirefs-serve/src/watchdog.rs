//! The clock thread: deadlines of the sessions, and takeover from stuck readers.

use super::reader;
use super::shared::Shared;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;
use wirefs_server::ServerInput;

/// A reader that executes one request for longer is replaced.
const BUSY_MAX: Duration = Duration::from_millis(20);
/// The number of checks without a busy reader before the clock stops checking.
const QUIET_CHECKS_MAX: u32 = 50;

/// Wakes the clock thread.
#[derive(Debug, Default)]
pub(super) struct Watchdog {
    /// The clock checks the readers regularly.
    watching: AtomicBool,
    /// A reader was busy since the last check.
    seen: AtomicBool,
    state: Mutex<WakeState>,
    woken: Condvar,
}

#[derive(Debug, Default)]
struct WakeState {
    woken: bool,
    stopping: bool,
}

impl Watchdog {
    /// Notes that a reader has stored its source in its slot.
    ///
    /// # Cost
    /// A wake-up of another thread, once after each pause in the traffic.
    pub(super) fn watch(&self) {
        if !self.seen.load(Ordering::Relaxed) {
            self.seen.store(true, Ordering::Relaxed);
        }
        if !self.watching.load(Ordering::SeqCst) {
            self.watching.store(true, Ordering::SeqCst);
            self.wake();
        }
    }

    /// Wakes the clock, because a deadline may have changed.
    pub(super) fn wake(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).woken = true;
        self.woken.notify_one();
    }

    /// Ends the clock thread.
    pub(super) fn stop(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).stopping = true;
        self.woken.notify_one();
    }

    /// Sleeps; `false` when the thread must end.
    fn sleep(&self, time: Option<Duration>) -> bool {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let sleeps = |state: &mut WakeState| !state.woken && !state.stopping;
        let mut state = match time {
            Some(time) => {
                self.woken.wait_timeout_while(state, time, sleeps).unwrap_or_else(PoisonError::into_inner).0
            }
            None => self.woken.wait_while(state, sleeps).unwrap_or_else(PoisonError::into_inner),
        };
        state.woken = false;
        !state.stopping
    }
}

/// Starts the clock thread.
pub(super) fn start(shared: &Arc<Shared>) -> io::Result<()> {
    let shared = Arc::clone(shared);
    std::thread::Builder::new().name("wirefs-clock".into()).spawn(move || run(&shared)).map(drop)
}

fn run(shared: &Arc<Shared>) {
    let watchdog = &shared.watchdog;
    let mut quiet_checks = 0;
    loop {
        let occupied = check_readers(shared);
        if watchdog.seen.swap(false, Ordering::Relaxed) || occupied {
            quiet_checks = 0;
        } else {
            quiet_checks += 1;
        }
        if quiet_checks > QUIET_CHECKS_MAX {
            watchdog.watching.store(false, Ordering::SeqCst);
            // A reader that saw the flag before does not wake the clock, but its source is in its slot by then.
            if check_readers(shared) {
                watchdog.watching.store(true, Ordering::SeqCst);
                quiet_checks = 0;
            }
        }
        let deadline = shared.core().sessions.deadline();
        let due = deadline.map(|deadline| deadline.since(shared.now()));
        let watch = watchdog.watching.load(Ordering::SeqCst).then_some(BUSY_MAX);
        if !watchdog.sleep([due, watch].into_iter().flatten().min()) {
            return;
        }
        if deadline.is_some_and(|deadline| deadline <= shared.now()) {
            shared.handle(ServerInput::Tick);
            shared.tend();
        }
    }
}

/// Replaces readers that are busy for too long. Returns whether a reader is busy.
fn check_readers(shared: &Arc<Shared>) -> bool {
    let connections: Vec<_> = shared.core().connections.values().cloned().collect();
    let before = shared.now().0.saturating_sub(u64::try_from(BUSY_MAX.as_nanos()).unwrap_or(u64::MAX));
    let mut occupied = false;
    for connection in connections {
        occupied |= connection.slot.is_occupied();
        if let Some(source) = connection.slot.take_over(before) {
            reader::take_over(shared, connection, source);
        }
    }
    occupied
}
