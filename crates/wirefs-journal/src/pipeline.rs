//! Sends a dead mount's changes to the server, many in flight: changes in, frames out, replies in.
//!
//! ```text
//!  Record* ──> in flight, numbered, in order ──> End ──> all answered ──> Tcommit ──> Done
//!                    └── rejected: reported, the others go on
//! ```
//! The caller passes a record whenever [`Pipeline::has_room`], then the end. A lost connection ends the pipeline; another one starts above
//! the numbers that the server has by then.

mod window;

use crate::change;
use crate::entry::Record;
use crate::limits::{ANNOUNCE_EACH, IN_FLIGHT_MAX};
use crate::replay::ReplayFault;
use bytes::Bytes;
use std::collections::VecDeque;
use window::Window;
use wirefs_op::message::commit::{CommitScope, Tcommit};
use wirefs_op::message::number::Tnumber;
use wirefs_op::message::target::Target;
use wirefs_op::message::version::BootId;
use wirefs_op::wire::Malformed;
use wirefs_op::{Errno, Frame, NOTAG, Reply, Request, Tag, TreePath};

/// The tag of the commit. Changes have lower tags.
const COMMIT: Tag = Tag(IN_FLIGHT_MAX as u16);

/// The server's statement about a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionTerms {
    /// The number above all that the server has; 0 if it does not know the session; `None` if it keeps no ledger.
    pub ledger: Option<u64>,
    /// The server's boot id.
    pub boot: BootId,
}

/// The reason why nothing may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Undeliverable {
    /// A change could be applied twice.
    #[error("the server keeps no ledger, so that it cannot tell which changes it has carried out")]
    NoLedger,
    /// A change could be applied twice: the server has forgotten which of the changes it has applied.
    #[error("the server has carried out some of the changes, and no longer knows which")]
    Unknown,
    /// The server's machine lost power, and the changes that it has cannot be determined.
    #[error("the server's machine was started again, and {0}")]
    Replay(ReplayFault),
}

/// An input of a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeliveryInput {
    /// The next change; only while there is room.
    Record(Record),
    /// No more changes follow.
    End,
    /// A message from the server.
    Received(Bytes),
}

/// An action for the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PipelineOutput {
    /// Send this frame, in order.
    Send(Frame),
    /// The server rejected this change.
    Rejected(RejectedChange),
    /// All changes are answered and durable at the server.
    Done(DeliveryCounts),
    /// All changes are answered, and the server's sync failed.
    SyncFailed(Errno),
}

/// A change that the server rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RejectedChange {
    /// The change.
    pub record: Record,
    /// The error for programs.
    pub errno: Errno,
    /// The error for people.
    pub text: String,
}

/// The results of a delivery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeliveryCounts {
    /// Changes that were sent and applied.
    pub sent: u64,
    /// Changes that the server had applied before.
    pub skipped: u64,
    /// Changes that the server rejected.
    pub rejected: u64,
    /// Changes that are useless without their program: locks and openings.
    pub dropped: u64,
}

/// Changes in flight over one connection; see the [module](self).
#[derive(Debug)]
pub struct Pipeline {
    boot: BootId,
    /// The server has the changes below.
    known: u64,
    /// Changes below are not sent.
    floor: u64,
    window: Window,
    /// The number that the server gives to the next change, once a number was announced.
    implied: Option<u64>,
    acknowledged: u64,
    has_ended: bool,
    is_committing: bool,
    counts: DeliveryCounts,
    outputs: VecDeque<PipelineOutput>,
}

impl Pipeline {
    /// Starts a pipeline over a connection of the journal's session. `has_answers`: the journal says that the server has answered changes.
    /// `answered`: if certain, changes below are answered, and the server has its replies to the others.
    ///
    /// # Errors
    /// Fails if nothing may be sent.
    pub fn new(
        terms: SessionTerms,
        has_answers: bool,
        answered: Option<u64>,
    ) -> Result<Pipeline, Undeliverable> {
        let known = terms.ledger.ok_or(Undeliverable::NoLedger)?;
        if known == 0 && has_answers {
            return Err(Undeliverable::Unknown);
        }
        Ok(Pipeline {
            boot: terms.boot,
            known,
            floor: answered.map_or(known, |answered| answered.min(known)),
            window: Window::new(COMMIT),
            implied: None,
            acknowledged: 0,
            has_ended: false,
            is_committing: false,
            counts: DeliveryCounts::default(),
            outputs: VecDeque::new(),
        })
    }

