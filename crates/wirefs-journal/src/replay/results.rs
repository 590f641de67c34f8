//! Results of a replay for a live mount: the ids and paths of objects.

use super::Replay;
use super::effect::Effect;
use super::names::{Binding, Inode};
use wirefs_op::{FileId, TreePath};

impl Replay {
    /// Returns a number above all that were given to changes, after the last [`Replay::step`].
    pub fn end(&self) -> u64 {
        self.next
    }

    /// Returns the learned changes from a number on.
    pub fn learned_from(&self, number: u64) -> impl Iterator<Item = u64> + '_ {
        self.effects.range(number..).map(|(number, _)| *number)
    }

    /// Returns the path of a change's object after all changes; `None` if it has no name, or if the change has no object.
    pub fn path_of(&self, number: u64) -> Option<TreePath> {
        self.names.now.path(self.object_of(number)?)
    }

    /// Returns the id of a change's object, unless it was created again.
    pub fn id_of(&self, number: u64) -> Option<FileId> {
        let inode = self.object_of(number)?;
        self.position.as_ref().and_then(|position| position.id(inode)).or(self.names.id(inode))
    }

    /// Returns the ids by which the client knows the object that a change created. The id from an earlier replay is not among them: the client
    /// was never notified of it, and may know another object by it.
    pub fn former_ids(&self, number: u64) -> Vec<FileId> {
        let made = self.effects.get(&number).and_then(|known| known.effect.makes);
        let Some(inode) = made else { return Vec::new() };
        let former = self.recreated_before.get(&inode).copied().unwrap_or_else(|| self.names.id(inode));
        former.into_iter().chain([FileId::provisional(number)]).collect()
    }

    /// Returns the changes that created the objects that an earlier replay created again.
    pub fn recreated_before(&self) -> impl Iterator<Item = u64> + '_ {
        self.recreated_before.keys().filter_map(|inode| self.names.of(*inode).made)
    }

    fn object_of(&self, number: u64) -> Option<Inode> {
        let Effect { makes, of, names, .. } = &self.effects.get(&number)?.effect;
        let named = names.iter().rev().find_map(|(_, binding)| match binding {
            Binding::Object(inode) => Some(*inode),
            Binding::Absent | Binding::Unknown => None,
        });
        makes.or(*of).or(named)
    }
}
