//! Events in virtual time.

use std::collections::BTreeMap;
use wirefs_op::Time;

/// The pending events of a simulation, in the order of their times; events at one time keep the order in which they were added.
#[derive(Clone, Debug)]
pub struct EventQueue<E> {
    events: BTreeMap<(Time, u64), E>,
    serial: u64,
}

impl<E> Default for EventQueue<E> {
    fn default() -> EventQueue<E> {
        EventQueue { events: BTreeMap::new(), serial: 0 }
    }
}

impl<E> EventQueue<E> {
    /// Adds an event at a time.
    pub fn push(&mut self, at: Time, event: E) {
        self.serial += 1;
        self.events.insert((at, self.serial), event);
    }

    /// Returns the time of the first event.
    pub fn next_at(&self) -> Option<Time> {
        self.events.first_key_value().map(|((at, _), _)| *at)
    }

    /// Removes the first event. Returns it with its time.
    pub fn pop(&mut self) -> Option<(Time, E)> {
        self.events.pop_first().map(|((at, _), event)| (at, event))
    }

    /// Removes the first event if its time is not after `end`. Returns it with its time.
    pub fn pop_until(&mut self, end: Time) -> Option<(Time, E)> {
        self.next_at().filter(|at| *at <= end)?;
        self.pop()
    }

    /// Returns all events with their times, in order.
    pub fn iter(&self) -> impl Iterator<Item = (Time, &E)> {
        self.events.iter().map(|((at, _), event)| (*at, event))
    }

    /// Removes the events for which `keeps` returns `false`.
    pub fn retain(&mut self, mut keeps: impl FnMut(&E) -> bool) {
        self.events.retain(|_, event| keeps(event));
    }
}

#[cfg(test)]
mod tests;
