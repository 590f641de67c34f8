//! Delivers a journal's changes to the server over one connection: changes and messages in, frames out.
//!
//! ```text
//!  resume       changes ──> Pipeline ──> Done
//!  replay_all   look up names ──> decide ──> look up objects ──> changes ──> Replay ──> Pipeline ──> Done
//!                                                        live mount: look up the objects again ──┘
//! ```
//! A lost connection ends the delivery. Another one continues a replay that was decided ([`Delivery::suspend`]).

mod from_survey;
mod lookups;
mod plan;
mod report;
mod search;
mod suspended;

pub use lookups::nanos;
pub use plan::DeliveryPlan;
pub use report::{ChangeFate, ReplayReport};
pub use suspended::SuspendedReplay;

use crate::entry::Record;
use crate::findings::Findings;
use crate::pipeline::{
    DeliveryCounts, DeliveryInput, Pipeline, PipelineOutput, RejectedChange, SessionTerms, Undeliverable,
};
use crate::replay::{ObjectStat, Replay, ReplayStep};
use bytes::Bytes;
use lookups::Lookups;
use report::ReplyCollector;
use search::Search;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use suspended::Predecessor;
use wirefs_op::message::number::Tnumber;
use wirefs_op::message::version::BootId;
use wirefs_op::wire::Malformed;
use wirefs_op::{Errno, Frame, NOTAG, Request, TreePath};

/// An action for the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeliveryOutput {
    /// Send this frame, in order.
    Send(Frame),
    /// Store the findings beside the journal before any later output is executed.
    Findings(Box<Findings>),
    /// Append to the stored findings that the server may forget its replies to changes below this number, before any later output is executed.
    Answered(u64),
    /// Move this change to the quarantine, for this reason: the server does not have it and will not get it.
    Quarantine(Record, String),
    /// All changes are answered and durable at the server.
    Done(DeliveryCounts),
    /// All changes are answered, and the server's sync failed.
    SyncFailed(Errno),
}

/// The reason why a delivery stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeliveryFault {
    /// The server breaks the protocol, or a record is no message.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// Nothing may be sent.
    #[error(transparent)]
    Undeliverable(#[from] Undeliverable),
    /// The server failed to report which objects it has.
    #[error("the server cannot say which files it has: {0}")]
    LookupFailed(Errno),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Looks up the names that changes are about.
    Names,
    /// Searches for files that have lost the names under which they were changed.
    Unreachable,
    /// Looks up when the objects of changes were last modified.
    Objects,
    /// The same for a replay that an earlier process began.
    InheritedObjects,
    /// Sends changes.
    Changes,
    /// All changes are durable. Looks up their objects for the report.
    Results(DeliveryCounts),
    Ended,
}

/// The state of one delivery; see the [module](self).
#[derive(Debug)]
pub struct Delivery {
    boot: BootId,
    phase: Phase,
    pipeline: Pipeline,
    /// The replay, and the change behind each number that was sent; unused by [`Delivery::resume`].
    replay: Option<Replay>,
    renumbered: BTreeMap<u64, u64>,
    /// Changes whose programs know that the server rejected them.
    rejected: BTreeSet<u64>,
    /// Changes that need not be sent.
    done: u64,
    discovery: Discovery,
    continuation: Continuation,
    /// Replies for the report to a live mount.
    replies: Option<ReplyCollector>,
    report: Option<ReplayReport>,
    outputs: VecDeque<DeliveryOutput>,
}

/// The search for the objects that the server has.
#[derive(Debug, Default)]
struct Discovery {
    lookups: Lookups,
    search: Search,
    /// The objects found at the names.
    names: BTreeMap<TreePath, ObjectStat>,
    /// The latest change time that the server has reported, in nanoseconds since 1970.
    latest_time: u64,
}

