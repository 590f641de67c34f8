//! One session's ordered requests: at most one has its turn.

use super::JobKey;
use std::collections::VecDeque;
use wirefs_op::Request;

/// The queue of those that wait and the one whose turn it is.
#[derive(Debug, Default)]
pub(super) struct Lane {
    holder: Option<JobKey>,
    waiting: VecDeque<(JobKey, Request)>,
}

impl Lane {
    /// Puts a request behind all others.
    pub(super) fn push(&mut self, key: JobKey, request: Request) {
        self.waiting.push_back((key, request));
    }

    /// Gives the turn to the first that waits, when nobody has it.
    pub(super) fn next(&mut self) -> Option<(JobKey, Request)> {
        if self.holder.is_some() {
            return None;
        }
        let (key, request) = self.waiting.pop_front()?;
        self.holder = Some(key);
        Some((key, request))
    }

    /// Whose turn it is.
    pub(super) fn holder(&self) -> Option<JobKey> {
        self.holder
    }

    /// Ends the turn of `key`; false when it was not its turn.
    pub(super) fn pass(&mut self, key: JobKey) -> bool {
        let held = self.holder == Some(key);
        if held {
            self.holder = None;
        }
        held
    }

    /// All that wait, in their order.
    pub(super) fn waiting(&self) -> Vec<JobKey> {
        self.waiting.iter().map(|(key, _)| *key).collect()
    }

    /// Takes out one that still waits; false when it does not.
    pub(super) fn remove(&mut self, key: JobKey) -> bool {
        let before = self.waiting.len();
        self.waiting.retain(|(waiting, _)| *waiting != key);
        self.waiting.len() < before
    }
}
