//! Tells changes by other programs from own ones.
//!
//! An object that changed after the latest time that the client knows was changed by another program. One exception: ext4 completes a
//! truncation that a power loss has interrupted when it is mounted, and sets the file's times then.

use super::effect::Effect;
use super::names::{Binding, Inode, Key};
use super::position::Position;
use super::{ObjectStat, Replay};
use std::collections::{BTreeMap, BTreeSet};
use wirefs_op::message::put::PutMode;
use wirefs_op::{FileId, Request, TreePath};

/// The sizes that own changes have set, by file.
pub(super) type Resized = BTreeSet<(FileId, u64)>;

/// Returns whether another program has changed the object after this time.
pub(super) fn is_foreign(found: &ObjectStat, latest_time: u64, resized: &Resized) -> bool {
    let is_completed_truncation =
        found.changed == found.modified && resized.contains(&(found.id, found.size));
    found.changed > latest_time && !is_completed_truncation
}

/// Returns the size that a change sets.
pub(super) fn new_size(request: &Request) -> Option<u64> {
    match request {
        Request::Put(put) if put.mode.has(PutMode::STAT) => put.set.size,
        _ => None,
    }
}

impl Replay {
    /// Takes the objects at [`Replay::targets`]. An object that changed after the latest time that the client knows is left alone: another
    /// program changed it, or it is complete.
    pub fn compare(&mut self, found: &BTreeMap<TreePath, ObjectStat>, latest_time: u64) {
        if let Some(position) = &mut self.position {
            position.found_at(found);
        }
        let made_before_journal = self.made_before_journal();
        for (inode, path) in &made_before_journal {
            if let (Some(position), Some(found)) = (&mut self.position, found.get(path)) {
                position.learn(*inode, found.id);
            }
        }
        let resized = self.resized();
        let is_own = |(inode, path): &(Inode, TreePath)| {
            let found = found.get(path).filter(|found| !is_foreign(found, latest_time, &resized));
            found.is_some_and(|found| self.known_id(*inode).is_none_or(|id| id == found.id))
        };
        let foreign: Vec<Inode> =
            self.concerned().filter(|one| !is_own(one)).map(|(inode, _)| inode).collect();
        self.foreign.extend(foreign);
        let named = self.position.iter().flat_map(Position::named);
        let later = named.filter(|(_, found)| is_foreign(found, latest_time, &resized));
        let later: Vec<Key> = later.map(|(key, _)| key.clone()).collect();
        self.changed_later.extend(later);
        let unanswered = self.effects.values().filter(|known| !known.outcome.is_answered);
        self.unsure = unanswered.filter_map(|known| known.effect.of.or(known.effect.makes)).collect();
    }

    /// Returns whether a change would remove or replace an object that another program may have changed or put there. A moved object is not lost:
    /// it suffices that its id is the one that the client meant, or that the client itself may have created it.
    pub(super) fn overwrites_later_change(&self, position: &Position, effect: &Effect) -> bool {
        let is_moved = |key: &Key| match position.state.binding(key) {
            Binding::Object(inode) => {
                let is_named = effect.names.iter().any(|(_, binding)| *binding == Binding::Object(inode));
                is_named && (self.names.id(inode).is_some() || self.unsure.contains(&inode))
            }
            Binding::Absent | Binding::Unknown => false,
        };
        effect.names.iter().any(|(key, _)| self.changed_later.contains(key) && !is_moved(key))
    }

    /// Returns the id by which the server has an object, if it is known.
    pub(super) fn known_id(&self, inode: Inode) -> Option<FileId> {
        self.position.as_ref().and_then(|position| position.id(inode)).or(self.names.id(inode))
    }

    /// Returns the sizes that changes set. The disk may have interrupted any of them.
    pub(super) fn resized(&self) -> Resized {
        let of = |known: &super::LearnedChange| {
            let id = self.known_id(known.effect.of.or(known.effect.makes)?)?;
            Some((id, known.resizes_to?))
        };
        self.effects.values().filter_map(of).collect()
    }
}
