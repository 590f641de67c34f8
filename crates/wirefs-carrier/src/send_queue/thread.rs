//! The writer thread: sleeps until the writer is blocked, then waits for the kernel in its place.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

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
    while let Some(writer) = next(shared) {
        write_out(shared, writer);
    }
}

/// Sleeps until the writer is blocked. Returns `None` if the queue is closed.
fn next(shared: &Shared) -> Option<Box<Writer>> {
    let mut state = shared
        .work
        .wait_while(shared.lock(), |state| {
            matches!(state.writer_state, WriterState::Idle(_) | WriterState::Writing)
        })
        .unwrap_or_else(PoisonError::into_inner);
    match std::mem::replace(&mut state.writer_state, WriterState::Writing) {
        WriterState::Blocked(writer) => Some(writer),
        other @ (WriterState::Idle(_) | WriterState::Writing | WriterState::Closed) => {
            state.writer_state = other;
            None
        }
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
