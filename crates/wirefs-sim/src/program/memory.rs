//! What a kernel answers by itself.

use super::{Busy, Deed, Place, Renaming};
use crate::world::World;
use wirefs_client::call::{Handle, TreeNodeId, UNOPENED};
use wirefs_op::{FileId, Stat};

impl World {
    /// Whether the kernel knows the answer. What it does is compared with the truth at this moment.
    pub(super) fn is_answered_from_memory(&mut self, index: usize, busy: &mut Busy) -> bool {
        match &mut busy.deed {
            Deed::Look(place) => {
                let place = place.clone();
                self.is_looked_up(index, &place, &[true, false]).is_some()
            }
            Deed::Stat(node) => {
                let node = *node;
                self.remembered(index, node).is_some_and(|stat| {
                    self.check_stat(index, self.now, &stat);
                    true
                })
            }
            Deed::Names(renaming, places) => {
                let Some(place) = places.first().cloned() else { return false };
                let fails_if_there = match renaming {
                    Renaming::Create | Renaming::Mkdir | Renaming::Symlink | Renaming::Link(_) => true,
                    Renaming::Unlink | Renaming::Rmdir | Renaming::Rename(_) => false,
                };
                // No kernel exchanges a name with one that it believes to be absent (`do_renameat2` in fs/namei.c).
                let other = places.get(1).filter(|_| *renaming == Renaming::Rename(2)).cloned();
                self.is_looked_up(index, &place, &[fails_if_there]).is_some()
                    || other.is_some_and(|other| self.is_looked_up(index, &other, &[false]).is_some())
            }
            Deed::Read { node, handle, offset, count, has_attributes } => {
                let (node, handle, offset, count) = (*node, *handle, *offset, u64::from(*count));
                let Some(stat) = self.remembered(index, node) else { return false };
                *has_attributes = true;
                self.is_read(index, busy, (node, handle), (offset, count), stat.size)
            }
            Deed::List { handle: Some(UNOPENED), .. } => self.is_listed(index, busy),
            Deed::Open(..)
            | Deed::Write { .. }
            | Deed::Set { .. }
            | Deed::Close(..)
            | Deed::Lock(..)
            | Deed::List { .. }
            | Deed::CloseList(..) => false,
        }
    }

    /// Whether the kernel has what follows in a directory that is not opened.
    pub(super) fn is_listed(&mut self, index: usize, busy: &mut Busy) -> bool {
        let (now, began) = (self.now, busy.began);
        let Deed::List { node, dir, offset, listed, .. } = &mut busy.deed else { return false };
        let Some(seat) = self.seats.get_mut(index) else { return false };
        let Some(rest) = seat.kernel.listing(*node, *offset) else { return false };
        let from = if *offset == 0 { now } else { began };
        listed.extend(rest.into_iter().map(|(name, id, _)| (name, id)));
        let (dir, listed) = (*dir, std::mem::take(listed));
        self.record.listings += u64::from(from == now);
        self.check_listing(index, from, dir, &listed);
        true
    }

    /// What the kernel knows of a name, if that is one of these: there, or not there.
    fn is_looked_up(&mut self, index: usize, place: &Place, wanted: &[bool]) -> Option<Option<FileId>> {
        let now = self.now;
        let seat = self.seats.get_mut(index)?;
        let known = seat.kernel.name(place.node, place.name, seat.clock(now))?;
        if !wanted.contains(&known.is_some()) {
            return None;
        }
        seat.program.found = known;
        let meaning = match known {
            Some(node) => Some(*seat.kernel.ids.get(&node)?),
            None => None,
        };
        self.check_meaning(index, now, place, meaning, "in its kernel's memory");
        Some(meaning)
    }

    fn remembered(&self, index: usize, node: TreeNodeId) -> Option<Stat> {
        let seat = self.seats.get(index)?;
        seat.kernel.attributes(node, seat.clock(self.now))
    }

    /// Whether the pages have it. The file is so long as the attributes say.
    pub(super) fn is_read(
        &mut self,
        index: usize,
        busy: &Busy,
        (node, handle): (TreeNodeId, Handle),
        (offset, count): (u64, u64),
        size: u64,
    ) -> bool {
        let Some(seat) = self.seats.get(index) else { return false };
        if seat.kernel.bypassing.contains(&handle) {
            return false;
        }
        let Some(data) = seat.kernel.pages(node, offset, count, size) else { return false };
        self.check_data(index, busy.began, node, (offset, count), &data);
        true
    }
}
