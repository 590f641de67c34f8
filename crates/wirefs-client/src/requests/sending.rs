//! Sending of frames.

use super::Requests;
use super::connection::LinkState;
use super::origin::Origin;
use crate::call::CallId;
use crate::output::{Lane, Output, Outputs};
use wirefs_metrics::Cause;
use wirefs_op::{FileId, Frame, Time};

/// The minimum bound on unacknowledged bytes of writers that have gone on; also the bound before the network path is
/// measured.
const BEHIND_BYTES_MIN: u64 = 4 * 1024 * 1024;
/// The maximum bound on unacknowledged bytes of writers that have gone on.
const BEHIND_BYTES_MAX: u64 = 48 * 1024 * 1024;

impl Requests {
    /// The number of unacknowledged bytes above which writers wait.
    pub(crate) fn unacknowledged_bytes_max(&self) -> u64 {
        (2 * self.outgoing.bdp_bytes()).clamp(BEHIND_BYTES_MIN, BEHIND_BYTES_MAX)
    }

    /// The reason for waits that no request explains.
    pub(crate) fn common_wait(&self) -> Cause {
        match self.link.state {
            LinkState::Up(_) => Cause::Queue,
            LinkState::Down(_) => Cause::Offline,
        }
    }

    /// The history of the input at `now`.
    pub(crate) fn origin(&self, now: Time) -> Origin {
        let origin = self.input.origin;
        // An input without a history of its own: the time before it has the common cause.
        if origin.timeline.end() == now { origin } else { Origin::new(now, self.common_wait(), None) }
    }

    /// Begins an input with this history.
    pub(crate) fn begin_input(&mut self, now: Time, before: Cause, call: Option<CallId>) {
        self.input.origin = Origin::new(now, before, call);
    }

    /// Sends the requests that may be sent now. `is_settled`: whether the cached contents of a file are of the version that is known.
    /// Returns whether a frame went over the first connection.
    pub(crate) fn send_waiting(
        &mut self,
        now: Time,
        is_settled: impl Fn(FileId) -> bool,
        outputs: &mut Outputs,
    ) -> bool {
        let mut is_any = false;
        while self.link.is_up() {
            let over = self.next_connection(now, &is_settled, outputs);
            let (arrival, departure) = (self.incoming.request_sent(now), self.outgoing.request_sent(now));
            let Some((frame, lane)) = self.next(now, over, arrival, departure) else { break };
            is_any |= self.transmit(now, frame, lane, outputs);
        }
        is_any
    }

    /// Sends a frame. Returns whether it went over the first connection.
    pub(crate) fn transmit(&mut self, now: Time, frame: Frame, lane: Lane, outputs: &mut Outputs) -> bool {
        outputs.counters.bytes_out += frame.wire_len() as u64;
        outputs.counters.frames_out += 1;
        let is_first = !matches!(lane, Lane::Data(_));
        if is_first {
            self.link.spoke(now);
        }
        outputs.push(Output::Send(frame, lane));
        is_first
    }
}
