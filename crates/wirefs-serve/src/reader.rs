//! The thread that receives a connection's messages, and executes quick requests itself.

use super::connection::Connection;
use super::core::{Core, Effects, Task};
use super::log;
use super::options::PeerRights;
use super::replies::WaitPolicy;
use super::shared::Shared;
use bytes::Bytes;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use wirefs_carrier::{Carrier, CarrierLost, FrameSource, SendQueue, packing};
use wirefs_op::{Order, Weight};
use wirefs_server::{ConnectionKey, ServerInput};

/// Longer requests outside the write slot are worth the wake-up of another thread, which costs about half of this.
const QUICK_FREE_MAX: Duration = Duration::from_micros(100);
/// Requests in the write slot gain nothing from another thread, except that others may overtake them.
const QUICK_SLOT_MAX: Duration = Duration::from_micros(400);
/// With more bytes queued for the peer, its reader executes no requests: sending the reply might block.
const QUEUED_BYTES_MAX: usize = 1024 * 1024;

/// Starts a thread that serves a carrier.
pub(super) fn start(shared: &Arc<Shared>, carrier: Carrier) -> io::Result<()> {
    let shared = Arc::clone(shared);
    thread(move || {
        if let Some((connection, source)) = enter(&shared, carrier, PeerRights::default()) {
            read(&shared, &connection, source);
        }
    })
}

/// Serves a carrier in the calling thread until the connection ends.
pub(super) fn run(shared: &Arc<Shared>, carrier: Carrier, rights: PeerRights) {
    if let Some((connection, source)) = enter(shared, carrier, rights) {
        read(shared, &connection, source);
        // Another thread may have taken over the reading.
        shared.wait_while(None, |core| core.connections.contains_key(&connection.key));
    }
}

/// Continues reading in place of a busy reader.
pub(super) fn take_over(shared: &Arc<Shared>, connection: Arc<Connection>, source: Box<dyn FrameSource>) {
    let shared = Arc::clone(shared);
    let closer = connection.closer.clone();
    if thread(move || read(&shared, &connection, source)).is_err() {
        closer.close();
    }
}

fn thread(body: impl FnOnce() + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new().name("wirefs-reader".into()).spawn(body).map(drop)
}

/// Registers a connection; `None` if the sessions refuse it.
pub(super) fn enter(
    shared: &Arc<Shared>,
    carrier: Carrier,
    rights: PeerRights,
) -> Option<(Arc<Connection>, Box<dyn FrameSource>)> {
    let Carrier { source, sink, closer, peer } = packing(carrier, &Arc::default());
    let (lost, gauge) = (closer.clone(), sink.gauge());
    let send_queue = SendQueue::start(sink, closer.clone(), move |_| lost.close());
    let mut effects = Effects::default();
    let mut core = shared.core();
    let key = ConnectionKey(core.connections_begun);
    core.connections_begun += 1;
    let connection = Arc::new(Connection::new(key, (peer, rights), send_queue, closer, gauge));
    core.connections.insert(key, Arc::clone(&connection));
    core.handle(shared.now(), ServerInput::Connected(key), &mut effects);
    let party = match (&connection.peer.identity, connection.peer.host()) {
        (Some(identity), _) => Some(ServerInput::Identified(key, *identity.raw())),
        (None, Some(host)) => Some(ServerInput::Addressed(key, host)),
        (None, None) => None,
    };
    if let Some(party) = party {
        core.handle(shared.now(), party, &mut effects);
    }
    if rights.read_only {
        core.handle(shared.now(), ServerInput::Restricted(key), &mut effects);
    }
    drop(core);
    shared.perform(effects);
    (!connection.is_gone()).then_some((connection, source))
}

/// Reads until the connection ends or another reader has taken over.
fn read(shared: &Arc<Shared>, connection: &Arc<Connection>, mut source: Box<dyn FrameSource>) {
    while !connection.is_gone() {
        let body = match source.receive() {
            Ok(Some(body)) => body,
            Ok(None) | Err(CarrierLost::Closed | CarrierLost::PeerClosed) => break,
            Err(lost) => {
                log::peer(format_args!("{}: {lost}", connection.peer.address));
                break;
            }
        };
        if let Some(task) = take_in(shared, connection, body) {
            connection.slot.leave(source, shared.now().0);
            shared.watchdog.watch();
            let effects = shared.carry_out(task, WaitPolicy::Never);
            shared.perform(effects);
            match connection.slot.take_back() {
                Some(back) => source = back,
                None => return,
            }
        }
    }
    leave(shared, connection);
}

/// Passes one message to the sessions, and returns the task that this thread executes itself.
fn take_in(shared: &Arc<Shared>, connection: &Arc<Connection>, body: Bytes) -> Option<Task> {
    let bytes = body.len() as u64 + 4;
    connection.received_bytes.fetch_add(bytes, Ordering::Relaxed);
    // Replies without a job free their tags at once, so tags do not bound them.
    connection.send_queue.wait_for_room();
    let mut effects = Effects::default();
    let mut core = shared.core();
    core.handle(shared.now(), ServerInput::Received(connection.key, body), &mut effects);
    let is_backpressured = core.sessions.is_backlogged(connection.key);
    let watched = core.watchers > 0;
    drop(core);
    if watched {
        shared.announce();
    }
    for (key, session) in std::mem::take(&mut effects.restores) {
        shared.restore_session(key, session);
    }
    shared.attach_waiting(std::mem::take(&mut effects.attaches));
    // A backpressured reader must wait, and cannot execute.
    let own = if !is_backpressured && effects.tasks.len() == 1 && is_worth_doing_here(connection, &effects) {
        effects.tasks.pop()
    } else {
        None
    };
    shared.perform(effects);
    if is_backpressured {
        let key = connection.key;
        shared.wait_while(None, |core: &Core| core.sessions.is_backlogged(key));
    }
    own
}

fn is_worth_doing_here(connection: &Connection, effects: &Effects) -> bool {
    let Some(task) = effects.tasks.first() else {
        return false;
    };
    let fast = match task.job.order {
        Order::Free => connection.free_pace.average() < QUICK_FREE_MAX,
        Order::Change | Order::Ordered => connection.slot_pace.average() < QUICK_SLOT_MAX,
    };
    task.job.weight == Weight::Quick
        && fast
        && !connection.slot.has_replaced()
        && connection.send_queue.queued_bytes() < QUEUED_BYTES_MAX
}

/// Ends the connection.
pub(super) fn leave(shared: &Arc<Shared>, connection: &Connection) {
    let mut effects = Effects::default();
    let mut core = shared.core();
    let known = core.remove_connection(connection.key).is_some();
    core.handle(shared.now(), ServerInput::Disconnected(connection.key), &mut effects);
    drop(core);
    // A connection that the sessions closed may still have replies to send.
    if known {
        connection.send_queue.close();
    }
    shared.perform(effects);
    // The grace period after a kill must not wait for a client that left without leases.
    shared.prepare_leasing();
    shared.announce();
    shared.watchdog.wake();
}
