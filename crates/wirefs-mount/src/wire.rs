//! The carrier's thread: receives, and dials again when the connection breaks.

mod lost_power;

use super::MountPlan;
use super::engine::Shared;
use super::handshake::{Attached, shake_hands};
use super::outlet::Outlet;
use super::random;
use bytes::Bytes;
use lost_power::{LostPower, Met};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use wirefs_carrier::{Closer, FrameHandler, FrameSource, SendQueue};

/// The first wait before dialling again; each further one is twice as long. Short: a server that was killed is often started again at
/// once, and a dial that nobody answers costs less than a program that waits.
const RETRY_FIRST: Duration = Duration::from_millis(5);
/// The longest wait before dialling again.
const RETRY_MAX: Duration = Duration::from_secs(5);

pub(super) fn start(engine: &Shared, attached: Attached, plan: MountPlan) -> io::Result<()> {
    let engine = Shared::clone(engine);
    let source = install(&engine, attached, false);
    std::thread::Builder::new().name("wirefs-wire".into()).spawn(move || run(&engine, source, &plan))?;
    Ok(())
}

/// One line for the log of a mount whose server says that it broke the protocol.
pub(super) fn tell_blame(why: &str) {
    eprintln!(
        "wirefs: the server closed the connection because this mount broke the protocol: {why}. Changes whose outcome is unknown now fail \
         with an I/O error; those that programs were told to be done are kept: `wirefs quarantine list`. Please report this line"
    );
}

fn run(engine: &Shared, mut source: Box<dyn FrameSource>, plan: &MountPlan) {
    let mut wait = Duration::ZERO;
    loop {
        wait = wait_after(receive(engine, source.as_mut()), wait);
        drop_connection(engine);
        if !wait.is_zero() {
            engine.pause(wait);
        }
        source = match dial_again(engine, plan) {
            Some(attached) => install(engine, attached, true),
            None => return,
        };
    }
}

/// Why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// It broke, or the mount is stopped.
    Broken,
    /// One side broke the protocol: the next connection may end so at once.
    Fault,
}

/// How long to wait before the server is dialled again, by what ended the connection and how long that was the last time.
fn wait_after(end: End, last: Duration) -> Duration {
    match end {
        End::Broken => Duration::ZERO,
        End::Fault => (last * 2).clamp(RETRY_FIRST, RETRY_MAX),
    }
}

/// Receives until the connection breaks or one side breaks the protocol.
fn receive(engine: &Shared, source: &mut dyn FrameSource) -> End {
    while let Ok(Some(body)) = source.receive() {
        if engine.is_stopped() {
            return End::Broken;
        }
        if engine.drive(|state, now| state.client.receive(now, body)).is_err() {
            return End::Fault;
        }
    }
    End::Broken
}

fn drop_connection(engine: &Shared) {
    engine.drive(|state, now| {
        if let Some(outlet) = state.outlet.take() {
            outlet.close();
        }
        if let Some(closer) = state.closer.take() {
            closer.close();
        }
        state.client.lost(now);
    });
}

/// Takes a connection into use; hands back its receiving side.
fn install(engine: &Shared, attached: Attached, again: bool) -> Box<dyn FrameSource> {
    let Attached { carrier, attachment, resumed, early } = attached;
    let closer = carrier.closer.clone();
    // A loss that the writer finds ends the receiver too, which sees to the rest.
    let outlet = match carrier.sink.in_process() {
        Some(server) => Outlet::Here(server),
        None => Outlet::Wire(SendQueue::start(carrier.sink, carrier.closer, |_| {})),
    };
    let here = outlet.here().cloned();
    let ways = engine.dial.path_count();
    let is_in_use = engine.drive(|state, now| {
        // Who stops it closes what is in use by then, and nothing after.
        if engine.is_stopped() {
            outlet.close();
            closer.close();
            return false;
        }
        state.outlet = Some(outlet);
        state.installed += 1;
        state.closer = Some(closer);
        state.peer = carrier.peer;
        state.client.ways(now, ways);
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
    if let Some(server) = here {
        server.set_handler(hear(engine));
    }
    carrier.source
}

/// Hears a server of this process over the connection that is in use now.
fn hear(engine: &Shared) -> FrameHandler {
    let installed = engine.lock().installed;
    let engine = Arc::downgrade(engine);
    Arc::new(move |body: Bytes| {
        let Some(engine) = engine.upgrade().filter(|engine| !engine.is_stopped()) else { return false };
        engine.drive(|state, now| {
            // What comes over a connection that is used no more is nobody's.
            let is_present = state.installed == installed && state.outlet.is_some();
            !is_present || state.client.receive(now, body).is_ok()
        })
    })
}

/// Dials until the server is back; `None` when the mount is stopped. A server that has another tree there now is not
/// the one that was mounted.
fn dial_again(engine: &Shared, plan: &MountPlan) -> Option<Attached> {
    let mut wait = RETRY_FIRST;
    let mut lost_power = LostPower::default();
    let root = engine.lock().client.root_id();
    while !engine.is_stopped() {
        let dialled = plan.dial.dial_again().ok();
        let attached = dialled.and_then(|carrier| shake_hands(carrier, engine.session, plan).ok());
        match attached {
            Some(attached) if attached.attachment.root.id == root => match lost_power.met(engine, attached) {
                Met::Use(attached) => return Some(*attached),
                Met::DialNow => {
                    wait = RETRY_FIRST;
                    continue;
                }
                Met::DialLater => {}
            },
            Some(attached) => attached.carrier.closer.close(),
            None => {}
        }
        let spread = Duration::from_micros(random::below(wait.as_micros() as u64 / 2 + 1));
        wait = match engine.pause_or_hurry(wait + spread) {
            true => RETRY_FIRST,
            false => (wait * 2).min(RETRY_MAX),
        };
    }
    None
}

#[cfg(test)]
mod tests;
