//! Telling the kernel what to forget, in a thread that may wait for the kernel, another for what must not wait, one for what calls wait for,
//! and one for the readers of listings.

use super::dropping::{Awaited, Dropped};
use super::engine::Shared;
use super::notices::{FRAME_MAX, Notice, ONE_MAX, Stuck};
use super::outlet::Outlet;
use std::io;
use std::time::Instant;
use wirefs_carrier::Class;
use wirefs_client::call::{Answer, Invalidate, TreeNodeId};
use wirefs_fuse::Notifier;
use wirefs_op::{Errno, Frame};

pub(super) fn start(engine: &Shared, notifier: Notifier) -> io::Result<()> {
    let (telling, teller) = (Shared::clone(engine), notifier.clone());
    std::thread::Builder::new().name("wirefs-notices".into()).spawn(move || tell(&telling, &teller))?;
    let (dropping, dropper) = (Shared::clone(engine), notifier.clone());
    std::thread::Builder::new()
        .name("wirefs-dropping".into())
        .spawn(move || drop_first(&dropping, &dropper))?;
    let (awaiting, awaiter) = (Shared::clone(engine), notifier.clone());
    std::thread::Builder::new()
        .name("wirefs-readers".into())
        .spawn(move || await_readers(&awaiting, &awaiter))?;
    let rescuing = Shared::clone(engine);
    std::thread::Builder::new().name("wirefs-rescue".into()).spawn(move || {
        while let Some(stuck) = rescuing.notices.next_stuck(ONE_MAX, FRAME_MAX) {
            rescue(&rescuing, &notifier, stuck);
        }
    })?;
    Ok(())
}

/// A kernel that will not forget is about to be unmounted: errors are of no use to anybody.
fn tell(engine: &Shared, notifier: &Notifier) {
    while let Some(notice) = engine.notices.next(|| notifier.forget_names().unwrap_or(false)) {
        match notice {
            Notice::Invalidate(what) => {
                if let Ok(Some(at)) = notifier.invalidate(&what) {
                    engine.notices.again(what, at);
                }
            }
            Notice::LetGo(node, names) => drop(notifier.let_go(node, names)),
            Notice::Answer(call, waiting, answer) => {
                waiting.answer(answer);
                engine.lock().delayed.remove(&call);
            }
            Notice::Frame(outlet, frame) => send(&outlet, frame),
        }
    }
}

fn drop_first(engine: &Shared, notifier: &Notifier) {
    while let Some(Dropped { what, call, waiting, answer }) = engine.dropping.next() {
        let dropped = notifier.invalidate(&what);
        // A listing that was not dropped must not be taken for whole. A change is done, whatever the kernel says to this.
        let is_lost = dropped.is_err() && matches!(what, Invalidate::Listing { .. });
        waiting.answer(if is_lost { Answer::Fail(Errno::Io) } else { answer });
        engine.lock().delayed.remove(&call);
    }
}

fn await_readers(engine: &Shared, notifier: &Notifier) {
    while let Some(Awaited { dir, until }) = engine.awaiting.next() {
        // Whom nobody could wait for may still have something on its way.
        if notifier.await_readers(dir).is_ok() {
            engine.drive(|state, now| state.client.readers_passed(now, dir, until));
        }
    }
}

/// Sees to it without waiting for calls that the kernel believes nothing of what it is still to forget, then sends the
/// frames that say so.
///
/// Pages that a call under way holds stay until it is answered. Who reads them asks for the file's attributes first, and
/// drops them when it was changed.
fn rescue(engine: &Shared, notifier: &Notifier, stuck: Stuck) {
    let Stuck { frames, nodes, listings, directories, since } = stuck;
    for node in listings {
        let _ = notifier.invalidate(&Invalidate::Listing { node });
    }
    for node in nodes {
        let _ = notifier.invalidate(&Invalidate::Node { node, offset: -1, length: 0 });
    }
    let directories: Vec<TreeNodeId> = directories.into_iter().collect();
    let wait = notifier.distrust(&directories, since.unwrap_or_else(Instant::now)).unwrap_or_default();
    if !wait.is_zero() {
        engine.pause(wait);
    }
    for (outlet, frame) in frames {
        send(&outlet, frame);
    }
}

fn send(outlet: &Outlet, frame: Frame) {
    outlet.push(frame, Class::Urgent);
    outlet.flush();
}
