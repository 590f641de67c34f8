//! Sending of requests: predicted, held back, numbered and journaled, or queued.

use crate::core::Client;
use crate::operation::{affected, handles};
use crate::output::{Lane, Output};
use crate::pending::{Continuation, Pending};
use crate::policies::predict;
use wirefs_op::{Errno, FileId, Frame, NOTAG, Request};

impl Client {
    /// Sends a request; `pending` says what its reply is for.
    pub(crate) fn send(&mut self, request: Request, pending: Pending) {
        debug_assert!(!handles::closes_used(self, &request), "{request:?}");
        let Some((request, pending)) = predict::predict(self, request, pending) else { return };
        // Not before: cached data of an object is invalid while a change with an unknown outcome is in progress.
        if let Some(node) = pending.counted_node() {
            self.change_begins(node, 0);
        }
        let Some((request, pending)) = self.behind(request, pending) else { return };
        if self.is_past_deadline() && !pending.outlives_deadline() {
            self.request_failed(pending, Errno::HostDown);
            return;
        }
        if self.config.journal && self.requests.is_numbered() && request.is_change() {
            affected::note_known(self, &pending);
            self.issue(request, |_| pending);
        } else {
            self.watch_syncs(&request);
            self.counters.count(&request);
            self.requests.wait(self.now, request, pending);
        }
        self.send_waiting();
    }

    /// Numbers a change, notes it in the journal and queues it; `pending` makes of its number what its reply is for.
    pub(crate) fn issue(&mut self, request: Request, pending: impl FnOnce(u64) -> Pending) -> u64 {
        let number = self.requests.next_number();
        if !matches!(request, Request::Lock(_)) {
            self.output(Output::Journal(number, request.encode(NOTAG)));
        }
        self.exclusive.unconfirmed.changes();
        self.watch_syncs(&request);
        self.counters.count(&request);
        let issued = self.requests.issue(self.now, request, pending(number));
        debug_assert_eq!(issued, number, "it was the next");
        number
    }

    /// Sends the requests that may be sent now.
    pub(crate) fn send_waiting(&mut self) {
        let (names, files) = (&self.view.names, &self.view.files);
        let is_settled = |id: FileId| {
            let known = names.of_file(id).and_then(|node| Some((node, names.node(node)?.stat.version)));
            known.is_some_and(|(node, version)| files.is_of(node, version))
        };
        if self.requests.send_waiting(self.now, is_settled, &mut self.counters, &mut self.outputs) {
            self.view.leases.asked(self.now);
        }
    }

    /// Sends a frame over the first connection.
    pub(crate) fn transmit(&mut self, frame: Frame, lane: Lane) {
        if self.requests.transmit(self.now, frame, lane, &mut self.counters, &mut self.outputs) {
            self.view.leases.asked(self.now);
        }
    }
}
