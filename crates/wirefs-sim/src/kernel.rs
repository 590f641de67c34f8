//! A client's kernel, as Linux keeps what a FUSE file system tells it: names, also absent ones, and attributes, for as long as it
//! was told, and pages. Programs are answered from here first, so what is stale here is stale for them.
//!
//! Pages count while attributes are believed; who reads asks for these first, and other times or another size than those that
//! the pages came under drop the pages (`FUSE_AUTO_INVAL_DATA`).

mod answers;
mod listings;
mod matter;

use listings::Listings;
use matter::Matter;
use std::collections::{BTreeMap, BTreeSet};
use wirefs_cache::CachedRanges;
use wirefs_client::call::{Call, CallId, Handle, Invalidate, ROOT, TreeNodeId};
use wirefs_op::{FileId, Stat, Time, Timestamp};

const PAGE_BYTES: u64 = 4096;

/// A name in a directory.
pub(crate) type Place = (TreeNodeId, Vec<u8>);

/// A call under way, as far as something is taken in by its answer.
#[derive(Debug)]
struct Asked {
    matter: Matter,
    since: u64,
    /// Names that were forgotten meanwhile: who forgets them waits for lookups and listings of their directory.
    forgotten: BTreeSet<Place>,
    /// Nodes that were forgotten behind one of those.
    forgotten_behind: BTreeSet<TreeNodeId>,
    /// Something changes names in the directory at the same time, or the file that is read: what comes is not kept.
    is_vain: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Believed<T> {
    pub(crate) what: T,
    /// On the client's clock.
    pub(crate) until: Time,
}

/// Whether Linux holds `i_rwsem` of a file or directory while it waits for the answer (fs/namei.c, fs/attr.c, fs/xattr.c, fs/fuse/file.c).
fn holds_a_lock(call: &Call<'_>) -> bool {
    match call {
        Call::Lookup { .. }
        | Call::Setattr { .. }
        | Call::Mknod { .. }
        | Call::Mkdir { .. }
        | Call::Symlink { .. }
        | Call::Unlink { .. }
        | Call::Rmdir { .. }
        | Call::Rename { .. }
        | Call::Link { .. }
        | Call::Create { .. }
        | Call::Tmpfile { .. }
        | Call::Write { .. }
        | Call::Fsync { .. }
        | Call::Readdir { .. }
        | Call::Fsyncdir { .. }
        | Call::Setxattr { .. }
        | Call::Removexattr { .. }
        | Call::Fallocate { .. }
        | Call::Lseek { .. }
        | Call::CopyRange { .. } => true,
        Call::Forget { .. }
        | Call::Getattr { .. }
        | Call::Readlink { .. }
        | Call::Open { .. }
        | Call::Read { .. }
        | Call::Flush { .. }
        | Call::Release { .. }
        | Call::Opendir { .. }
        | Call::Releasedir { .. }
        | Call::Syncfs { .. }
        | Call::Statfs { .. }
        | Call::Getxattr { .. }
        | Call::Listxattr { .. }
        | Call::Access { .. }
        | Call::Getlk { .. }
        | Call::Setlk { .. }
        | Call::Interrupt { .. } => false,
    }
}

/// One kernel.
#[derive(Debug, Default)]
pub(crate) struct Kernel {
    pub(crate) ids: BTreeMap<TreeNodeId, FileId>,
    names: BTreeMap<Place, Believed<Option<TreeNodeId>>>,
    attributes: BTreeMap<TreeNodeId, Believed<Stat>>,
    pages: BTreeMap<TreeNodeId, CachedRanges>,
    listings: Listings,
    /// The times and sizes that the pages came under.
    dated: BTreeMap<TreeNodeId, (Timestamp, u64)>,
    /// Files that are opened past the pages.
    pub(crate) bypassing: BTreeSet<Handle>,
    asked: BTreeMap<CallId, Asked>,
    /// Calls that hold the lock of a file or directory until they are answered.
    locking: BTreeSet<CallId>,
    /// Counts what is forgotten.
    clock: u64,
    forgotten: BTreeMap<TreeNodeId, u64>,
}

impl Kernel {
    pub(crate) fn new(root: FileId) -> Kernel {
        Kernel { ids: BTreeMap::from([(ROOT, root)]), ..Kernel::default() }
    }

    /// What a name is, if it is believed: a node, or that it is not there.
    pub(crate) fn name(&self, dir: TreeNodeId, name: &[u8], now: Time) -> Option<Option<TreeNodeId>> {
        let believed = self.names.get(&(dir, name.to_vec()))?;
        (now < believed.until).then_some(believed.what)
    }

    /// A node's attributes, if they are believed.
    pub(crate) fn attributes(&self, node: TreeNodeId, now: Time) -> Option<Stat> {
        let believed = self.attributes.get(&node)?;
        (now < believed.until).then_some(believed.what)
    }

    /// So many bytes from an offset on, if they are there, as far as the file goes.
    pub(crate) fn pages(&self, node: TreeNodeId, offset: u64, count: u64, size: u64) -> Option<Vec<u8>> {
        let end = size.min(offset + count);
        if end <= offset {
            return Some(Vec::new());
        }
        self.pages.get(&node)?.read(offset, end).map(Vec::from)
    }

    /// All names that are believed at this time: the directory, the name, and what it means.
    pub(crate) fn believed_names(&self, now: Time) -> impl Iterator<Item = (FileId, &[u8], Option<FileId>)> {
        let believed = self.names.iter().filter(move |(_, believed)| now < believed.until);
        believed.filter_map(|((dir, name), believed)| {
            let what = believed.what.and_then(|node| self.ids.get(&node)).copied();
            Some((*self.ids.get(dir)?, name.as_slice(), what))
        })
    }

