//! Recalls: recalled data is invalidated here and in the kernel, and then the recall is acknowledged.

use crate::call::Invalidate;
use crate::core::Client;
use crate::counters::Counters;
use crate::operation::{handles, lock};
use crate::output::Output;
use crate::output::Outputs;
use crate::view::View;
use bytes::Bytes;
use std::collections::BTreeSet;
use wirefs_cache::{ROOT, TreeNodeId};
use wirefs_lease::{LeaseItem, PendingRecall, Serial};
use wirefs_op::message::recall::{OWN_CHANGE, RecallItem, Rrecall, Trecalled};
use wirefs_op::message::target::NOFD;
use wirefs_op::{Kind, NOTAG, Request};

/// Recalls that wait for fds, at most; further ones are acknowledged without.
const WAITING_MAX: usize = 4096;

/// Invalidations for the kernel.
#[derive(Default)]
struct Forgotten {
    names: BTreeSet<(TreeNodeId, Vec<u8>)>,
    nodes: BTreeSet<TreeNodeId>,
}

impl View {
    /// The node that an item is about.
    fn meant_by(&self, item: &RecallItem) -> Option<TreeNodeId> {
        let node = self.names.of_file(item.id)?;
        match &item.name {
            Some(name) => self.names.child(node, name),
            None => Some(node),
        }
    }

    /// Invalidates the cached data of an item.
    fn forget(&mut self, outputs: &mut Outputs, item: &RecallItem, forgotten: &mut Forgotten) {
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
    fn forget_meant(&mut self, node: TreeNodeId, forgotten: &mut Forgotten) {
        let Some(known) = self.names.node(node) else { return };
        let (id, is_held) = (known.stat.id, known.is_held_by_kernel());
        self.names.invalidate_file(id);
        self.directories.outdate(id, self.mount.now);
        self.files.invalidate_contents(node);
        if is_held {
            forgotten.nodes.insert(node);
        }
    }

    fn tell_of_name(&mut self, dir: TreeNodeId, name: &[u8], forgotten: &mut Forgotten) {
        let child = self.names.child(dir, name).and_then(|child| self.names.node(child));
        let is_told = child.is_some_and(|child| child.is_held_by_kernel());
        if self.names.remove_negative(dir, name) || is_told {
            forgotten.names.insert((dir, name.to_vec()));
        }
    }

    fn tell_of_all_names(&mut self, dir: TreeNodeId, forgotten: &mut Forgotten) {
        forgotten.names.extend(self.names.kernel_names(dir).map(|name| (dir, name.to_vec())));
        forgotten.names.extend(self.names.remove_negatives(dir).into_iter().map(|name| (dir, name)));
    }

    /// Queues the invalidations, names first: an answer in transit brings attributes with a name, and the invalidation of a name waits
    /// for it.
    fn forget_in_kernel(&mut self, outputs: &mut Outputs, forgotten: Forgotten) {
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
    fn about_to_go(&self, recalled: &[TreeNodeId]) -> Vec<TreeNodeId> {
        let mut without = self.files.without_fd();
        without.retain(|node| recalled.iter().any(|recalled| self.is_reached_through(*node, *recalled)));
        without
    }

    fn is_reached_through(&self, node: TreeNodeId, recalled: TreeNodeId) -> bool {
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
    pub(crate) fn fd_acquired(&mut self, counters: &mut Counters, outputs: &mut Outputs, node: TreeNodeId) {
        for serial in self.leases.acquiring.remove(&node).unwrap_or_default() {
            let Some((forgetting, left)) = self.leases.waiting.get_mut(&serial) else { continue };
            *left -= 1;
            if *left == 0 {
                let forgetting = *forgetting;
                self.leases.waiting.remove(&serial);
                self.answer_recall(counters, outputs, forgetting);
            }
        }
    }

    fn answer_recall(&mut self, counters: &mut Counters, outputs: &mut Outputs, forgetting: PendingRecall) {
        let serial = self.leases.holder_mut().and_then(|holder| holder.recall_done(forgetting));
        let Some(Serial(serial)) = serial else { return };
        self.leases.recalls += 1;
        let request = Request::Recalled(Trecalled { serial });
        let frame = request.encode(NOTAG);
        counters.count(&request);
        counters.bytes_out += frame.wire_len() as u64;
        counters.frames_out += 1;
        outputs.push(Output::SendAfter(frame));
    }
}

impl Client {
    /// Takes in a recall.
    pub(crate) fn recalled(&mut self, recall: Rrecall) {
        // A recall because of an own change, of an object that may have another name here, is no change by others.
        if recall.serial & OWN_CHANGE == 0 {
            self.view.note_others(&self.requests, &mut self.outputs);
            self.view.note_contended(&recall.items);
        }
        self.view.exclusive.synced.forget();
        let mut items: Vec<LeaseItem> = recall.items.iter().map(item).collect();
        let meant = recall
            .items
            .iter()
            .filter(|item| item.name.is_some())
            .filter_map(|item| self.view.meant_by(item));
        let meant: BTreeSet<TreeNodeId> = meant.collect();
        items.extend(
            meant
                .iter()
                .filter_map(|node| self.view.names.node(*node))
                .map(|known| LeaseItem::whole(known.stat.id)),
        );
        let (now, serial) = (self.view.mount.now, Serial(recall.serial & !OWN_CHANGE));
        let Some(holder) = self.view.leases.holder_mut() else { return };
        let forgetting = holder.recalled(now, serial, &items);
        if recall.items.is_empty() {
            self.view.forget_leased(&mut self.outputs);
            self.view.empty_kernel(&mut self.outputs);
        }
        let mut forgotten = Forgotten::default();
        for item in &recall.items {
            self.view.forget(&mut self.outputs, item, &mut forgotten);
        }
        for node in meant {
            self.view.forget_meant(node, &mut forgotten);
        }
        let nodes: Vec<TreeNodeId> =
            recall.items.iter().filter_map(|item| self.view.meant_by(item)).collect();
        if recall.serial & OWN_CHANGE == 0 {
            lock::changed_at_server(self, &nodes);
        }
        self.view.forget_in_kernel(&mut self.outputs, forgotten);
        let wanted = if recall.items.is_empty() {
            self.view.files.without_fd()
        } else {
            self.view.about_to_go(&nodes)
        };
        let wanted: BTreeSet<TreeNodeId> = wanted.into_iter().collect();
        let asked = wanted.into_iter().filter(|node| self.asks_fd(*node, serial)).count();
        if asked == 0 {
            self.view.answer_recall(&mut self.counters, &mut self.outputs, forgetting);
        } else {
            self.view.leases.waiting.insert(serial, (forgetting, asked));
        }
    }

    /// Asks for an fd of an open file that has none, before it is out of reach; false when that is not possible, or the answer to the
    /// recall must not wait for it: the request follows own changes, which may be blocked on this very recall.
    fn asks_fd(&mut self, node: TreeNodeId, serial: Serial) -> bool {
        if self.view.leases.waiting.len() >= WAITING_MAX || self.view.files.fd_for(node, None) != NOFD {
            return false;
        }
        if !self.view.leases.acquiring.contains_key(&node) && !handles::outlive(self, node) {
            return false;
        }
        if self.view.exclusive.unconfirmed.is_any() || !self.requests.are_all_sent() {
            return false;
        }
        self.view.leases.acquiring.entry(node).or_default().push(serial);
        true
    }
}

fn item(item: &RecallItem) -> LeaseItem {
    match &item.name {
        Some(name) => LeaseItem::named(item.id, Bytes::copy_from_slice(name)),
        None => LeaseItem::whole(item.id),
    }
}
