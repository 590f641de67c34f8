//! The history of operations, and the checker for impossible observations.
//!
//! Each path is a register. A write takes effect between its call and its return; a failed write may take effect at any
//! time after its call. A read may return a write that began before the read ended. The exception: a newer write, which
//! began after the older one had returned, had to be visible when the read began. How long a write may stay hidden
//! depends on writer and reader ([`Freshness`]).

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use super::record::RecordValue;

/// The origin of an operation. The programs of a client share its mount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum EventOrigin {
    ClientA,
    ClientB,
    Server,
}

impl EventOrigin {
    const ALL: [EventOrigin; 3] = [EventOrigin::ClientA, EventOrigin::ClientB, EventOrigin::Server];
}

/// The maximum time that a change may stay hidden from another observer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Freshness {
    /// A change by the other client.
    pub(super) other_client: Duration,
    /// A change by a program on the server.
    pub(super) server: Duration,
    /// The same if the reader's link was cut meanwhile, or shortly before; counted from its restoration.
    pub(super) server_after_cut: Duration,
}

/// A cut of a link.
#[derive(Clone, Copy, Debug)]
pub(super) struct LinkCut {
    pub(super) origin: EventOrigin,
    pub(super) from: Duration,
    pub(super) to: Duration,
}

impl LinkCut {
    /// Returns when frames surely pass again. TCP doubles its retransmission timeout (RFC 6298), so the delay after the
    /// restoration is up to the length of the cut, and later data queues behind it.
    fn restored_at(&self) -> Duration {
        self.to + (self.to - self.from)
    }
}

/// A path of the tree.
pub(super) type Register = String;

#[derive(Clone, Debug)]
pub(super) struct WriteEvent {
    pub(super) origin: EventOrigin,
    pub(super) start: Duration,
    /// `None`: the write failed; whether and when it took effect is unknown.
    pub(super) end: Option<Duration>,
    /// `None`: a removal of the name.
    pub(super) value: Option<RecordValue>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Observed {
    Value(RecordValue),
    /// The name did not exist.
    Absent,
    /// The name existed.
    Present,
}

#[derive(Clone, Debug)]
pub(super) struct ReadEvent {
    pub(super) origin: EventOrigin,
    pub(super) start: Duration,
    pub(super) end: Duration,
    pub(super) observed: Observed,
}

/// All events, by register.
#[derive(Debug, Default)]
pub(super) struct EventHistory {
    pub(super) writes: BTreeMap<Register, Vec<WriteEvent>>,
    pub(super) reads: BTreeMap<Register, Vec<ReadEvent>>,
    /// Failed calls, by error message.
    pub(super) failures: BTreeMap<String, usize>,
}

/// An impossible observation.
#[derive(Debug)]
pub(super) struct ImpossibleRead(String);

impl fmt::Display for ImpossibleRead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl EventHistory {
    pub(super) fn merge(parts: Vec<EventHistory>) -> EventHistory {
        let mut whole = EventHistory::default();
        for part in parts {
            for (register, writes) in part.writes {
                whole.writes.entry(register).or_default().extend(writes);
            }
            for (register, reads) in part.reads {
                whole.reads.entry(register).or_default().extend(reads);
            }
            for (failure, count) in part.failures {
                *whole.failures.entry(failure).or_default() += count;
            }
        }
        whole
    }

    pub(super) fn counts(&self) -> String {
        let writes: usize = self.writes.values().map(Vec::len).sum();
        let reads: usize = self.reads.values().map(Vec::len).sum();
        format!("{reads} reads and {writes} writes, failures {:?}", self.failures)
    }

    /// Returns whether enough operations of each client succeeded for a meaningful result.
    pub(super) fn has_enough_events(&self) -> bool {
        let reads = || self.reads.values().flatten();
        let writes = || self.writes.values().flatten();
        [EventOrigin::ClientA, EventOrigin::ClientB].into_iter().all(|origin| {
            reads().filter(|read| read.origin == origin).count() >= 100
                && writes().filter(|write| write.origin == origin).count() >= 10
        })
    }

