//! Reads one directory: its attributes, its entries with their attributes, and the contents of small files.

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

/// A directory that is to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Directory {
    /// Relative to the target of the request.
    pub(super) path: TreePath,
    /// Its id in the listing of its parent.
    pub(super) id: FileId,
    /// Its depth below the target.
    pub(super) level: u16,
}

/// An entry.
#[derive(Debug)]
pub(super) struct FoundEntry {
    pub(super) name: Vec<u8>,
    pub(super) stat: Stat,
    pub(super) contents: Option<Bytes>,
}

/// Some consecutive entries of a directory.
#[derive(Debug, Default)]
pub(super) struct Part {
    pub(super) entries: Vec<FoundEntry>,
    /// The subdirectories that are to be sent as well.
    pub(super) children: Vec<Directory>,
    /// Bytes of all contents.
    pub(super) contents_bytes: usize,
    /// Memory of the children.
    pub(super) children_bytes: usize,
}

impl Part {
    /// Approximate memory use.
    pub(super) fn bytes(&self) -> usize {
        let names: usize = self.entries.iter().map(|found| found.name.len()).sum();
        names + self.entries.len() * size_of::<FoundEntry>() + self.contents_bytes + self.children_bytes
    }

    /// Takes the children out of the part.
    pub(super) fn take_children(&mut self) -> Vec<Directory> {
        self.children_bytes = 0;
        std::mem::take(&mut self.children)
    }

    fn add(&mut self, found: FoundEntry, child: Option<Directory>) {
        self.contents_bytes += found.contents.as_ref().map_or(0, Bytes::len);
        self.children_bytes += child.as_ref().map_or(0, Directory::bytes);
        self.children.extend(child);
        self.entries.push(found);
    }

    /// Whether the part is to be handed on, with at most so many entries.
    fn is_full(&self, entries_max: usize) -> bool {
        self.entries.len() >= entries_max
            || self.contents_bytes >= PART_CONTENTS_BYTES_MAX
            || self.children_bytes >= PART_CHILDREN_BYTES_MAX
    }
}

/// A directory that was read, completely or in part.
#[derive(Debug)]
pub(super) struct Reading {
    /// Its attributes before the listing began.
    pub(super) stat: Stat,
    /// Whether changes were detected from then on.
    pub(super) is_covered: bool,
    pub(super) part: Part,
    /// The rest of the listing.
    pub(super) rest: Remainder,
    /// The open directory, if granting leases needs it.
    pub(super) dir: Option<Arc<OpenFile>>,
}

/// The rest of a listing.
#[derive(Debug)]
pub(super) enum Remainder {
    /// None: the listing is complete.
    Ended,
    /// The listing failed.
    Broken(Failure),
    /// More entries.
    More(Box<Listing>),
}

/// The position in a directory.
#[derive(Debug)]
pub(super) struct Listing {
    dir: Arc<OpenFile>,
    /// Names that were read and not processed.
    names: IntoIter<Name>,
    from: u64,
}

/// The buffers and parameters for reading in one thread.
pub(super) struct Reader<'a> {
    pub(super) session: &'a Session,
    target: &'a TreePath,
    depth: u16,
    /// The largest contents to include.
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
            // One more entry shows that there are more.
            entries_max: PART_ENTRIES_MAX.min(number(request.entries).saturating_add(1)),
            batch: Vec::new(),
        }
    }

    /// Opens a directory beneath the session's root and reads it until `is_enough`. `None`: the path leads to no
    /// directory or another one, or it cannot be read.
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

    /// Reads an open directory. First the detection of changes begins, then the attributes are read.
    pub(super) fn begin(
        &mut self,
        dir: Arc<OpenFile>,
        directory: &Directory,
        is_enough: &mut dyn FnMut() -> bool,
    ) -> Option<Reading> {
        let is_covered = self.session.export.detection.ensure_watched(dir.as_fd(), dir.id);
        let stat = self.session.stat(&dir).ok()?;
        let listing = Listing { dir: Arc::clone(&dir), names: Vec::new().into_iter(), from: 0 };
        let (part, rest) = self.continue_listing(Box::new(listing), directory, is_enough);
        // On another file system each entry must be registered through the directory.
        let is_needed = dir.id.fs != 0;
        Some(Reading { stat, is_covered, part, rest, dir: is_needed.then_some(dir) })
    }

    /// Reads further entries, at least one if there is one, until `is_enough`.
    pub(super) fn continue_listing(
        &mut self,
        mut listing: Box<Listing>,
        directory: &Directory,
        is_enough: &mut dyn FnMut() -> bool,
    ) -> (Part, Remainder) {
        let mut part = Part::default();
        loop {
            let Some(name) = listing.names.next() else {
                match next_names(&listing.dir, listing.from, &mut self.batch) {
                    Err(failure) => return (part, Remainder::Broken(failure)),
                    Ok(names) => match names.last() {
                        None => return (part, Remainder::Ended),
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
                return (part, Remainder::More(listing));
            }
        }
    }

    /// The entry with its attributes; `None` if it is gone meanwhile.
    fn look(&self, dir: &OpenFile, Name { mut name, .. }: Name) -> Option<FoundEntry> {
        let terminated = CStr::from_bytes_with_nul(&name).ok()?;
        let stat = stat_name(dir.as_fd(), terminated, self.session.export.home).ok()?;
        let contents = self.contents(dir.as_fd(), terminated, &stat);
        name.pop();
        Some(FoundEntry { name, stat, contents })
    }

    /// The entry as a directory that is to be sent. `None` if its path would be too long.
    fn child(&self, directory: &Directory, found: &FoundEntry) -> Option<Directory> {
        if found.stat.kind != Kind::Directory || directory.level >= self.depth {
            return None;
        }
        let path = directory.path.join(&found.name)?;
        Some(Directory { path, id: found.stat.id, level: directory.level + 1 })
    }
}
