//! Invalidation of cached data, here and in the kernel.

use crate::call::{Answer, CallId, Invalidate};
use crate::kernel::CallsInProgress;
use crate::output::{Output, Outputs};
use crate::view::View;
use std::collections::BTreeSet;
use wirefs_cache::{ROOT, TreeNodeId};
use wirefs_lease::{PendingRecall, Serial};
use wirefs_op::message::recall::{RecallItem, Trecalled};
use wirefs_op::{Kind, NOTAG, Request};

/// Invalidations for the kernel.
#[derive(Default)]
pub(crate) struct Forgotten {
    pub(crate) names: BTreeSet<(TreeNodeId, Vec<u8>)>,
    pub(crate) nodes: BTreeSet<TreeNodeId>,
}

impl View {
    /// The node that an item is about.
    pub(crate) fn meant_by(&self, item: &RecallItem) -> Option<TreeNodeId> {
        let node = self.names.of_file(item.id)?;
        match &item.name {
            Some(name) => self.names.child(node, name),
            None => Some(node),
        }
    }

    /// Invalidates the cached data of an item.
    pub(crate) fn forget(&mut self, outputs: &mut Outputs, item: &RecallItem, forgotten: &mut Forgotten) {
        self.names.invalidate_file(item.id);
        self.directories.outdate(item.id, self.mount.now);
        match &item.name {
            Some(name) => self.inactive.invalidate_name(item.id, name),
            None => drop(self.inactive.take(item.id)),
        }
        let Some(node) = self.names.of_file(item.id) else { return };
        self.files.invalidate_open_listings(node, item.name.as_deref());
        self.invalidate_listing(outputs, node);
        if let Some(name) = &item.name {
            self.directories.invalidate_name(node, name);
            self.names.invalidate_evicted(self.mount.now);
            self.tell_of_name(node, name, forgotten);
        } else {
            self.directories.invalidate(node);
            self.files.invalidate_contents(node);
            self.tell_of_all_names(node, forgotten);
        }
        let Some(known) = self.names.node(node).filter(|known| known.is_held_by_kernel()) else {
            return;
        };
        forgotten.nodes.insert(node);
        // An answer that brings the node may be in transit: the kernel invalidates its names behind that.
        if !known.is_used() {
            forgotten.names.extend(self.names.links(node));
        }
    }

    /// Invalidates the object of a recalled name: a server that watches a directory reports changes of its entries by name only.
    pub(crate) fn forget_meant(&mut self, node: TreeNodeId, forgotten: &mut Forgotten) {
        let Some(known) = self.names.node(node) else { return };
        let (id, is_held) = (known.stat.id, known.is_held_by_kernel());
        self.names.invalidate_file(id);
        self.directories.outdate(id, self.mount.now);
        self.files.invalidate_contents(node);
        if is_held {
            forgotten.nodes.insert(node);
        }
    }

    pub(crate) fn tell_of_name(&mut self, dir: TreeNodeId, name: &[u8], forgotten: &mut Forgotten) {
        let child = self.names.child(dir, name).and_then(|child| self.names.node(child));
        let is_told = child.is_some_and(|child| child.is_held_by_kernel());
        if self.names.remove_negative(dir, name) || is_told {
            forgotten.names.insert((dir, name.to_vec()));
        }
    }

    pub(crate) fn tell_of_all_names(&mut self, dir: TreeNodeId, forgotten: &mut Forgotten) {
        forgotten.names.extend(self.names.kernel_names(dir).map(|name| (dir, name.to_vec())));
        forgotten.names.extend(self.names.remove_negatives(dir).into_iter().map(|name| (dir, name)));
    }

    /// Queues the invalidations, names first: an answer in transit brings attributes with a name, and the invalidation of a name waits
    /// for it.
    pub(crate) fn forget_in_kernel(&mut self, outputs: &mut Outputs, forgotten: Forgotten) {
        for (parent, name) in forgotten.names {
            self.invalidate_name(outputs, parent, name);
        }
        for node in forgotten.nodes {
            // What it coalesces of a listing is dropped at that one's end.
            let offset = if self.files.stateless.knows(node) { -1 } else { 0 };
            outputs.invalidate(Invalidate::Node { node, offset, length: 0 });
            self.files.kernel_emptied(node, self.mount.now);
        }
    }

    /// Invalidates a name in the kernel.
    pub(crate) fn invalidate_name(&mut self, outputs: &mut Outputs, parent: TreeNodeId, name: Vec<u8>) {
        let meant = self.names.child(parent, &name).and_then(|child| self.names.node(child));
        let is_directory = meant.is_some_and(|meant| meant.stat.kind == Kind::Directory);
        outputs.invalidate(Invalidate::Entry { parent, name, is_directory });
    }

