//! The clock's thread: lets the core's time pass, and looks after callers that got a signal.

use super::data;
use super::engine::Shared;
use super::signals::{Fate, fate};
use std::io;
use std::sync::atomic::Ordering;
use std::time::Duration;
use wirefs_client::call::CallId;

const TICK: Duration = Duration::from_millis(250);
/// It is looked how many ways there are to the server as often as this many ticks pass.
const LOOK_EACH: u32 = 20;

pub(super) fn start(engine: &Shared) -> io::Result<()> {
    let engine = Shared::clone(engine);
    std::thread::Builder::new().name("wirefs-ticker".into()).spawn(move || {
        engine.drive(|state, now| state.client.greet(now));
        // It was looked when the connection was taken into use.
        let mut ticks: u32 = 1;
        while !engine.is_stopped() {
            if ticks.is_multiple_of(LOOK_EACH) {
                let ways = engine.dial.path_count();
                engine.drive(|state, now| state.client.ways(now, ways));
            }
            if engine.pause_or_want(TICK) {
                data::open_wanted(&engine);
                continue;
            }
            ticks = ticks.wrapping_add(1);
            let callers = engine.lock().callers_to_watch(engine.now());
            let fates: Vec<(CallId, Fate)> =
                callers.into_iter().map(|(call, pid)| (call, fate(pid))).collect();
            engine.drive(|state, now| {
                for (call, fate) in fates {
                    state.meet(now, call, fate);
                }
                if engine.redoes.load(Ordering::Relaxed) {
                    state.client.is_being_redone(now);
                }
                state.client.tick(now);
            });
        }
    })?;
    Ok(())
}
