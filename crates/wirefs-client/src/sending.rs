//! Sending of requests: predicted, held back, numbered and journaled, or queued. A request that is answered or fails at once leaves that
//! as a [`Step`], so its sender never continues a call.

mod predict;

use crate::call::Handle;
use crate::core::Client;
use crate::output::Outputs;
use crate::pending::{Acquiring, Continuation, Pending};
use crate::policies::affected;
use crate::requests::Requests;
use crate::steps::Step;
use crate::view::View;
use crate::view::files::ServerHandle;
use wirefs_cache::TreeNodeId;
use wirefs_op::message::get::{GetMode, Tget};
use wirefs_op::message::put::PutMode;
use wirefs_op::message::target::NOFD;
use wirefs_op::{Errno, Request};

impl Client {
    /// Sends a request; `pending` says what its reply is for.
    pub(crate) fn send(&mut self, request: Request, pending: Pending) {
        self.view.send(&mut self.requests, &mut self.outputs, request, pending);
    }

    /// As [`View::change_begins`].
    pub(crate) fn change_begins(&mut self, node: TreeNodeId, bytes: u64) {
        self.view.change_begins(&mut self.requests, &mut self.outputs, node, bytes);
    }
}

impl View {
    /// Sends a request; `pending` says what its reply is for.
    pub(crate) fn send(
        &mut self,
        requests: &mut Requests,
        outputs: &mut Outputs,
        request: Request,
        pending: Pending,
    ) {
        debug_assert!(!self.closes_used(&request), "{request:?}");
        let predicted = predict::predict(self, requests, outputs, request, pending);
        let Some((request, pending)) = predicted else { return };
        // Not before: cached data of an object is invalid while a change with an unknown outcome is in progress.
        if let Some(node) = pending.counted_node() {
            self.change_begins(requests, outputs, node, 0);
        }
        let Some((request, pending)) = self.behind(requests, request, pending) else { return };
        if self.is_past_deadline(requests) && !pending.outlives_deadline() {
            return outputs.leave(Step::Fail(pending, Errno::HostDown));
        }
        if self.mount.config.journal && requests.is_numbered() && request.is_change() {
            affected::note_known(self, outputs, &pending);
            self.issue(requests, outputs, request, |_| pending);
        } else {
            self.watch_syncs(&request);
            outputs.counters.count(&request);
            requests.wait(self.mount.now, request, pending);
        }
        self.send_waiting(requests, outputs);
    }

    /// Counts a change of the node that is about to be sent: until its reply, statements of the server about the node may be
    /// older or newer than the change.
    pub(crate) fn change_begins(
        &mut self,
        requests: &mut Requests,
        outputs: &mut Outputs,
        node: TreeNodeId,
        bytes: u64,
    ) {
        self.outdated(requests, outputs, node);
        self.files.contents(node).appended = None;
        self.files.write_sent(node, bytes);
        self.names.hold(node);
    }

    /// Requests fds for open files with kept contents, since the file has changed and the kept contents are outdated.
    pub(crate) fn outdated(&mut self, requests: &mut Requests, outputs: &mut Outputs, node: TreeNodeId) {
        if !self.files.keeps_any() {
            return;
        }
        for handle in self.files.handles_of(node).collect::<Vec<_>>() {
            if self.files.open(handle).is_some_and(|open| open.as_opened.is_some()) {
                self.ask_fd(requests, outputs, node, handle);
            }
        }
    }

    /// Asks for an fd of a file that was opened without one, behind own changes; no call waits for it.
    pub(crate) fn ask_fd(
        &mut self,
        requests: &mut Requests,
        outputs: &mut Outputs,
        node: TreeNodeId,
        handle: Handle,
    ) {
        let Ok(target) = self.target(node, Some(handle)) else { return };
        let open = self.files.open_mut(handle);
        let open = open.filter(|open| open.server == ServerHandle::None && open.copy.is_none());
        let Some(open) = open else { return };
        open.server.request();
        let mode = GetMode::MORE.and(GetMode::ORDERED);
        let id = target.id;
        let get = Tget { target, mode, nmsgs: 1, offset: 0, count: 0 };
        let acquiring = Acquiring { handle, id, recalled: None };
        self.send(requests, outputs, Request::Get(get), Pending::AcquireFd(acquiring));
    }

    /// Whether the request would have the server close an fd that an open file still goes by.
    fn closes_used(&self, request: &Request) -> bool {
        let closed = match request {
            Request::Get(get) if !get.mode.has(GetMode::MORE) => get.target.fd,
            Request::Put(put) if !put.mode.has(PutMode::MORE) => put.target.fd,
            _ => NOFD,
        };
        closed != NOFD && self.files.is_used(closed)
    }
}
