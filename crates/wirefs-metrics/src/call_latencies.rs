//! The times of calls, by operation and cause.

#[cfg(test)]
mod tests;

use crate::call_kind::CallKind;
use crate::cause::{Cause, Causes};
use crate::histogram::{Counts, Histogram};
use std::sync::OnceLock;

/// A histogram that takes memory from its first value on.
#[derive(Debug, Default)]
struct LazyHistogram(OnceLock<Box<Histogram>>);

impl LazyHistogram {
    fn histogram(&self) -> &Histogram {
        self.0.get_or_init(Box::default)
    }

    fn counts(&self) -> Counts {
        self.0.get().map(|histogram| histogram.counts()).unwrap_or_default()
    }
}

/// The histograms of one operation.
#[derive(Debug, Default)]
struct OperationTimes {
    total: LazyHistogram,
    causes: [LazyHistogram; Cause::ALL.len()],
}

/// The times of calls, by operation and cause. Several threads may add at once.
#[derive(Debug)]
pub struct CallLatencies {
    operations: Vec<OperationTimes>,
}

impl Default for CallLatencies {
    fn default() -> CallLatencies {
        CallLatencies { operations: CallKind::ALL.map(|_| OperationTimes::default()).into() }
    }
}

impl CallLatencies {
    /// Adds a call.
    ///
    /// # Cost
    /// Two atomic additions for the total and for each cause that took time.
    pub fn add(&self, operation: CallKind, causes: &Causes) {
        let Some(times) = self.operations.get(operation as usize) else { return };
        times.total.histogram().add(causes.total());
        for (cause, histogram) in Cause::ALL.into_iter().zip(&times.causes) {
            let time = causes.of(cause);
            if !time.is_zero() {
                histogram.histogram().add(time);
            }
        }
    }

    /// Returns the times of an operation.
    pub fn of(&self, operation: CallKind) -> Counts {
        self.operations.get(operation as usize).map(|times| times.total.counts()).unwrap_or_default()
    }

    /// Returns the times that calls of an operation spent for a cause. A call that spent none is not counted.
    pub fn caused(&self, operation: CallKind, cause: Cause) -> Counts {
        let times = self.operations.get(operation as usize);
        times
            .and_then(|times| times.causes.get(cause as usize))
            .map(LazyHistogram::counts)
            .unwrap_or_default()
    }
}
