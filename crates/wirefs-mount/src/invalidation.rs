//! The threads that invalidate the kernel's caches: the queue's thread, which may wait for the kernel; its watchdog;
//! the thread for invalidations before an answer; and the thread that waits for readers of listings.

use super::engine::Shared;
use super::invalidation_queue::{Overdue, QueuedItem};
use super::server_sink::ServerSink;
use super::task_queue::{AwaitReaders, DropBeforeAnswer};
use std::io;
use wirefs_carrier::Class;
use wirefs_client::call::{Answer, Invalidate, TreeNodeId};
use wirefs_fuse::Notifier;
use wirefs_op::{Errno, Frame};

pub(super) fn start(engine: &Shared, notifier: Notifier) -> io::Result<()> {
    let (for_queue, queue_notifier) = (Shared::clone(engine), notifier.clone());
    std::thread::Builder::new()
        .name("wirefs-inval".into())
        .spawn(move || run_queue(&for_queue, &queue_notifier))?;
    let (for_drops, drop_notifier) = (Shared::clone(engine), notifier.clone());
    std::thread::Builder::new()
        .name("wirefs-drop".into())
        .spawn(move || drop_before_answers(&for_drops, &drop_notifier))?;
    let (for_readers, reader_notifier) = (Shared::clone(engine), notifier.clone());
    std::thread::Builder::new()
        .name("wirefs-readers".into())
        .spawn(move || await_readers(&for_readers, &reader_notifier))?;
    let for_watchdog = Shared::clone(engine);
    std::thread::Builder::new().name("wirefs-watchdog".into()).spawn(move || {
        while let Some(overdue) = for_watchdog.kernel.invalidations.next_overdue() {
            send_overdue(&for_watchdog, &notifier, overdue);
        }
    })?;
    Ok(())
}

/// Executes the queue. Errors of the kernel are ignored: the mount is about to be unmounted.
fn run_queue(engine: &Shared, notifier: &Notifier) {
    while let Some(item) =
        engine.kernel.invalidations.next(|| notifier.invalidate_all_names().unwrap_or(false))
    {
        match item {
            QueuedItem::Invalidate(what) => {
                if let Ok(Some(at)) = notifier.invalidate(&what) {
                    engine.kernel.invalidations.repeat_at(what, at);
                }
            }
            QueuedItem::Release(node, names) => drop(notifier.prune(node, names)),
            QueuedItem::Answer((call, waiting, answer)) => {
                waiting.answer(answer);
                engine.lock().delayed.remove(&call);
            }
            QueuedItem::Frame((sink, frame)) => send(&sink, frame),
        }
    }
}

fn drop_before_answers(engine: &Shared, notifier: &Notifier) {
    while let Some(DropBeforeAnswer { what, call, waiting, answer }) = engine.kernel.drops.next() {
        let dropped = notifier.invalidate(&what);
        // A listing that was not dropped must not count as complete. A change is done, whatever the kernel's error.
        let is_lost = dropped.is_err() && matches!(what, Invalidate::Listing { .. });
        waiting.answer(if is_lost { Answer::Fail(Errno::Io) } else { answer });
        engine.lock().delayed.remove(&call);
    }
}

fn await_readers(engine: &Shared, notifier: &Notifier) {
    while let Some(AwaitReaders { dir, until }) = engine.kernel.awaited_readers.next() {
        // Readers that cannot be awaited may still have answers pending.
        if notifier.await_readers(dir).is_ok() {
            engine.drive(|state, now| state.client.readers_passed(now, dir, until));
        }
    }
}

/// Makes the kernel revalidate everything that the overdue items cover, without waiting for calls, and sends the frames
/// that acknowledge this.
///
/// Pages that a pending call holds stay until it is answered. A reader of such a page requests the file's attributes
/// first, and drops the page if they have changed.
fn send_overdue(engine: &Shared, notifier: &Notifier, overdue: Overdue) {
    let Overdue { frames, nodes, listings, directories, since } = overdue;
    for node in listings {
        let _ = notifier.invalidate(&Invalidate::Listing { node });
    }
    for node in nodes {
        let _ = notifier.invalidate(&Invalidate::Node { node, offset: -1, length: 0 });
    }
    let directories: Vec<TreeNodeId> = directories.into_iter().collect();
    let wait = notifier
        .expire_directories(&directories, engine.kernel.invalidations.instant_of(since))
        .unwrap_or_default();
    if !wait.is_zero() {
        engine.pause(wait);
    }
    for (sink, frame) in frames {
        send(&sink, frame);
    }
}

fn send(sink: &ServerSink, frame: Frame) {
    sink.push(frame, Class::Urgent);
    sink.flush();
}
