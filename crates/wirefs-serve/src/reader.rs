//! The thread that takes a connection's messages off the wire, and carries out what is quick itself.

use super::connection::Connection;
use super::core::{Core, Effects, Task};
use super::log;
use super::replies::Patience;
use super::shared::Shared;
use bytes::Bytes;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use wirefs_carrier::{Carrier, CarrierLost, FrameSource, SendQueue};
use wirefs_op::{Order, Weight};
use wirefs_server::{ConnectionKey, Input};

/// Requests that take no turns and take longer than this are worth a wake-up of another thread, which costs about half.
const QUICK_FREE_MAX: Duration = Duration::from_micros(100);
/// Requests that take turns gain nothing from another thread but that others may overtake them.
const QUICK_TURN_MAX: Duration = Duration::from_micros(400);
/// With more than this queued for the peer, in bytes, its reader makes no replies itself: it might have to wait.
const QUEUED_BYTES_MAX: usize = 1024 * 1024;

/// Starts a thread that serves this carrier.
pub(super) fn start(shared: &Arc<Shared>, carrier: Carrier) -> io::Result<()> {
    let shared = Arc::clone(shared);
    thread(move || {
        if let Some((connection, source)) = enter(&shared, carrier) {
            read(&shared, &connection, source);
        }
    })
}

/// Serves this carrier on the present thread until it is gone.
pub(super) fn run(shared: &Arc<Shared>, carrier: Carrier) {
    if let Some((connection, source)) = enter(shared, carrier) {
        read(shared, &connection, source);
        // Another thread may have gone on reading.
        shared.wait_while(None, |core| core.connections.contains_key(&connection.key));
    }
}

/// Goes on reading in place of a reader that is busy.
pub(super) fn relieve(shared: &Arc<Shared>, connection: Arc<Connection>, source: Box<dyn FrameSource>) {
    let shared = Arc::clone(shared);
    let closer = connection.closer.clone();
    if thread(move || read(&shared, &connection, source)).is_err() {
        closer.close();
    }
}

fn thread(body: impl FnOnce() + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new().name("wirefs-reader".into()).spawn(body).map(drop)
}

/// Takes a connection into the list; `None`: the core would not have it.
pub(super) fn enter(
    shared: &Arc<Shared>,
    carrier: Carrier,
) -> Option<(Arc<Connection>, Box<dyn FrameSource>)> {
    let Carrier { source, sink, closer, peer } = carrier;
    let (lost, gauge) = (closer.clone(), sink.gauge());
    let outbox = SendQueue::start(sink, closer.clone(), move |_| lost.close());
    let mut effects = Effects::default();
    let mut core = shared.core();
    let key = ConnectionKey(core.connections_begun);
    core.connections_begun += 1;
    let connection = Arc::new(Connection::new(key, peer, outbox, closer, gauge));
    core.connections.insert(key, Arc::clone(&connection));
    core.handle(shared.now(), Input::Connected(key), &mut effects);
    if let Some(identity) = &connection.peer.identity {
        core.handle(shared.now(), Input::Identified(key, *identity.raw()), &mut effects);
    }
    drop(core);
    shared.perform(effects);
    (!connection.is_gone()).then_some((connection, source))
}

/// Reads until the connection is gone or another reader has taken over.
fn read(shared: &Arc<Shared>, connection: &Arc<Connection>, mut source: Box<dyn FrameSource>) {
    while !connection.is_gone() {
        let body = match source.receive() {
            Ok(Some(body)) => body,
            Ok(None) | Err(CarrierLost::Closed | CarrierLost::PeerClosed) => break,
            Err(lost) => {
                log::line(format_args!("{}: {lost}", connection.peer.address));
                break;
            }
        };
        if let Some(task) = take_in(shared, connection, body) {
            connection.slot.leave(source, shared.now().0);
            shared.alarm.watch();
            let effects = shared.carry_out(task, Patience::None);
            shared.perform(effects);
            match connection.slot.take_back() {
                Some(back) => source = back,
                None => return,
            }
        }
    }
    leave(shared, connection);
}

/// Hands in one message; returns what this thread is to carry out itself.
fn take_in(shared: &Arc<Shared>, connection: &Arc<Connection>, body: Bytes) -> Option<Task> {
    let bytes = body.len() as u64 + 4;
    connection.received_bytes.fetch_add(bytes, Ordering::Relaxed);
    // Replies that are made without a job free their tags at once, so tags do not bound them.
    connection.outbox.wait_for_room();
    let mut effects = Effects::default();
    let mut core = shared.core();
    core.handle(shared.now(), Input::Received(connection.key, body), &mut effects);
    let behind = core.sessions.is_behind(connection.key);
    let watched = core.watchers > 0;
    drop(core);
    if watched {
        shared.announce();
    }
    for (key, session) in std::mem::take(&mut effects.recollections) {
        shared.recollect(key, session);
    }
    shared.let_in(std::mem::take(&mut effects.attaches));
    // A reader that has to wait for the others can do nothing itself.
    let own = if !behind && effects.tasks.len() == 1 && is_worth_doing_here(connection, &effects) {
        effects.tasks.pop()
    } else {
        None
    };
    shared.perform(effects);
    if behind {
        let key = connection.key;
        shared.wait_while(None, |core: &Core| core.sessions.is_behind(key));
    }
    own
}

fn is_worth_doing_here(connection: &Connection, effects: &Effects) -> bool {
    let Some(task) = effects.tasks.first() else {
        return false;
    };
    let fast = match task.job.order {
        Order::Free => connection.free_pace.average() < QUICK_FREE_MAX,
        Order::Change | Order::Ordered => connection.turn_pace.average() < QUICK_TURN_MAX,
    };
    task.job.weight == Weight::Quick
        && fast
        && !connection.slot.has_relieved()
        && connection.outbox.queued_bytes() < QUEUED_BYTES_MAX
}

/// The connection is gone.
pub(super) fn leave(shared: &Arc<Shared>, connection: &Connection) {
    let mut effects = Effects::default();
    let mut core = shared.core();
    let known = core.forget(connection.key).is_some();
    core.handle(shared.now(), Input::Disconnected(connection.key), &mut effects);
    drop(core);
    // What the core has closed itself may still have last words to send.
    if known {
        connection.outbox.close();
    }
    shared.perform(effects);
    // Who went without believing anything is not to be waited for, should this server be killed.
    shared.prepare_leasing();
    shared.announce();
    shared.alarm.ring();
}
