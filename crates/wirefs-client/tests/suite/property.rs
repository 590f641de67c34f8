//! Random programs through the simulated world. One seed is one run; `WIREFS_SEEDS` tells how many.

use crate::config;
use crate::program::Play;
use crate::world::{Delays, World};
use std::time::Duration;

const UNSTEADY: Delays = Delays { wire: (1_000, 60_000), server: (0, 30_000), kernel: (0, 0) };

/// Seeds that found something once, by mode and by whether connections break. They always run.
const KEPT: [(&str, bool, u64); 20] = [
    // A lookup overtaken by an own creation took the new file its only name.
    ("window", true, 166),
    // Contents were believed for as long as own changes were under way.
    ("window=50ms", false, 223),
    // A size from before another's truncation came back while an own change was under way.
    ("window", false, 394),
    ("strict", false, 272),
    // A rename between two names of one file, which moves nothing, took the first away.
    ("window", false, 882),
    // A listing took away a name that was found after it.
    ("window", true, 1453),
    // An own removal was believed for as long as a listing that was asked for while it was under way.
    ("window", false, 1001),
    // A size asked for before two writes, and answered between their replies, knew of the second one only.
    ("window", false, 1471),
    // What a change of attributes was answered came to the kernel behind a recall of the file.
    ("lease+strict", false, 172),
    // A read that others overtook again and again ended in EIO.
    ("lease", false, 488),
    // A listing was judged by when it was read, not by when it was opened.
    ("lease", true, 307),
    // The size that a file was opened with was shown for what was written through another descriptor since.
    ("window", false, 17),
    // A write that was gathered while an fsync waited for the one before was never sent.
    ("lazy=4k", false, 9),
    // What was fetched ahead closed the fd of a file that was open, and then lost its name.
    ("lease", false, 326),
    ("strict", false, 230),
    // The reply to a write that was sent made the file end before what was gathered behind it.
    ("lazy=4k", false, 49),
    // Two clients renamed one name after each other: the kernel of the first is told right behind its answer.
    ("lease", false, 722),
    // A name that was confirmed while its object was under recall made what a listing had said of the object count again.
    ("lease", true, 1274),
    // A removal whose reply was lost took away what others had put there since.
    ("window", true, 716),
    // An empty file that came ahead, and was written since, was kept with all of its contents for who reads it first.
    ("lease", false, 2259),
];

/// The seeds to run: `WIREFS_SEED` is one, `WIREFS_SEEDS` how many from 0 on, the kept ones first.
#[expect(clippy::disallowed_methods, reason = "a test is told how long to go on")]
pub(crate) fn seeds(mode: &str, cuts: bool, usual: u64) -> Vec<u64> {
    let told = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    if let Some(seed) = told("WIREFS_SEED") {
        return vec![seed];
    }
    let kept = KEPT.iter().filter(|(of, breaking, _)| *of == mode && *breaking == cuts);
    kept.map(|(.., seed)| *seed).chain(0..told("WIREFS_SEEDS").unwrap_or(usual)).collect()
}

pub(crate) struct Running(pub(crate) &'static str, pub(crate) u64);

impl Drop for Running {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("mode {}, seed {}: WIREFS_SEED={} runs it alone", self.0, self.1, self.1);
        }
    }
}

fn run(mode: &'static str, cuts: bool) {
    run_with(mode, [mode; 2], UNSTEADY, cuts, 60);
}

/// A kernel takes its time to forget.
const LEASED: Delays = Delays { kernel: (0, 20_000), ..UNSTEADY };

fn run_with(name: &'static str, modes: [&str; 2], delays: Delays, cuts: bool, usual: u64) {
    run_on(name, modes, delays, (cuts, false), usual);
}

fn run_on(name: &'static str, modes: [&str; 2], delays: Delays, (cuts, stores): (bool, bool), usual: u64) {
    for seed in seeds(name, cuts, usual) {
        let _running = Running(name, seed);
        let configs = modes.map(config);
        let mut world = World::of(seed, &configs, delays);
        world.damages = stores;
        if stores {
            for seat in 0..modes.len() {
                world.use_store(seat);
                world.seats[seat].client.bound_names(5, 4);
            }
        }
        let window = configs.iter().map(|config| config.mode.window()).max().unwrap_or_default();
        let mut play = Play::new(world, window, cuts);
        play.run(150);
        play.clear();
    }
}

