//! Listings that outlive the kernel's interest in them, and the mount (`docs/design/0010-disk-cache.md`).
//!
//! ```text
//!   the kernel forgets a directory   ->  its listing becomes inactive, if  it is leased
//!   a call uses a directory          ->  its listing is active again
//!   the mount ends                   ->  all of them are exported
//!   the next mount, leases kept      ->  all are inactive, and count once a request is answered
//! ```
//!
//! INVARIANT: inactive listings are leased. An own change of a directory begins with a call that uses it, and ends with a reply that
//! drops a listing that became inactive meanwhile.

use crate::core::Client;
use crate::kernel::CallsInProgress;
use crate::pending::Pending;
use crate::view::View;
use bytes::Bytes;
use wirefs_cache::{Freshness, PackedListing, TreeNode, TreeNodeId};
use wirefs_op::message::ping::Tping;
use wirefs_op::{FileId, Kind, Request, Stat, Time};

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

impl Client {
    /// Takes in the listings that an earlier mount of the same directory exported, whose session this is. Call it before anything
    /// else. Tells whether they are of use: the server has kept the session's leases.
    ///
    /// # Cost
    /// 1 round trip in the background before they are used.
    pub fn import(&mut self, listings: impl IntoIterator<Item = (FileId, Bytes)>) -> bool {
        let is_kept = self.view.mount.attachment.leases.as_ref().is_some_and(|leases| leases.kept);
        if !is_kept || !self.view.leases.are_agreed() {
            return false;
        }
        // Later than what is not leased any more, and earlier than anything that is recalled.
        let at = Time(self.view.leases.leased_since().0 + 1);
        let root = self.view.mount.attachment.root;
        self.learn(&root, Freshness { at, leased: root.leased });
        for (dir, data) in listings {
            self.view.inactive.put(dir, PackedListing::from_data(data, at));
        }
        if !self.view.inactive.is_empty() {
            self.view.leases.hold_some();
            self.view.prefetch.remembers();
            self.send(Request::Ping(Tping {}), Pending::IGNORE);
        }
        true
    }

    /// Hands out all complete listings that are leased. Call it last: when the connection is gone, so that nothing is recalled after.
    pub fn export(&mut self) -> Vec<(FileId, Bytes)> {
        for node in self.view.directories.cached() {
            self.view.deactivate(&self.calls, node);
        }
        let data = |(dir, packed): (FileId, PackedListing)| Some((dir, packed.into_data()?));
        self.view.inactive.drain().filter_map(data).collect()
    }
}
