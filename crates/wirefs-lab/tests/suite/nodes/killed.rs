//! Five nodes read each other's files while nodes are killed and restarted at random.
//!
//! ```text
//! [linus1] … [linus5] ── bridge      20 readers, one writer in each share, and a fault injector
//! ```
//!
//! `WIREFS_NODES_SECONDS` sets the duration; `make nodes` runs five minutes and also checks the times of tables and
//! accesses. By default, for busy machines, the test checks only contents and errors, and measures convergence in
//! protocol periods.

mod contents;
mod fault_injector;
mod reader;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::segment::{NodeSegment, wait_for};
use contents::{FILES, Versions};
use fault_injector::{FaultInjector, NodeChange, name};
use reader::{NodeReader, Observations, format_errors};

const NODES: usize = 5;
/// The default duration.
const DEFAULT_DURATION: Duration = Duration::from_secs(30);
/// The maximum pause between two faults.
const CALM_MAX: Duration = Duration::from_millis(1_500);
/// The maximum number of protocol periods of 250 ms until all tables are correct after a fault, on any machine.
const PERIODS_MAX: u64 = 80;
/// The same as a time, on an idle machine.
const CONVERGENCE_MAX: Duration = Duration::from_secs(3);
/// The maximum time of an access, on an idle machine: the deadline of 10 s plus scheduling.
const ACCESS_MAX: Duration = Duration::from_secs(12);

/// State shared by the fault injector, the readers and the writer.
struct SharedState {
    versions: Versions,
    /// Per node, a counter of transitions: odd while the node is not known to be alive.
    changes: [AtomicU64; NODES],
    /// Per node, when it was known to be alive, in milliseconds since the start.
    settled_ms: [AtomicU64; NODES],
    begun: Instant,
    stop: AtomicBool,
}

/// The transition counters of two nodes at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PairState {
    here: u64,
    there: u64,
}

impl PairState {
    /// Returns whether both nodes are alive and known to be.
    fn is_calm(self) -> bool {
        self.here.is_multiple_of(2) && self.there.is_multiple_of(2)
    }
}

impl SharedState {
    fn pair_state(&self, here: usize, there: usize) -> PairState {
        let of = |node: usize| self.changes[node].load(Ordering::SeqCst);
        PairState { here: of(here), there: of(there) }
    }

    fn unsettle(&self, node: usize) {
        if self.changes[node].load(Ordering::SeqCst).is_multiple_of(2) {
            self.changes[node].fetch_add(1, Ordering::SeqCst);
        }
    }

    fn settle(&self, node: usize) {
        self.settled_ms[node].store(self.now_ms(), Ordering::SeqCst);
        self.changes[node].fetch_add(1, Ordering::SeqCst);
    }

    fn now_ms(&self) -> u64 {
        self.begun.elapsed().as_millis() as u64
    }

    /// Returns for how long both nodes have been known to be alive.
    fn calm_for(&self, here: usize, there: usize) -> Duration {
        let since = [here, there].map(|node| self.settled_ms[node].load(Ordering::SeqCst));
        Duration::from_millis(self.now_ms() - since[0].max(since[1]))
    }
}

/// Every second node mounts the others in mode strict, in which each version is visible at once.
fn is_strict(node: usize) -> bool {
    node.is_multiple_of(2)
}

