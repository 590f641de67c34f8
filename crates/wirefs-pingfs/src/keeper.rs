//! The keeper thread, which sends packets again while no caller polls.

use std::sync::Arc;
use std::time::Duration;

use crate::echo_driver::PollBudget;
use crate::limits::{KEEPER_BACKOFF, QUIET_AFTER};
use crate::pacing;
use crate::store::StoreShared;

/// The longest pause of the keeper; the state machine takes a longer one for a stall.
const PAUSE_MAX: Duration = Duration::from_millis(200);
/// The shortest pause with a far host, whose packets are sent again as they arrive.
const PAUSE_FAR_MIN: Duration = Duration::from_micros(50);

/// Polls until the store is dropped.
pub(crate) fn run(shared: &Arc<StoreShared>) {
    while !shared.is_over() {
        // A caller that waits for a packet reads the socket itself, so no thread switch is between the packet
        // and the caller.
        if shared.poller_count() > 0 {
            std::thread::sleep(KEEPER_BACKOFF);
            continue;
        }
        let mut core = shared.lock();
        // A caller began to wait before the lock was acquired.
        if shared.poller_count() > 0 {
            continue;
        }
        let is_all_near = core.driver.paths.iter().all(|path| path.is_near || path.is_gone);
        let is_quiet = core.last_use.elapsed() >= QUIET_AFTER;
        let budget = if is_quiet { PollBudget::Quiet } else { PollBudget::Idle };
        let count = core.poll_once(budget);
        let is_broken = core.broken.is_some();
        let events = core.driver.next_wait(budget);
        let near = core.driver.paths.iter().filter(|path| path.is_near && !path.is_gone);
        let pause_near = pacing::pause_min(is_quiet, near.map(|path| &path.pacing));
        core.is_quiet = is_quiet;
        drop(core);
        let wait_min = match (is_all_near, is_broken, count) {
            (_, true, _) => PAUSE_MAX,
            (true, false, _) => pause_near,
            (false, false, 0) => PAUSE_FAR_MIN,
            (false, false, _) => continue,
        };
        events.wait(Some(shared.wakeup()), wait_min, PAUSE_MAX);
        shared.clear_wakeup();
    }
}
