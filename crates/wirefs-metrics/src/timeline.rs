//! The causal history of an event, as spans without gaps.

#[cfg(test)]
mod tests;

use crate::cause::{Cause, Causes};
use wirefs_op::Time;

/// The maximum number of spans; older ones are merged with the time before.
const SPANS_MAX: usize = 12;

/// The time up to one event, divided among causes.
///
/// ```text
///   -infinity ──────── begin ──── end ──── end ──── end
///        cause `before`    cause     cause     cause
/// ```
/// INVARIANT: each span begins where the one before ends, so every moment up to the last end has exactly one cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeline {
    before: Cause,
    begin: Time,
    spans: [(Time, Cause); SPANS_MAX],
    len: u8,
}

impl Timeline {
    /// A timeline whose time before `begin` has the cause `before`.
    pub fn starting(begin: Time, before: Cause) -> Timeline {
        Timeline { before, begin, spans: [(begin, before); SPANS_MAX], len: 0 }
    }

    fn spans(&self) -> &[(Time, Cause)] {
        self.spans.get(..usize::from(self.len)).unwrap_or_default()
    }

    /// Returns the end of the last span.
    pub fn end(&self) -> Time {
        self.spans().last().map_or(self.begin, |(end, _)| *end)
    }

    /// Adds a span from the present end to `end`; an earlier `end` adds nothing.
    pub fn extend(&mut self, end: Time, cause: Cause) {
        if end <= self.end() {
            return;
        }
        let at = usize::from(self.len);
        if let Some(last) = at.checked_sub(1).and_then(|last| self.spans.get_mut(last))
            && last.1 == cause
        {
            last.0 = end;
            return;
        }
        if at == SPANS_MAX {
            self.begin = self.spans.first().map_or(self.begin, |(end, _)| *end);
            self.spans.copy_within(1.., 0);
            self.len -= 1;
        }
        if let Some(span) = self.spans.get_mut(usize::from(self.len)) {
            *span = (end, cause);
            self.len += 1;
        }
    }

    /// Divides the time from `since` to `until` among the causes; time after the last span is [`Cause::Local`]. The sum
    /// is exactly `until - since`.
    pub fn causes(&self, since: Time, until: Time) -> Causes {
        let mut causes = Causes::default();
        let mut from = since;
        let before = std::iter::once((self.begin, self.before));
        let after = std::iter::once((until, Cause::Local));
        for (end, cause) in before.chain(self.spans().iter().copied()).chain(after) {
            let end = end.min(until);
            if end > from {
                causes.add(cause, end - from);
                from = end;
            }
        }
        causes
    }
}
