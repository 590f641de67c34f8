//! Recalls: recalled data is invalidated here and in the kernel, and then the recall is acknowledged.

use crate::core::Client;
use crate::operation::{handles, lock};
use crate::policies::invalidation::Forgotten;
use bytes::Bytes;
use std::collections::BTreeSet;
use wirefs_cache::TreeNodeId;
use wirefs_lease::{LeaseItem, Serial};
use wirefs_op::message::recall::{OWN_CHANGE, RecallItem, Rrecall};
use wirefs_op::message::target::NOFD;

/// Recalls that wait for fds, at most; further ones are acknowledged without.
const WAITING_MAX: usize = 4096;

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
            lock::changed_at_server(&mut self.sender(), &nodes);
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
            self.view.answer_recall(&mut self.outputs, forgetting);
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
        if !self.view.leases.acquiring.contains_key(&node) && !handles::outlive(&mut self.sender(), node) {
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
