//! Whether a connection's socket buffers hold up what is sent to its client, as the kernel counts it.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use wirefs_carrier::{Gauge, SendTimes};
use wirefs_op::Time;

/// Over so long it is counted, at least.
const SPAN: Duration = Duration::from_millis(400);
/// One span alone may be that in which the kernel was still making the buffers larger: it doubles them each round trip.
const SPANS: u32 = 2;
/// Below this round trip buffers are not what limits a connection: a client that takes no more is busy itself.
const RTT_MIN: Duration = Duration::from_millis(5);

/// Watches one connection.
#[derive(Debug)]
pub(super) struct Limited {
    gauge: Option<Gauge>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    since: Time,
    then: SendTimes,
    /// Spans in a row in which it was limited.
    spans: u32,
}

impl Limited {
    pub(super) fn new(gauge: Option<Gauge>) -> Limited {
        Limited { gauge, state: Mutex::default() }
    }

    /// Whether another connection would bring more: now and then, while much is being sent.
    ///
    /// # Cost
    /// A system call each [`SPAN`], else a look at a lock that is hardly ever held.
    pub(super) fn is_limited(&self, now: Time) -> bool {
        let Some(gauge) = &self.gauge else { return false };
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if now < state.since + SPAN {
            return false;
        }
        let Some(times) = gauge.sample() else { return false };
        state.ends(now, times)
    }
}

impl State {
    /// A span ends; tells whether it is time to say so.
    fn ends(&mut self, now: Time, times: SendTimes) -> bool {
        let span = now.since(self.since);
        let busy = times.busy.saturating_sub(self.then.busy);
        let limited = times.limited.saturating_sub(self.then.limited);
        (self.since, self.then) = (now, times);
        // BBR sends at the rate that it measures, so it runs into a full buffer only now and then: a fifth of the time on a
        // wire that would hold ten times as much (docs/design/0027).
        let is_limited = busy * 2 >= span && limited * 5 >= busy && times.rtt_min >= RTT_MIN;
        self.spans = if is_limited { self.spans + 1 } else { 0 };
        self.spans >= SPANS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(85);

    /// Spans of 500 ms: of each, how much of it there was something to send, and how much of that was limited.
    fn told(rtt_min: Duration, spans: &[(u64, u64)]) -> Vec<bool> {
        let (mut state, mut now, mut times) =
            (State::default(), Time(0), SendTimes { rtt_min, ..SendTimes::default() });
        let mut ends = |(busy, limited): &(u64, u64)| {
            now = now + Duration::from_millis(500);
            times.busy += Duration::from_millis(*busy);
            times.limited += Duration::from_millis(*limited);
            state.ends(now, times)
        };
        spans.iter().map(&mut ends).collect()
    }

    #[test]
    fn buffers_that_hold_up_two_spans_in_a_row_are_told() {
        assert_eq!(told(RTT, &[(500, 140), (500, 140), (500, 500)]), [false, true, true]);
        assert_eq!(told(RTT, &[(500, 140), (500, 20), (500, 140)]), [false; 3], "buffers that grow");
    }

    #[test]
    fn connection_with_little_to_send_or_a_short_wire_is_not_limited() {
        assert_eq!(told(RTT, &[(100, 100); 3]), [false; 3]);
        assert_eq!(told(Duration::from_micros(200), &[(500, 500); 3]), [false; 3]);
        assert_eq!(told(RTT, &[(500, 0); 3]), [false; 3]);
    }

    #[test]
    fn what_has_no_gauge_is_never_limited() {
        assert!(!Limited::new(None).is_limited(Time(1 << 60)));
    }
}
