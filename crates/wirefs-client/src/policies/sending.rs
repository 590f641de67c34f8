//! Requests on their way out: numbered, journaled and queued.

use crate::output::{Lane, Output, Outputs};
use crate::pending::Pending;
use crate::requests::Requests;
use crate::view::View;
use wirefs_op::{FileId, Frame, NOTAG, Request};

impl View {
    /// Numbers a change, notes it in the journal and queues it; `pending` makes of its number what its reply is for.
    pub(crate) fn issue(
        &mut self,
        requests: &mut Requests,
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
        outputs.counters.count(&request);
        let issued = requests.issue(self.mount.now, request, pending(number));
        debug_assert_eq!(issued, number, "it was the next");
        number
    }

    /// Sends the requests that may be sent now.
    pub(crate) fn send_waiting(&mut self, requests: &mut Requests, outputs: &mut Outputs) {
        let (names, files) = (&self.names, &self.files);
        let is_settled = |id: FileId| {
            let known = names.of_file(id).and_then(|node| Some((node, names.node(node)?.stat.version)));
            known.is_some_and(|(node, version)| files.is_of(node, version))
        };
        if requests.send_waiting(self.mount.now, is_settled, outputs) {
            self.leases.asked(self.mount.now);
        }
    }

    /// Sends a frame over the first connection.
    pub(crate) fn transmit(
        &mut self,
        requests: &mut Requests,
        outputs: &mut Outputs,
        frame: Frame,
        lane: Lane,
    ) {
        if requests.transmit(self.mount.now, frame, lane, outputs) {
            self.leases.asked(self.mount.now);
        }
    }
}

impl View {
    /// A change was answered: what waited for that goes on.
    pub(crate) fn go_on_behind(&mut self, requests: &mut Requests, outputs: &mut Outputs) {
        requests.release_held(self.exclusive.unconfirmed.answered_count());
        self.share(requests, outputs);
    }
}
