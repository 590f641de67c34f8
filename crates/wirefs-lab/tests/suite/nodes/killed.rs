//! Five nodes, each reading the files of all others, while nodes are killed and come back at random.
//!
//! ```text
//! [linus1] … [linus5] ── bridge      20 readers, one writer in each share, and fate
//! ```
//!
//! `WIREFS_NODES_SECONDS` sets how long that goes on; `make nodes` lets it go on for five minutes, and holds the times of tables and
//! accesses against their bounds, too. On a machine with other work only what was read and told is judged, and what the
//! tables took is counted in periods of the protocol.

mod changes;
mod contents;
mod reader;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::segment::{Segment, wait_for};
use changes::{Change, Fate, name};
use contents::{FILES, Versions};
use reader::{Met, Reader, named};

const NODES: usize = 5;
/// How long a run goes on when nothing else is said.
const SPAN: Duration = Duration::from_secs(30);
/// The longest time in which nothing happens.
const CALM_MAX: Duration = Duration::from_millis(1_500);
/// Periods of the protocol, 250 ms each, in which a table is right after a change, on whatever machine.
const TURNS_MAX: u64 = 80;
/// The same in time, on a machine that has nothing else to do.
const TABLES_MAX: Duration = Duration::from_secs(3);
/// How long an access may be blocked there: a call's deadline of 10 s, and what a machine may add.
const ACCESS_MAX: Duration = Duration::from_secs(12);

/// What fate, the readers and the writer know together.
struct Shared {
    versions: Versions,
    /// Of each node: odd while it is not known to be there, and grows with each change.
    changes: [AtomicU64; NODES],
    /// When it was known to be there, in milliseconds since the beginning.
    settled_ms: [AtomicU64; NODES],
    begun: Instant,
    stop: AtomicBool,
}

/// How two nodes are at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Moment {
    here: u64,
    there: u64,
}

impl Moment {
    /// Both are there, and all know it.
    fn is_calm(self) -> bool {
        self.here.is_multiple_of(2) && self.there.is_multiple_of(2)
    }
}

