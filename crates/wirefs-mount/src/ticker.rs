//! The clock's thread: it drives the core's timeouts, checks callers with signals, and returns freed memory.

use super::data_connection;
use super::engine::Shared;
use super::memory;
use super::signals::{CallerState, caller_state};
use std::io;
use std::sync::atomic::Ordering;
use std::time::Duration;
use wirefs_client::call::CallId;

const TICK: Duration = Duration::from_millis(250);
/// The number of ticks between two counts of the paths to the server.
const PATH_COUNT_TICKS: u32 = 20;

pub(super) fn start(engine: &Shared) -> io::Result<()> {
    let engine = Shared::clone(engine);
    std::thread::Builder::new().name("wirefs-ticker".into()).spawn(move || {
        engine.drive(|state, now| state.client.greet(now));
        // The paths were counted when the connection was established.
        let mut ticks: u32 = 1;
        while !engine.is_stopped() {
            if ticks.is_multiple_of(PATH_COUNT_TICKS) {
                let paths = engine.dial.path_count();
                engine.drive(|state, now| state.client.set_paths(now, paths));
            }
            if engine.pause_unless_wanted(TICK) {
                data_connection::open_wanted(&engine);
                continue;
            }
            ticks = ticks.wrapping_add(1);
            let callers = engine.lock().callers_to_watch(engine.now());
            let states: Vec<(CallId, CallerState)> =
                callers.into_iter().map(|(call, pid)| (call, caller_state(pid))).collect();
            engine.drive(|state, now| {
                for (call, caller) in states {
                    state.apply_caller_state(now, call, caller);
                }
                if engine.is_replaying.load(Ordering::Relaxed) {
                    state.client.is_being_redone(now);
                }
                state.client.tick(now);
            });
            memory::trim();
        }
    })?;
    Ok(())
}
