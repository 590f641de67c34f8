//! The ledger of one session: each change is carried out once, however often it is sent.
//!
//! The client numbers its changes (PROTOCOL.md, "Changes that are sent again"). The ledger keeps the reply to each until the
//! client says that it has it; a change that comes again gets the reply that it got the first time. The idea is that of
//! RIFL (Lee et al., "Implementing Linearizability at Large Scale and Low Latency", SOSP 2015) and of NFSv4.1's sessions
//! (RFC 8881, section 2.10.6), with as many slots as there are changes under way.

use std::collections::BTreeMap;
use wirefs_lease::JobKey;
use wirefs_op::Reply;
use wirefs_op::limits::LEDGER_MAX;

/// What became of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Entry {
    UnderWay(JobKey),
    Done(Box<Reply>),
}

/// What to do with a change that came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Carry it out.
    New,
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
    entries: BTreeMap<u64, Entry>,
}

impl Ledger {
    /// Above the numbers of all changes that have come.
    pub(crate) fn next(&self) -> u64 {
        self.next
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

    /// A change has come. A number may be left out: the client does not want that change any more.
    ///
    /// # Errors
    /// Its reply was said to have come, it was left out before, or it is too far ahead.
    pub(crate) fn take(&mut self, number: u64, key: JobKey) -> Result<Verdict, StrayNumber> {
        if !is_in_reach(self.answered, number) {
            return Err(StrayNumber);
        }
        if number >= self.next {
            self.next = number + 1;
            self.entries.insert(number, Entry::UnderWay(key));
            return Ok(Verdict::New);
        }
        match self.entries.get(&number) {
            Some(Entry::UnderWay(key)) => Ok(Verdict::UnderWay(*key)),
            Some(Entry::Done(reply)) => Ok(Verdict::Done(reply.clone())),
            None => Err(StrayNumber),
        }
    }

    /// A change was carried out, or has failed.
    pub(crate) fn done(&mut self, number: u64, reply: &Reply) {
        // What the client does not ask for any more is not kept.
        if let Some(entry) = self.entries.get_mut(&number) {
            *entry = Entry::Done(Box::new(reply.clone()));
        }
    }
}

/// Whether a client that has told to have all replies below `answered` may send this one. There is always a next one.
fn is_in_reach(answered: u64, number: u64) -> bool {
    number < u64::MAX && number.checked_sub(answered).is_some_and(|ahead| ahead < LEDGER_MAX)
}

#[cfg(test)]
mod tests;
