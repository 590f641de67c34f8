//! The journal of a mount: its entries, and how many of them the local disk has.

use bytes::Bytes;
use std::collections::BTreeMap;
use wirefs_client::call::{Answer, CallId};
use wirefs_client::{Note, Said};
use wirefs_journal::bring::nanos;
use wirefs_journal::entry::NOT_ALONE;
use wirefs_journal::limits::BEGUN_BYTES;
use wirefs_journal::{
    Decided, Decision, Durable, Entry, Header, Job, Point, Record, Redo, Rest, Scan, Survey, Terms, Told,
};
use wirefs_op::{FileId, Frame, Request};

/// So many entries are in a segment.
const SEGMENT_ENTRIES: usize = 7;
/// As long is each of them to its disk: some of a segment is begun before it is full.
const ENTRY_BYTES: u64 = BEGUN_BYTES / 3;

/// An entry, which step of the program it is of, and in which segment.
struct Placed {
    entry: Entry,
    step: usize,
    segment: u64,
    point: Point,
}

pub(crate) struct Journal {
    pub(super) header: Header,
    entries: Vec<Placed>,
    /// What its disk is to do.
    pub(super) durable: Durable,
    /// What the disk has for certain: so many entries of each segment, and the names up to one.
    certain: BTreeMap<u64, usize>,
    named: u64,
    /// As many of each it was told to begin with.
    begun: BTreeMap<u64, usize>,
    /// The first segment that is needed; those that were removed since names were brought to the disk; those that are torn, and how many of
    /// their entries are before that.
    needed: u64,
    removed: Vec<Placed>,
    torn: BTreeMap<u64, usize>,
    /// All up to here was promised to be there.
    pub(super) promised: Point,
    /// It syncs something that nobody waits for yet.
    pub(super) is_early: bool,
    /// Answers that wait for it.
    pub(super) waiting: Vec<(Point, CallId, Answer)>,
    answered: u64,
    alone: Option<u64>,
    seen: u64,
    /// The server's disk has all changes below.
    forgotten: u64,
    /// Somebody has tried to bring it to the server, and what was decided then.
    pub(super) is_tried: bool,
    pub(super) decided: Option<Decided>,
    /// Who was doing its changes again died in the midst.
    pub(super) is_torn: bool,
    /// What that one has noted.
    pub(super) noted: Vec<u8>,
}

impl Journal {
    pub(super) fn new(header: Header) -> Journal {
        let mut durable = Durable::default();
        durable.made(header.segment);
        Journal {
            header,
            entries: Vec::new(),
            durable,
            certain: BTreeMap::new(),
            named: 0,
            begun: BTreeMap::new(),
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
            self.durable.made(segment);
        }
        self.durable.wrote(ENTRY_BYTES);
        self.entries.push(Placed { entry, step, segment, point: self.durable.written() });
    }

    /// How many entries of a segment are written.
    fn count(&self, segment: u64) -> usize {
        self.entries.iter().filter(|placed| placed.segment == segment).count()
    }

    /// What a job is about, as [`Journal::is_done`] wants to know it.
    pub(super) fn count_for(&self, job: &Job) -> usize {
        match job {
            Job::Sync(segment) => self.count(*segment),
            Job::Names(_) => self.removed.len(),
            Job::Begin(..) | Job::Remove(_) => 0,
        }
    }

    /// The disk is told to do something, and may do it at once.
    pub(super) fn is_told(&mut self, job: &Job) {
        let told = match job {
            Job::Begin(segment, bytes) => (*segment, (bytes.end / ENTRY_BYTES) as usize),
            Job::Sync(segment) => (*segment, self.count(*segment)),
            Job::Names(_) | Job::Remove(_) => return,
        };
        self.begun.insert(told.0, told.1);
    }

    pub(super) fn record(&mut self, number: u64, body: Bytes, step: usize) {
        self.place(Entry::Record(Record { number, body }), step);
    }

    pub(super) fn note(&mut self, note: Note) {
        match note {
            Note::Alone(from) => self.alone = Some(from.unwrap_or(NOT_ALONE)),
            Note::Seen(at) => self.seen = nanos(at),
            Note::Said(..) | Note::Synced(..) => {}
        }
        self.push(match note {
            Note::Alone(from) => Entry::Alone(from.unwrap_or(NOT_ALONE)),
            Note::Seen(at) => Entry::Seen(nanos(at)),
            Note::Said(number, said) => Entry::Told(number, told_of(said)),
            Note::Synced(below, file) => Entry::Synced(below, file),
        });
    }

    fn answered(&mut self, below: u64) {
        if below > self.answered {
            self.answered = below;
            self.push(Entry::Answered(below));
        }
    }

    /// What must be there before a frame goes out.
    pub(super) fn before(&mut self, frame: &Frame) {
        if let Ok((_, Request::Number(told))) = Request::decode(frame.to_body()) {
            self.answered(told.answered);
        }
    }

    /// What must be there before programs are answered.
    pub(super) fn write(&mut self, answered: u64) {
        if self.answered <= 1 {
            self.answered(answered);
        }
    }

    pub(super) fn forget(&mut self, below: u64) {
        if below > self.forgotten {
            self.forgotten = below;
            self.answered(below);
            self.push(Entry::Forget(below));
            self.let_go(below);
        }
    }

