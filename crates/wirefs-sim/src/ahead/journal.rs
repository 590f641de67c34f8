//! The journal of a mount: its entries, and how many of them the local disk has.

use bytes::Bytes;
use wirefs_client::{Note, Said};
use wirefs_journal::bring::nanos;
use wirefs_journal::entry::NOT_ALONE;
use wirefs_journal::{Decided, Decision, Entry, Header, Record, Redo, Rest, Scan, Survey, Terms, Told};
use wirefs_op::{FileId, Frame, Request};

pub(crate) struct Journal {
    pub(super) header: Header,
    /// And which step of the program each is of.
    entries: Vec<(Entry, usize)>,
    synced: usize,
    answered: u64,
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
        let (entries, decided) = (Vec::new(), None);
        Journal {
            header,
            entries,
            synced: 0,
            answered: 0,
            forgotten: 0,
            is_tried: false,
            decided,
            is_torn: false,
            noted: Vec::new(),
        }
    }

    fn push(&mut self, entry: Entry) {
        self.entries.push((entry, 0));
    }

    pub(super) fn record(&mut self, number: u64, body: Bytes, step: usize) {
        self.entries.push((Entry::Record(Record { number, body }), step));
    }

    pub(super) fn note(&mut self, note: Note) {
        self.push(match note {
            Note::Alone(from) => Entry::Alone(from.unwrap_or(NOT_ALONE)),
            Note::Seen(at) => Entry::Seen(nanos(at)),
            Note::Said(number, said) => Entry::Told(number, told_of(said)),
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
        }
    }

    /// Behind the last entry.
    pub(super) fn end(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn is_synced(&mut self, point: usize) {
        self.synced = self.synced.max(point);
    }

    /// The machine is gone; `lost` decides how much of what its disk did not have for certain is not there. The first step of which
    /// something is lost.
    pub(super) fn loses_power(&mut self, lost: u64) -> Option<usize> {
        let unsure = (self.entries.len() - self.synced) as u64;
        let kept = self.synced + (lost % (unsure + 1)) as usize;
        let gone = self.entries.split_off(kept);
        let steps = gone.iter().filter(|(entry, _)| matches!(entry, Entry::Record(_))).map(|(_, step)| *step);
        steps.min()
    }

    /// What it holds, as who takes it up reads it.
    pub(super) fn survey(&self) -> (Survey, Vec<Record>) {
        let mut survey = Survey::default();
        let entries = self.entries.iter().map(|(entry, _)| entry.clone()).collect();
        let scan = Scan { header: self.header.clone(), entries, rest: Rest::Blank };
        let taken = survey.take(self.header.segment, Ok(scan)).unwrap_or_default();
        (survey, taken.records)
    }

    /// What another process was doing again at the server, where that can be gone on with in this run of the client's kernel.
    pub(super) fn noted(&self, root: FileId, terms: Terms, run: u64) -> Option<Decided> {
        let decision = Decision::decode(&self.noted, run).filter(|decision| decision.is_begun_at(terms))?;
        let (survey, records) = self.survey();
        let mut redo = Redo::new(root, decision.next);
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
    }
}
