//! Invalidations of names to repeat, each at its time.

use std::collections::{BTreeMap, BTreeSet};

use wirefs_op::Time;

use crate::call::{Invalidate, TreeNodeId};

type Name = (TreeNodeId, Vec<u8>);

/// Bounded, because each name is in it once: the names invalidated within the last second.
#[derive(Debug, Default)]
pub(super) struct Repeats {
    times: BTreeMap<Name, Time>,
    order: BTreeSet<(Time, Name)>,
}

impl Repeats {
    pub(super) fn insert(&mut self, parent: TreeNodeId, name: Vec<u8>, at: Time) {
        let name = (parent, name);
        if let Some(before) = self.times.insert(name.clone(), at) {
            self.order.remove(&(before, name.clone()));
        }
        self.order.insert((at, name));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// The time of the first repetition.
    pub(super) fn due(&self) -> Option<Time> {
        self.order.first().map(|(at, _)| *at)
    }

    pub(super) fn take_due(&mut self, now: Time) -> Option<Invalidate> {
        self.due().filter(|at| *at <= now)?;
        let (_, name) = self.order.pop_first()?;
        self.times.remove(&name);
        let (parent, name) = name;
        Some(Invalidate::Entry { parent, name, is_directory: true })
    }

    pub(super) fn directories(&self) -> impl Iterator<Item = TreeNodeId> {
        self.times.keys().map(|(parent, _)| *parent)
    }

    pub(super) fn clear(&mut self) {
        self.times.clear();
        self.order.clear();
    }
}
