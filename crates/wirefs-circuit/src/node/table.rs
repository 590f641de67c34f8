//! The table of groups. A group id on the wire is a slot number.

use wirefs_op::Time;

use crate::address::GroupId;
use crate::group::Group;
use crate::limits::GROUPS_MAX;
use crate::node::{Dialing, HalfOpen};

/// The state of a slot.
#[derive(Debug)]
pub(super) enum Slot {
    Vacant,
    /// As responder: the reply to a hello was sent.
    HalfOpen(Box<HalfOpen>),
    /// As initiator: waiting for a reply.
    Dialing(Box<Dialing>),
    /// Open, or closed and still notifying the peer.
    Established(Box<Group>),
}

impl Slot {
    pub(super) fn deadline(&self) -> Option<Time> {
        match self {
            Slot::Vacant => None,
            Slot::HalfOpen(half) => Some(half.until),
            Slot::Dialing(dialing) => Some(dialing.deadline()),
            Slot::Established(group) => Some(group.deadline()),
        }
    }
}

/// A slot and its generation.
#[derive(Debug)]
struct TableEntry {
    generation: u16,
    slot: Slot,
}

/// The table of groups.
#[derive(Debug)]
pub(super) struct Table {
    slots: Vec<TableEntry>,
    first_generation: u16,
}

impl Table {
    pub(super) fn new(first_generation: u16) -> Table {
        Table { slots: Vec::new(), first_generation }
    }

    /// Returns the ids of all slots that were ever used.
    pub(super) fn ids(&self) -> Vec<GroupId> {
        let id =
            |(slot, entry): (usize, &TableEntry)| GroupId { slot: slot as u8, generation: entry.generation };
        self.slots.iter().enumerate().map(id).collect()
    }

    /// Returns all slots that were ever used.
    pub(super) fn entries(&self) -> impl Iterator<Item = (GroupId, &Slot)> {
        self.ids().into_iter().zip(self.slots())
    }

    pub(super) fn slots(&self) -> impl ExactSizeIterator<Item = &Slot> {
        self.slots.iter().map(|entry| &entry.slot)
    }

    pub(super) fn slot(&mut self, id: GroupId) -> Option<&mut Slot> {
        let entry = self.slots.get_mut(usize::from(id.slot))?;
        (entry.generation == id.generation).then_some(&mut entry.slot)
    }

    pub(super) fn group(&mut self, id: GroupId) -> Option<&mut Group> {
        match self.slot(id)? {
            Slot::Established(group) => Some(group),
            Slot::Vacant | Slot::HalfOpen(_) | Slot::Dialing(_) => None,
        }
    }

    pub(super) fn group_at(&mut self, slot: usize) -> Option<&mut Group> {
        match &mut self.slots.get_mut(slot)?.slot {
            Slot::Established(group) => Some(group),
            Slot::Vacant | Slot::HalfOpen(_) | Slot::Dialing(_) => None,
        }
    }

    /// Returns a vacant slot, which the caller fills.
    pub(super) fn take(&mut self) -> Option<GroupId> {
        let vacant = self.slots.iter().position(|entry| matches!(entry.slot, Slot::Vacant));
        let slot = vacant.unwrap_or(self.slots.len());
        if slot >= GROUPS_MAX {
            return None;
        }
        if vacant.is_none() {
            self.slots.push(TableEntry { generation: self.first_generation, slot: Slot::Vacant });
        }
        let generation = self.slots.get(slot)?.generation;
        Some(GroupId { slot: slot as u8, generation })
    }

    /// Sets the state of a slot.
    pub(super) fn put(&mut self, id: GroupId, to: Slot) {
        if let Some(slot) = self.slot(id) {
            *slot = to;
        }
    }

    /// Vacates a slot under the next generation, so that late packets for it are dropped.
    pub(super) fn vacate(&mut self, id: GroupId) {
        if let Some(entry) = self.slots.get_mut(usize::from(id.slot)) {
            entry.slot = Slot::Vacant;
            entry.generation = entry.generation.wrapping_add(1);
        }
    }
}
