//! The background thread, which leads while no other thread waits.
//!
//! It checks periodically whether a thread has led since the last check; while a waiting thread leads for long, it
//! sleeps until it is woken. A thread that begins to wait takes the lead from it without notice.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use wirefs_circuit::Time;
use wirefs_raw::drop_net_raw;

use super::engine::{BLOCKED_RETRY, Engine};
use super::mux::Leader;

/// The interval of the checks.
const WATCH_INTERVAL: Duration = Duration::from_millis(1);
/// The time for closing all connections of a node.
const SHUTDOWN_TIME: Duration = Duration::from_secs(1);

/// Starts the thread, which ends with the node.
pub(super) fn start(engine: &Arc<Engine>) -> std::io::Result<std::thread::JoinHandle<()>> {
    let engine = Arc::clone(engine);
    std::thread::Builder::new().name("wirefs-ether".into()).spawn(move || {
        // The sockets are open. Without CAP_NET_RAW the thread can open no others.
        let _kept = drop_net_raw();
        run(&engine);
    })
}

fn run(engine: &Engine) {
    let mut seen = 0;
    let mut end = None;
    loop {
        let mut mux = engine.lock();
        if mux.is_ending {
            let end = *end.get_or_insert_with(|| Instant::now() + SHUTDOWN_TIME);
            if mux.all_ended() || end <= Instant::now() {
                return;
            }
        }
        let term = mux.term;
        match mux.leader {
            Leader::None if term == seen || mux.is_ending => {
                let term = mux.lead(Leader::Background);
                let now = engine.now();
                engine.leave(mux, now);
                run_leader(engine, term, &mut end);
                continue;
            }
            Leader::Waiter if term == seen && !mux.is_ending => {
                mux.is_background_parked = true;
                let woken = engine.background.wait(mux);
                drop(woken.unwrap_or_else(PoisonError::into_inner));
                continue;
            }
            Leader::None | Leader::Waiter | Leader::Background => seen = term,
        }
        drop(engine.background.wait_timeout(mux, WATCH_INTERVAL).unwrap_or_else(PoisonError::into_inner));
    }
}

/// Leads until another thread leads, or the node has ended: at `end`, which is set when the shutdown begins.
pub(super) fn run_leader(engine: &Engine, term: u64, end: &mut Option<Instant>) {
    loop {
        let mut leader_state = engine.leader_state();
        let mut mux = engine.lock();
        if mux.term != term {
            return;
        }
        let now = engine.now();
        let (count, _) = engine.poll_cards(&mut mux, &mut leader_state, now);
        if mux.is_ending {
            let end = *end.get_or_insert_with(|| Instant::now() + SHUTDOWN_TIME);
            if mux.all_ended() || end <= Instant::now() {
                engine.leave(mux, now);
                return;
            }
        }
        let most = end.map_or(Duration::MAX, |_| WATCH_INTERVAL);
        if count + engine.leave(mux, now) > 0 || leader_state.rings.iter().any(wirefs_raw::Ring::is_ready) {
            continue;
        }
        drop(leader_state);
        sleep(engine, term, most);
    }
}

fn sleep(engine: &Engine, term: u64, most: Duration) {
    let mux = engine.lock();
    let now = engine.now();
    if mux.term != term {
        return;
    }
    let due = Time(engine.due.load(Ordering::Relaxed)).min(now + most);
    // Due work that could not be done just now belongs to the thread that has the card's frames; it checks again after
    // sending.
    let due = if due <= now { now + BLOCKED_RETRY } else { due };
    engine.asleep_until.store(due.0.max(1), Ordering::SeqCst);
    // From now on a thread that wakes the leader, or takes and gives up the lead, sees a sleeper to wake.
    engine.is_background_asleep.store(true, Ordering::SeqCst);
    let is_notified = engine.leader_notified.load(Ordering::SeqCst);
    drop(mux);
    if !is_notified {
        engine.poll(&engine.background_wakeup, due.since(now));
    }
    let mux = engine.lock();
    engine.is_background_asleep.store(false, Ordering::SeqCst);
    if mux.term == term {
        engine.asleep_until.store(0, Ordering::SeqCst);
        engine.leader_notified.store(false, Ordering::SeqCst);
        engine.wakeup.clear();
    }
}
