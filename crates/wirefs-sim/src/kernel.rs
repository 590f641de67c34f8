//! A client's kernel, which caches what a FUSE file system reports as Linux does: names (also absent ones) and attributes until they expire,
//! and pages. Programs are answered from this cache first, so stale entries are visible to them.
//!
//! Pages are valid while attributes are. Other times or another size than those of the pages drop the pages (`FUSE_AUTO_INVAL_DATA`).

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

/// A pending call whose answer enters the cache.
#[derive(Debug)]
struct PendingCall {
    matter: Matter,
    since: u64,
    /// Names that were invalidated meanwhile. The invalidation waits for lookups and listings of their directory.
    forgotten: BTreeSet<Place>,
    /// Nodes that were invalidated together with one of these names.
    forgotten_behind: BTreeSet<TreeNodeId>,
    /// The answer is not cached: names in the directory, or the file, change at the same time.
    is_uncached: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Believed<T> {
    pub(crate) what: T,
    /// The expiry, on the client's clock.
    pub(crate) until: Time,
}

/// Returns whether Linux holds `i_rwsem` of a file or directory while it waits for the answer (fs/namei.c, fs/attr.c, fs/xattr.c, fs/fuse/file.c).
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
    /// The times and sizes with which the pages were read.
    page_times: BTreeMap<TreeNodeId, (Timestamp, u64)>,
    /// Files that are opened for direct I/O.
    pub(crate) direct_io: BTreeSet<Handle>,
    pending_call: BTreeMap<CallId, PendingCall>,
    /// Pending calls that hold the lock of a file or directory.
    locking: BTreeSet<CallId>,
    /// Counts invalidations.
    clock: u64,
    forgotten: BTreeMap<TreeNodeId, u64>,
}

impl Kernel {
    pub(crate) fn new(root: FileId) -> Kernel {
        Kernel { ids: BTreeMap::from([(ROOT, root)]), ..Kernel::default() }
    }

    /// Returns the cached meaning of a name: a node, or `None` inside for an absent name.
    pub(crate) fn name(&self, dir: TreeNodeId, name: &[u8], now: Time) -> Option<Option<TreeNodeId>> {
        let believed = self.names.get(&(dir, name.to_vec()))?;
        (now < believed.until).then_some(believed.what)
    }

    /// Returns the cached attributes of a node.
    pub(crate) fn attributes(&self, node: TreeNodeId, now: Time) -> Option<Stat> {
        let believed = self.attributes.get(&node)?;
        (now < believed.until).then_some(believed.what)
    }

    /// Returns cached bytes of a file from an offset on, up to its end.
    pub(crate) fn pages(&self, node: TreeNodeId, offset: u64, count: u64, size: u64) -> Option<Vec<u8>> {
        let end = size.min(offset + count);
        if end <= offset {
            return Some(Vec::new());
        }
        self.pages.get(&node)?.read(offset, end).map(Vec::from)
    }

    /// Returns all valid names: directory, name and meaning.
    pub(crate) fn believed_names(&self, now: Time) -> impl Iterator<Item = (FileId, &[u8], Option<FileId>)> {
        let believed = self.names.iter().filter(move |(_, believed)| now < believed.until);
        believed.filter_map(|((dir, name), believed)| {
            let what = believed.what.and_then(|node| self.ids.get(&node)).copied();
            Some((*self.ids.get(dir)?, name.as_slice(), what))
        })
    }

    /// Returns all valid attributes.
    pub(crate) fn believed_attributes(&self, now: Time) -> impl Iterator<Item = (TreeNodeId, &Stat)> {
        let believed = self.attributes.iter().filter(move |(_, believed)| now < believed.until);
        believed.map(|(node, believed)| (*node, &believed.what))
    }

    /// Returns the cached entries after a position of a directory that is read without opening it.
    pub(crate) fn listing(&mut self, dir: TreeNodeId, position: u64) -> Option<Vec<(Vec<u8>, FileId, u64)>> {
        self.listings.read(dir, position)
    }

    /// Returns the meaning of a name in the cached listing of a directory.
    pub(crate) fn listed(&self, dir: FileId, name: &[u8]) -> Option<Option<FileId>> {
        let mut nodes = self.ids.iter().filter(|(_, id)| **id == dir);
        nodes.find_map(|(node, _)| self.listings.believed(*node, name))
    }

