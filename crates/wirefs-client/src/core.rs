//! The client: its rooms, and access to them.

use crate::call::{CallId, Invalidate};
use crate::config::{Attachment, Config};
use crate::counters::Counters;
use crate::kernel::CallsInProgress;
use crate::output::{Output, Outputs};
use crate::requests::Requests;
use crate::view::View;
use crate::view::copies::PrivateCopies;
use crate::view::exclusive::ExclusiveState;
use crate::view::prefetch::Streams;
use wirefs_cache::TreeNodeId;
use wirefs_op::{FileId, Time};

/// Unacknowledged bytes that writers may leave behind before the network path is measured, and at least.
const BEHIND_BYTES_MIN: u64 = 4 * 1024 * 1024;
/// Unacknowledged bytes that writers may leave behind at most.
const BEHIND_BYTES_MAX: u64 = 48 * 1024 * 1024;

/// The client of one mounted tree.
#[derive(Debug)]
pub struct Client {
    pub(crate) config: Config,
    pub(crate) attachment: Attachment,
    pub(crate) now: Time,
    pub(crate) view: View,
    pub(crate) exclusive: ExclusiveState,
    pub(crate) prefetch: Streams,
    pub(crate) copies: PrivateCopies,
    pub(crate) requests: Requests,
    pub(crate) counters: Counters,
    pub(crate) calls: CallsInProgress,
    pub(crate) outputs: Outputs,
}

impl Client {
    /// A client whose tree is attached and whose connection is up.
    pub fn new(config: Config, attachment: Attachment, now: Time) -> Client {
        let mut requests = Requests::new(now);
        // No request waits yet that could be given up.
        requests.attached(attachment.ledger, false);
        requests.allow_data_connections(attachment.data_connections);
        Client {
            config,
            now,
            view: View::new(&config, &attachment, now),
            attachment,
            exclusive: ExclusiveState::default(),
            prefetch: Streams::default(),
            copies: PrivateCopies::default(),
            requests,
            counters: Counters::default(),
            calls: CallsInProgress::default(),
            outputs: Outputs::default(),
        }
    }

    /// Whether a call waits for its answer.
    pub fn is_waiting(&self, id: CallId) -> bool {
        self.calls.is_waiting(id)
    }

    /// Whether results are to come whose callers are gone.
    pub(crate) fn has_abandoned(&self) -> bool {
        self.calls.has_abandoned()
    }

    /// How many calls wait.
    pub fn waiting(&self) -> usize {
        self.calls.waiting().len()
    }

    /// The number below which all changes are answered. The journal notes it: a replay needs to know which replies the server was told to
    /// forget.
    pub fn answered_below(&self) -> u64 {
        self.requests.answered_below()
    }

    /// Which directory is mounted.
    pub fn root_id(&self) -> FileId {
        self.attachment.root.id
    }

    /// Hands out what is to be done, in order.
    pub fn poll(&mut self) -> Option<Output> {
        self.outputs.pop()
    }

    pub(crate) fn invalidate(&mut self, what: Invalidate) {
        self.outputs.push(Output::Invalidate(what));
    }

    pub(crate) fn output(&mut self, output: Output) {
        self.outputs.push(output);
    }

    /// The calls that wait.
    pub(crate) fn waiting_calls(&self) -> Vec<CallId> {
        self.calls.waiting().collect()
    }

    /// Subtracts lookups of a node by the kernel.
    pub(crate) fn forget_lookups(&mut self, node: TreeNodeId, count: u64) {
        if self.view.names.node(node).is_some_and(|known| known.is_last_lookup(count)) {
            self.deactivate(node);
        }
        self.view.names.forget(node, count);
        self.drop_if_gone(node);
    }

    /// Drops the contents of a node that no longer exists.
    pub(crate) fn drop_if_gone(&mut self, node: TreeNodeId) {
        if self.view.names.node(node).is_none() {
            self.view.files.node_forgotten(node);
            self.view.disk_cache.node_forgotten(node);
        }
    }

    /// Invalidates the kernel's pages of a file that others have changed.
    pub(crate) fn invalidate_pages(&mut self, node: TreeNodeId) {
        self.invalidate(Invalidate::Node { node, offset: 0, length: 0 });
    }

    /// The number of unacknowledged bytes above which writers wait.
    pub(crate) fn unacknowledged_bytes_max(&self) -> u64 {
        (2 * self.requests.outgoing.bdp_bytes()).clamp(BEHIND_BYTES_MIN, BEHIND_BYTES_MAX)
    }
}
