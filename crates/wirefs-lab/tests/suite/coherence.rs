//! Coherence: two clients and a program on the server change one tree, over links with delay, loss and cuts. A checker
//! decides whether each observation was allowed at its time.
//!
//! `WIREFS_COHERENCE_SECONDS` sets the duration of each run; `make coherence` runs ten minutes.

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
use history::{EventHistory, EventOrigin, Freshness, LinkCut};

/// The default duration of a run.
const SPAN: Duration = Duration::from_secs(20);
/// The number of directories, and of names in each.
pub(crate) const DIRECTORIES: usize = 3;
pub(crate) const NAMES: usize = 4;

fn span() -> Duration {
    let seconds = std::env::var("WIREFS_COHERENCE_SECONDS").ok();
    seconds.map_or(SPAN, |text| Duration::from_secs(text.parse().expect("a number of seconds")))
}

/// The parameters of one run.
struct CoherenceRun {
    name: &'static str,
    mode: &'static str,
    freshness: Freshness,
    profile: LinkProfile,
    cuts: bool,
    /// Whether a program on the server changes the tree too.
    server_program: bool,
    seed: u64,
}

fn run(plan: CoherenceRun) {
    let site = Site::tls_with_two_clients(plan.name, plan.profile.clone());
    for directory in 0..DIRECTORIES {
        std::fs::create_dir(site.export().join(format!("d{directory}"))).unwrap();
        record::write_in_place_file(&site.export().join(format!("d{directory}/place")));
    }
    let a = site.mount("a", &["--mode", plan.mode]);
    let b = site.mount_other("b", &["--mode", plan.mode]);
    let start_time = Instant::now();
    let stop = AtomicBool::new(false);
    let (histories, cuts) = thread::scope(|scope| {
        let act = |origin: EventOrigin, at: &Path, nth: u64| {
            let (at, stop) = (at.to_owned(), &stop);
            let may_be_unfinished = origin != EventOrigin::Server && !plan.freshness.other_client.is_zero();
            let dice = (plan.seed * 100 + nth, nth);
            scope.spawn(move || Actor::new(origin, at, start_time, dice, may_be_unfinished).run(stop))
        };
        let mut actors = vec![
            act(EventOrigin::ClientA, &a, 1),
            act(EventOrigin::ClientA, &a, 2),
            act(EventOrigin::ClientB, &b, 3),
            act(EventOrigin::ClientB, &b, 4),
        ];
        if plan.server_program {
            actors.push(act(EventOrigin::Server, site.export(), 5));
        }
        let links = [(EventOrigin::ClientA, site.link()), (EventOrigin::ClientB, site.other_link())];
        let cuts = if plan.cuts { cut_links(&links, start_time, plan.seed) } else { Vec::new() };
        while start_time.elapsed() < span() {
            thread::sleep(Duration::from_millis(20));
        }
        stop.store(true, Ordering::Relaxed);
        let histories: Vec<EventHistory> = actors.into_iter().map(|actor| actor.join().unwrap()).collect();
        (histories, cuts)
    });
    let history = EventHistory::merge(histories);
    println!("{}: {}", plan.name, history.counts());
    let faults = history.faults(plan.freshness, &cuts);
    assert!(history.has_enough_events(), "too little happened: {}", history.counts());
    assert!(faults.is_empty(), "{} of {} were impossible:\n{}", faults.len(), history.counts(), {
        faults.iter().take(20).map(|fault| format!("{fault}\n")).collect::<String>()
    });
}

/// Cuts one of the links at a time, for short and long spans; all links work again when it returns.
fn cut_links(links: &[(EventOrigin, &LinkHandle); 2], start_time: Instant, seed: u64) -> Vec<LinkCut> {
    let mut random = Random::new(seed);
    let mut cuts = Vec::new();
    while start_time.elapsed() + Duration::from_secs(4) < span() {
        thread::sleep(Duration::from_millis(1_000 + random.below(2_500)));
        let Some((origin, link)) = links.get(random.below(2) as usize) else { break };
        let from = start_time.elapsed();
        link.cut();
        let longest = if random.below(4) == 0 { 9_000 } else { 1_500 };
        thread::sleep(Duration::from_millis(random.below(longest)));
        link.heal();
        cuts.push(LinkCut { origin: *origin, from, to: start_time.elapsed() });
    }
    cuts
}

fn window(window: Duration) -> Freshness {
    Freshness { other_client: window, server: window, server_after_cut: window }
}

fn slow_and_lossy() -> LinkProfile {
    LinkProfile::rtt(Duration::from_millis(20)).with(|lane| {
        lane.loss = Probability::new(0.01).unwrap();
        lane.jitter = Duration::from_millis(2);
    })
}

#[test]
fn reads_are_at_most_a_window_old_over_a_lossy_link() {
    run(CoherenceRun {
        name: "coherence-window",
        mode: "window=1s",
        freshness: window(Duration::from_secs(1)),
        profile: slow_and_lossy(),
        cuts: false,
        server_program: true,
        seed: 1,
    });
}

#[test]
fn reads_are_at_most_a_window_old_when_links_are_cut() {
    run(CoherenceRun {
        name: "coherence-cuts",
        mode: "window=1s",
        freshness: window(Duration::from_secs(1)),
        profile: slow_and_lossy(),
        cuts: true,
        server_program: true,
        seed: 2,
    });
}

/// An unreachable client trusts its cache for the lease term of 15 s, and learns about changes by server programs after
/// it has reconnected.
const LEASED: Freshness = Freshness {
    other_client: Duration::ZERO,
    server: Duration::from_secs(1),
    server_after_cut: Duration::from_secs(20),
};

#[test]
fn leased_data_is_never_stale_over_a_lossy_link() {
    run(CoherenceRun {
        name: "coherence-lease",
        mode: "lease",
        freshness: LEASED,
        profile: slow_and_lossy(),
        cuts: false,
        server_program: true,
        seed: 4,
    });
}

#[test]
fn leased_data_is_never_stale_when_links_are_cut() {
    run(CoherenceRun {
        name: "coherence-lease-cuts",
        mode: "lease",
        freshness: LEASED,
        profile: slow_and_lossy(),
        cuts: true,
        server_program: true,
        seed: 5,
    });
}

#[test]
fn strict_mounts_see_changes_at_once() {
    run(CoherenceRun {
        name: "coherence-strict",
        mode: "strict",
        freshness: window(Duration::ZERO),
        profile: LinkProfile::rtt(Duration::from_millis(4)),
        cuts: false,
        server_program: true,
        seed: 3,
    });
}
