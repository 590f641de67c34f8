//! Sending what an earlier mount left to the server, as a machine: changes in, frames out, replies in.
//!
//! ```text
//!  Record* ──> under way, numbered, in order ──> End ──> all answered ──> Tcommit ──> Done
//!                    └── refused: told, the rest goes on
//! ```
//! Who drives it gives it a record whenever [`Replay::has_room`], then the end. A connection that breaks ends it; another one begins
//! anew, above the numbers that the server has seen by then.

use crate::change;
use crate::entry::Record;
use crate::limits::{TOLD_AGAIN, UNDER_WAY_BYTES_MAX, UNDER_WAY_MAX};
use crate::redo::Unlike;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use wirefs_op::message::commit::{CommitScope, Tcommit};
use wirefs_op::message::number::Tnumber;
use wirefs_op::message::target::Target;
use wirefs_op::message::version::BootId;
use wirefs_op::wire::Malformed;
use wirefs_op::{Errno, Frame, NOTAG, Reply, Request, Tag, TreePath};

/// The tag of the commit. Changes have the tags below it.
const COMMIT: Tag = Tag(UNDER_WAY_MAX as u16);

/// What the server said of the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Where it keeps a ledger: above all numbers that it has seen, 0 where it does not know the session.
    pub ledger: Option<u64>,
    /// Its boot id.
    pub boot: BootId,
}

/// Why nothing may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// A change could be carried out twice.
    #[error("the server keeps no ledger, so that it cannot tell which changes it has carried out")]
    NoLedger,
    /// The same: it has carried out some of them, and does not know which.
    #[error("the server has carried out some of the changes, and no longer knows which")]
    Unknown,
    /// Its machine lost power, and what it has now cannot be told.
    #[error("the server's machine was started again, and {0}")]
    Unlike(Unlike),
}

/// What is told to the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The next change. Only while there is room.
    Record(Record),
    /// There are no more.
    End,
    /// A message from the server.
    Received(Bytes),
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Put this frame on the wire, in order.
    Send(Frame),
    /// Keep this change: the server refuses it.
    Refused(Refused),
    /// All are answered, and the server's disk has them.
    Done(Outcome),
    /// All are answered, and the server cannot bring them to its disk.
    Unsafe(Errno),
}

/// A change that the server refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The change.
    pub record: Record,
    /// For programs.
    pub errno: Errno,
    /// For people.
    pub text: String,
}

/// What became of the changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Those that were sent and carried out now.
    pub sent: u64,
    /// Those that the server had carried out before.
    pub skipped: u64,
    /// Those that it refused.
    pub refused: u64,
    /// Those that are of no use without the programs that made them: locks, openings.
    pub dropped: u64,
}

/// The machine.
#[derive(Debug)]
pub struct Replay {
    boot: BootId,
    /// The server has seen the changes below.
    known: u64,
    /// Changes below are not sent.
    floor: u64,
    free: VecDeque<Tag>,
    under_way: BTreeMap<Tag, Record>,
    /// The numbers of those under way.
    numbers: BTreeSet<u64>,
    bytes: usize,
    /// The number that the server gives to the next change, once it was told one.
    implied: Option<u64>,
    told: u64,
    has_ended: bool,
    is_committing: bool,
    outcome: Outcome,
    actions: VecDeque<Action>,
}

impl Replay {
    /// A replay over a connection of the journal's session. `has_answers`: the server has answered changes of the session, by what the
    /// journal notes. `answered`: changes below that are answered, and of those above it the server knows the replies, where that is
    /// certain.
    ///
    /// # Errors
    /// Nothing may be sent.
    pub fn new(terms: Terms, has_answers: bool, answered: Option<u64>) -> Result<Replay, Unfit> {
        let known = terms.ledger.ok_or(Unfit::NoLedger)?;
        if known == 0 && has_answers {
            return Err(Unfit::Unknown);
        }
        Ok(Replay {
            boot: terms.boot,
            known,
            floor: answered.map_or(known, |answered| answered.min(known)),
            free: (0..COMMIT.0).map(Tag).collect(),
            under_way: BTreeMap::new(),
            numbers: BTreeSet::new(),
            bytes: 0,
            implied: None,
            told: 0,
            has_ended: false,
            is_committing: false,
            outcome: Outcome::default(),
            actions: VecDeque::new(),
        })
    }

