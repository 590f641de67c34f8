//! Telling the kernel what to forget, in a thread that may wait for the kernel.

use super::engine::{Shared, Waiting};
use std::io;
use std::sync::PoisonError;
use wirefs_client::call::{Answer, CallId, Invalidate};
use wirefs_fuse::Notifier;

/// What is to be told, in order.
pub(super) enum Notice {
    Invalidate(Invalidate),
    /// An answer whose caller must not go on before what came earlier is forgotten.
    Answer(CallId, Waiting, Answer),
    Stop,
}

pub(super) fn start(engine: &Shared, notifier: Notifier) -> io::Result<()> {
    let receiver = engine.notices_to_send.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some(receiver) = receiver else { return Ok(()) };
    let engine = Shared::clone(engine);
    std::thread::Builder::new().name("wirefs-notices".into()).spawn(move || {
        while let Ok(notice) = receiver.recv() {
            match notice {
                // A kernel that will not forget is about to be unmounted; its caches time out within the window.
                Notice::Invalidate(what) => drop(notifier.invalidate(&what)),
                Notice::Answer(call, waiting, answer) => {
                    waiting.answer(answer);
                    engine.lock().delayed.remove(&call);
                }
                Notice::Stop => return,
            }
        }
    })?;
    Ok(())
}
