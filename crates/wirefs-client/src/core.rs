//! The machine: its inputs, its outputs, and what they share.

use crate::call::{CallId, Invalidate};
use crate::config::{Attachment, Config};
use crate::counters::Counters;
use crate::kernel::CallsInProgress;
use crate::output::{Output, Outputs};
use crate::requests::Requests;
use crate::view::bounds;
use crate::view::bounds::Trim;
use crate::view::conflicts::ReplacedFiles;
use crate::view::contended::Contended;
use crate::view::disk_cache::Stored;
use crate::view::files::Files;
use crate::view::leases::Leases;
use crate::view::locks::Locks;
use crate::view::misses::Misses;
use crate::view::prefetch::Streams;
use crate::view::publications::Publications;
use crate::view::rollback::Rollback;
use crate::view::synced::Synced;
use crate::view::throttled::Throttled;
use crate::view::unconfirmed::Ahead;
use wirefs_cache::{DirectoryCache, Freshness, InactiveListings, NameTree, TreeNodeId};
use wirefs_op::{FileId, FsStat, Time};

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
    pub(crate) names: NameTree,
    pub(crate) directories: DirectoryCache,
    pub(crate) files: Files,
    pub(crate) stored: Stored,
    pub(crate) inactive: InactiveListings,
    pub(crate) trim: Trim,
    pub(crate) requests: Requests,
    pub(crate) leases: Leases,
    pub(crate) counters: Counters,
    pub(crate) throttled: Throttled,
    pub(crate) publications: Publications,
    pub(crate) replaced_files: ReplacedFiles,
    pub(crate) misses: Misses,
    pub(crate) streams: Streams,
    pub(crate) ahead: Ahead,
    pub(crate) contended: Contended,
    /// When a program last got a lock by creating a name exclusively at the server.
    pub(crate) acquired: Option<Time>,
    /// The replay has restored the changes that the server's machine lost, and no connection was made since.
    pub(crate) is_redone: bool,
    pub(crate) locks: Locks,
    pub(crate) synced: Synced,
    pub(crate) rollback: Rollback,
    /// The file system's figures, and as of when.
    pub(crate) figures: Option<(FsStat, Time)>,
    pub(crate) calls: CallsInProgress,
    pub(crate) outputs: Outputs,
}

impl Client {
    /// A client whose tree is attached and whose connection is up.
    pub fn new(config: Config, attachment: Attachment, now: Time) -> Client {
        let leases = Leases::new(&config.mode, &attachment, now);
        let root = Freshness { at: now, leased: attachment.root.leased && leases.are_agreed() };
        let mut requests = Requests::new(now);
        // Nothing waits yet that could be given up.
        requests.attached(attachment.ledger, false);
        requests.allow_data_connections(attachment.data_connections);
        Client {
            config,
            now,
            names: bounds::names_within(config.cache_bytes_max, attachment.root, root),
            leases,
            attachment,
            directories: bounds::directories_within(config.cache_bytes_max),
            files: Files::new(config.cache_bytes_max),
            stored: Stored::default(),
            inactive: bounds::inactive_within(config.cache_bytes_max),
            trim: Trim::within(config.cache_bytes_max),
            requests,
            counters: Counters::default(),
            throttled: Throttled::default(),
            publications: Publications::default(),
            replaced_files: ReplacedFiles::default(),
            misses: Misses::default(),
            streams: Streams::default(),
            ahead: Ahead::default(),
            contended: Contended::default(),
            acquired: None,
            is_redone: false,
            locks: Locks::default(),
            synced: Synced::default(),
            rollback: Rollback::default(),
            figures: None,
            calls: CallsInProgress::default(),
            outputs: Outputs::default(),
        }
    }

    /// Whether a call waits for its answer.
    pub fn is_waiting(&self, id: CallId) -> bool {
        self.calls.is_waiting(id)
    }

    /// Whether answers are to come for which nobody waits any more.
    pub(crate) fn has_abandoned(&self) -> bool {
        self.calls.has_abandoned()
    }

    /// How many calls wait.
    pub fn waiting(&self) -> usize {
        self.calls.waiting().len()
    }

    /// All changes with lower numbers are answered: what the journal notes, since whoever sends its changes again needs to know
    /// which replies the server has been told to forget.
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
        if self.names.node(node).is_some_and(|known| known.is_last_lookup(count)) {
            self.deactivate(node);
        }
        self.names.forget(node, count);
        self.drop_if_gone(node);
    }

    /// Drops the contents of a node that no longer exists.
    pub(crate) fn drop_if_gone(&mut self, node: TreeNodeId) {
        if self.names.node(node).is_none() {
            self.files.node_forgotten(node);
            self.stored.node_forgotten(node);
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
