//! What was done and seen, and which of it was not possible.
//!
//! Each path is a register. A write has a span from its call to its return, within which it happened; one that failed may
//! have happened at any time after its call. A read may see a write that began before the read ended, unless
//! another write began after that one had returned and had itself returned so long before the read began that it had
//! to be known by then. How long that is depends on who wrote and who read ([`Freshness`]).

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use super::record::Value;

/// Who does something. The two clients' programs share their mount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Who {
    A,
    B,
    Outside,
}

impl Who {
    const ALL: [Who; 3] = [Who::A, Who::B, Who::Outside];
}

/// For how long what somebody did may be hidden from another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Freshness {
    /// The other client's changes.
    pub(super) others: Duration,
    /// A program's on the server.
    pub(super) outside: Duration,
    /// The same when the reader's link was cut meanwhile, or so short before that nothing passed yet, counted from its healing.
    pub(super) outside_after_cut: Duration,
}

/// A link that was cut.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cut {
    pub(super) who: Who,
    pub(super) from: Duration,
    pub(super) to: Duration,
}

impl Cut {
    /// When something surely passes again: TCP waits twice as long before each try (RFC 6298), so as long again as the cut lasted, and
    /// what comes later waits behind that.
    fn passes_from(&self) -> Duration {
        self.to + (self.to - self.from)
    }
}

/// A path of the tree.
pub(super) type Register = String;

#[derive(Clone, Debug)]
pub(super) struct Write {
    pub(super) who: Who,
    pub(super) start: Duration,
    /// `None`: it failed, and nobody knows whether and when it happened.
    pub(super) end: Option<Duration>,
    /// `None`: the name was removed.
    pub(super) value: Option<Value>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    Value(Value),
    /// There was no such name.
    Absent,
    /// There was one.
    Present,
}

#[derive(Clone, Debug)]
pub(super) struct Read {
    pub(super) who: Who,
    pub(super) start: Duration,
    pub(super) end: Duration,
    pub(super) seen: Seen,
}

/// All of it, by register.
#[derive(Debug, Default)]
pub(super) struct History {
    pub(super) writes: BTreeMap<Register, Vec<Write>>,
    pub(super) reads: BTreeMap<Register, Vec<Read>>,
    /// Calls that failed, by what they said.
    pub(super) failures: BTreeMap<String, usize>,
}

