//! The ledger of one session: it makes the execution of changes exactly-once.
//!
//! The client numbers its changes (PROTOCOL.md, "Changes that are sent again"). The ledger keeps each reply until
//! the client acknowledges it, and answers a repeated change with the first reply. The design follows RIFL (Lee et
//! al., "Implementing Linearizability at Large Scale and Low Latency", SOSP 2015) and NFSv4.1 sessions (RFC 8881,
//! section 2.10.6), with one slot per unacknowledged change. [`saved_ledger`](crate::saved_ledger) has the part
//! that outlives the process.

use crate::saved_ledger::{SavedLedger, SavedOutcome, StartedChange, for_other_process};
use std::collections::BTreeMap;
use wirefs_lease::JobKey;
use wirefs_op::Reply;
use wirefs_op::limits::LEDGER_MAX;

/// The number of a session's first change; Rversion says 0 for a new ledger.
const FIRST: u64 = 1;

/// The state of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Entry {
    /// It is queued or runs; with its start record, if it has one.
    InProgress(JobKey, Option<StartedChange>),
    /// It is done. The start record replaces the reply in the saved ledger if the reply is valid only in this
    /// process.
    Done(Box<Reply>, Option<StartedChange>),
    /// A former process began it; whether it was completed is unknown.
    Undecided(StartedChange),
}

/// The way to treat a received change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Execute it.
    New,
    /// A former process may have completed it: check, and execute it if not.
    Undecided(StartedChange),
    /// It is queued or runs: send its reply to this connection.
    InProgress(JobKey),
    /// It is done: send this reply.
    Done(Box<Reply>),
}

/// The client may not use this number now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StrayNumber;

/// The changes of a session.
///
/// INVARIANT: all numbers in it are at least `answered` and below `next`.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// The client has the replies to all changes below this number.
    answered: u64,
    /// Higher than the number of each received change.
    next: u64,
    /// Higher than the number of each recorded change.
    recorded: u64,
    entries: BTreeMap<u64, Entry>,
}

impl From<SavedLedger> for Ledger {
    fn from(saved: SavedLedger) -> Ledger {
        let SavedLedger { next, answered, outcomes, created: _, owner: _ } = saved;
        let entry = |outcome| match outcome {
            SavedOutcome::Started(started) => Entry::Undecided(started),
            SavedOutcome::Done(reply) => Entry::Done(reply, None),
        };
        let entries = outcomes.into_iter().map(|(number, outcome)| (number, entry(outcome))).collect();
        let mut ledger = Ledger { answered, next, recorded: next, entries };
        ledger.begin();
        ledger
    }
}

impl Ledger {
    /// The number that Rversion states: all lower numbers were received and are decided.
    pub(crate) fn next(&self) -> u64 {
        let undecided = |entry: &Entry| matches!(entry, Entry::Undecided(_));
        let first = self.entries.iter().find(|(_, entry)| undecided(entry));
        first.map_or(self.next, |(number, _)| *number)
    }

    /// Treats a change with any number from now on as new, as after loading an empty saved ledger.
    pub(crate) fn begin(&mut self) {
        self.next = self.next.max(FIRST);
    }

    /// The ledger for another process, without the created objects.
    pub(crate) fn saved(&self) -> SavedLedger {
        let outcome = |entry: &Entry| match entry {
            Entry::InProgress(_, started) => started.map(SavedOutcome::Started),
            Entry::Done(_, Some(started)) => Some(SavedOutcome::Started(*started)),
            Entry::Done(reply, None) => Some(SavedOutcome::Done(Box::new(for_other_process(reply)))),
            Entry::Undecided(started) => Some(SavedOutcome::Started(*started)),
        };
        let outcomes = self.entries.iter().filter_map(|(number, entry)| Some((*number, outcome(entry)?)));
        let next = self.recorded.max(self.answered);
        SavedLedger { next, answered: self.answered, outcomes: outcomes.collect(), ..SavedLedger::default() }
    }

    /// The client acknowledges the replies below `answered` and announces that its next change has `number`.
    ///
    /// # Errors
    /// The client takes back an acknowledgment, or the number is too high.
    pub(crate) fn answered(&mut self, answered: u64, number: u64) -> Result<(), StrayNumber> {
        if answered < self.answered || !is_in_reach(answered, number) {
            return Err(StrayNumber);
        }
        self.answered = answered;
        self.next = self.next.max(answered);
        self.entries = self.entries.split_off(&answered);
        Ok(())
    }

    /// Enters a received change. A client may skip numbers that it no longer wants.
    ///
    /// # Errors
    /// The reply was acknowledged, the number was skipped before, or it is too high.
    pub(crate) fn take(
        &mut self,
        number: u64,
        key: JobKey,
        fingerprint: u64,
    ) -> Result<Verdict, StrayNumber> {
        if !is_in_reach(self.answered, number) {
            return Err(StrayNumber);
        }
        let verdict = match self.entries.get(&number) {
            Some(Entry::InProgress(key, _)) => return Ok(Verdict::InProgress(*key)),
            Some(Entry::Done(reply, _)) => return Ok(Verdict::Done(reply.clone())),
            // The client lost its numbers and began again at the number in Rversion.
            Some(Entry::Undecided(started)) if started.fingerprint != fingerprint => Verdict::New,
            Some(Entry::Undecided(started)) => Verdict::Undecided(*started),
            None if number < self.next => return Err(StrayNumber),
            None => Verdict::New,
        };
        self.next = self.next.max(number + 1);
        let started = if let Verdict::Undecided(started) = &verdict { Some(*started) } else { None };
        self.entries.insert(number, Entry::InProgress(key, started));
        Ok(verdict)
    }

    /// Enters the start record of a change that is about to be executed.
    pub(crate) fn started(&mut self, number: u64, started: StartedChange) {
        self.recorded = self.recorded.max(number.saturating_add(1));
        if let Some(Entry::InProgress(_, start)) = self.entries.get_mut(&number) {
            *start = Some(started);
        }
    }

    /// Whether a running change has a start record.
    pub(crate) fn has_begun(&self, number: u64) -> bool {
        matches!(self.entries.get(&number), Some(Entry::InProgress(_, Some(_))))
    }

    /// Enters the reply to a change. `instead`: the start record that replaces the reply in the saved ledger.
    pub(crate) fn done(&mut self, number: u64, reply: &Reply, instead: Option<StartedChange>) {
        self.recorded = self.recorded.max(number.saturating_add(1));
        // The entry of an acknowledged change is gone already.
        if let Some(entry) = self.entries.get_mut(&number) {
            *entry = Entry::Done(Box::new(reply.clone()), instead);
        }
    }
}

/// Whether a client that has all replies below `answered` may use this number. A number always has a successor.
fn is_in_reach(answered: u64, number: u64) -> bool {
    number < u64::MAX && number.checked_sub(answered).is_some_and(|ahead| ahead < LEDGER_MAX)
}

#[cfg(test)]
mod tests;
