//! Recalls in transit to one holder, and those that it has not answered.

use super::held_leases::RecallPosition;
use super::{GrantorOutput, HolderKey, LeaseConfig};
use crate::limits::{RECALL_BYTES_MAX, RECALL_ITEMS_MAX};
use crate::recall::{LeaseItem, Serial};
use std::collections::VecDeque;
use wirefs_op::Time;

/// Items that are sent in one message. No items: everything is recalled.
#[derive(Debug)]
pub(super) struct Batch {
    /// The objects and names to invalidate.
    pub(super) items: Vec<LeaseItem>,
    /// The position that is cleared once this batch and all earlier ones are answered.
    pub(super) position: RecallPosition,
    /// The time of the first recall of the first item.
    pub(super) first: Time,
    /// The start of the answer timeout.
    since: Time,
    bytes: usize,
}

impl Batch {
    fn has_room(&self, item: &LeaseItem) -> bool {
        let is_everything = self.items.is_empty();
        let fits = self.bytes + item.bytes() <= RECALL_BYTES_MAX && self.items.len() < RECALL_ITEMS_MAX;
        fits && !is_everything
    }
}

/// A batch that was sent.
#[derive(Debug)]
struct Sent {
    serial: Serial,
    batch: Batch,
    answered: bool,
}

/// Batches in order: sent ones, then unsent ones.
#[derive(Debug, Default)]
pub(super) struct Delivery {
    serial: Serial,
    sent: VecDeque<Sent>,
    unsent: VecDeque<Batch>,
    items: usize,
}

impl Delivery {
    /// Returns the number of unanswered items.
    pub(super) fn items(&self) -> usize {
        self.items
    }

    /// Returns true if no batch is pending.
    pub(super) fn is_empty(&self) -> bool {
        self.sent.is_empty() && self.unsent.is_empty()
    }

    /// Queues an item, in one batch with other unsent items. Its answer clears `position`.
    pub(super) fn push(&mut self, now: Time, first: Time, item: LeaseItem, position: RecallPosition) {
        self.items += 1;
        let bytes = item.bytes();
        match self.unsent.back_mut() {
            Some(batch) if batch.has_room(&item) => {
                batch.items.push(item);
                batch.bytes += bytes;
                batch.position = position;
            }
            Some(_) | None => {
                self.unsent.push_back(Batch { items: vec![item], position, first, since: now, bytes });
            }
        }
    }

    /// Queues a recall of everything.
    pub(super) fn push_everything(&mut self, now: Time, first: Time, position: RecallPosition) {
        self.unsent.push_back(Batch { items: Vec::new(), position, first, since: now, bytes: 0 });
    }

    /// Makes the answer to the last unsent batch clear `position`.
    pub(super) fn set_last_position(&mut self, position: RecallPosition) {
        if let Some(batch) = self.unsent.back_mut() {
            batch.position = position;
        }
    }

    /// Returns a serial that no recall has.
    pub(super) fn next_serial(&mut self) -> Serial {
        self.serial.0 += 1;
        self.serial
    }

    /// Moves the unsent batches to `outputs`.
    pub(super) fn flush(&mut self, holder: HolderKey, outputs: &mut VecDeque<GrantorOutput>) {
        for batch in self.unsent.drain(..) {
            self.serial.0 += 1;
            let serial = self.serial;
            outputs.push_back(GrantorOutput::Recall { holder, serial, items: batch.items.clone() });
            self.sent.push_back(Sent { serial, batch, answered: false });
        }
    }

    /// Records an answer. Returns the batches that are now answered together with all earlier ones, in order.
    pub(super) fn answered(&mut self, serial: Serial) -> Vec<Batch> {
        if let Some(sent) = self.sent.iter_mut().find(|sent| sent.serial == serial) {
            sent.answered = true;
        }
        let mut done = Vec::new();
        while self.sent.front().is_some_and(|sent| sent.answered) {
            done.extend(self.sent.pop_front().map(|sent| sent.batch));
        }
        self.items -= done.iter().map(|batch| batch.items.len()).sum::<usize>();
        done
    }

    /// Removes and returns all unanswered batches, after the connection broke. Their serials are no longer
    /// valid.
    pub(super) fn take_unanswered(&mut self) -> Vec<Batch> {
        self.items = 0;
        let sent = self.sent.drain(..).filter(|sent| !sent.answered).map(|sent| sent.batch);
        sent.chain(self.unsent.drain(..)).collect()
    }

    /// Restarts the answer timeouts, because the holder was silent and may read the recalls only now.
    pub(super) fn restart_timers(&mut self, now: Time) {
        for sent in &mut self.sent {
            sent.batch.since = now;
        }
    }

    /// Restarts both timeouts, because no change has waited for the answers so far.
    pub(super) fn reset_timers(&mut self, now: Time) {
        for batch in self.sent.iter_mut().map(|sent| &mut sent.batch).chain(&mut self.unsent) {
            (batch.first, batch.since) = (now, now);
        }
    }

    /// Returns the time by which the oldest recall must be answered.
    pub(super) fn due(&self, config: &LeaseConfig) -> Option<Time> {
        let front = &self.sent.front()?.batch;
        Some((front.since + config.answer).min(front.first + config.answer_max))
    }
}

#[cfg(test)]
mod tests;