/// The state with which another connection or process continues a replay.
#[derive(Debug, Default)]
struct Continuation {
    /// The replay from before the first change.
    decided: Option<Replay>,
    /// The part that an earlier process has done.
    predecessor: Option<Predecessor>,
    /// The stored findings say that the server may have forgotten its replies to changes below this number.
    answered_stored: u64,
}

impl Delivery {
    fn new(boot: BootId, pipeline: Pipeline, phase: Phase) -> Delivery {
        Delivery {
            boot,
            phase,
            pipeline,
            replay: None,
            renumbered: BTreeMap::new(),
            rejected: BTreeSet::new(),
            done: 0,
            discovery: Discovery::default(),
            continuation: Continuation::default(),
            replies: None,
            report: None,
            outputs: VecDeque::new(),
        }
    }

    /// Sends the changes as they are. Changes in `rejected` are not quarantined if the server rejects them again: their programs know.
    pub fn resume(terms: SessionTerms, pipeline: Pipeline, rejected: BTreeSet<u64>) -> Delivery {
        Delivery { rejected, ..Delivery::new(terms.boot, pipeline, Phase::Changes) }
    }

    /// Replays the changes that the server's machine may have lost. `replay` has learned all changes. `latest_time` is the latest change time
    /// that the server has reported. A live mount waits for the replies to changes from `waits_from` on.
    ///
    /// # Errors
    /// Fails if nothing may be sent.
    pub fn replay_all(
        replay: Replay,
        latest_time: u64,
        terms: SessionTerms,
        waits_from: Option<u64>,
    ) -> Result<Delivery, DeliveryFault> {
        let pipeline = Pipeline::new(terms, false, waits_from.map(|_| 0))?;
        let mut delivery = Delivery::new(terms.boot, pipeline, Phase::Names);
        delivery.discovery.latest_time = latest_time;
        delivery.replies = waits_from.map(ReplyCollector::from);
        delivery.discovery.lookups.begin(replay.probes().map_err(Undeliverable::Replay)?);
        delivery.replay = Some(replay);
        delivery.advance()?;
        Ok(delivery)
    }

    /// Continues a replay over another connection.
    ///
    /// # Errors
    /// Fails if nothing may be sent.
    pub fn continue_replay(decided: SuspendedReplay, terms: SessionTerms) -> Result<Delivery, DeliveryFault> {
        let SuspendedReplay { replay, replies, answered, predecessor, .. } = decided;
        // A change with a reply is not sent again. The others have their replies in the server's ledger.
        let floor = replies.as_ref().map_or(answered, |replies| replies.floor);
        let pipeline = Pipeline::new(terms, false, Some(floor))?;
        let mut delivery = Delivery::new(terms.boot, pipeline, Phase::Changes);
        delivery.continuation.answered_stored = answered;
        if predecessor.is_some() {
            (delivery.phase, delivery.continuation.predecessor) = (Phase::InheritedObjects, predecessor);
            delivery.discovery.lookups.begin(replay.refresh_targets());
            delivery.replay = Some(replay);
            delivery.advance()?;
            return Ok(delivery);
        }
        (delivery.continuation.decided, delivery.replay, delivery.replies) =
            (Some(replay.clone()), Some(replay), replies);
        Ok(delivery)
    }

    /// Returns whether the next input is [`DeliveryInput::Record`] or [`DeliveryInput::End`]. Records start at the journal's first change.
    pub fn wants_record(&self) -> bool {
        self.phase == Phase::Changes && self.pipeline.has_room()
    }

    /// Returns whether changes may have been replayed.
    pub fn has_replayed(&self) -> bool {
        self.continuation.decided.is_some()
    }

    /// Returns the number of changes that need no further work.
    pub fn progress(&self) -> u64 {
        let counts = self.pipeline.counts();
        self.done + counts.sent + counts.skipped + counts.rejected + counts.dropped
    }

