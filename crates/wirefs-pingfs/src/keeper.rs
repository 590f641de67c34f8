//! The thread that sends on what comes back while nobody waits.

use std::sync::Arc;
use std::time::Duration;

use crate::circuit::Zeal;
use crate::limits::{QUIET_AFTER, STAND_BACK};
use crate::store::Shared;
use crate::tempo;

/// The longest that the keeper leaves the circuit alone: below what the machine takes for a stop.
const PAUSE_MAX: Duration = Duration::from_millis(200);
/// The shortest pause where a host is far: its packets are sent on as they come.
const PAUSE_FAR_MIN: Duration = Duration::from_micros(50);

/// Turns the circuit until the store is dropped.
pub(crate) fn run(shared: &Arc<Shared>) {
    while !shared.is_over() {
        // Whoever waits for a packet takes it off the socket itself, with no thread to be woken in between.
        if shared.driver_count() > 0 {
            std::thread::sleep(STAND_BACK);
            continue;
        }
        let mut core = shared.lock();
        // Somebody began to wait before the lock was had: what comes now is theirs to take.
        if shared.driver_count() > 0 {
            continue;
        }
        let is_all_near = core.circuit.ways.iter().all(|way| way.is_near || way.is_gone);
        let is_quiet = core.stirred.elapsed() >= QUIET_AFTER;
        let zeal = if is_quiet { Zeal::Quiet } else { Zeal::Idle };
        let count = core.turn(zeal);
        let is_broken = core.broken.is_some();
        let rest = core.circuit.rest(zeal);
        let near = core.circuit.ways.iter().filter(|way| way.is_near && !way.is_gone);
        let pause_near = tempo::pause_min(is_quiet, near.map(|way| &way.tempo));
        core.is_quiet = is_quiet;
        drop(core);
        let least = match (is_all_near, is_broken, count) {
            (_, true, _) => PAUSE_MAX,
            (true, false, _) => pause_near,
            (false, false, 0) => PAUSE_FAR_MIN,
            (false, false, _) => continue,
        };
        rest.wait(Some(shared.bell()), least, PAUSE_MAX);
        shared.hush();
    }
}