impl Shared {
    fn moment(&self, here: usize, there: usize) -> Moment {
        let of = |node: usize| self.changes[node].load(Ordering::SeqCst);
        Moment { here: of(here), there: of(there) }
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

    /// For how long both have been known to be there.
    fn calm_for(&self, here: usize, there: usize) -> Duration {
        let since = [here, there].map(|node| self.settled_ms[node].load(Ordering::SeqCst));
        Duration::from_millis(self.now_ms() - since[0].max(since[1]))
    }
}

/// Every second node mounts the others in mode strict: it sees each version at once.
fn is_strict(node: usize) -> bool {
    node.is_multiple_of(2)
}

/// S-83, S-84, S-88: no wrong byte, no error but the right one, and all know who lives.
#[test]
fn whoever_is_killed_and_returns_nobody_reads_a_wrong_byte() {
    let asked = std::env::var("WIREFS_NODES_SECONDS").ok();
    let span = asked.as_ref().map_or(SPAN, |text| Duration::from_secs(text.parse().unwrap()));
    let segment = Segment::new("random", NODES);
    let shared = Arc::new(Shared {
        versions: Versions::new(),
        changes: std::array::from_fn(|_| AtomicU64::new(1)),
        settled_ms: Default::default(),
        begun: Instant::now(),
        stop: AtomicBool::new(false),
    });
    let shares: Vec<_> = (1..=NODES).map(|number| segment.share(number)).collect();
    for (node, share) in shares.iter().enumerate() {
        (0..FILES).for_each(|file| shared.versions.put_next(share, node, file));
    }
    let writing = Arc::clone(&shared);
    let writer = thread::spawn(move || writing.versions.go_on(&shares, 7, &writing.stop));
    let mut fate = Fate::new(&segment, &shared, 11);
    let mut changes = vec![fate.bring_all_back()];
    let (readers, done) = start_readers(&segment, &shared);
    let begun = Instant::now();
    while begun.elapsed() < span {
        thread::sleep(fate.pause(CALM_MAX));
        changes.push(fate.strike());
    }
    changes.push(fate.bring_all_back());
    // All is as it was: each reads from each.
    let before: Vec<u64> = done.iter().map(|count| count.load(Ordering::Relaxed)).collect();
    for (count, before) in done.iter().zip(before) {
        wait_for("each to read from each again", || count.load(Ordering::Relaxed) > before + FILES as u64);
    }
    shared.stop.store(true, Ordering::Relaxed);
    wait_for("no access to be blocked", || readers.iter().all(JoinHandle::is_finished));
    let mut met = Met::default();
    readers.into_iter().for_each(|reader| met.add(reader.join().unwrap()));
    writer.join().unwrap();
    report(&met, &changes);
    assert!(
        met.faults.is_empty(),
        "{} faults, of them: {:#?}",
        met.faults.len(),
        &met.faults[..met.faults.len().min(20)]
    );
    let slow: Vec<&str> =
        changes.iter().filter(|change| change.turns > TURNS_MAX).map(|change| change.what.as_str()).collect();
    assert!(slow.is_empty(), "tables were wrong for more than {TURNS_MAX} periods after: {slow:?}");
    if asked.is_some() {
        judge_times(&met, &changes);
    }
}

/// One reader for each node and each other one, with the count of what it read.
fn start_readers(segment: &Segment, shared: &Arc<Shared>) -> (Vec<JoinHandle<Met>>, Vec<Arc<AtomicU64>>) {
    let pairs = (0..NODES).flat_map(|here| (0..NODES).map(move |there| (here, there)));
    let start = |(here, there): (usize, usize)| {
        let done = Arc::new(AtomicU64::new(0));
        let at = segment.net(here + 1).join(name(there));
        let reader = Reader { here, there, at, shared: Arc::clone(shared), done: Arc::clone(&done) };
        (thread::spawn(move || reader.run()), done)
    };
    pairs.filter(|(here, there)| here != there).map(start).unzip()
}

fn report(met: &Met, changes: &[Change]) {
    println!("{} reads of {} MiB; {}", met.reads, met.bytes >> 20, named(&met.errors));
    let Met { longest, called_down, called_down_after, .. } = met;
    println!(
        "longest access {:.2} s; {called_down} times a node that lived was called down, at most {:.2} s after all knew it",
        longest.as_secs_f64(),
        called_down_after.as_secs_f64()
    );
    for Change { what, took, turns } in changes {
        println!("{what:34} tables right after {:.2} s, {turns} periods", took.as_secs_f64());
    }
    for (kind, word) in [("all", ""), ("kills", "killed"), ("returns", "returned")] {
        let of = |change: &&Change| change.what.contains(word);
        println!("{}", spread(kind, changes.iter().filter(of).map(|change| change.took).collect()));
    }
}

/// How long the tables took, over all changes of a kind.
fn spread(kind: &str, mut took: Vec<Duration>) -> String {
    took.sort();
    let at = |percent: usize| took.get((took.len() * percent / 100).min(took.len().saturating_sub(1)));
    let seconds = |percent: usize| at(percent).map_or(0.0, Duration::as_secs_f64);
    let late = took.iter().filter(|took| **took > TABLES_MAX).count();
    format!(
        "tables, {kind}: {} changes, median {:.2} s, 90 % {:.2} s, 99 % {:.2} s, longest {:.2} s, {late} past {TABLES_MAX:?}",
        took.len(),
        seconds(50),
        seconds(90),
        seconds(99),
        seconds(100),
    )
}

/// What only a machine with nothing else to do can show.
fn judge_times(met: &Met, changes: &[Change]) {
    assert!(met.longest <= ACCESS_MAX, "an access took {:?}", met.longest);
    let late: Vec<&str> =
        changes.iter().filter(|change| change.took > TABLES_MAX).map(|change| change.what.as_str()).collect();
    assert!(late.is_empty(), "tables were wrong for more than {TABLES_MAX:?} after: {late:?}");
    assert!(met.called_down_after <= TABLES_MAX, "called down {:?} after all knew it", met.called_down_after);
}