    /// Returns whether the next change may be passed.
    pub fn has_room(&self) -> bool {
        !self.has_ended && self.window.has_room()
    }

    /// Returns the results so far.
    pub fn counts(&self) -> DeliveryCounts {
        self.counts
    }

    /// Returns the number of changes in flight.
    pub fn in_flight(&self) -> usize {
        self.window.len()
    }

    /// Takes an input.
    ///
    /// # Errors
    /// Fails if the server breaks the protocol, or if a record is no message.
    pub fn handle(&mut self, event: DeliveryInput) -> Result<(), Malformed> {
        match event {
            DeliveryInput::Record(record) => self.record(record)?,
            DeliveryInput::End => self.has_ended = true,
            DeliveryInput::Received(body) => self.received(body)?,
        }
        if self.has_ended && self.window.len() == 0 && !self.is_committing {
            self.is_committing = true;
            let commit = Tcommit { target: Target::at(TreePath::root()), scope: CommitScope::Filesystem };
            self.outputs.push_back(PipelineOutput::Send(Request::Commit(commit).encode(COMMIT)));
        }
        Ok(())
    }

    /// Returns the number of the change in flight with this tag.
    pub fn number_of(&self, tag: Tag) -> Option<u64> {
        self.window.number_of(tag)
    }

    /// Returns the number below which all sent changes are answered; 0 if none was sent.
    pub fn answered_below(&self) -> u64 {
        self.window.first().or(self.implied).unwrap_or_default()
    }

    /// Returns the number below which the server was notified, or is about to be, that all replies have arrived.
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// Returns the next action, in order.
    pub fn poll(&mut self) -> Option<PipelineOutput> {
        self.outputs.pop_front()
    }

    fn record(&mut self, record: Record) -> Result<(), Malformed> {
        if record.number < self.floor {
            self.counts.skipped += 1;
            return Ok(());
        }
        let (_, request) = Request::decode(record.body.clone())?;
        let Some(request) = change::replayed(request) else {
            self.counts.dropped += 1;
            return Ok(());
        };
        let Some(tag) = self.window.take_tag() else {
            return Err(Malformed { what: "a change for which there is no room", at: 0 });
        };
        self.announce(record.number);
        self.outputs.push_back(PipelineOutput::Send(request.encode(tag)));
        self.implied = Some(record.number + 1);
        self.window.insert(tag, record);
        Ok(())
    }

    /// Announces the number of the next change if the server would imply another one, and regularly which replies have arrived.
    fn announce(&mut self, number: u64) {
        let answered = self.window.first().unwrap_or(number);
        let is_due = number - self.acknowledged >= ANNOUNCE_EACH && answered > self.acknowledged;
        if self.implied != Some(number) || is_due {
            self.acknowledged = answered;
            let announcement = Request::Number(Tnumber { number, answered });
            self.outputs.push_back(PipelineOutput::Send(announcement.encode(NOTAG)));
        }
    }

    fn received(&mut self, body: Bytes) -> Result<(), Malformed> {
        let (tag, reply) = Reply::decode(body)?;
        if tag == NOTAG {
            return match reply {
                Reply::Error(_) => Err(Malformed { what: "the server complains", at: 1 }),
                // Leases of a dead mount are of no use.
                _ => Ok(()),
            };
        }
        if tag == COMMIT && self.is_committing {
            self.outputs.push_back(match reply {
                Reply::Commit(commit) if commit.boot == self.boot => PipelineOutput::Done(self.counts),
                Reply::Error(error) => PipelineOutput::SyncFailed(error.errno),
                _ => return Err(Malformed { what: "no answer to Tcommit", at: 1 }),
            });
            return Ok(());
        }
        let Some(record) = self.window.remove(tag) else {
            return Err(Malformed { what: "a reply to no request", at: 1 });
        };
        if let Reply::Error(error) = reply {
            self.counts.rejected += 1;
            let text = error.ename.to_string();
            self.outputs.push_back(PipelineOutput::Rejected(RejectedChange {
                record,
                errno: error.errno,
                text,
            }));
        } else if record.number < self.known {
            self.counts.skipped += 1;
        } else {
            self.counts.sent += 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
