//! The clock thread: grace times, and readers that are busy for too long.

use super::reader;
use super::shared::Shared;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;
use wirefs_server::Input;

/// A reader that carries out a request for longer than this is relieved of reading.
const BUSY_MAX: Duration = Duration::from_millis(20);
/// Looks without anything to see before the clock sleeps for good.
const QUIET_LOOKS_MAX: u32 = 50;

/// Wakes the clock.
#[derive(Debug, Default)]
pub(super) struct Alarm {
    /// The clock looks at the readers now and then.
    watching: AtomicBool,
    /// A reader was busy since the last look.
    seen: AtomicBool,
    state: Mutex<Rung>,
    rung: Condvar,
}

#[derive(Debug, Default)]
struct Rung {
    rung: bool,
    stopping: bool,
}

impl Alarm {
    /// A reader has left its source in its slot: look after it.
    ///
    /// # Cost
    /// A wake-up of another thread, once after each pause in the traffic.
    pub(super) fn watch(&self) {
        if !self.seen.load(Ordering::Relaxed) {
            self.seen.store(true, Ordering::Relaxed);
        }
        if !self.watching.load(Ordering::SeqCst) {
            self.watching.store(true, Ordering::SeqCst);
            self.ring();
        }
    }

    /// A deadline may have changed.
    pub(super) fn ring(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).rung = true;
        self.rung.notify_one();
    }

    /// Ends the clock.
    pub(super) fn stop(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).stopping = true;
        self.rung.notify_one();
    }

    /// Sleeps; false when the clock is to end.
    fn sleep(&self, time: Option<Duration>) -> bool {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let sleeps = |state: &mut Rung| !state.rung && !state.stopping;
        let mut state = match time {
            Some(time) => {
                self.rung.wait_timeout_while(state, time, sleeps).unwrap_or_else(PoisonError::into_inner).0
            }
            None => self.rung.wait_while(state, sleeps).unwrap_or_else(PoisonError::into_inner),
        };
        state.rung = false;
        !state.stopping
    }
}

/// Starts the clock thread.
pub(super) fn start(shared: &Arc<Shared>) -> io::Result<()> {
    let shared = Arc::clone(shared);
    std::thread::Builder::new().name("wirefs-clock".into()).spawn(move || run(&shared)).map(drop)
}

fn run(shared: &Arc<Shared>) {
    let alarm = &shared.alarm;
    let mut quiet_looks = 0;
    loop {
        let occupied = look(shared);
        if alarm.seen.swap(false, Ordering::Relaxed) || occupied {
            quiet_looks = 0;
        } else {
            quiet_looks += 1;
        }
        if quiet_looks > QUIET_LOOKS_MAX {
            alarm.watching.store(false, Ordering::SeqCst);
            // A reader that has seen the flag before rings no more, but its source is in its slot by then.
            if look(shared) {
                alarm.watching.store(true, Ordering::SeqCst);
                quiet_looks = 0;
            }
        }
        let deadline = shared.core().sessions.deadline();
        let due = deadline.map(|deadline| deadline.since(shared.now()));
        let watch = alarm.watching.load(Ordering::SeqCst).then_some(BUSY_MAX);
        if !alarm.sleep([due, watch].into_iter().flatten().min()) {
            return;
        }
        if deadline.is_some_and(|deadline| deadline <= shared.now()) {
            shared.handle(Input::Tick);
            shared.tend();
        }
    }
}

/// Relieves readers that are busy for too long. Returns whether any is busy.
fn look(shared: &Arc<Shared>) -> bool {
    let connections: Vec<_> = shared.core().connections.values().cloned().collect();
    let before = shared.now().0.saturating_sub(u64::try_from(BUSY_MAX.as_nanos()).unwrap_or(u64::MAX));
    let mut occupied = false;
    for connection in connections {
        occupied |= connection.slot.is_occupied();
        if let Some(source) = connection.slot.relieve(before) {
            reader::relieve(shared, connection, source);
        }
    }
    occupied
}