/// S-112, S-113, S-116: no wrong byte, no unexpected error, and correct tables on all nodes.
#[test]
fn readers_get_no_wrong_bytes_while_nodes_are_killed_and_restarted() {
    let configured = std::env::var("WIREFS_NODES_SECONDS").ok();
    let span =
        configured.as_ref().map_or(DEFAULT_DURATION, |text| Duration::from_secs(text.parse().unwrap()));
    let segment = NodeSegment::new("random", NODES);
    let shared = Arc::new(SharedState {
        versions: Versions::new(),
        changes: std::array::from_fn(|_| AtomicU64::new(1)),
        settled_ms: Default::default(),
        begun: Instant::now(),
        stop: AtomicBool::new(false),
    });
    let shares: Vec<_> = (1..=NODES).map(|number| segment.share(number)).collect();
    for (node, share) in shares.iter().enumerate() {
        (0..FILES).for_each(|file| shared.versions.replace(share, node, file));
    }
    let writing = Arc::clone(&shared);
    let writer = thread::spawn(move || writing.versions.write_versions(&shares, 7, &writing.stop));
    let mut injector = FaultInjector::new(&segment, &shared, 11);
    let mut changes = vec![injector.restart_all()];
    let (readers, done) = start_readers(&segment, &shared);
    let begun = Instant::now();
    while begun.elapsed() < span {
        thread::sleep(injector.pause(CALM_MAX));
        changes.push(injector.inject());
    }
    changes.push(injector.restart_all());
    // After the last restart each node reads from each other node.
    let before: Vec<u64> = done.iter().map(|count| count.load(Ordering::Relaxed)).collect();
    for (count, before) in done.iter().zip(before) {
        wait_for("each to read from each again", || count.load(Ordering::Relaxed) > before + FILES as u64);
    }
    shared.stop.store(true, Ordering::Relaxed);
    wait_for("no access to be blocked", || readers.iter().all(JoinHandle::is_finished));
    let mut observations = Observations::default();
    readers.into_iter().for_each(|reader| observations.add(reader.join().unwrap()));
    writer.join().unwrap();
    report(&observations, &changes);
    assert!(
        observations.faults.is_empty(),
        "{} faults, of them: {:#?}",
        observations.faults.len(),
        &observations.faults[..observations.faults.len().min(20)]
    );
    let slow: Vec<&str> = changes
        .iter()
        .filter(|change| change.periods > PERIODS_MAX)
        .map(|change| change.name.as_str())
        .collect();
    assert!(slow.is_empty(), "tables were wrong for more than {PERIODS_MAX} periods after: {slow:?}");
    if configured.is_some() {
        check_times(&observations, &changes);
    }
}

/// Starts one reader for each ordered pair of nodes; returns the readers and their counts of successful reads.
fn start_readers(
    segment: &NodeSegment,
    shared: &Arc<SharedState>,
) -> (Vec<JoinHandle<Observations>>, Vec<Arc<AtomicU64>>) {
    let pairs = (0..NODES).flat_map(|here| (0..NODES).map(move |there| (here, there)));
    let start = |(here, there): (usize, usize)| {
        let done = Arc::new(AtomicU64::new(0));
        let at = segment.net(here + 1).join(name(there));
        let reader = NodeReader { here, there, at, shared: Arc::clone(shared), done: Arc::clone(&done) };
        (thread::spawn(move || reader.run()), done)
    };
    pairs.filter(|(here, there)| here != there).map(start).unzip()
}

fn report(observations: &Observations, changes: &[NodeChange]) {
    println!(
        "{} reads of {} MiB; {}",
        observations.reads,
        observations.bytes >> 20,
        format_errors(&observations.errors)
    );
    let Observations { longest, reported_down, reported_down_after, .. } = observations;
    println!(
        "longest access {:.2} s; {reported_down} times a live node was reported down, at most {:.2} s after it was known to be alive",
        longest.as_secs_f64(),
        reported_down_after.as_secs_f64()
    );
    for NodeChange { name, elapsed, periods } in changes {
        println!("{name:34} tables correct after {:.2} s, {periods} periods", elapsed.as_secs_f64());
    }
    for (kind, word) in [("all", ""), ("kills", "killed"), ("returns", "returned")] {
        let of = |change: &&NodeChange| change.name.contains(word);
        println!("{}", distribution(kind, changes.iter().filter(of).map(|change| change.elapsed).collect()));
    }
}

/// Formats the distribution of the convergence times of one kind of change.
fn distribution(kind: &str, mut elapsed: Vec<Duration>) -> String {
    elapsed.sort();
    let at =
        |percent: usize| elapsed.get((elapsed.len() * percent / 100).min(elapsed.len().saturating_sub(1)));
    let seconds = |percent: usize| at(percent).map_or(0.0, Duration::as_secs_f64);
    let late = elapsed.iter().filter(|elapsed| **elapsed > CONVERGENCE_MAX).count();
    format!(
        "tables, {kind}: {} changes, median {:.2} s, 90 % {:.2} s, 99 % {:.2} s, longest {:.2} s, {late} past {CONVERGENCE_MAX:?}",
        elapsed.len(),
        seconds(50),
        seconds(90),
        seconds(99),
        seconds(100),
    )
}

/// Checks that only an idle machine can pass.
fn check_times(observations: &Observations, changes: &[NodeChange]) {
    assert!(observations.longest <= ACCESS_MAX, "an access took {:?}", observations.longest);
    let late: Vec<&str> = changes
        .iter()
        .filter(|change| change.elapsed > CONVERGENCE_MAX)
        .map(|change| change.name.as_str())
        .collect();
    assert!(late.is_empty(), "tables were wrong for more than {CONVERGENCE_MAX:?} after: {late:?}");
    assert!(
        observations.reported_down_after <= CONVERGENCE_MAX,
        "reported down {:?} after it was known to be alive",
        observations.reported_down_after
    );
}