    /// Whether the next change may be given to it.
    pub fn has_room(&self) -> bool {
        !self.has_ended && !self.free.is_empty() && self.bytes < UNDER_WAY_BYTES_MAX && !self.is_far_ahead()
    }

    /// The oldest under way holds up what is too far ahead of it.
    fn is_far_ahead(&self) -> bool {
        let (Some(first), Some(last)) = (self.numbers.first(), self.numbers.last()) else { return false };
        last - first >= UNDER_WAY_MAX as u64
    }

    /// What became of the changes so far.
    pub fn outcome(&self) -> Outcome {
        self.outcome
    }

    /// How many changes wait for their replies.
    pub fn under_way(&self) -> usize {
        self.under_way.len()
    }

    /// Takes an event.
    ///
    /// # Errors
    /// The server broke the protocol; or a record is no message, which the same error tells.
    pub fn handle(&mut self, event: Event) -> Result<(), Malformed> {
        match event {
            Event::Record(record) => self.record(record)?,
            Event::End => self.has_ended = true,
            Event::Received(body) => self.received(body)?,
        }
        if self.has_ended && self.under_way.is_empty() && !self.is_committing {
            self.is_committing = true;
            let commit = Tcommit { target: Target::at(TreePath::root()), scope: CommitScope::Filesystem };
            self.actions.push_back(Action::Send(Request::Commit(commit).encode(COMMIT)));
        }
        Ok(())
    }

    /// The number of the change that is under way with this tag.
    pub fn number_of(&self, tag: Tag) -> Option<u64> {
        self.under_way.get(&tag).map(|record| record.number)
    }

    /// All changes with lower numbers that were sent are answered; 0 where none was sent.
    pub fn answered_below(&self) -> u64 {
        self.numbers.first().copied().or(self.implied).unwrap_or_default()
    }

    /// The server was told, or is about to be, that all replies to changes with lower numbers have come.
    pub fn told(&self) -> u64 {
        self.told
    }

    /// Hands out what is to be done, in order.
    pub fn poll(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    fn record(&mut self, record: Record) -> Result<(), Malformed> {
        if record.number < self.floor {
            self.outcome.skipped += 1;
            return Ok(());
        }
        let (_, request) = Request::decode(record.body.clone())?;
        let Some(request) = change::replayed(request) else {
            self.outcome.dropped += 1;
            return Ok(());
        };
        let Some(tag) = self.free.pop_front() else {
            return Err(Malformed { what: "a change for which there is no room", at: 0 });
        };
        self.tell(record.number);
        self.actions.push_back(Action::Send(request.encode(tag)));
        self.implied = Some(record.number + 1);
        self.bytes += record.body.len();
        self.numbers.insert(record.number);
        self.under_way.insert(tag, record);
        Ok(())
    }

    /// Tells the server the number of the next change, where it would take it for another one, and from time to time which replies have
    /// come.
    fn tell(&mut self, number: u64) {
        let answered = self.numbers.first().map_or(number, |first| *first);
        let is_due = number - self.told >= TOLD_AGAIN && answered > self.told;
        if self.implied != Some(number) || is_due {
            self.told = answered;
            let told = Request::Number(Tnumber { number, answered });
            self.actions.push_back(Action::Send(told.encode(NOTAG)));
        }
    }

    fn received(&mut self, body: Bytes) -> Result<(), Malformed> {
        let (tag, reply) = Reply::decode(body)?;
        if tag == NOTAG {
            return match reply {
                Reply::Error(_) => Err(Malformed { what: "the server complains", at: 1 }),
                // What was leased to who is gone is of no use.
                _ => Ok(()),
            };
        }
        if tag == COMMIT && self.is_committing {
            self.actions.push_back(match reply {
                Reply::Commit(commit) if commit.boot == self.boot => Action::Done(self.outcome),
                Reply::Error(error) => Action::Unsafe(error.errno),
                _ => return Err(Malformed { what: "no answer to Tcommit", at: 1 }),
            });
            return Ok(());
        }
        let Some(record) = self.under_way.remove(&tag) else {
            return Err(Malformed { what: "a reply to no request", at: 1 });
        };
        self.numbers.remove(&record.number);
        self.bytes -= record.body.len();
        self.free.push_back(tag);
        if let Reply::Error(error) = reply {
            self.outcome.refused += 1;
            let text = error.ename.to_string();
            self.actions.push_back(Action::Refused(Refused { record, errno: error.errno, text }));
        } else if record.number < self.known {
            self.outcome.skipped += 1;
        } else {
            self.outcome.sent += 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