    /// Ends the delivery after a lost connection or a failed sync. `None`: the next connection starts from the beginning.
    pub fn suspend(self) -> Option<SuspendedReplay> {
        let answered = self.continuation.answered_stored.max(self.pipeline.acknowledged());
        let (mut replay, sent) = (self.continuation.decided?, self.replay);
        sent.iter().for_each(|sent| replay.connection_lost(sent));
        Some(SuspendedReplay { boot: self.boot, replay, replies: self.replies, answered, predecessor: None })
    }

    /// Returns the report to a live mount once all is done.
    pub fn take_report(&mut self) -> Option<ReplayReport> {
        self.report.take()
    }

    /// Returns the next action, in order.
    pub fn poll(&mut self) -> Option<DeliveryOutput> {
        self.outputs.pop_front()
    }

    /// Takes an input.
    ///
    /// # Errors
    /// Fails if this connection is of no more use.
    pub fn handle(&mut self, event: DeliveryInput) -> Result<(), DeliveryFault> {
        match (event, self.phase) {
            (DeliveryInput::Record(record), _) => self.deliver_record(record)?,
            (DeliveryInput::End, _) => {
                self.announce_next_number();
                self.pipeline.handle(DeliveryInput::End)?;
            }
            (DeliveryInput::Received(body), Phase::Changes) => {
                self.collect_reply(&body)?;
                self.pipeline.handle(DeliveryInput::Received(body))?;
                if let Some(replies) = &mut self.replies {
                    replies.floor = replies.floor.max(self.pipeline.answered_below());
                }
            }
            (
                DeliveryInput::Received(body),
                Phase::Names | Phase::Objects | Phase::InheritedObjects | Phase::Results(_),
            ) => {
                self.discovery.lookups.received(body)?;
                self.advance()?;
            }
            (DeliveryInput::Received(body), Phase::Unreachable) => {
                self.discovery.search.received(body)?;
                self.advance()?;
            }
            (DeliveryInput::Received(_), Phase::Ended) => {}
        }
        self.forward_outputs()
    }

    /// Announces the next change number if no change was sent: a restarted server knows no number, and a live mount goes on with its own.
    fn announce_next_number(&mut self) {
        if let (Some(replay), Some(_), true) = (&self.replay, &self.replies, self.renumbered.is_empty()) {
            let number = Tnumber { number: replay.end(), answered: replay.end() };
            self.outputs.push_back(DeliveryOutput::Send(Request::Number(number).encode(NOTAG)));
        }
    }

    /// Ends each phase whose lookups are complete, and sends more lookups.
    fn advance(&mut self) -> Result<(), DeliveryFault> {
        self.send_lookups();
        while self.discovery.lookups.is_done()
            && self.discovery.search.is_done()
            && let Some(replay) = &mut self.replay
        {
            match self.phase {
                Phase::Names => {
                    self.discovery.names = self.discovery.lookups.found();
                    replay.decide(&self.discovery.names).map_err(Undeliverable::Replay)?;
                    self.discovery.search.begin(replay.unreachable());
                    self.phase = Phase::Unreachable;
                }
                Phase::Unreachable => {
                    let others = self.discovery.search.found();
                    self.discovery.lookups.begin(replay.targets().into_iter().chain(others).collect());
                    self.phase = Phase::Objects;
                }
                Phase::Objects => {
                    let (names, objects) =
                        (std::mem::take(&mut self.discovery.names), self.discovery.lookups.found());
                    replay.compare(&objects, self.discovery.latest_time);
                    let (boot, next, latest_time) = (self.boot, replay.end(), self.discovery.latest_time);
                    let findings = Findings { boot, next, latest_time, names, objects, answered: 0 };
                    self.outputs.push_back(DeliveryOutput::Findings(Box::new(findings)));
                    self.continuation.decided = Some(replay.clone());
                    self.phase = Phase::Changes;
                }
                Phase::InheritedObjects => {
                    if let Some(Predecessor { touched, latest_time, .. }) =
                        self.continuation.predecessor.take()
                    {
                        replay.refresh(&self.discovery.lookups.found(), latest_time, &touched);
                    }
                    self.continuation.decided = Some(replay.clone());
                    self.phase = Phase::Changes;
                }
                Phase::Results(counts) => {
                    self.report = self
                        .replies
                        .as_ref()
                        .map(|replies| replies.report(replay, self.discovery.lookups.stats()));
                    self.end(counts);
                }
                Phase::Changes | Phase::Ended => break,
            }
            self.send_lookups();
        }
        Ok(())
    }

