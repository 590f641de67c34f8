//! Queries that wait for unconfirmed changes, which their replies must include.

use super::Requests;
use super::origin::Origin;
use crate::pending::Pending;
use wirefs_op::{Request, Time};

/// A query that waits for unconfirmed changes.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) request: Request,
    pending: Pending,
    /// How many unconfirmed changes, over the life of the mount, must be answered first.
    until: u64,
    asked: Time,
    pub(super) origin: Origin,
}

impl Requests {
    /// Holds a query back until this many unconfirmed changes are answered.
    pub(crate) fn hold(&mut self, asked: Time, until: u64, request: Request, pending: Pending) {
        self.held.push_back(Held { request, pending, until, asked, origin: self.input.origin });
    }

    /// Queues the held queries, since this many unconfirmed changes are answered.
    pub(crate) fn release_held(&mut self, answered: u64) {
        while self.held.front().is_some_and(|held| held.until <= answered) {
            let Some(Held { request, pending, asked, origin, .. }) = self.held.pop_front() else { return };
            self.wait_from(asked, request, pending, origin);
        }
    }

    /// The number of held queries.
    pub(crate) fn held(&self) -> usize {
        self.held.len()
    }
}
