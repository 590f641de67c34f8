//! The writer thread: asleep until a writer waits, then blocks in its place.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use super::writer::Writer;
use super::{Drained, Place, Shared};
use crate::closer::Closer;
use crate::lost::CarrierLost;

/// How long one wait for the sink lasts before the thread looks around again.
const WAIT_STEP: Duration = Duration::from_secs(5);

type OnLost = Box<dyn FnOnce(CarrierLost) + Send>;

/// Starts the thread. Without one the outbox cannot keep its promise, so it starts lost.
pub(super) fn start(shared: &Arc<Shared>, closer: Closer, on_lost: OnLost) {
    let on_lost = Arc::new(std::sync::Mutex::new(Some(on_lost)));
    let run = {
        let (shared, closer, on_lost) = (Arc::clone(shared), closer.clone(), Arc::clone(&on_lost));
        move || {
            run(&shared);
            tell(&shared, &closer, &on_lost);
        }
    };
    if let Err(error) = std::thread::Builder::new().name("wirefs-outbox".into()).spawn(run) {
        shared.lose(CarrierLost::Io(error));
        tell(shared, &closer, &on_lost);
    }
}

/// Tells the owner of a loss, if there was one.
fn tell(shared: &Shared, closer: &Closer, on_lost: &std::sync::Mutex<Option<OnLost>>) {
    let lost = shared.lock().lost.take();
    let on_lost = on_lost.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let (Some(lost), Some(on_lost)) = (lost, on_lost) {
        // What finds `Closed` here is this side's own doing, through the closer.
        if closer.is_closed() {
            return;
        }
        // It is dead, and who receives is to see that it was not closed by us.
        closer.give_up();
        on_lost(lost);
    }
}

fn run(shared: &Shared) {
    while let Some(writer) = next(shared) {
        write_out(shared, writer);
    }
}

/// Sleeps until a writer waits. `None`: the outbox is gone.
fn next(shared: &Shared) -> Option<Box<Writer>> {
    let mut state = shared
        .work
        .wait_while(shared.lock(), |state| matches!(state.place, Place::Idle(_) | Place::Taken))
        .unwrap_or_else(PoisonError::into_inner);
    match std::mem::replace(&mut state.place, Place::Taken) {
        Place::Waiting(writer) => Some(writer),
        other @ (Place::Idle(_) | Place::Taken | Place::Gone) => {
            state.place = other;
            None
        }
    }
}

fn write_out(shared: &Shared, mut writer: Box<Writer>) {
    loop {
        match writer.wait_writable(WAIT_STEP) {
            Ok(true) => {}
            Ok(false) => {
                if shared.lock().is_gone() {
                    return;
                }
                continue;
            }
            Err(lost) => return shared.lose(lost),
        }
        match shared.drain(writer, u64::MAX) {
            Drained::Done => return,
            Drained::HandOver(rest) => writer = rest,
        }
    }
}
