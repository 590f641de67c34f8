//! The carrier's thread: it receives, and dials again after the connection breaks.

mod server_reboot;

use super::MountPlan;
use super::engine::{Shared, State};
use super::handshake::{Attached, ConnectError, shake_hands};
use super::loss::Lost;
use super::processor_wait::ProcessorWait;
use super::random;
use super::server_sink::ServerSink;
use crate::log;
use bytes::Bytes;
use server_reboot::{ConnectionUse, ServerReboot};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use wirefs_carrier::{Closer, FrameHandler, FrameSource, SendQueue, printable};
use wirefs_op::TreePath;

/// The first wait before a redial; each further one is twice as long. It is short, because a killed server is often
/// restarted at once, and a failed dial costs less than a waiting program.
const RETRY_FIRST: Duration = Duration::from_millis(5);
/// The longest wait before a redial.
const RETRY_MAX: Duration = Duration::from_secs(5);

pub(super) fn start(engine: &Shared, attached: Attached, plan: MountPlan) -> io::Result<()> {
    let engine = Shared::clone(engine);
    let source = install(&engine, attached, false);
    std::thread::Builder::new().name("wirefs-wire".into()).spawn(move || run(&engine, source, &plan))?;
    Ok(())
}

/// Reports that the server blames this mount for a protocol error.
pub(super) fn report_blame(why: &str) {
    log::line(format_args!(
        "the server closed the connection because this mount broke the protocol: {why}. Changes whose outcome is unknown now fail \
         with an I/O error; those that programs were told to be done are kept: `wirefs quarantine list`. Please report this line"
    ));
}

/// Reports a link of the server that leads out of the mount.
pub(super) fn report_refused_link(link: &TreePath, target: &[u8]) {
    log::line(format_args!(
        "the link {} of the server leads out of the mount, to {}. Such links fail with EACCES, since programs would use files of \
         this machine instead; further ones are not reported. To follow them, mount with --symlinks=all",
        printable(link.as_bytes()),
        printable(target)
    ));
}

fn run(engine: &Shared, mut source: Box<dyn FrameSource>, plan: &MountPlan) {
    let mut wait = Duration::ZERO;
    loop {
        let (end, why) = receive(engine, source.as_mut());
        let lost = Lost::begin(engine, &why);
        wait = wait_after(end, wait);
        drop_connection(engine);
        if !wait.is_zero() {
            engine.pause(wait);
        }
        source = match dial_again(engine, plan, &lost) {
            Some(attached) => install(engine, attached, true),
            None => return,
        };
        lost.end(engine);
    }
}

/// The reason why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// It broke, or the mount is stopped.
    Broken,
    /// One side broke the protocol, which the next connection may do again at once.
    Fault,
}

/// Returns the wait before the next dial, after the end of a connection and the previous wait.
fn wait_after(end: End, last: Duration) -> Duration {
    match end {
        End::Broken => Duration::ZERO,
        End::Fault => (last * 2).clamp(RETRY_FIRST, RETRY_MAX),
    }
}

/// Receives until the connection breaks or one side breaks the protocol. Returns also the reason as text.
fn receive(engine: &Shared, source: &mut dyn FrameSource) -> (End, String) {
    let mut processor_wait = ProcessorWait::of_this_thread();
    loop {
        let body = match source.receive() {
            Ok(Some(body)) => body,
            Ok(None) => return (End::Broken, "the server closed it".to_owned()),
            Err(lost) => return (End::Broken, lost.to_string()),
        };
        if engine.is_stopped() {
            return (End::Broken, String::new());
        }
        let delayed = processor_wait.since_last();
        let take_in = |state: &mut State, now| {
            state.client.delayed(delayed);
            state.client.receive(now, body)
        };
        if engine.drive(take_in).is_err() {
            return (End::Fault, "the server broke the protocol".to_owned());
        }
    }
}

fn drop_connection(engine: &Shared) {
    engine.drive(|state, now| {
        if let Some(sink) = state.sink.take() {
            sink.close();
        }
        if let Some(closer) = state.closer.take() {
            closer.close();
        }
        state.client.lost(now);
    });
}

/// Takes a connection into use, and returns its source.
fn install(engine: &Shared, attached: Attached, again: bool) -> Box<dyn FrameSource> {
    let Attached { carrier, attachment, resumed, early } = attached;
    let closer = carrier.closer.clone();
    // The writer's loss also ends the receiver, which cleans up.
    let sink = match carrier.sink.in_process() {
        Some(server) => ServerSink::InProcess(server),
        None => ServerSink::Carrier(SendQueue::start(carrier.sink, carrier.closer, |_| {})),
    };
    let in_process = sink.in_process().cloned();
    let paths = engine.dial.path_count();
    let is_in_use = engine.drive(|state, now| {
        // A stop closes the connections that are in use at that moment, and no later one.
        if engine.is_stopped() {
            sink.close();
            closer.close();
            return false;
        }
        state.sink = Some(sink);
        state.installed += 1;
        state.closer = Some(closer);
        state.peer = carrier.peer;
        state.client.set_paths(now, paths);
        if again {
            state.client.connected(now, attachment, resumed);
        }
        true
    });
    if !is_in_use {
        return carrier.source;
    }
    let is_sound =
        early.into_iter().all(|body| engine.drive(|state, now| state.client.receive(now, body)).is_ok());
    if !is_sound {
        // The receiver finds it closed.
        engine.lock().closer.iter().for_each(Closer::close);
    }
    if let Some(server) = in_process {
        server.set_handler(frame_handler(engine));
    }
    carrier.source
}

/// Returns the handler of replies from an in-process server, for the present connection.
fn frame_handler(engine: &Shared) -> FrameHandler {
    let installed = engine.lock().installed;
    let engine = Arc::downgrade(engine);
    Arc::new(move |body: Bytes| {
        let Some(engine) = engine.upgrade().filter(|engine| !engine.is_stopped()) else { return false };
        engine.drive(|state, now| {
            // A reply of an earlier connection is ignored.
            let is_present = state.installed == installed && state.sink.is_some();
            !is_present || state.client.receive(now, body).is_ok()
        })
    })
}

/// Dials until the server is up; `None` when the mount is stopped. A server with another tree is not the mounted one.
fn dial_again(engine: &Shared, plan: &MountPlan, lost: &Lost) -> Option<Attached> {
    let mut wait = RETRY_FIRST;
    let mut server_reboot = ServerReboot::default();
    let root = engine.lock().client.root_id();
    while !engine.is_stopped() {
        let dialed = plan.dial.dial_again().map_err(ConnectError::from);
        let attached = dialed.and_then(|carrier| shake_hands(carrier, engine.session, plan));
        let attached = attached.map_err(|error| lost.failed(engine, &error)).ok();
        match attached {
            Some(attached) if attached.attachment.root.id == root => {
                match server_reboot.check(engine, attached) {
                    ConnectionUse::Use(attached) => return Some(*attached),
                    ConnectionUse::DialNow => {
                        wait = RETRY_FIRST;
                        continue;
                    }
                    ConnectionUse::DialLater => {}
                }
            }
            Some(attached) => attached.carrier.closer.close(),
            None => {}
        }
        let spread = Duration::from_micros(random::below(wait.as_micros() as u64 / 2 + 1));
        wait = match engine.pause_unless_dialing(wait + spread) {
            true => RETRY_FIRST,
            false => (wait * 2).min(RETRY_MAX),
        };
    }
    None
}

#[cfg(test)]
mod tests;
