//! The writer thread: sleeps until the writer is blocked, then waits for the kernel in its place.

use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use super::writer::Writer;
use super::{DrainResult, Shared, WriterState};
use crate::closer::Closer;
use crate::lost::CarrierLost;

/// The timeout of one wait for the sink.
const WAIT_STEP: Duration = Duration::from_secs(5);

type OnLost = Box<dyn FnOnce(CarrierLost) + Send>;

/// Starts the thread. If it cannot start, the queue starts lost.
pub(super) fn start(shared: &Arc<Shared>, closer: Closer, on_lost: OnLost) {
    let on_lost = Arc::new(std::sync::Mutex::new(Some(on_lost)));
    let run = {
        let (shared, closer, on_lost) = (Arc::clone(shared), closer.clone(), Arc::clone(&on_lost));
        move || {
            run(&shared);
            report_loss(&shared, &closer, &on_lost);
        }
    };
    if let Err(error) = std::thread::Builder::new().name("wirefs-send".into()).spawn(run) {
        shared.fail(CarrierLost::Io(error));
        report_loss(shared, &closer, &on_lost);
    }
}

/// Reports a loss to the owner, if there was one.
fn report_loss(shared: &Shared, closer: &Closer, on_lost: &std::sync::Mutex<Option<OnLost>>) {
    let lost = shared.lock().lost.take();
    let on_lost = on_lost.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let (Some(lost), Some(on_lost)) = (lost, on_lost) {
        // After our own close the error is `Closed`, not a loss.
        if closer.is_closed() {
            return;
        }
        // The carrier is dead; its receiver must see that this side did not close it.
        closer.abort();
        on_lost(lost);
    }
}

fn run(shared: &Shared) {
    while let Some((writer, task)) = next(shared) {
        match task {
            Task::Write => write_out(shared, writer),
            Task::Free => free_unused(shared, writer),
        }
    }
}

/// The task of the thread that has taken the writer.
enum Task {
    /// The writer is blocked.
    Write,
    /// The sink has something to free.
    Free,
}

/// Sleeps until the writer is blocked, or has something to free. Returns `None` if the queue is closed.
fn next(shared: &Shared) -> Option<(Box<Writer>, Task)> {
    let mut state = shared.lock();
    loop {
        let now = Instant::now();
        let due = match &state.writer_state {
            WriterState::Blocked(_) => return state.take_writer().map(|writer| (writer, Task::Write)),
            WriterState::Closed => return None,
            WriterState::Idle(writer) => writer.free_due(),
            WriterState::Writing => None,
        };
        if due.is_some_and(|due| due <= now) {
            return state.take_writer().map(|writer| (writer, Task::Free));
        }
        state.is_free_timed = due.is_some();
        state = match due {
            Some(due) => {
                let waited = shared.work.wait_timeout(state, due.saturating_duration_since(now));
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
            None => shared.work.wait(state).unwrap_or_else(PoisonError::into_inner),
        };
    }
}

fn free_unused(shared: &Shared, mut writer: Box<Writer>) {
    if let Err(lost) = writer.free_unused(Instant::now()) {
        return shared.fail(lost);
    }
    if let DrainResult::HandOver(blocked) = shared.drain(writer, u64::MAX) {
        write_out(shared, blocked);
    }
}

fn write_out(shared: &Shared, mut writer: Box<Writer>) {
    loop {
        match writer.wait_writable(WAIT_STEP) {
            Ok(true) => {}
            Ok(false) => {
                if shared.lock().is_closed() {
                    return;
                }
                continue;
            }
            Err(lost) => return shared.fail(lost),
        }
        match shared.drain(writer, u64::MAX) {
            DrainResult::Done => return,
            DrainResult::HandOver(blocked) => writer = blocked,
        }
    }
}
