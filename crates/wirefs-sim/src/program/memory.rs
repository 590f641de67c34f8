//! Answers from a kernel's cache.

use super::{Busy, Operation, Place, Renaming};
use crate::world::World;
use wirefs_client::call::{Handle, STATELESS, TreeNodeId};
use wirefs_op::{FileId, Stat};

impl World {
    /// Answers an operation from the cache, if possible, and compares the answer with the true state.
    pub(super) fn is_answered_from_memory(&mut self, index: usize, busy: &mut Busy) -> bool {
        match &mut busy.operation {
            Operation::Look(place) => {
                let place = place.clone();
                self.is_looked_up(index, &place, &[true, false]).is_some()
            }
            Operation::Stat(node) => {
                let node = *node;
                self.remembered(index, node).is_some_and(|stat| {
                    self.check_stat(index, self.now, &stat);
                    true
                })
            }
            Operation::Names(renaming, places) => {
                let Some(place) = places.first().cloned() else { return false };
                let fails_if_there = match renaming {
                    Renaming::Create | Renaming::Mkdir | Renaming::Symlink | Renaming::Link(_) => true,
                    Renaming::Unlink | Renaming::Rmdir | Renaming::Rename(_) => false,
                };
                // A kernel rejects an exchange with a name that is cached as absent (`do_renameat2` in fs/namei.c).
                let other = places.get(1).filter(|_| *renaming == Renaming::Rename(2)).cloned();
                self.is_looked_up(index, &place, &[fails_if_there]).is_some()
                    || other.is_some_and(|other| self.is_looked_up(index, &other, &[false]).is_some())
            }
            Operation::Read { node, handle, offset, count, has_attributes } => {
                let (node, handle, offset, count) = (*node, *handle, *offset, u64::from(*count));
                let Some(stat) = self.remembered(index, node) else { return false };
                *has_attributes = true;
                self.is_read(index, busy, (node, handle), (offset, count), stat.size)
            }
            Operation::List { handle: Some(STATELESS), .. } => self.is_listed(index, busy),
            Operation::Open(..)
            | Operation::Write { .. }
            | Operation::Set { .. }
            | Operation::Close(..)
            | Operation::Lock(..)
            | Operation::List { .. }
            | Operation::CloseList(..) => false,
        }
    }

    /// Answers a listing of an unopened directory from the cache, if possible.
    pub(super) fn is_listed(&mut self, index: usize, busy: &mut Busy) -> bool {
        let (now, began) = (self.now, busy.began);
        let Operation::List { node, dir, offset, listed, .. } = &mut busy.operation else { return false };
        let Some(host) = self.hosts.get_mut(index) else { return false };
        let Some(rest) = host.kernel.listing(*node, *offset) else { return false };
        let from = if *offset == 0 { now } else { began };
        listed.extend(rest.into_iter().map(|(name, id, _)| (name, id)));
        let (dir, listed) = (*dir, std::mem::take(listed));
        self.counts.listings += u64::from(from == now);
        self.check_listing(index, from, dir, &listed);
        true
    }

    /// Returns the cached meaning of a name, if it is one of these: present or absent.
    fn is_looked_up(&mut self, index: usize, place: &Place, wanted: &[bool]) -> Option<Option<FileId>> {
        let now = self.now;
        let host = self.hosts.get_mut(index)?;
        let known = host.kernel.name(place.node, place.name, host.clock(now))?;
        if !wanted.contains(&known.is_some()) {
            return None;
        }
        host.program.found = known;
        let meaning = match known {
            Some(node) => Some(*host.kernel.ids.get(&node)?),
            None => None,
        };
        self.check_meaning(index, now, place, meaning, "in its kernel's cache");
        Some(meaning)
    }

    fn remembered(&self, index: usize, node: TreeNodeId) -> Option<Stat> {
        let host = self.hosts.get(index)?;
        host.kernel.attributes(node, host.clock(self.now))
    }

    /// Answers a read from the cached pages, if possible; the attributes have the size of the file.
    pub(super) fn is_read(
        &mut self,
        index: usize,
        busy: &Busy,
        (node, handle): (TreeNodeId, Handle),
        (offset, count): (u64, u64),
        size: u64,
    ) -> bool {
        let Some(host) = self.hosts.get(index) else { return false };
        if host.kernel.direct_io.contains(&handle) {
            return false;
        }
        let Some(data) = host.kernel.pages(node, offset, count, size) else { return false };
        self.check_data(index, busy.began, node, (offset, count), &data);
        true
    }
}
