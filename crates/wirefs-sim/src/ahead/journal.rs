//! The journal of a mount: its entries, and the part of them on the local disk.

use bytes::Bytes;
use std::collections::BTreeMap;
use wirefs_client::call::{Answer, CallId};
use wirefs_client::{ChangeFact, Note};
use wirefs_journal::delivery::nanos;
use wirefs_journal::entry::NOT_EXCLUSIVE;
use wirefs_journal::limits::WRITE_OUT_BYTES;
use wirefs_journal::{
    ChangeOutcome, DiskJob, Entry, Findings, GroupCommit, Header, Point, Record, Replay, Scan, SessionTerms,
    Survey, SuspendedReplay, Tail,
};
use wirefs_op::{FileId, Frame, Request};

/// Entries per segment.
const SEGMENT_ENTRIES: usize = 7;
/// The length of an entry for the disk, in bytes: write-out of a segment starts before it is full.
const ENTRY_BYTES: u64 = WRITE_OUT_BYTES / 3;

/// An entry, with its step of the program and its segment.
struct Placed {
    entry: Entry,
    step: usize,
    segment: u64,
    point: Point,
}

pub(crate) struct Journal {
    pub(super) header: Header,
    entries: Vec<Placed>,
    /// The schedule of its disk.
    pub(super) durable: GroupCommit,
    /// The durable part: a number of entries of each segment, and the last durable name.
    certain: BTreeMap<u64, usize>,
    named: u64,
    /// The entries of each segment whose write-out has started.
    live_replay: BTreeMap<u64, usize>,
    /// The first needed segment; removed segments whose removal is not durable; torn segments, with the number of entries before the tear.
    needed: u64,
    removed: Vec<Placed>,
    torn: BTreeMap<u64, usize>,
    /// All up to here was promised to be durable.
    pub(super) promised: Point,
    /// A background sync runs.
    pub(super) is_early: bool,
    /// Answers that wait for the disk.
    pub(super) waiting: Vec<(Point, CallId, Answer)>,
    answered: u64,
    alone: Option<u64>,
    seen: u64,
    /// The server's disk has all changes below.
    forgotten: u64,
    /// A delivery was tried, and this replay was decided then.
    pub(super) is_tried: bool,
    pub(super) decided: Option<SuspendedReplay>,
    /// A replaying process died.
    pub(super) is_torn: bool,
    /// Its stored findings.
    pub(super) noted: Vec<u8>,
}

impl Journal {
    pub(super) fn new(header: Header) -> Journal {
        let mut durable = GroupCommit::default();
        durable.created(header.segment);
        Journal {
            header,
            entries: Vec::new(),
            durable,
            certain: BTreeMap::new(),
            named: 0,
            live_replay: BTreeMap::new(),
            needed: 0,
            removed: Vec::new(),
            torn: BTreeMap::new(),
            promised: Point::default(),
            is_early: false,
            waiting: Vec::new(),
            answered: 0,
            alone: None,
            seen: 0,
            forgotten: 0,
            is_tried: false,
            decided: None,
            is_torn: false,
            noted: Vec::new(),
        }
    }

    fn push(&mut self, entry: Entry) {
        self.place(entry, 0);
    }

    fn place(&mut self, entry: Entry, step: usize) {
        let last = self.entries.last().map_or(self.header.segment, |last| last.segment);
        let is_full = self.count(last) == SEGMENT_ENTRIES;
        let segment = if is_full { last + 1 } else { last };
        if is_full {
            self.durable.created(segment);
        }
        self.durable.wrote(ENTRY_BYTES);
        self.entries.push(Placed { entry, step, segment, point: self.durable.written() });
    }

    /// Returns the number of entries of a segment.
    fn count(&self, segment: u64) -> usize {
        self.entries.iter().filter(|placed| placed.segment == segment).count()
    }

    /// Returns the number of entries that a job covers, for [`Journal::is_done`].
    pub(super) fn count_for(&self, job: &DiskJob) -> usize {
        match job {
            DiskJob::SyncSegment(segment) => self.count(*segment),
            DiskJob::SyncNames(_) => self.removed.len(),
            DiskJob::WriteOut(..) | DiskJob::Remove(_) => 0,
        }
    }