    /// Invalidates all names and attributes in the kernel, which compares its pages by their times when they are read again.
    pub(crate) fn empty_kernel(&mut self, outputs: &mut Outputs) {
        // First: nothing that a call holds keeps these.
        self.invalidate_listings(outputs);
        for dir in self.names.directories_with_negatives() {
            for name in self.names.remove_negatives(dir) {
                self.invalidate_name(outputs, dir, name);
            }
        }
        let nodes: Vec<TreeNodeId> = self.names.held_by_kernel().collect();
        for node in &nodes {
            let names: Vec<Vec<u8>> = self.names.kernel_names(*node).map(<[u8]>::to_vec).collect();
            for name in names {
                self.invalidate_name(outputs, *node, name);
            }
        }
        for node in nodes {
            outputs.invalidate(Invalidate::Node { node, offset: -1, length: 0 });
        }
    }

    /// The open files that go by their names alone, of which those or one on the way to them may be about to change.
    pub(crate) fn about_to_go(&self, recalled: &[TreeNodeId]) -> Vec<TreeNodeId> {
        let mut without = self.files.without_fd();
        without.retain(|node| recalled.iter().any(|recalled| self.is_reached_through(*node, *recalled)));
        without
    }

    pub(crate) fn is_reached_through(&self, node: TreeNodeId, recalled: TreeNodeId) -> bool {
        let mut at = node;
        while at != recalled && at != ROOT {
            let parent = self.names.parent(at);
            if parent == at {
                return false;
            }
            at = parent;
        }
        let is_directory =
            |node: TreeNodeId| self.names.node(node).is_some_and(|known| known.stat.kind == Kind::Directory);
        at == recalled && (at == node || is_directory(at))
    }

    /// Continues the recalls that wait for the fd of a file, which has arrived or is unavailable.
    pub(crate) fn fd_acquired(&mut self, outputs: &mut Outputs, node: TreeNodeId) {
        for serial in self.leases.acquiring.remove(&node).unwrap_or_default() {
            let Some((forgetting, left)) = self.leases.waiting.get_mut(&serial) else { continue };
            *left -= 1;
            if *left == 0 {
                let forgetting = *forgetting;
                self.leases.waiting.remove(&serial);
                self.answer_recall(outputs, forgetting);
            }
        }
    }

    pub(crate) fn answer_recall(&mut self, outputs: &mut Outputs, forgetting: PendingRecall) {
        let serial = self.leases.holder_mut().and_then(|holder| holder.recall_done(forgetting));
        let Some(Serial(serial)) = serial else { return };
        self.leases.recalls += 1;
        let request = Request::Recalled(Trecalled { serial });
        let frame = request.encode(NOTAG);
        outputs.counters.count(&request);
        outputs.counters.bytes_out += frame.wire_len() as u64;
        outputs.counters.frames_out += 1;
        outputs.push(Output::SendAfter(frame));
    }
}

impl View {
    /// Invalidates the kernel's listing of a directory, whose names may have changed.
    pub(crate) fn invalidate_listing(&mut self, outputs: &mut Outputs, dir: TreeNodeId) {
        if self.files.stateless.invalidate(dir) {
            outputs.invalidate(Invalidate::Listing { node: dir });
        }
    }

    /// The same of all directories.
    pub(crate) fn invalidate_listings(&mut self, outputs: &mut Outputs) {
        for node in self.files.stateless.invalidate_all_listings() {
            outputs.invalidate(Invalidate::Listing { node });
        }
    }
}

impl View {
    /// Answers once the journal is on the local disk.
    pub(crate) fn answer_journaled(
        &mut self,
        calls: &mut CallsInProgress,
        outputs: &mut Outputs,
        id: CallId,
        answer: Answer,
    ) {
        self.changed_names(calls, outputs, id, true);
        if calls.end(id) {
            outputs.push(Output::AnswerJournaled(id, answer));
        }
    }

    /// Ends a call's changes of names: see [`CallsInProgress::names_changed`](crate::kernel::CallsInProgress::names_changed).
    pub(crate) fn changed_names(
        &mut self,
        calls: &mut CallsInProgress,
        outputs: &mut Outputs,
        id: CallId,
        is_done: bool,
    ) {
        calls.names_changed(id, is_done).into_iter().for_each(|dir| self.invalidate_listing(outputs, dir));
    }
}