    /// All attributes that are believed at this time.
    pub(crate) fn believed_attributes(&self, now: Time) -> impl Iterator<Item = (TreeNodeId, &Stat)> {
        let believed = self.attributes.iter().filter(move |(_, believed)| now < believed.until);
        believed.map(|(node, believed)| (*node, &believed.what))
    }

    /// What follows a position in a directory that is not opened, if the kernel has it.
    pub(crate) fn listing(&mut self, dir: TreeNodeId, position: u64) -> Option<Vec<(Vec<u8>, FileId, u64)>> {
        self.listings.read(dir, position)
    }

    /// What a name is by the listing that is told to who reads the directory from the beginning.
    pub(crate) fn listed(&self, dir: FileId, name: &[u8]) -> Option<Option<FileId>> {
        let mut nodes = self.ids.iter().filter(|(_, id)| **id == dir);
        nodes.find_map(|(node, _)| self.listings.believed(*node, name))
    }

    /// Whether this call holds the lock of a file or directory. What waits for such a lock may hold a directory's, which the kernel
    /// takes to forget a name: the answer must not wait for names that are to be forgotten.
    pub(crate) fn holds_a_lock(&self, id: CallId) -> bool {
        self.locking.contains(&id)
    }

    /// A call is made.
    pub(crate) fn asks(&mut self, id: CallId, call: &Call<'_>) {
        if let Call::Forget { node, .. } = *call {
            self.drop_node(node);
        }
        if holds_a_lock(call) {
            self.locking.insert(id);
        }
        self.changes_pages(call);
        let Some(matter) = Matter::of(call, &self.bypassing) else { return };
        let changes = matter.changes_names_in();
        let looks_in = matter.looks_in();
        let mut others = self.asked.values().flat_map(|asked| asked.matter.changes_names_in());
        let is_vain = looks_in.is_some_and(|dir| others.any(|other| other == dir));
        for asked in self.asked.values_mut() {
            asked.is_vain |= asked.matter.looks_in().is_some_and(|dir| changes.contains(&dir));
        }
        let asked = Asked {
            matter,
            is_vain,
            since: self.clock,
            forgotten: BTreeSet::new(),
            forgotten_behind: BTreeSet::new(),
        };
        self.asked.insert(id, asked);
    }

    /// An own change of contents is in the pages at once, or takes the pages away that it writes past (`fuse_direct_io` in fs/fuse/file.c
    /// since Linux 6.6, the first that keeps no pages of a file and maps it nevertheless). What is being read then is not kept.
    fn changes_pages(&mut self, call: &Call<'_>) {
        let node = match *call {
            Call::Write { node, handle, offset, data, .. } => {
                let pages = self.pages.entry(node).or_default();
                if self.bypassing.contains(&handle) {
                    let end = (offset + data.len() as u64).next_multiple_of(PAGE_BYTES);
                    pages.remove(offset - offset % PAGE_BYTES, end);
                } else {
                    pages.insert(offset, data.to_bytes());
                }
                node
            }
            Call::Setattr { node, set, .. } => {
                if let (Some(size), Some(pages)) = (set.size, self.pages.get_mut(&node)) {
                    pages.truncate(size);
                }
                node
            }
            _ => return,
        };
        self.reads_in_vain(node);
        self.doubt_attributes(node);
    }

    /// What is being read of the node is not kept: its pages are locked, and dropped when they come.
    fn reads_in_vain(&mut self, node: TreeNodeId) {
        for asked in self.asked.values_mut() {
            asked.is_vain |= matches!(asked.matter, Matter::Contents(read, _) if read == node);
        }
    }

    /// Whether somebody holds a directory, for whom waits who is to forget a name in it.
    pub(crate) fn is_held(&self, dir: TreeNodeId) -> bool {
        self.asked.values().any(|asked| asked.matter.locks(dir))
    }

    fn drop_pages(&mut self, node: TreeNodeId) {
        self.pages.remove(&node);
        self.reads_in_vain(node);
    }

    fn drop_node(&mut self, node: TreeNodeId) {
        self.ids.remove(&node);
        self.listings.forget(node);
        self.pages.remove(&node);
        self.dated.remove(&node);
        self.attributes.remove(&node);
        self.names.retain(|(parent, _), believed| *parent != node && believed.what != Some(node));
    }

    fn doubt_attributes(&mut self, node: TreeNodeId) {
        self.clock += 1;
        self.attributes.remove(&node);
        self.forgotten.insert(node, self.clock);
    }

    /// It is told to forget something.
    pub(crate) fn forgets(&mut self, what: &Invalidate) {
        match what {
            Invalidate::Node { node, offset, .. } => {
                if *offset >= 0 {
                    self.drop_pages(*node);
                    self.listings.drop_pages(*node);
                }
                // Of a node that is not there nothing is forgotten.
                if self.ids.contains_key(node) {
                    self.doubt_attributes(*node);
                }
                for asked in self.asked.values_mut().filter(|asked| !asked.forgotten.is_empty()) {
                    asked.forgotten_behind.insert(*node);
                }
            }
            Invalidate::Listing { node } => {
                self.listings.drop_pages(*node);
                self.doubt_attributes(*node);
            }
            Invalidate::Entry { parent, name, .. } => {
                let place = (*parent, name.clone());
                self.names.remove(&place);
                for asked in self.asked.values_mut().filter(|asked| asked.matter.locks(*parent)) {
                    asked.forgotten.insert(place.clone());
                }
            }
        }
    }
}
