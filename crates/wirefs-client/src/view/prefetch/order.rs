//! The order in which a program walks the directories in one directory. It is by name, as they are listed here (`find`,
//! `grep -r`), or by inode number, for programs that sort a listing by it to spare a disk (`cp -r`, `mv`).

use wirefs_op::{DirEntry, FileId, Kind};

/// Entries of one listing among which directories are looked for, at most, from the one on that comes next; one takes about 0.1 us.
const AMONG_MAX: usize = 4096;
/// In the order of inodes what comes next is anywhere: of a longer listing what is in its beginning.
const BEGINNING_MAX: usize = 32_768;
/// A longer listing does not tell of the order: it would be looked through for each directory in it.
const EVIDENCE_MAX: usize = 1024;

/// The name and the id of an object.
pub(crate) type Place = (Vec<u8>, FileId);

/// An order of the directories in one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Order {
    /// By name.
    #[default]
    Name,
    /// By inode number.
    Inode,
}

impl Order {
    /// The directories of a listing that is sorted by name, in this order; those behind one of them.
    pub(crate) fn children(self, listing: &[DirEntry], behind: Option<&Place>) -> Vec<FileId> {
        let beginning = listing.get(..BEGINNING_MAX).unwrap_or(listing);
        match self {
            Order::Name => self.behind(listing, behind, AMONG_MAX).collect(),
            Order::Inode => {
                let mut ids: Vec<FileId> = self.behind(beginning, behind, BEGINNING_MAX).collect();
                ids.sort_unstable_by_key(|id| id.ino);
                ids.truncate(AMONG_MAX);
                ids
            }
        }
    }

    fn behind<'a>(
        self,
        listing: &'a [DirEntry],
        behind: Option<&'a Place>,
        among: usize,
    ) -> impl Iterator<Item = FileId> + 'a {
        let first = match (self, behind) {
            (Order::Name, Some((name, _))) => {
                listing.partition_point(|entry| entry.name.as_slice() <= name.as_slice())
            }
            (Order::Inode, _) | (Order::Name, None) => 0,
        };
        let is_behind =
            move |id: &FileId| self == Order::Name || behind.is_none_or(|(_, at)| id.ino > at.ino);
        let next = listing.iter().skip(first).take(among);
        let directories = next.filter(|entry| entry.stat.kind == Kind::Directory);
        directories.map(|entry| entry.stat.id).filter(is_behind)
    }

    /// The order in which `next` comes right behind `before`, if only one of them has it so.
    pub(crate) fn of_step(listing: &[DirEntry], before: Option<&Place>, next: FileId) -> Option<Order> {
        if listing.len() > EVIDENCE_MAX {
            return None;
        }
        let is_by_name = Order::Name.behind(listing, before, EVIDENCE_MAX).next() == Some(next);
        let is_by_inode =
            Order::Inode.behind(listing, before, EVIDENCE_MAX).min_by_key(|id| id.ino) == Some(next);
        match (is_by_name, is_by_inode) {
            (true, false) => Some(Order::Name),
            (false, true) => Some(Order::Inode),
            (true, true) | (false, false) => None,
        }
    }
}

#[cfg(test)]
mod tests;
