//! The order of changes that are in flight at the same time.
//!
//! On one connection the server keeps the order in which changes were sent. After a loss, a change that is repeated, and
//! each change ordered after one, waits for all earlier ones.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, PoisonError};

use super::lock;

#[derive(Default)]
struct Table {
    next: u64,
    /// Changes without an outcome, and the number of the connection that they were sent on.
    unfinished: BTreeMap<u64, u64>,
}

/// The changes in flight.
#[derive(Default)]
pub(super) struct ChangeOrder {
    table: Mutex<Table>,
    finished: Condvar,
}

/// A change in flight, until it is dropped.
pub(super) struct Ticket<'a> {
    order: &'a ChangeOrder,
    number: u64,
}

impl ChangeOrder {
    /// Notes a change. Called in the order of changes.
    pub(super) fn begin(&self) -> Ticket<'_> {
        let mut table = lock(&self.table);
        table.next += 1;
        let number = table.next;
        table.unfinished.insert(number, 0);
        Ticket { order: self, number }
    }
}

impl Ticket<'_> {
    /// Waits for earlier changes, unless all of them are in flight on the same connection.
    pub(super) fn wait_for_earlier(&self, connection: u64) {
        let mut table = lock(&self.order.table);
        table.unfinished.insert(self.number, connection);
        let waits = |table: &mut Table| {
            table.unfinished.range(..self.number).any(|(_, sent_on)| *sent_on != connection)
        };
        let waited = self.order.finished.wait_while(table, waits);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        lock(&self.order.table).unfinished.remove(&self.number);
        self.order.finished.notify_all();
    }
}