/// Data connections come and go, each with delays of its own.
fn run_narrow(name: &'static str, modes: [&str; 2], cuts: bool, usual: u64) {
    let (mut replies, mut lost) = (0, 0);
    for seed in seeds(name, cuts, usual) {
        let _running = Running(name, seed);
        let configs = modes.map(config);
        let mut world = World::of(seed, &configs, LEASED);
        world.with_narrow_connections();
        let window = configs.iter().map(|config| config.mode.window()).max().unwrap_or_default();
        let mut play = Play::new(world, window, cuts);
        play.run(150);
        (replies, lost) = (replies + play.world.data.replies, lost + play.world.data.lost);
        play.clear();
    }
    assert!(
        replies > 0 && lost > 0,
        "{replies} replies came over data connections, {lost} of these were lost"
    );
}

/// S-82
#[test]
fn lease_clients_see_the_tree_as_it_is_over_several_connections() {
    run_narrow("lease", ["lease", "lease"], false, 60);
    run_narrow("lease", ["lease", "strict"], true, 30);
}

/// S-82
#[test]
fn other_clients_see_what_they_did_over_several_connections() {
    run_narrow("window", ["window"; 2], true, 30);
    run_narrow("lazy=4k", ["lazy=4k", "commit"], true, 20);
}

#[test]
fn a_window_client_sees_its_own_changes_at_once_and_others_within_the_window() {
    run("window", false);
}

#[test]
fn a_strict_client_sees_the_tree_as_it_is_during_each_call() {
    run("strict", false);
}

/// S-7
#[test]
fn a_direct_client_sees_the_tree_as_it_is_during_each_call() {
    run_with("direct", ["direct"; 2], LEASED, false, 40);
    run_with("direct", ["direct", "lease"], LEASED, true, 30);
    run_with("direct+strict", ["direct", "strict"], LEASED, true, 30);
}

/// S-15
#[test]
fn a_lazy_client_sees_its_own_changes_at_once_and_others_within_the_window() {
    run_with("lazy=4k", ["lazy=4k"; 2], UNSTEADY, false, 40);
    run_with("lazy=4k", ["lazy=4k", "window"], UNSTEADY, true, 20);
}

#[test]
fn a_commit_client_sees_what_a_window_client_does() {
    run_with("commit", ["commit", "window"], UNSTEADY, false, 30);
    run_with("commit", ["commit"; 2], UNSTEADY, true, 20);
}

#[test]
fn each_call_is_answered_once_and_nothing_is_left_although_connections_break() {
    run("window", true);
    run("strict", true);
}

#[test]
fn short_window_ends_while_requests_are_in_flight() {
    assert_eq!(config("window=50ms").mode.window(), Duration::from_millis(50));
    run("window=50ms", false);
}

#[test]
fn lease_clients_see_the_tree_as_it_is_during_each_call() {
    run_with("lease", ["lease", "lease"], LEASED, false, 60);
}

#[test]
fn a_lease_client_sees_what_one_without_leases_does() {
    run_with("lease+strict", ["lease", "strict"], LEASED, false, 40);
}

#[test]
fn lease_clients_stay_right_although_connections_break() {
    run_with("lease", ["lease", "lease"], LEASED, true, 30);
    run_with("lease+strict", ["lease", "strict"], LEASED, true, 30);
}

#[test]
fn clients_to_whom_the_top_of_the_tree_comes_along_see_the_same() {
    for (name, modes, cuts) in [("lease", ["lease"; 2], false), ("lease+strict", ["lease", "strict"], true)] {
        for seed in seeds(name, cuts, 30) {
            let _running = Running(name, seed);
            let configs = modes.map(config);
            let world = World::of(seed, &configs, LEASED);
            let window = configs.iter().map(|config| config.mode.window()).max().unwrap_or_default();
            let mut play = Play::new(world, window, cuts);
            play.greets = true;
            play.run(150);
            play.clear();
        }
    }
}

#[test]
fn clients_that_keep_contents_on_disk_see_the_same() {
    run_on("lease", ["lease", "lease"], LEASED, (false, true), 40);
    run_on("lease+strict", ["lease", "window"], LEASED, (true, true), 20);
    run_on("window", ["window", "window"], UNSTEADY, (false, true), 20);
}
