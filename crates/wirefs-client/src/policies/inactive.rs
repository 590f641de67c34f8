//! Listings that outlive the kernel's interest in them, and the mount (`docs/design/0010-disk-cache.md`).
//!
//! ```text
//!   the kernel forgets a directory   ->  its listing becomes inactive if it is leased
//!   a call uses a directory          ->  its listing is active again
//!   the mount ends                   ->  all of them are exported
//!   the next mount, leases kept      ->  all are inactive, and are used once a request is answered
//! ```
//!
//! INVARIANT: inactive listings are leased, and include this mount's own changes: the call of a change activates the
//! directory's listing, and its reply drops a listing that has become inactive in between.

use crate::kernel::CallsInProgress;
use crate::view::View;
use wirefs_cache::{TreeNode, TreeNodeId};
use wirefs_op::{FileId, Kind, Stat};

impl View {
    /// Moves a directory's listing to the inactive list. Returns whether there was one.
    pub(crate) fn deactivate(&mut self, calls: &CallsInProgress, node: TreeNodeId) -> bool {
        let Some(stat) = self.names.node(node).map(|known| known.stat) else { return false };
        // The reply to a killed caller's call may still report an own change, and a directory with unconfirmed changes may have names
        // that the server does not know yet.
        if stat.kind != Kind::Directory || calls.has_abandoned() || self.files.is_ahead(node) {
            return false;
        }
        let (coherency, names) = (self.coherency(), &self.names);
        // A node is told of what changes, sooner than the listings that name it.
        let fresh = |told: &Stat| {
            let known = names.of_file(told.id).and_then(|node| names.node(node))?;
            let leased = known.freshness.is_some_and(|known| coherency.is_leased(known));
            Some(Stat { leased, ..if leased { known.stat } else { *told } })
        };
        let packed = self.directories.pack(node, &stat, &coherency, fresh);
        let is_any = packed.is_some();
        if let Some(packed) = packed {
            self.inactive.put(stat.id, packed);
        }
        is_any
    }

    /// An own change of a directory was answered, however long ago it was called.
    pub(crate) fn drop_inactive(&mut self, dir: FileId) {
        if !self.inactive.is_empty() {
            self.inactive.take(dir);
        }
    }

    /// Activates the listing of a directory that is used.
    pub(crate) fn reactivate(&mut self, node: TreeNodeId) {
        if self.inactive.is_empty() {
            return;
        }
        let Some(dir) = self.names.node(node).filter(|known| known.stat.kind == Kind::Directory) else {
            return;
        };
        if let Some(packed) = self.inactive.take(dir.stat.id) {
            let coherency = self.coherency();
            self.directories.unpack(node, &packed, &coherency);
            self.note_listed(node);
            self.bounds.taken = Some(node);
        }
    }

    /// Whether a directory's listing is known and believed, be it packed.
    pub(crate) fn is_listed(&self, node: TreeNodeId) -> bool {
        let coherency = self.coherency();
        let is_packed = |known: &TreeNode| self.inactive.has_whole(known.stat.id, &coherency);
        self.directories.is_fresh(node, &coherency) || self.names.node(node).is_some_and(is_packed)
    }
}

impl View {
    /// Subtracts lookups of a node by the kernel.
    pub(crate) fn forget_lookups(&mut self, calls: &CallsInProgress, node: TreeNodeId, count: u64) {
        if self.names.node(node).is_some_and(|known| known.is_last_lookup(count)) {
            self.deactivate(calls, node);
        }
        self.names.forget(node, count);
        self.drop_if_gone(node);
    }

    /// Drops the contents of a node that no longer exists.
    pub(crate) fn drop_if_gone(&mut self, node: TreeNodeId) {
        if self.names.node(node).is_none() {
            self.files.node_forgotten(node);
            self.disk_cache.node_forgotten(node);
        }
    }
}
