//! The table of groups: a number on the wire is a place in it.

use wirefs_op::Time;

use crate::address::GroupId;
use crate::group::Group;
use crate::limits::GROUPS_MAX;
use crate::node::{Dialling, HalfOpen};

/// What is at a place.
#[derive(Debug)]
pub(super) enum Slot {
    Vacant,
    /// A stranger said hello and was answered.
    HalfOpen(Box<HalfOpen>),
    /// We said hello, or are going to.
    Dialling(Box<Dialling>),
    /// It stands, or says that it is over.
    Joined(Box<Group>),
}

impl Slot {
    pub(super) fn deadline(&self) -> Option<Time> {
        match self {
            Slot::Vacant => None,
            Slot::HalfOpen(half) => Some(half.until),
            Slot::Dialling(dialling) => Some(dialling.deadline()),
            Slot::Joined(group) => Some(group.deadline()),
        }
    }
}

#[derive(Debug)]
struct Place {
    generation: u16,
    slot: Slot,
}

#[derive(Debug)]
pub(super) struct Table {
    places: Vec<Place>,
    first_generation: u16,
}

impl Table {
    pub(super) fn new(first_generation: u16) -> Table {
        Table { places: Vec::new(), first_generation }
    }

    /// The ids of all places that were ever taken.
    pub(super) fn ids(&self) -> Vec<GroupId> {
        let id = |(slot, place): (usize, &Place)| GroupId { slot: slot as u8, generation: place.generation };
        self.places.iter().enumerate().map(id).collect()
    }

    /// All places that were ever taken.
    pub(super) fn entries(&self) -> impl Iterator<Item = (GroupId, &Slot)> {
        self.ids().into_iter().zip(self.slots())
    }

    pub(super) fn slots(&self) -> impl ExactSizeIterator<Item = &Slot> {
        self.places.iter().map(|place| &place.slot)
    }

    pub(super) fn slot(&mut self, id: GroupId) -> Option<&mut Slot> {
        let place = self.places.get_mut(usize::from(id.slot))?;
        (place.generation == id.generation).then_some(&mut place.slot)
    }

    pub(super) fn group(&mut self, id: GroupId) -> Option<&mut Group> {
        match self.slot(id)? {
            Slot::Joined(group) => Some(group),
            Slot::Vacant | Slot::HalfOpen(_) | Slot::Dialling(_) => None,
        }
    }

    pub(super) fn group_at(&mut self, slot: usize) -> Option<&mut Group> {
        match &mut self.places.get_mut(slot)?.slot {
            Slot::Joined(group) => Some(group),
            Slot::Vacant | Slot::HalfOpen(_) | Slot::Dialling(_) => None,
        }
    }

    /// A vacant place, which the caller fills.
    pub(super) fn take(&mut self) -> Option<GroupId> {
        let vacant = self.places.iter().position(|place| matches!(place.slot, Slot::Vacant));
        let slot = vacant.unwrap_or(self.places.len());
        if slot >= GROUPS_MAX {
            return None;
        }
        if vacant.is_none() {
            self.places.push(Place { generation: self.first_generation, slot: Slot::Vacant });
        }
        let generation = self.places.get(slot)?.generation;
        Some(GroupId { slot: slot as u8, generation })
    }

    /// Fills a place, or changes what is there.
    pub(super) fn put(&mut self, id: GroupId, to: Slot) {
        if let Some(slot) = self.slot(id) {
            *slot = to;
        }
    }

    /// Makes a place free; what is late for it is for nobody.
    pub(super) fn vacate(&mut self, id: GroupId) {
        if let Some(place) = self.places.get_mut(usize::from(id.slot)) {
            place.slot = Slot::Vacant;
            place.generation = place.generation.wrapping_add(1);
        }
    }
}
