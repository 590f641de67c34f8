//! Sending of requests: predicted, held back, numbered and journaled, or queued.

use crate::background::predict;
use crate::core::Client;
use crate::operation::{affected, handles};
use crate::pending::{Continuation, Pending};
use wirefs_op::{Errno, Request};

impl Client {
    /// Sends a request; `pending` says what its reply is for.
    pub(crate) fn send(&mut self, request: Request, pending: Pending) {
        debug_assert!(!handles::closes_used(&self.view, &request), "{request:?}");
        let Some((request, pending)) = predict::predict(self, request, pending) else { return };
        // Not before: cached data of an object is invalid while a change with an unknown outcome is in progress.
        if let Some(node) = pending.counted_node() {
            self.change_begins(node, 0);
        }
        let Some((request, pending)) = self.view.behind(&mut self.requests, request, pending) else { return };
        if self.view.is_past_deadline(&self.requests) && !pending.outlives_deadline() {
            self.request_failed(pending, Errno::HostDown);
            return;
        }
        if self.view.mount.config.journal && self.requests.is_numbered() && request.is_change() {
            affected::note_known(&mut self.view, &mut self.outputs, &pending);
            self.view.issue(&mut self.requests, &mut self.outputs, request, |_| pending);
        } else {
            self.view.watch_syncs(&request);
            self.outputs.counters.count(&request);
            self.requests.wait(self.view.mount.now, request, pending);
        }
        self.view.send_waiting(&mut self.requests, &mut self.outputs);
    }
}
