//! Sending of requests: predicted, held back, numbered and journaled, or queued.

use crate::core::Client;
use crate::counters::Counters;
use crate::operation::{affected, handles};
use crate::output::Outputs;
use crate::output::{Lane, Output};
use crate::pending::{Continuation, Pending};
use crate::policies::predict;
use crate::requests::Requests;
use crate::view::View;
use wirefs_op::{Errno, FileId, Frame, NOTAG, Request};

impl View {
    /// Numbers a change, notes it in the journal and queues it; `pending` makes of its number what its reply is for.
    pub(crate) fn issue(
        &mut self,
        requests: &mut Requests,
        counters: &mut Counters,
        outputs: &mut Outputs,
        request: Request,
        pending: impl FnOnce(u64) -> Pending,
    ) -> u64 {
        let number = requests.next_number();
        if !matches!(request, Request::Lock(_)) {
            outputs.push(Output::Journal(number, request.encode(NOTAG)));
        }
        self.exclusive.unconfirmed.changes();
        self.watch_syncs(&request);
        counters.count(&request);
        let issued = requests.issue(self.mount.now, request, pending(number));
        debug_assert_eq!(issued, number, "it was the next");
        number
    }

    /// Sends the requests that may be sent now.
    pub(crate) fn send_waiting(
        &mut self,
        requests: &mut Requests,
        counters: &mut Counters,
        outputs: &mut Outputs,
    ) {
        let (names, files) = (&self.names, &self.files);
        let is_settled = |id: FileId| {
            let known = names.of_file(id).and_then(|node| Some((node, names.node(node)?.stat.version)));
            known.is_some_and(|(node, version)| files.is_of(node, version))
        };
        if requests.send_waiting(self.mount.now, is_settled, counters, outputs) {
            self.leases.asked(self.mount.now);
        }
    }

    /// Sends a frame over the first connection.
    pub(crate) fn transmit(
        &mut self,
        requests: &mut Requests,
        counters: &mut Counters,
        outputs: &mut Outputs,
        frame: Frame,
        lane: Lane,
    ) {
        if requests.transmit(self.mount.now, frame, lane, counters, outputs) {
            self.leases.asked(self.mount.now);
        }
    }
}

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
            self.view.issue(&mut self.requests, &mut self.counters, &mut self.outputs, request, |_| pending);
        } else {
            self.view.watch_syncs(&request);
            self.counters.count(&request);
            self.requests.wait(self.view.mount.now, request, pending);
        }
        self.view.send_waiting(&mut self.requests, &mut self.counters, &mut self.outputs);
    }
}