    fn send_lookups(&mut self) {
        let frames = self.discovery.lookups.ask().into_iter().chain(self.discovery.search.ask());
        self.outputs.extend(frames.map(DeliveryOutput::Send));
    }

    fn end(&mut self, counts: DeliveryCounts) {
        self.phase = Phase::Ended;
        self.outputs.push_back(DeliveryOutput::Done(DeliveryCounts {
            skipped: counts.skipped + self.done,
            ..counts
        }));
    }

    /// Passes a change to the pipeline in the form in which it is to be sent.
    fn deliver_record(&mut self, record: Record) -> Result<(), DeliveryFault> {
        let Some(replay) = &mut self.replay else {
            return Ok(self.pipeline.handle(DeliveryInput::Record(record))?);
        };
        match replay.step(&record).map_err(Undeliverable::Replay)? {
            ReplayStep::Skip => self.done += 1,
            ReplayStep::Quarantine(why) => {
                if let Some(replies) = &mut self.replies {
                    replies.quarantined.insert(record.number);
                }
                self.outputs.push_back(DeliveryOutput::Quarantine(record, why.to_owned()));
            }
            ReplayStep::Send(number, request) => {
                self.renumbered.insert(number, record.number);
                let body = request.encode(NOTAG).to_body();
                self.pipeline.handle(DeliveryInput::Record(Record { number, body }))?;
            }
        }
        Ok(())
    }

    fn collect_reply(&mut self, body: &Bytes) -> Result<(), Malformed> {
        match &mut self.replies {
            Some(replies) => {
                let number = |tag| self.renumbered.get(&self.pipeline.number_of(tag)?).copied();
                replies.collect_reply(body, number)
            }
            None => Ok(()),
        }
    }

    fn forward_outputs(&mut self) -> Result<(), DeliveryFault> {
        let acknowledged = self.pipeline.acknowledged();
        if self.replay.is_some() && acknowledged > self.continuation.answered_stored {
            self.continuation.answered_stored = acknowledged;
            self.outputs.push_back(DeliveryOutput::Answered(acknowledged));
        }
        while let Some(output) = self.pipeline.poll() {
            match output {
                PipelineOutput::Send(frame) => self.outputs.push_back(DeliveryOutput::Send(frame)),
                PipelineOutput::Rejected(rejected) => self.rejected(rejected)?,
                PipelineOutput::SyncFailed(errno) => {
                    self.outputs.push_back(DeliveryOutput::SyncFailed(errno))
                }
                PipelineOutput::Done(counts) => match (&self.replies, &self.replay) {
                    (Some(replies), Some(replay)) => {
                        self.discovery.lookups.begin(replies.paths(replay));
                        self.phase = Phase::Results(counts);
                        self.advance()?;
                    }
                    _ => self.end(counts),
                },
            }
        }
        Ok(())
    }

    fn rejected(&mut self, rejected: RejectedChange) -> Result<(), Malformed> {
        let RejectedChange { record, errno, text } = rejected;
        if self.rejected.contains(&record.number) {
            return Ok(());
        }
        if self.replay.is_some() && Replay::is_done(&Request::decode(record.body.clone())?.1, errno) {
            return Ok(());
        }
        let number = self.renumbered.get(&record.number).copied().unwrap_or(record.number);
        let why = format!("the server rejected it: {text} ({errno})");
        self.outputs.push_back(DeliveryOutput::Quarantine(Record { number, ..record }, why));
        Ok(())
    }
}

#[cfg(test)]
mod tests;
