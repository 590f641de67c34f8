//! Detects connections whose sending the socket buffers limit, from the kernel's counters.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use wirefs_carrier::{Gauge, SendTimes};
use wirefs_op::Time;

/// The minimum time of one measurement.
const SPAN: Duration = Duration::from_millis(400);
/// One span may be the time in which the kernel still enlarges the buffers: it doubles them each round trip.
const SPANS: u32 = 2;
/// Below this round trip time the buffers do not limit a connection: a slow reader is itself the limit.
const RTT_MIN: Duration = Duration::from_millis(5);

/// The measurement of one connection.
#[derive(Debug)]
pub(super) struct Limited {
    gauge: Option<Gauge>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    since: Time,
    then: SendTimes,
    /// Consecutive spans in which the buffers were the limit.
    spans: u32,
}

impl Limited {
    pub(super) fn new(gauge: Option<Gauge>) -> Limited {
        Limited { gauge, state: Mutex::default() }
    }

    /// Returns, from time to time while much is sent, whether another connection would increase the throughput.
    ///
    /// # Cost
    /// One system call per [`SPAN`], else an uncontended lock.
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
    /// Ends a span. Returns whether to report the limit.
    fn ends(&mut self, now: Time, times: SendTimes) -> bool {
        let span = now.since(self.since);
        let busy = times.busy.saturating_sub(self.then.busy);
        let limited = times.limited.saturating_sub(self.then.limited);
        (self.since, self.then) = (now, times);
        // BBR sends at the rate that it measures, so it meets a full buffer only for a fifth of the time on a path that
        // could carry ten times as much (docs/design/0027).
        let is_limited = busy * 2 >= span && limited * 5 >= busy && times.rtt_min >= RTT_MIN;
        self.spans = if is_limited { self.spans + 1 } else { 0 };
        self.spans >= SPANS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(85);

    /// Spans of 500 ms, each with the milliseconds in which there was data to send, and those in which buffers limited
    /// it.
    fn reports(rtt_min: Duration, spans: &[(u64, u64)]) -> Vec<bool> {
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
    fn buffers_that_limit_two_consecutive_spans_are_reported() {
        assert_eq!(reports(RTT, &[(500, 140), (500, 140), (500, 500)]), [false, true, true]);
        assert_eq!(reports(RTT, &[(500, 140), (500, 20), (500, 140)]), [false; 3], "buffers that grow");
    }

    #[test]
    fn connection_with_little_to_send_or_a_short_path_is_not_limited() {
        assert_eq!(reports(RTT, &[(100, 100); 3]), [false; 3]);
        assert_eq!(reports(Duration::from_micros(200), &[(500, 500); 3]), [false; 3]);
        assert_eq!(reports(RTT, &[(500, 0); 3]), [false; 3]);
    }

    #[test]
    fn connection_without_gauge_is_never_limited() {
        assert!(!Limited::new(None).is_limited(Time(1 << 60)));
    }
}
