//! Reading one directory: its attributes, its entries with theirs, what small ones contain.

use super::{PART_CHILDREN_BYTES_MAX, PART_CONTENTS_BYTES_MAX, PART_ENTRIES_MAX};
use crate::attributes::stat_name;
use crate::failure::Failure;
use crate::get::{Name, next_names};
use crate::open_files::{Access, OpenFile};
use crate::session::Session;
use bytes::Bytes;
use rustix::fd::AsFd;
use std::ffi::CStr;
use std::sync::Arc;
use std::vec::IntoIter;
use wirefs_op::message::find::Tfind;
use wirefs_op::{FileId, Kind, Stat, TreePath};

/// A directory that is to be told of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Directory {
    /// From the target of the request on.
    pub(super) path: TreePath,
    /// What the directory above says that it is.
    pub(super) id: FileId,
    /// How far below the target.
    pub(super) level: u16,
}

/// An entry.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) name: Vec<u8>,
    pub(super) stat: Stat,
    pub(super) contents: Option<Bytes>,
}

/// Some of a directory's entries, one behind the other.
#[derive(Debug, Default)]
pub(super) struct Part {
    pub(super) entries: Vec<Found>,
    /// Those of them that are to be told of themselves.
    pub(super) children: Vec<Directory>,
    /// Of all contents together.
    pub(super) contents_bytes: usize,
    /// What the children take.
    pub(super) children_bytes: usize,
}

impl Part {
    /// About what it takes in memory.
    pub(super) fn bytes(&self) -> usize {
        let names: usize = self.entries.iter().map(|found| found.name.len()).sum();
        names + self.entries.len() * size_of::<Found>() + self.contents_bytes + self.children_bytes
    }

    /// Hands over the children, which take nothing here from then on.
    pub(super) fn take_children(&mut self) -> Vec<Directory> {
        self.children_bytes = 0;
        std::mem::take(&mut self.children)
    }

    fn add(&mut self, found: Found, child: Option<Directory>) {
        self.contents_bytes += found.contents.as_ref().map_or(0, Bytes::len);
        self.children_bytes += child.as_ref().map_or(0, Directory::bytes);
        self.children.extend(child);
        self.entries.push(found);
    }

    /// Whether it is to be handed on, with so many entries at most.
    fn is_full(&self, entries_max: usize) -> bool {
        self.entries.len() >= entries_max
            || self.contents_bytes >= PART_CONTENTS_BYTES_MAX
            || self.children_bytes >= PART_CHILDREN_BYTES_MAX
    }
}

/// A directory that was read, or the beginning of it.
#[derive(Debug)]
pub(super) struct Reading {
    /// As it was before the listing began.
    pub(super) stat: Stat,
    /// Whether its changes were noticed by then.
    pub(super) is_noticed: bool,
    pub(super) part: Part,
    /// How it goes on.
    pub(super) rest: Rest,
    /// Still open where somebody may need it.
    pub(super) dir: Option<Arc<OpenFile>>,
}

/// What follows a part.
#[derive(Debug)]
pub(super) enum Rest {
    /// Nothing: the listing is complete.
    Ended,
    /// Nothing, since the system would not tell more.
    Broken(Failure),
    /// More entries.
    More(Box<Listing>),
}

/// Where in a directory the reading stands.
#[derive(Debug)]
pub(super) struct Listing {
    dir: Arc<OpenFile>,
    /// Names that were fetched and not looked at.
    names: IntoIter<Name>,
    from: u64,
}

/// One thread's means to read.
pub(super) struct Reader<'a> {
    pub(super) session: &'a Session,
    target: &'a TreePath,
    depth: u16,
    /// How large a file may be to bring its contents.
    pub(super) inline_bytes_max: usize,
    entries_max: usize,
    batch: Vec<u8>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(session: &'a Session, request: &'a Tfind) -> Reader<'a> {
        let number = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
        Reader {
            session,
            target: &request.target.path,
            depth: request.depth,
            inline_bytes_max: number(request.inline).min(super::INLINE_BYTES_MAX),
            // One more shows that there are more.
            entries_max: PART_ENTRIES_MAX.min(number(request.entries).saturating_add(1)),
            batch: Vec::new(),
        }
    }

    /// Opens a directory beneath the session's root, wherever that has been moved, and begins to read it, until
    /// `is_enough`. `None`: it is not there any more, another is, or it cannot be read.
    pub(super) fn open(
        &mut self,
        directory: &Directory,
        is_enough: &mut dyn FnMut() -> bool,
    ) -> Option<Reading> {
        let path = TreePath::from_names(self.target.names().chain(directory.path.names()))?;
        let object = self.session.directory(&path, Some(directory.id)).ok()?;
        let dir = object.open(Access::READ).ok()?;
        self.begin(dir, directory, is_enough)
    }

    /// Begins to read a directory that is open. Its attributes come first, and before these the look-out for changes.
    pub(super) fn begin(
        &mut self,
        dir: Arc<OpenFile>,
        directory: &Directory,
        is_enough: &mut dyn FnMut() -> bool,
    ) -> Option<Reading> {
        let is_noticed = self.session.export.promises.notices(dir.as_fd(), dir.id);
        let stat = self.session.stat(&dir).ok()?;
        let listing = Listing { dir: Arc::clone(&dir), names: Vec::new().into_iter(), from: 0 };
        let (part, rest) = self.go_on(Box::new(listing), directory, is_enough);
        // Elsewhere each entry needs the directory to be watched.
        let is_needed = dir.id.fs != 0;
        Some(Reading { stat, is_noticed, part, rest, dir: is_needed.then_some(dir) })
    }

    /// The next entries: at least one where there is one, at most so many that `is_enough`.
    pub(super) fn go_on(
        &mut self,
        mut listing: Box<Listing>,
        directory: &Directory,
        is_enough: &mut dyn FnMut() -> bool,
    ) -> (Part, Rest) {
        let mut part = Part::default();
        loop {
            let Some(name) = listing.names.next() else {
                match next_names(&listing.dir, listing.from, &mut self.batch) {
                    Err(failure) => return (part, Rest::Broken(failure)),
                    Ok(names) => match names.last() {
                        None => return (part, Rest::Ended),
                        Some(last) => {
                            listing.from = last.next;
                            listing.names = names.into_iter();
                        }
                    },
                }
                continue;
            };
            let Some(found) = self.look(&listing.dir, name) else { continue };
            let child = self.child(directory, &found);
            part.add(found, child);
            if part.is_full(self.entries_max) || is_enough() {
                return (part, Rest::More(listing));
            }
        }
    }

    /// The entry with its attributes; `None` when it is gone meanwhile.
    fn look(&self, dir: &OpenFile, Name { mut name, .. }: Name) -> Option<Found> {
        let terminated = CStr::from_bytes_with_nul(&name).ok()?;
        let stat = stat_name(dir.as_fd(), terminated, self.session.export.home).ok()?;
        let contents = self.contents(dir.as_fd(), terminated, &stat);
        name.pop();
        Some(Found { name, stat, contents })
    }

    /// The entry as a directory that is itself to be told of. One whose path would be too long cannot be.
    fn child(&self, directory: &Directory, found: &Found) -> Option<Directory> {
        if found.stat.kind != Kind::Directory || directory.level >= self.depth {
            return None;
        }
        let path = directory.path.join(&found.name)?;
        Some(Directory { path, id: found.stat.id, level: directory.level + 1 })
    }
}
