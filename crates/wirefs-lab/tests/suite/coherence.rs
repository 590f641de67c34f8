//! Coherence: two clients and a program on the server change one tree, over links with delay, loss and cuts; what each
//! of them saw is held against what was possible then.
//!
//! `WIREFS_COHERENCE_SECONDS` sets how long each run goes on; `make coherence` runs ten minutes.

mod actor;
mod history;
mod record;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use wirefs_lab::random::Random;
use wirefs_lab::{LinkHandle, LinkProfile, Probability};

use crate::site::Site;
use actor::Actor;
use history::{Cut, Freshness, History, Who};

/// How long a run goes on when nothing else is said.
const SPAN: Duration = Duration::from_secs(20);
/// The directories of the tree, and the names in each.
pub(crate) const DIRECTORIES: usize = 3;
pub(crate) const NAMES: usize = 4;

fn span() -> Duration {
    let seconds = std::env::var("WIREFS_COHERENCE_SECONDS").ok();
    seconds.map_or(SPAN, |text| Duration::from_secs(text.parse().expect("a number of seconds")))
}

/// What goes on in one run.
struct Plan {
    name: &'static str,
    mode: &'static str,
    freshness: Freshness,
    profile: LinkProfile,
    cuts: bool,
    /// A program on the server changes the tree too.
    outside: bool,
    seed: u64,
}

fn run(plan: Plan) {
    let site = Site::tls_of_two(plan.name, plan.profile.clone());
    for directory in 0..DIRECTORIES {
        std::fs::create_dir(site.export().join(format!("d{directory}"))).unwrap();
        record::write_in_place_file(&site.export().join(format!("d{directory}/place")));
    }
    let a = site.mount("a", &["--mode", plan.mode]);
    let b = site.mount_other("b", &["--mode", plan.mode]);
    let begun = Instant::now();
    let stop = AtomicBool::new(false);
    let (histories, cuts) = thread::scope(|scope| {
        let act = |who: Who, at: &Path, nth: u64| {
            let (at, stop) = (at.to_owned(), &stop);
            let sees_unfinished = who != Who::Outside && !plan.freshness.others.is_zero();
            let dice = (plan.seed * 100 + nth, nth);
            scope.spawn(move || Actor::new(who, at, begun, dice, sees_unfinished).run(stop))
        };
        let mut actors = vec![act(Who::A, &a, 1), act(Who::A, &a, 2), act(Who::B, &b, 3), act(Who::B, &b, 4)];
        if plan.outside {
            actors.push(act(Who::Outside, site.export(), 5));
        }
        let links = [(Who::A, site.link()), (Who::B, site.other_link())];
        let cuts = if plan.cuts { cut_now_and_then(&links, begun, plan.seed) } else { Vec::new() };
        while begun.elapsed() < span() {
            thread::sleep(Duration::from_millis(20));
        }
        stop.store(true, Ordering::Relaxed);
        let histories: Vec<History> = actors.into_iter().map(|actor| actor.join().unwrap()).collect();
        (histories, cuts)
    });
    let history = History::merge(histories);
    println!("{}: {}", plan.name, history.counts());
    let faults = history.faults(plan.freshness, &cuts);
    assert!(history.is_worth_judging(), "too little happened: {}", history.counts());
    assert!(faults.is_empty(), "{} of {} saw what was not possible:\n{}", faults.len(), history.counts(), {
        faults.iter().take(20).map(|fault| format!("{fault}\n")).collect::<String>()
    });
}

/// Cuts one link, then the other, for spans short and long; heals before it returns.
fn cut_now_and_then(links: &[(Who, &LinkHandle); 2], begun: Instant, seed: u64) -> Vec<Cut> {
    let mut random = Random::new(seed);
    let mut cuts = Vec::new();
    while begun.elapsed() + Duration::from_secs(4) < span() {
        thread::sleep(Duration::from_millis(1_000 + random.below(2_500)));
        let Some((who, link)) = links.get(random.below(2) as usize) else { break };
        let from = begun.elapsed();
        link.cut();
        let longest = if random.below(4) == 0 { 9_000 } else { 1_500 };
        thread::sleep(Duration::from_millis(random.below(longest)));
        link.heal();
        cuts.push(Cut { who: *who, from, to: begun.elapsed() });
    }
    cuts
}

fn window(window: Duration) -> Freshness {
    Freshness { others: window, outside: window, outside_after_cut: window }
}

fn long_and_lossy() -> LinkProfile {
    LinkProfile::rtt(Duration::from_millis(20)).with(|lane| {
        lane.loss = Probability::new(0.01).unwrap();
        lane.jitter = Duration::from_millis(2);
    })
}

#[test]
fn nothing_is_older_than_the_window_over_a_lossy_link() {
    run(Plan {
        name: "coherence-window",
        mode: "window=1s",
        freshness: window(Duration::from_secs(1)),
        profile: long_and_lossy(),
        cuts: false,
        outside: true,
        seed: 1,
    });
}

#[test]
fn nothing_is_older_than_the_window_when_links_are_cut() {
    run(Plan {
        name: "coherence-cuts",
        mode: "window=1s",
        freshness: window(Duration::from_secs(1)),
        profile: long_and_lossy(),
        cuts: true,
        outside: true,
        seed: 2,
    });
}

/// A client that cannot be told of a change believes what it knows for a lease's term of 15 s, and hears of what programs
/// on the server did when it is back.
const LEASED: Freshness = Freshness {
    others: Duration::ZERO,
    outside: Duration::from_secs(1),
    outside_after_cut: Duration::from_secs(20),
};

#[test]
fn nothing_leased_is_ever_stale_over_a_lossy_link() {
    run(Plan {
        name: "coherence-lease",
        mode: "lease",
        freshness: LEASED,
        profile: long_and_lossy(),
        cuts: false,
        outside: true,
        seed: 4,
    });
}

#[test]
fn nothing_leased_is_ever_stale_when_links_are_cut() {
    run(Plan {
        name: "coherence-lease-cuts",
        mode: "lease",
        freshness: LEASED,
        profile: long_and_lossy(),
        cuts: true,
        outside: true,
        seed: 5,
    });
}

#[test]
fn strict_mounts_see_everything_at_once() {
    run(Plan {
        name: "coherence-strict",
        mode: "strict",
        freshness: window(Duration::ZERO),
        profile: LinkProfile::rtt(Duration::from_millis(4)),
        cuts: false,
        outside: true,
        seed: 3,
    });
}
