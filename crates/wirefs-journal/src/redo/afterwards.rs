//! What was done again, for a client that lives: which objects have other ids by now, and where they are.

use super::Redo;
use super::deed::Deed;
use super::names::{Holder, Node};
use wirefs_op::{FileId, TreePath};

impl Redo {
    /// Above all numbers that were given to what is sent, after the last [`Redo::redo`].
    pub fn end(&self) -> u64 {
        self.next
    }

    /// The changes from a number on that could be followed.
    pub fn known_from(&self, number: u64) -> impl Iterator<Item = u64> + '_ {
        self.deeds.range(number..).map(|(number, _)| *number)
    }

    /// Where the object of a change is when all of them are done; `None`: it has no name, or is none of their objects.
    pub fn path_of(&self, number: u64) -> Option<TreePath> {
        self.names.now.path(self.object_of(number)?)
    }

    /// The id of the object of a change, where that was not made again.
    pub fn id_of(&self, number: u64) -> Option<FileId> {
        let node = self.object_of(number)?;
        self.cut.as_ref().and_then(|cut| cut.id(node)).or(self.names.id(node))
    }

    /// The ids by which what a change made was known to its client. The id that an earlier redo gave it is none of them: the client was
    /// never told, and may know another object by it.
    pub fn known_as(&self, number: u64) -> Vec<FileId> {
        let made = self.deeds.get(&number).and_then(|known| known.deed.makes);
        let Some(node) = made else { return Vec::new() };
        let told = self.renewed.get(&node).copied().unwrap_or_else(|| self.names.id(node));
        told.into_iter().chain([FileId::provisional(number)]).collect()
    }

    /// The changes that made what an earlier redo made again.
    pub fn renewed(&self) -> impl Iterator<Item = u64> + '_ {
        self.renewed.keys().filter_map(|node| self.names.of(*node).made)
    }

    fn object_of(&self, number: u64) -> Option<Node> {
        let Deed { makes, of, names, .. } = &self.deeds.get(&number)?.deed;
        let named = names.iter().rev().find_map(|(_, holder)| match holder {
            Holder::Object(node) => Some(*node),
            Holder::Nobody | Holder::Unknown => None,
        });
        makes.or(*of).or(named)
    }
}
