//! The thread that turns the node where nobody waits.
//!
//! It looks once in a while whether somebody led since the last look; who leads for long it leaves alone until it is
//! called. When a thread begins to wait, it takes the lead away from the keeper without a word.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use wirefs_circuit::Time;
use wirefs_raw::drop_net_raw;

use super::engine::{Engine, STUCK_WAIT};
use super::machine::Leader;

/// Between two looks.
const WATCH: Duration = Duration::from_millis(1);
/// How long the last words of a node may take.
const FAREWELL: Duration = Duration::from_secs(1);

/// Starts the keeper, which ends when the node has ended.
pub(super) fn start(engine: &Arc<Engine>) -> std::io::Result<std::thread::JoinHandle<()>> {
    let engine = Arc::clone(engine);
    std::thread::Builder::new().name("wirefs-ether".into()).spawn(move || {
        // The sockets are open. A thread without the right cannot be made to open others.
        let _kept = drop_net_raw();
        watch(&engine);
    })
}

fn watch(engine: &Engine) {
    let mut seen = 0;
    let mut end = None;
    loop {
        let mut machine = engine.lock();
        if machine.is_ending {
            let end = *end.get_or_insert_with(|| Instant::now() + FAREWELL);
            if machine.is_quiet() || end <= Instant::now() {
                return;
            }
        }
        let term = machine.term;
        match machine.leader {
            Leader::Nobody if term == seen || machine.is_ending => {
                let term = machine.lead(Leader::Keeper);
                let now = engine.now();
                engine.leave(machine, now);
                keep(engine, term, &mut end);
                continue;
            }
            Leader::Waiter if term == seen && !machine.is_ending => {
                machine.is_keeper_deep = true;
                let called = engine.keeper.wait(machine);
                drop(called.unwrap_or_else(PoisonError::into_inner));
                continue;
            }
            Leader::Nobody | Leader::Waiter | Leader::Keeper => seen = term,
        }
        drop(engine.keeper.wait_timeout(machine, WATCH).unwrap_or_else(PoisonError::into_inner));
    }
}

/// Turns the node until somebody else leads, or the node has ended: at `end`, which is set when that begins.
pub(super) fn keep(engine: &Engine, term: u64, end: &mut Option<Instant>) {
    loop {
        let mut wheel = engine.wheel();
        let mut machine = engine.lock();
        if machine.term != term {
            return;
        }
        let now = engine.now();
        let (count, _) = engine.turn(&mut machine, &mut wheel, now);
        if machine.is_ending {
            let end = *end.get_or_insert_with(|| Instant::now() + FAREWELL);
            if machine.is_quiet() || end <= Instant::now() {
                engine.leave(machine, now);
                return;
            }
        }
        let most = end.map_or(Duration::MAX, |_| WATCH);
        if count + engine.leave(machine, now) > 0 || wheel.rings.iter().any(wirefs_raw::Ring::is_ready) {
            continue;
        }
        drop(wheel);
        sleep(engine, term, most);
    }
}

fn sleep(engine: &Engine, term: u64, most: Duration) {
    let machine = engine.lock();
    let now = engine.now();
    if machine.term != term {
        return;
    }
    let due = Time(engine.due.load(Ordering::Relaxed)).min(now + most);
    // What is due and could not be done a moment ago is for the one who has the card's frames, and sees to it behind them.
    let due = if due <= now { now + STUCK_WAIT } else { due };
    engine.asleep_until.store(due.0.max(1), Ordering::SeqCst);
    // Whoever nudges, or takes the lead and leaves it, sees from now on that there is a sleeper to be woken.
    engine.is_keeper_asleep.store(true, Ordering::SeqCst);
    let is_nudged = engine.nudged.load(Ordering::SeqCst);
    drop(machine);
    if !is_nudged {
        engine.poll(&engine.keeper_bell, due.since(now));
    }
    let machine = engine.lock();
    engine.is_keeper_asleep.store(false, Ordering::SeqCst);
    if machine.term == term {
        engine.asleep_until.store(0, Ordering::SeqCst);
        engine.nudged.store(false, Ordering::SeqCst);
        engine.bell.clear();
    }
}