    /// Full segments of which nothing is needed are to go. What was noted in them is noted once more.
    fn let_go(&mut self, below: u64) {
        let last = self.entries.last().map_or(0, |last| last.segment);
        let is_needed = |placed: &&Placed| match &placed.entry {
            Entry::Record(record) => record.number >= below,
            _ => false,
        };
        let first = self.entries.iter().find(is_needed).map_or(last, |placed| placed.segment);
        if self.entries.first().is_some_and(|placed| placed.segment < first) {
            self.push(Entry::Answered(self.answered));
            if let Some(from) = self.alone {
                self.push(Entry::Alone(from));
            }
            self.push(Entry::Seen(self.seen));
            self.durable.forget(first);
            self.needed = first;
        }
    }

    /// The disk has done what it was told when so many entries of the segment were written, or removed.
    pub(super) fn is_done(&mut self, job: &Job, count: usize) {
        self.is_early &= matches!(job, Job::Begin(..) | Job::Remove(_));
        match job {
            Job::Names(up_to) => {
                self.named = self.named.max(*up_to);
                self.removed.drain(..count.min(self.removed.len()));
            }
            Job::Sync(segment) => {
                let certain = self.certain.entry(*segment).or_default();
                *certain = count.max(*certain);
            }
            Job::Begin(..) => {}
            Job::Remove(segment) => {
                self.removed.extend(self.entries.extract_if(.., |placed| placed.segment <= *segment));
            }
        }
    }

    /// The machine is gone; `lost` decides how much of what its disk did not have for certain is not there. The first step of which
    /// something is lost, and whether it was promised to be there.
    pub(super) fn loses_power(&mut self, lost: u64) -> (Option<usize>, bool) {
        let mut all = std::mem::take(&mut self.entries);
        // What was removed may be there again.
        if lost & 1 == 1 {
            all.splice(..0, self.removed.drain(..));
        }
        let (mut is_behind, mut first, mut is_broken) = (false, None, false);
        let mut kept = Vec::new();
        for run in all.chunk_by(|one, next| one.segment == next.segment) {
            let segment = run.first().map_or(0, |first| first.segment);
            let certain = self.certain.get(&segment).copied().filter(|_| segment <= self.named).unwrap_or(0);
            // Any part of a segment that is not whole may be there; of what is behind it, only what the disk was told to write.
            let begun = self.begun.get(&segment).copied().unwrap_or(0);
            let may_be_there = |at: usize| (!is_behind || at < begun) && lost >> (1 + at) & 1 == 1;
            let is_kept: Vec<bool> = (0..run.len()).map(|at| at < certain || may_be_there(at)).collect();
            let whole = is_kept.iter().take_while(|is_kept| **is_kept).count();
            if whole < run.len() {
                self.torn.insert(segment, whole);
            }
            is_behind |= certain < run.len();
            if segment >= self.needed {
                let gone = run.get(whole..).unwrap_or_default().iter();
                is_broken |= gone.clone().any(|placed| placed.point <= self.promised);
                let records = gone.filter(|placed| matches!(placed.entry, Entry::Record(_)));
                first = first.or(records.map(|placed| placed.step).min());
            }
            kept.extend(is_kept);
        }
        let mut kept = kept.into_iter();
        all.retain(|_| kept.next().unwrap_or_default());
        self.entries = all;
        (first, is_broken)
    }

    /// What it holds, as who takes it up reads it.
    pub(super) fn survey(&self) -> (Survey, Vec<Record>) {
        let (mut survey, mut records) = (Survey::default(), Vec::new());
        for run in self.entries.chunk_by(|one, next| one.segment == next.segment) {
            let segment = run.first().map_or(0, |first| first.segment);
            let mut entries: Vec<Entry> = run.iter().map(|placed| placed.entry.clone()).collect();
            let header = Header { segment, ..self.header.clone() };
            let rest = match self.torn.get(&segment) {
                None => Rest::Blank,
                Some(whole) => match entries.split_off(entries.len().min(*whole)) {
                    behind if behind.is_empty() => Rest::Torn { at: 0 },
                    behind => Rest::Corrupt { at: 0, behind, is_hole: true },
                },
            };
            let scan = Scan { header, entries, rest };
            records.extend(survey.take(segment, Ok(scan)).unwrap_or_default().records);
        }
        // Only a machine that lost power leaves a hole, and another run of the kernel reads it.
        survey.ended(self.header.run + 1);
        (survey, records)
    }

    /// What another process was doing again at the server, where that can be gone on with in this run of the client's kernel.
    pub(super) fn noted(&self, root: FileId, terms: Terms, run: u64) -> Option<Decided> {
        let decision = Decision::decode(&self.noted, run).filter(|decision| decision.is_begun_at(terms))?;
        let (survey, records) = self.survey();
        let mut redo = Redo::after(&survey, root, decision.next);
        for record in &records {
            redo.learn_of(&survey, record).ok()?;
        }
        let mut decided = Decided::noted(&decision, redo).ok()?;
        records.iter().try_for_each(|record| decided.take(record, terms)).ok()?;
        Some(decided)
    }

    /// How many changes are needed.
    pub(super) fn needed(&self) -> u64 {
        self.survey().0.needed_from(0).0
    }
}

fn told_of(said: Said) -> Told {
    let answered = Told { is_answered: true, ..Told::default() };
    match said {
        Said::Refused => Told { is_refused: true, ..answered },
        Said::Made(id) => Told { made: Some(id), ..answered },
        Said::Went(offset) => Told { offset: Some(offset), ..answered },
        Said::Expected(offset) => Told { offset: Some(offset), ..Told::default() },
    }
}
