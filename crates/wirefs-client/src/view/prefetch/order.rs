//! The order in which a program walks the directories in one directory. It is by name, as they are listed here (`find`,
//! `grep -r`), or by inode number, for programs that sort a listing by it to spare a disk (`cp -r`, `mv`).

use wirefs_op::{DirEntry, FileId, Kind};

/// The maximum number of entries that are searched for the next directories. Each takes about 0.1 us.
const AMONG_MAX: usize = 4096;
/// The same for the order by inode number, where the next directory may be anywhere. Only the beginning of a longer
/// listing is searched.
const BEGINNING_MAX: usize = 32_768;
/// The order is not learned from a longer listing, which would be searched for each directory in it.
const EVIDENCE_MAX: usize = 1024;

/// The name and the id of a directory.
pub(crate) type Place = (Vec<u8>, FileId);

/// The order of the directories in one directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Order {
    /// By name.
    #[default]
    Name,
    /// By inode number.
    Inode,
}

impl Order {
    /// Returns the directories of a listing in this order, or those after `behind`. The listing is sorted by name.
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

    /// Returns the order in which `next` directly follows `before`, unless both orders or neither have that.
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
