//! The write slot of a session: at most one ordered request has it.

use super::JobKey;
use std::collections::VecDeque;
use wirefs_op::Request;

/// The holder of the slot, and the queue for it.
#[derive(Debug, Default)]
pub(super) struct WriteSlot {
    holder: Option<JobKey>,
    waiting: VecDeque<(JobKey, Request)>,
}

impl WriteSlot {
    /// Appends a request to the queue.
    pub(super) fn push(&mut self, key: JobKey, request: Request) {
        self.waiting.push_back((key, request));
    }

    /// Gives a free slot to the first request in the queue.
    pub(super) fn grant_next(&mut self) -> Option<(JobKey, Request)> {
        if self.holder.is_some() {
            return None;
        }
        let (key, request) = self.waiting.pop_front()?;
        self.holder = Some(key);
        Some((key, request))
    }

    /// The request that has the slot.
    pub(super) fn holder(&self) -> Option<JobKey> {
        self.holder
    }

    /// Releases the slot if `key` has it. Returns whether it had.
    pub(super) fn release(&mut self, key: JobKey) -> bool {
        let held = self.holder == Some(key);
        if held {
            self.holder = None;
        }
        held
    }

    /// The queued requests in order.
    pub(super) fn waiting(&self) -> Vec<JobKey> {
        self.waiting.iter().map(|(key, _)| *key).collect()
    }

    /// Removes a queued request. Returns whether it was queued.
    pub(super) fn remove(&mut self, key: JobKey) -> bool {
        let before = self.waiting.len();
        self.waiting.retain(|(waiting, _)| *waiting != key);
        self.waiting.len() < before
    }
}
