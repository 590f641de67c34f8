//! The ledger of one session: each change is carried out once, however often it is sent.
//!
//! The client numbers its changes (PROTOCOL.md, "Changes that are sent again"). The ledger keeps the reply to each until the
//! client says that it has it; a change that comes again gets the reply that it got the first time. The idea is that of
//! RIFL (Lee et al., "Implementing Linearizability at Large Scale and Low Latency", SOSP 2015) and of NFSv4.1's sessions
//! (RFC 8881, section 2.10.6), with as many slots as there are changes under way. What of it outlives the process is in
//! [`notes`](crate::notes).

use crate::notes::{Begun, Noted, Outcome, without_promises};
use std::collections::BTreeMap;
use wirefs_lease::JobKey;
use wirefs_op::Reply;
use wirefs_op::limits::LEDGER_MAX;

/// The number of a session's first change; Rversion says 0 of a ledger of which nothing is known.
const FIRST: u64 = 1;

/// What became of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Entry {
    /// What it found, once it has begun and where that matters.
    UnderWay(JobKey, Option<Begun>),
    /// With what another process has to know instead, where the reply means nothing to that one.
    Done(Box<Reply>, Option<Begun>),
    /// It began when another process was the server, and whether it was done is not known.
    Undecided(Begun),
}

/// What to do with a change that came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Carry it out.
    New,
    /// It may have been carried out already: look, and carry it out if not.
    Undecided(Begun),
    /// It is being carried out: answer here when it is done.
    UnderWay(JobKey),
    /// It was carried out: this is what was answered.
    Done(Box<Reply>),
}

/// The number is not one that a client may use now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StrayNumber;

/// The changes of a session.
///
/// INVARIANT: all numbers in it are at least `answered`, and below `next`.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// The replies to all changes below have come.
    answered: u64,
    /// No change with this number or a higher one has come.
    next: u64,
    /// No change with this number or a higher one was noted.
    noted: u64,
    entries: BTreeMap<u64, Entry>,
}

impl From<Noted> for Ledger {
    fn from(noted: Noted) -> Ledger {
        let Noted { next, answered, outcomes, created: _ } = noted;
        let entry = |outcome| match outcome {
            Outcome::Begun(begun) => Entry::Undecided(begun),
            Outcome::Done(reply) => Entry::Done(reply, None),
        };
        let entries = outcomes.into_iter().map(|(number, outcome)| (number, entry(outcome))).collect();
        let mut ledger = Ledger { answered, next, noted: next, entries };
        ledger.begin();
        ledger
    }
}

impl Ledger {
    /// All changes with lower numbers have come and been done, or will be; the one with this number has not, or nobody knows.
    pub(crate) fn next(&self) -> u64 {
        let undecided = |entry: &Entry| matches!(entry, Entry::Undecided(_));
        let first = self.entries.iter().find(|(_, entry)| undecided(entry));
        first.map_or(self.next, |(number, _)| *number)
    }

    /// Everything that comes from now on is known to be new, as where the notes of another process were found and are empty.
    pub(crate) fn begin(&mut self) {
        self.next = self.next.max(FIRST);
    }

    /// All that another process would have to know, but for what was created.
    pub(crate) fn noted(&self) -> Noted {
        let outcome = |entry: &Entry| match entry {
            Entry::UnderWay(_, begun) => begun.map(Outcome::Begun),
            Entry::Done(_, Some(begun)) => Some(Outcome::Begun(*begun)),
            Entry::Done(reply, None) => Some(Outcome::Done(Box::new(without_promises(reply)))),
            Entry::Undecided(begun) => Some(Outcome::Begun(*begun)),
        };
        let outcomes = self.entries.iter().filter_map(|(number, entry)| Some((*number, outcome(entry)?)));
        let next = self.noted.max(self.answered);
        Noted { next, answered: self.answered, outcomes: outcomes.collect(), ..Noted::default() }
    }

    /// The client says how far it has replies, and is about to send the change `number`.
    ///
    /// # Errors
    /// It takes back what it said, or goes ahead too far.
    pub(crate) fn answered(&mut self, answered: u64, number: u64) -> Result<(), StrayNumber> {
        if answered < self.answered || !is_in_reach(answered, number) {
            return Err(StrayNumber);
        }
        self.answered = answered;
        self.next = self.next.max(answered);
        self.entries = self.entries.split_off(&answered);
        Ok(())
    }

    /// A change has come; `about` is what it is about ([`crate::repeat::about`]). A number may be left out: the client does not
    /// want that change any more.
    ///
    /// # Errors
    /// Its reply was said to have come, it was left out before, or it is too far ahead.
    pub(crate) fn take(&mut self, number: u64, key: JobKey, about: u64) -> Result<Verdict, StrayNumber> {
        if !is_in_reach(self.answered, number) {
            return Err(StrayNumber);
        }
        let verdict = match self.entries.get(&number) {
            Some(Entry::UnderWay(key, _)) => return Ok(Verdict::UnderWay(*key)),
            Some(Entry::Done(reply, _)) => return Ok(Verdict::Done(reply.clone())),
            // Of a client that has forgotten its numbers and began again where it was told to.
            Some(Entry::Undecided(begun)) if begun.about != about => Verdict::New,
            Some(Entry::Undecided(begun)) => Verdict::Undecided(*begun),
            None if number < self.next => return Err(StrayNumber),
            None => Verdict::New,
        };
        self.next = self.next.max(number + 1);
        let begun = if let Verdict::Undecided(begun) = &verdict { Some(*begun) } else { None };
        self.entries.insert(number, Entry::UnderWay(key, begun));
        Ok(verdict)
    }

    /// A change is about to be carried out, and this is noted of it.
    pub(crate) fn begun(&mut self, number: u64, begun: Begun) {
        self.noted = self.noted.max(number.saturating_add(1));
        if let Some(Entry::UnderWay(_, found)) = self.entries.get_mut(&number) {
            *found = Some(begun);
        }
    }

    /// Whether something is noted of a change that is under way.
    pub(crate) fn has_begun(&self, number: u64) -> bool {
        matches!(self.entries.get(&number), Some(Entry::UnderWay(_, Some(_))))
    }

    /// A change was carried out, or has failed. `instead`: where the reply means nothing to another process, what that one has to
    /// know.
    pub(crate) fn done(&mut self, number: u64, reply: &Reply, instead: Option<Begun>) {
        self.noted = self.noted.max(number.saturating_add(1));
        // What the client does not ask for any more is not kept.
        if let Some(entry) = self.entries.get_mut(&number) {
            *entry = Entry::Done(Box::new(reply.clone()), instead);
        }
    }
}

/// Whether a client that has told to have all replies below `answered` may send this one. There is always a next one.
fn is_in_reach(answered: u64, number: u64) -> bool {
    number < u64::MAX && number.checked_sub(answered).is_some_and(|ahead| ahead < LEDGER_MAX)
}

#[cfg(test)]
mod tests;