    /// Returns whether a call holds the lock of a file or directory. A task that waits for this lock may hold the lock of a directory, which an
    /// invalidation needs. So the answer must not wait for invalidations of names.
    pub(crate) fn holds_a_lock(&self, id: CallId) -> bool {
        self.locking.contains(&id)
    }

    /// Records a call.
    pub(crate) fn call_started(&mut self, id: CallId, call: &Call<'_>) {
        if let Call::Forget { node, .. } = *call {
            self.drop_node(node);
        }
        if holds_a_lock(call) {
            self.locking.insert(id);
        }
        self.changes_pages(call);
        let Some(matter) = Matter::of(call, &self.direct_io) else { return };
        let changes = matter.changes_names_in();
        let looks_in = matter.looks_in();
        let mut others =
            self.pending_call.values().flat_map(|pending_call| pending_call.matter.changes_names_in());
        let is_uncached = looks_in.is_some_and(|dir| others.any(|other| other == dir));
        for pending_call in self.pending_call.values_mut() {
            pending_call.is_uncached |=
                pending_call.matter.looks_in().is_some_and(|dir| changes.contains(&dir));
        }
        let pending_call = PendingCall {
            matter,
            is_uncached,
            since: self.clock,
            forgotten: BTreeSet::new(),
            forgotten_behind: BTreeSet::new(),
        };
        self.pending_call.insert(id, pending_call);
    }

    /// Updates the pages at an own change of contents, or drops those that are written past (`fuse_direct_io` in fs/fuse/file.c since Linux
    /// 6.6, the first version that maps a file without caching its pages). Concurrent reads do not enter the cache.
    fn changes_pages(&mut self, call: &Call<'_>) {
        let node = match *call {
            Call::Write { node, handle, offset, data, .. } => {
                let pages = self.pages.entry(node).or_default();
                if self.direct_io.contains(&handle) {
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
        self.discard_reads(node);
        self.expire_attributes(node);
    }

    /// Keeps pending reads of the node out of the cache: their pages are locked, and dropped when the data arrives.
    fn discard_reads(&mut self, node: TreeNodeId) {
        for pending_call in self.pending_call.values_mut() {
            pending_call.is_uncached |=
                matches!(pending_call.matter, Matter::Contents(read, _) if read == node);
        }
    }

    /// Returns whether a call holds a directory; an invalidation of a name in it waits for that.
    pub(crate) fn is_held(&self, dir: TreeNodeId) -> bool {
        self.pending_call.values().any(|pending_call| pending_call.matter.locks(dir))
    }

    fn drop_pages(&mut self, node: TreeNodeId) {
        self.pages.remove(&node);
        self.discard_reads(node);
    }

    fn drop_node(&mut self, node: TreeNodeId) {
        self.ids.remove(&node);
        self.listings.forget(node);
        self.pages.remove(&node);
        self.page_times.remove(&node);
        self.attributes.remove(&node);
        self.names.retain(|(parent, _), believed| *parent != node && believed.what != Some(node));
    }

    fn expire_attributes(&mut self, node: TreeNodeId) {
        self.clock += 1;
        self.attributes.remove(&node);
        self.forgotten.insert(node, self.clock);
    }

    /// Invalidates something.
    pub(crate) fn invalidate(&mut self, what: &Invalidate) {
        match what {
            Invalidate::Node { node, offset, .. } => {
                if *offset >= 0 {
                    self.drop_pages(*node);
                    self.listings.drop_pages(*node);
                }
                // An unknown node has nothing to invalidate.
                if self.ids.contains_key(node) {
                    self.expire_attributes(*node);
                }
                for pending_call in
                    self.pending_call.values_mut().filter(|pending_call| !pending_call.forgotten.is_empty())
                {
                    pending_call.forgotten_behind.insert(*node);
                }
            }
            Invalidate::Listing { node } => {
                self.listings.drop_pages(*node);
                self.expire_attributes(*node);
            }
            Invalidate::Entry { parent, name, .. } => {
                let place = (*parent, name.clone());
                self.names.remove(&place);
                for pending_call in
                    self.pending_call.values_mut().filter(|pending_call| pending_call.matter.locks(*parent))
                {
                    pending_call.forgotten.insert(place.clone());
                }
            }
        }
    }
}