    pub(super) fn faults(&self, freshness: Freshness, cuts: &[LinkCut]) -> Vec<ImpossibleRead> {
        let mut faults = Vec::new();
        for (register, reads) in &self.reads {
            // The initial state: no file, or value 0.
            let initial = register.ends_with("/place").then_some(RecordValue(0));
            let first = WriteEvent {
                origin: EventOrigin::Server,
                start: Duration::ZERO,
                end: Some(Duration::ZERO),
                value: initial,
            };
            let mut writes = vec![first];
            writes.extend(self.writes.get(register).into_iter().flatten().cloned());
            let known =
                EventOrigin::ALL.map(|origin| (origin, Visibility::to(origin, &writes, freshness, cuts)));
            for read in reads {
                let latest = known
                    .iter()
                    .find(|(origin, _)| *origin == read.origin)
                    .and_then(|(_, known)| known.at(read.start));
                if let Some(why) = fault(read, &writes, latest) {
                    faults.push(ImpossibleRead(format!("{register}: {read:?}: {why}")));
                }
            }
        }
        faults
    }
}

/// Returns why the read was impossible; `latest` is the start of the newest write that had to be visible.
fn fault(read: &ReadEvent, writes: &[WriteEvent], latest: Option<Duration>) -> Option<String> {
    let has_value = |write: &&WriteEvent| match read.observed {
        Observed::Value(value) => write.value == Some(value),
        Observed::Absent => write.value.is_none(),
        Observed::Present => write.value.is_some(),
    };
    let is_possible = |write: &WriteEvent| {
        let overwritten = write.end.is_some_and(|end| latest.is_some_and(|latest| end < latest));
        write.start <= read.end && !overwritten
    };
    let mut observed = writes.iter().filter(has_value).peekable();
    if observed.peek().is_none() {
        return Some("no write had that value".to_owned());
    }
    let nearest = writes.iter().filter(has_value).max_by_key(|write| write.start);
    (!observed.any(is_possible)).then(|| {
        let newer = latest.and_then(|latest| writes.iter().find(|write| write.start == latest));
        format!("read of {nearest:?}, visible by then {newer:?}")
    })
}

/// The times at which writes had to be visible to one reader.
struct Visibility {
    /// Pairs of a time and the start of the newest write that is visible from then on; both ascending.
    steps: Vec<(Duration, Duration)>,
}

impl Visibility {
    fn to(reader: EventOrigin, writes: &[WriteEvent], freshness: Freshness, cuts: &[LinkCut]) -> Visibility {
        let from = |write: &WriteEvent| {
            let end = write.end?;
            let hidden_for = match (write.origin, reader) {
                (writer, reader) if writer == reader => Duration::ZERO,
                (_, EventOrigin::Server) => Duration::ZERO,
                (EventOrigin::Server, _) => freshness.server,
                (EventOrigin::ClientA | EventOrigin::ClientB, _) => freshness.other_client,
            };
            let mut from = end + hidden_for;
            if write.origin == EventOrigin::Server && reader != EventOrigin::Server {
                for cut in cuts.iter().filter(|cut| cut.origin == reader) {
                    if cut.from <= from && end <= cut.restored_at() {
                        from = from.max(cut.to + freshness.server_after_cut);
                    }
                }
            }
            Some((from, write.start))
        };
        let mut steps: Vec<(Duration, Duration)> = writes.iter().filter_map(from).collect();
        steps.sort_unstable();
        let mut youngest = Duration::ZERO;
        for (_, start) in &mut steps {
            youngest = youngest.max(*start);
            *start = youngest;
        }
        Visibility { steps }
    }

    fn at(&self, time: Duration) -> Option<Duration> {
        let past = self.steps.partition_point(|(from, _)| *from < time);
        self.steps.get(past.checked_sub(1)?).map(|(_, start)| *start)
    }
}

#[test]
fn checker_reports_impossible_reads() {
    let ms = Duration::from_millis;
    let write = |origin, value, start, end: Option<u64>| WriteEvent {
        origin,
        start: ms(start),
        end: end.map(ms),
        value: Some(RecordValue(value)),
    };
    let check = |observed, start, writes: Vec<WriteEvent>| {
        let read = ReadEvent { origin: EventOrigin::ClientA, start: ms(start), end: ms(start + 1), observed };
        let history = EventHistory {
            writes: BTreeMap::from([("n".to_owned(), writes)]),
            reads: BTreeMap::from([("n".to_owned(), vec![read])]),
            failures: BTreeMap::new(),
        };
        let freshness = Freshness { other_client: ms(100), server: ms(100), server_after_cut: ms(1_000) };
        history
            .faults(freshness, &[LinkCut { origin: EventOrigin::ClientA, from: ms(5_000), to: ms(6_000) }])
            .len()
    };
    let two =
        || vec![write(EventOrigin::ClientB, 1, 10, Some(20)), write(EventOrigin::ClientB, 2, 30, Some(40))];
    assert_eq!(check(Observed::Value(RecordValue(1)), 140, two()), 0, "within the window");
    assert_eq!(check(Observed::Value(RecordValue(1)), 141, two()), 1, "later than that");
    assert_eq!(check(Observed::Value(RecordValue(2)), 141, two()), 0);
    assert_eq!(check(Observed::Value(RecordValue(2)), 20, two()), 1, "before it began");
    assert_eq!(check(Observed::Value(RecordValue(3)), 20, two()), 1, "never written");
    assert_eq!(check(Observed::Absent, 141, two()), 1);
    assert_eq!(check(Observed::Present, 5, two()), 1);
    let own =
        || vec![write(EventOrigin::ClientA, 1, 10, Some(20)), write(EventOrigin::ClientA, 2, 30, Some(40))];
    assert_eq!(check(Observed::Value(RecordValue(1)), 41, own()), 1, "own changes are observed at once");
    let unknown =
        || vec![write(EventOrigin::ClientB, 1, 10, None), write(EventOrigin::ClientB, 2, 30, Some(40))];
    assert_eq!(check(Observed::Value(RecordValue(1)), 900, unknown()), 0, "it may have happened late");
    let cut = || {
        vec![write(EventOrigin::Server, 1, 10, Some(20)), write(EventOrigin::Server, 2, 4_990, Some(4_995))]
    };
    assert_eq!(check(Observed::Value(RecordValue(1)), 6_900, cut()), 0);
    assert_eq!(check(Observed::Value(RecordValue(1)), 7_001, cut()), 1);
    let after = |at| {
        vec![write(EventOrigin::Server, 1, 10, Some(20)), write(EventOrigin::Server, 2, at - 5, Some(at))]
    };
    assert_eq!(check(Observed::Value(RecordValue(1)), 6_900, after(6_200)), 0, "nothing passes yet");
    assert_eq!(check(Observed::Value(RecordValue(1)), 7_150, after(7_010)), 1, "it does by then");
}