/// What was seen and was not possible.
#[derive(Debug)]
pub(super) struct Fault(String);

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl History {
    pub(super) fn merge(parts: Vec<History>) -> History {
        let mut whole = History::default();
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

    /// Whether each kind of thing happened often enough that a fault would have shown.
    pub(super) fn is_worth_judging(&self) -> bool {
        let reads = || self.reads.values().flatten();
        let writes = || self.writes.values().flatten();
        [Who::A, Who::B].into_iter().all(|who| {
            reads().filter(|read| read.who == who).count() >= 100
                && writes().filter(|write| write.who == who).count() >= 10
        })
    }

    pub(super) fn faults(&self, freshness: Freshness, cuts: &[Cut]) -> Vec<Fault> {
        let mut faults = Vec::new();
        for (register, reads) in &self.reads {
            // What is there at the beginning: nothing, or value 0.
            let initial = register.ends_with("/place").then_some(Value(0));
            let first =
                Write { who: Who::Outside, start: Duration::ZERO, end: Some(Duration::ZERO), value: initial };
            let mut writes = vec![first];
            writes.extend(self.writes.get(register).into_iter().flatten().cloned());
            let known = Who::ALL.map(|who| (who, Known::to(who, &writes, freshness, cuts)));
            for read in reads {
                let latest = known
                    .iter()
                    .find(|(who, _)| *who == read.who)
                    .and_then(|(_, known)| known.at(read.start));
                if let Some(why) = fault(read, &writes, latest) {
                    faults.push(Fault(format!("{register}: {read:?}: {why}")));
                }
            }
        }
        faults
    }
}

/// Why the read was not possible; `latest` is when the youngest write began that had to be known by then.
fn fault(read: &Read, writes: &[Write], latest: Option<Duration>) -> Option<String> {
    let is_seen = |write: &&Write| match read.seen {
        Seen::Value(value) => write.value == Some(value),
        Seen::Absent => write.value.is_none(),
        Seen::Present => write.value.is_some(),
    };
    let is_possible = |write: &Write| {
        let overwritten = write.end.is_some_and(|end| latest.is_some_and(|latest| end < latest));
        write.start <= read.end && !overwritten
    };
    let mut seen = writes.iter().filter(is_seen).peekable();
    if seen.peek().is_none() {
        return Some("nobody wrote that".to_owned());
    }
    let nearest = writes.iter().filter(is_seen).max_by_key(|write| write.start);
    (!seen.any(is_possible)).then(|| {
        let newer = latest.and_then(|latest| writes.iter().find(|write| write.start == latest));
        format!("seen of {nearest:?}, known by then {newer:?}")
    })
}

/// When which writes had to be known to one reader.
struct Known {
    /// From when on, and the start of the youngest write that is known then; both ascending.
    steps: Vec<(Duration, Duration)>,
}

impl Known {
    fn to(reader: Who, writes: &[Write], freshness: Freshness, cuts: &[Cut]) -> Known {
        let from = |write: &Write| {
            let end = write.end?;
            let hidden = match (write.who, reader) {
                (writer, reader) if writer == reader => Duration::ZERO,
                (_, Who::Outside) => Duration::ZERO,
                (Who::Outside, _) => freshness.outside,
                (Who::A | Who::B, _) => freshness.others,
            };
            let mut from = end + hidden;
            if write.who == Who::Outside && reader != Who::Outside {
                for cut in cuts.iter().filter(|cut| cut.who == reader) {
                    if cut.from <= from && end <= cut.passes_from() {
                        from = from.max(cut.to + freshness.outside_after_cut);
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
        Known { steps }
    }

    fn at(&self, time: Duration) -> Option<Duration> {
        let past = self.steps.partition_point(|(from, _)| *from < time);
        self.steps.get(past.checked_sub(1)?).map(|(_, start)| *start)
    }
}

#[test]
fn a_read_that_was_overtaken_is_a_fault() {
    let ms = Duration::from_millis;
    let write = |who, value, start, end: Option<u64>| Write {
        who,
        start: ms(start),
        end: end.map(ms),
        value: Some(Value(value)),
    };
    let judge = |seen, start, writes: Vec<Write>| {
        let read = Read { who: Who::A, start: ms(start), end: ms(start + 1), seen };
        let history = History {
            writes: BTreeMap::from([("n".to_owned(), writes)]),
            reads: BTreeMap::from([("n".to_owned(), vec![read])]),
            failures: BTreeMap::new(),
        };
        let freshness = Freshness { others: ms(100), outside: ms(100), outside_after_cut: ms(1_000) };
        history.faults(freshness, &[Cut { who: Who::A, from: ms(5_000), to: ms(6_000) }]).len()
    };
    let two = || vec![write(Who::B, 1, 10, Some(20)), write(Who::B, 2, 30, Some(40))];
    assert_eq!(judge(Seen::Value(Value(1)), 140, two()), 0, "within the window");
    assert_eq!(judge(Seen::Value(Value(1)), 141, two()), 1, "later than that");
    assert_eq!(judge(Seen::Value(Value(2)), 141, two()), 0);
    assert_eq!(judge(Seen::Value(Value(2)), 20, two()), 1, "before it began");
    assert_eq!(judge(Seen::Value(Value(3)), 20, two()), 1, "never written");
    assert_eq!(judge(Seen::Absent, 141, two()), 1);
    assert_eq!(judge(Seen::Present, 5, two()), 1);
    let own = || vec![write(Who::A, 1, 10, Some(20)), write(Who::A, 2, 30, Some(40))];
    assert_eq!(judge(Seen::Value(Value(1)), 41, own()), 1, "own changes are seen at once");
    let unknown = || vec![write(Who::B, 1, 10, None), write(Who::B, 2, 30, Some(40))];
    assert_eq!(judge(Seen::Value(Value(1)), 900, unknown()), 0, "it may have happened late");
    let cut = || vec![write(Who::Outside, 1, 10, Some(20)), write(Who::Outside, 2, 4_990, Some(4_995))];
    assert_eq!(judge(Seen::Value(Value(1)), 6_900, cut()), 0);
    assert_eq!(judge(Seen::Value(Value(1)), 7_001, cut()), 1);
    let after = |at| vec![write(Who::Outside, 1, 10, Some(20)), write(Who::Outside, 2, at - 5, Some(at))];
    assert_eq!(judge(Seen::Value(Value(1)), 6_900, after(6_200)), 0, "nothing passes yet");
    assert_eq!(judge(Seen::Value(Value(1)), 7_150, after(7_010)), 1, "it does by then");
}
