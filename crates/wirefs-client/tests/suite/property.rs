//! Random programs through the simulated world. One seed is one run; `WIREFS_SEEDS` tells how many.

use crate::config;
use crate::program::Play;
use crate::world::{Delays, World};
use std::time::Duration;

const UNSTEADY: Delays = Delays { wire: (1_000, 60_000), server: (0, 30_000) };

/// The seeds to run: `WIREFS_SEED` is one, `WIREFS_SEEDS` how many from 0 on.
#[expect(clippy::disallowed_methods, reason = "a test is told how long to go on")]
fn seeds(usual: u64) -> std::ops::Range<u64> {
    let told = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    match told("WIREFS_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..told("WIREFS_SEEDS").unwrap_or(usual),
    }
}

struct Running(&'static str, u64);

impl Drop for Running {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("mode {}, seed {}: WIREFS_SEED={} runs it alone", self.0, self.1, self.1);
        }
    }
}

fn run(mode: &'static str, cuts: bool) {
    for seed in seeds(60) {
        let _running = Running(mode, seed);
        let config = config(mode);
        let world = World::new(seed, config, 2, UNSTEADY);
        let mut play = Play::new(world, config.mode.window(), cuts);
        play.run(150);
        play.clear();
    }
}

#[test]
fn a_window_client_sees_its_own_changes_at_once_and_others_within_the_window() {
    run("window", false);
}

#[test]
fn a_strict_client_sees_the_tree_as_it_is_during_each_call() {
    run("strict", false);
}

#[test]
fn each_call_is_answered_once_and_nothing_is_left_although_connections_break() {
    run("window", true);
    run("strict", true);
}

#[test]
fn a_short_window_ends_while_requests_are_under_way() {
    assert_eq!(config("window=50ms").mode.window(), Duration::from_millis(50));
    run("window=50ms", false);
}