    /// Starts a job, which the disk may execute at once.
    pub(super) fn start_job(&mut self, job: &DiskJob) {
        let started = match job {
            DiskJob::WriteOut(segment, bytes) => (*segment, (bytes.end / ENTRY_BYTES) as usize),
            DiskJob::SyncSegment(segment) => (*segment, self.count(*segment)),
            DiskJob::SyncNames(_) | DiskJob::Remove(_) => return,
        };
        self.live_replay.insert(started.0, started.1);
    }

    pub(super) fn record(&mut self, number: u64, body: Bytes, step: usize) {
        self.place(Entry::Change(Record { number, body }), step);
    }

    pub(super) fn note(&mut self, note: Note) {
        match note {
            Note::Alone(from) => self.alone = Some(from.unwrap_or(NOT_EXCLUSIVE)),
            Note::Seen(at) => self.seen = nanos(at),
            Note::Fact(..) | Note::Synced(..) => {}
        }
        self.push(match note {
            Note::Alone(from) => Entry::Exclusive(from.unwrap_or(NOT_EXCLUSIVE)),
            Note::Seen(at) => Entry::LatestTime(nanos(at)),
            Note::Fact(number, said) => Entry::Outcome(number, outcome_of(said)),
            Note::Synced(below, file) => Entry::Synced(below, file),
        });
    }

    fn answered(&mut self, below: u64) {
        if below > self.answered {
            self.answered = below;
            self.push(Entry::Answered(below));
        }
    }

    /// Writes the entries that must precede a frame.
    pub(super) fn before(&mut self, frame: &Frame) {
        if let Ok((_, Request::Number(started))) = Request::decode(frame.to_body()) {
            self.answered(started.answered);
        }
    }

    /// Writes the entries that must precede answers to programs.
    pub(super) fn write(&mut self, answered: u64) {
        if self.answered <= 1 {
            self.answered(answered);
        }
    }

    pub(super) fn forget(&mut self, below: u64) {
        if below > self.forgotten {
            self.forgotten = below;
            self.answered(below);
            self.push(Entry::Durable(below));
            self.let_go(below);
        }
    }

    /// Drops full segments without needed changes. Repeats their notes first.
    fn let_go(&mut self, below: u64) {
        let last = self.entries.last().map_or(0, |last| last.segment);
        let is_needed = |placed: &&Placed| match &placed.entry {
            Entry::Change(record) => record.number >= below,
            _ => false,
        };
        let first = self.entries.iter().find(is_needed).map_or(last, |placed| placed.segment);
        if self.entries.first().is_some_and(|placed| placed.segment < first) {
            self.push(Entry::Answered(self.answered));
            if let Some(from) = self.alone {
                self.push(Entry::Exclusive(from));
            }
            self.push(Entry::LatestTime(self.seen));
            self.durable.forget(first);
            self.needed = first;
        }
    }

    /// Completes a job that covered this number of entries.
    pub(super) fn is_done(&mut self, job: &DiskJob, count: usize) {
        self.is_early &= matches!(job, DiskJob::WriteOut(..) | DiskJob::Remove(_));
        match job {
            DiskJob::SyncNames(up_to) => {
                self.named = self.named.max(*up_to);
                self.removed.drain(..count.min(self.removed.len()));
            }
            DiskJob::SyncSegment(segment) => {
                let certain = self.certain.entry(*segment).or_default();
                *certain = count.max(*certain);
            }
            DiskJob::WriteOut(..) => {}
            DiskJob::Remove(segment) => {
                self.removed.extend(self.entries.extract_if(.., |placed| placed.segment <= *segment));
            }
        }
    }

