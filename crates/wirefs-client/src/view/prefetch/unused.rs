//! Prefetched data that no program has used yet, in the order of its eviction.

use std::collections::{BTreeMap, VecDeque};
use wirefs_cache::TreeNodeId;
use wirefs_op::Time;

/// The use of prefetched data, each in its unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fate {
    /// How many were fetched.
    pub fetched: u64,
    /// How many of them were used.
    pub used: u64,
    /// How many of them were already known, or expired or dropped before a use.
    pub wasted: u64,
}

/// The prefetched data of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    /// The listing of a directory.
    Directory,
    /// The contents of a file, with their size in bytes.
    File(u64),
}

/// All of it. Each node in it is held.
#[derive(Debug, Default)]
pub(crate) struct Unused {
    items: BTreeMap<TreeNodeId, (Item, u64)>,
    /// Oldest first; the number says which of a node's entries counts.
    order: VecDeque<(TreeNodeId, u64)>,
    serial: u64,
    /// The recently fetched contents, oldest first, each with its time.
    late: VecDeque<(TreeNodeId, u64, Time)>,
    late_bytes: u64,
    /// Those before this one did not.
    late_from: u64,
    directories: usize,
    files: usize,
    bytes: u64,
}

impl Unused {
    /// Bytes of contents that came since then. They may only be asked for later and later.
    pub(crate) fn bytes_since(&mut self, since: Time) -> u64 {
        while let Some((node, serial, at)) = self.late.front().copied() {
            let item = self.items.get(&node).filter(|(_, which)| *which == serial);
            if item.is_some() && at >= since {
                break;
            }
            if let Some((Item::File(bytes), _)) = item {
                self.late_bytes -= bytes;
            }
            self.late_from = serial + 1;
            self.late.pop_front();
        }
        self.late_bytes
    }

    /// Takes in a node; false when it is in already.
    pub(crate) fn add(&mut self, node: TreeNodeId, item: Item, now: Time) -> bool {
        if self.items.contains_key(&node) {
            return false;
        }
        self.serial += 1;
        self.items.insert(node, (item, self.serial));
        self.order.push_back((node, self.serial));
        match item {
            Item::Directory => self.directories += 1,
            Item::File(bytes) => {
                self.files += 1;
                self.bytes += bytes;
                self.late_bytes += bytes;
                self.late.push_back((node, self.serial, now));
            }
        }
        // Those that were used leave their places behind.
        if self.order.len() > 2 * self.items.len() + 1024 {
            let items = &self.items;
            self.order.retain(|(node, serial)| items.get(node).is_some_and(|(_, which)| which == serial));
            self.late.retain(|(node, serial, _)| items.get(node).is_some_and(|(_, which)| which == serial));
        }
        true
    }

    pub(crate) fn remove(&mut self, node: TreeNodeId) -> Option<Item> {
        let (item, serial) = self.items.remove(&node)?;
        match item {
            Item::Directory => self.directories -= 1,
            Item::File(bytes) => {
                self.files -= 1;
                self.bytes -= bytes;
                if serial >= self.late_from {
                    self.late_bytes -= bytes;
                }
            }
        }
        Some(item)
    }

    /// The oldest, if that is `wanted`, or if there are more than `bytes_max`, or more directories or files than `most`; not in it any
    /// more. A directory takes about 600 bytes beside its entries, a file 800 beside its contents.
    pub(crate) fn drop_oldest(
        &mut self,
        bytes_max: u64,
        most: usize,
        wanted: impl Fn(TreeNodeId, Item) -> bool,
    ) -> Option<(TreeNodeId, Item)> {
        let is_over = self.directories > most || self.files > most || self.bytes > bytes_max;
        while let Some((node, serial)) = self.order.front().copied() {
            let item = self.items.get(&node).filter(|(_, which)| *which == serial).map(|(item, _)| *item);
            if item.is_some_and(|item| !is_over && !wanted(node, item)) {
                return None;
            }
            self.order.pop_front();
            if item.is_some() {
                return self.remove(node).map(|item| (node, item));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests;
