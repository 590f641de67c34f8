//! Sending of requests: each is executed optimistically, held back, numbered and journaled, or queued. If a request is
//! answered or fails at once, that is left as a [`Step`], so its sender never continues a call.

mod optimistic;

use crate::call::Handle;
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

/// The rooms of a function that sends requests, and answers no call.
pub(crate) struct Sender<'a> {
    pub(crate) view: &'a mut View,
    pub(crate) requests: &'a mut Requests,
    pub(crate) outputs: &'a mut Outputs,
}

impl Sender<'_> {
    /// Sends a request; `pending` says what its reply is for.
    pub(crate) fn send(&mut self, request: Request, pending: Pending) {
        debug_assert!(!self.view.closes_used(&request), "{request:?}");
        let Some((request, pending)) = optimistic::execute(self, request, pending) else { return };
        // Not before: cached data of an object is invalid while a change with an unknown outcome is in progress.
        if let Some(node) = pending.counted_node() {
            self.change_begins(node, 0);
        }
        let Some((request, pending)) = self.view.behind(self.requests, request, pending) else { return };
        if self.view.is_past_deadline(self.requests) && !pending.outlives_deadline() {
            return self.outputs.leave(Step::Fail(pending, Errno::HostDown));
        }
        let is_change = request.is_change();
        if is_change && self.view.mount.config.journal && self.requests.is_numbered() {
            affected::note_known(self.view, self.outputs, &pending);
            self.view.issue(self.requests, self.outputs, request, |_| pending);
        } else {
            if is_change {
                self.view.watch_syncs(&request);
            }
            self.outputs.counters.count(&request);
            self.requests.wait(self.view.mount.now, request, pending);
        }
        self.view.send_waiting(self.requests, self.outputs);
    }

    /// Sends a query before all that wait. It waits for no change, and one tag is kept for it.
    pub(crate) fn send_first(&mut self, request: Request, pending: Pending) {
        self.outputs.counters.count(&request);
        self.requests.wait_first(self.view.mount.now, vec![(request, pending)]);
        self.view.send_waiting(self.requests, self.outputs);
    }

    /// Counts a change of the node that is about to be sent: until its reply, statements of the server about the node may be
    /// older or newer than the change.
    pub(crate) fn change_begins(&mut self, node: TreeNodeId, bytes: u64) {
        self.outdated(node);
        self.view.files.contents(node).appended = None;
        self.view.files.write_sent(node, bytes);
        self.view.names.hold(node);
    }

    /// Requests fds for open files with kept contents, since the file has changed and the kept contents are outdated.
    pub(crate) fn outdated(&mut self, node: TreeNodeId) {
        if !self.view.files.keeps_any() {
            return;
        }
        for handle in self.view.files.handles_of(node).collect::<Vec<_>>() {
            if self.view.files.open(handle).is_some_and(|open| open.as_opened.is_some()) {
                self.ask_fd(node, handle);
            }
        }
    }

    /// Asks for an fd of a file that was opened without one, behind own changes; no call waits for it.
    pub(crate) fn ask_fd(&mut self, node: TreeNodeId, handle: Handle) {
        let Ok(target) = self.view.target(node, Some(handle)) else { return };
        let open = self.view.files.open_mut(handle);
        let open = open.filter(|open| open.server == ServerHandle::None && open.copy.is_none());
        let Some(open) = open else { return };
        open.server.request();
        let mode = GetMode::MORE.and(GetMode::ORDERED);
        let id = target.id;
        let get = Tget { target, mode, nmsgs: 1, offset: 0, count: 0 };
        self.send(Request::Get(get), Pending::AcquireFd(Acquiring { handle, id, recalled: None }));
    }
}

impl View {
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