    /// Loses power; `lost` selects the parts without a completed sync that are lost. Returns the first step with a lost entry, and whether it was
    /// promised to be durable.
    pub(super) fn loses_power(&mut self, lost: u64) -> (Option<usize>, bool) {
        let mut all = std::mem::take(&mut self.entries);
        // Removed segments may be present again.
        if lost & 1 == 1 {
            all.splice(..0, self.removed.drain(..));
        }
        let (mut is_behind, mut first, mut is_broken) = (false, None, false);
        let mut kept = Vec::new();
        for run in all.chunk_by(|one, next| one.segment == next.segment) {
            let segment = run.first().map_or(0, |first| first.segment);
            let certain = self.certain.get(&segment).copied().filter(|_| segment <= self.named).unwrap_or(0);
            // Any part of a torn segment may be present; of later segments, only the parts whose write-out has started.
            let live_replay = self.live_replay.get(&segment).copied().unwrap_or(0);
            let may_be_there = |at: usize| (!is_behind || at < live_replay) && lost >> (1 + at) & 1 == 1;
            let is_kept: Vec<bool> = (0..run.len()).map(|at| at < certain || may_be_there(at)).collect();
            let whole = is_kept.iter().take_while(|is_kept| **is_kept).count();
            if whole < run.len() {
                self.torn.insert(segment, whole);
            }
            is_behind |= certain < run.len();
            if segment >= self.needed {
                let gone = run.get(whole..).unwrap_or_default().iter();
                is_broken |= gone.clone().any(|placed| placed.point <= self.promised);
                let records = gone.filter(|placed| matches!(placed.entry, Entry::Change(_)));
                first = first.or(records.map(|placed| placed.step).min());
            }
            kept.extend(is_kept);
        }
        let mut kept = kept.into_iter();
        all.retain(|_| kept.next().unwrap_or_default());
        self.entries = all;
        (first, is_broken)
    }

    /// Reads the journal as another process does.
    pub(super) fn survey(&self) -> (Survey, Vec<Record>) {
        let (mut survey, mut records) = (Survey::default(), Vec::new());
        for run in self.entries.chunk_by(|one, next| one.segment == next.segment) {
            let segment = run.first().map_or(0, |first| first.segment);
            let mut entries: Vec<Entry> = run.iter().map(|placed| placed.entry.clone()).collect();
            let header = Header { segment, ..self.header.clone() };
            let rest = match self.torn.get(&segment) {
                None => Tail::Blank,
                Some(whole) => match entries.split_off(entries.len().min(*whole)) {
                    behind if behind.is_empty() => Tail::Torn { at: 0 },
                    behind => Tail::Corrupt { at: 0, after_damage: behind, is_hole: true },
                },
            };
            let scan = Scan { header, entries, rest };
            records.extend(survey.take(segment, Ok(scan)).unwrap_or_default().records);
        }
        // Only a power loss leaves a hole, and another kernel run reads it.
        survey.ended(self.header.run + 1);
        (survey, records)
    }

    /// Returns the interrupted replay of another process, if this kernel run can continue it.
    pub(super) fn noted(&self, root: FileId, terms: SessionTerms, run: u64) -> Option<SuspendedReplay> {
        let decision = Findings::decode(&self.noted, run).filter(|decision| decision.is_begun_at(terms))?;
        let (survey, records) = self.survey();
        let mut replay = Replay::after(&survey, root, decision.next);
        for record in &records {
            replay.learn_from(&survey, record).ok()?;
        }
        let mut decided = SuspendedReplay::from_findings(&decision, replay).ok()?;
        records.iter().try_for_each(|record| decided.take(record, terms)).ok()?;
        Some(decided)
    }

    /// Returns the number of needed changes.
    pub(super) fn needed(&self) -> u64 {
        self.survey().0.needed_from(0).0
    }
}

fn outcome_of(said: ChangeFact) -> ChangeOutcome {
    let answered = ChangeOutcome { is_answered: true, ..ChangeOutcome::default() };
    match said {
        ChangeFact::Rejected => ChangeOutcome { is_rejected: true, ..answered },
        ChangeFact::Created(id) => ChangeOutcome { made: Some(id), ..answered },
        ChangeFact::WroteAt(offset) => ChangeOutcome { offset: Some(offset), ..answered },
        ChangeFact::WillWriteAt(offset) => ChangeOutcome { offset: Some(offset), ..ChangeOutcome::default() },
    }
}
