//! Sending of frames.

use super::Requests;
use crate::counters::Counters;
use crate::output::{Lane, Output, Outputs};
use wirefs_op::{FileId, Frame, Time};

impl Requests {
    /// Sends the requests that may be sent now. `is_settled`: whether the cached contents of a file are of the version that is known.
    /// Returns whether a frame went over the first connection.
    pub(crate) fn send_waiting(
        &mut self,
        now: Time,
        is_settled: impl Fn(FileId) -> bool,
        counters: &mut Counters,
        outputs: &mut Outputs,
    ) -> bool {
        let mut is_any = false;
        while self.link.is_up() {
            let over = self.next_connection(now, &is_settled, outputs);
            let (arrival, departure) = (self.incoming.request_sent(now), self.outgoing.request_sent(now));
            let Some((frame, lane)) = self.next(now, over, arrival, departure) else { break };
            is_any |= self.transmit(now, frame, lane, counters, outputs);
        }
        is_any
    }

    /// Sends a frame. Returns whether it went over the first connection.
    pub(crate) fn transmit(
        &mut self,
        now: Time,
        frame: Frame,
        lane: Lane,
        counters: &mut Counters,
        outputs: &mut Outputs,
    ) -> bool {
        counters.bytes_out += frame.wire_len() as u64;
        counters.frames_out += 1;
        let is_first = !matches!(lane, Lane::Data(_));
        if is_first {
            self.link.spoke(now);
        }
        outputs.push(Output::Send(frame, lane));
        is_first
    }
}
