//! Open files and directories, and what is known of files' contents.

mod coalesced;
mod contents;
mod copies;
mod directory;
mod lockers;
mod memory;
mod open;
pub(super) mod private;
mod server_handle;
mod stateless;
mod unstable;
mod versions;
mod writes;

pub(crate) use contents::{Contents, Drained, Opens, Reader};
use directory::listing_bytes;
pub(crate) use directory::{OpenDirectory, WaitingReaddir};

use crate::call::{Handle, OpenHow};
use crate::view::copies::PrivateCopies;
use crate::view::throttled::Throttled;
pub(crate) use coalesced::Stretch;
use memory::Remembered;
use open::{Open, OpenFiles};
pub(crate) use private::{Base, Private};
pub(crate) use server_handle::ServerHandle;
pub(crate) use stateless::{Ending, Part, Position, StatelessListings};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
pub(crate) use unstable::Change;
use wirefs_cache::{ListingPage, TreeNodeId};
use wirefs_op::message::target::Fd;
use wirefs_op::{DirEntry, Errno, FileId, Stat};

/// All open files, open directories and contents.
#[derive(Debug)]
pub(crate) struct Files {
    open: OpenFiles,
    directories: BTreeMap<Handle, OpenDirectory>,
    pub(crate) stateless: StatelessListings,
    /// Directories of which the kernel may have kept a listing that is not promised.
    kept_without_lease: BTreeSet<TreeNodeId>,
    /// In boxes: the tables of a tree of nodes with room for more are half empty.
    contents: BTreeMap<TreeNodeId, Box<Contents>>,
    /// Errors of changes that failed when no open file was left to report them.
    unheard: BTreeMap<TreeNodeId, Errno>,
    next_handle: u64,
    remembered: Remembered,
    unacknowledged: u64,
    /// Bytes that are written and not sent yet, over all files.
    coalesced_bytes: usize,
    pub(crate) throttled: Throttled,
    pub(crate) copies: PrivateCopies,
}

impl Files {
    pub(crate) fn new(bytes_max: usize) -> Files {
        Files {
            open: OpenFiles::default(),
            directories: BTreeMap::new(),
            stateless: StatelessListings::within(bytes_max),
            kept_without_lease: BTreeSet::new(),
            contents: BTreeMap::new(),
            unheard: BTreeMap::new(),
            next_handle: 1,
            remembered: Remembered::new(bytes_max),
            unacknowledged: 0,
            coalesced_bytes: 0,
            throttled: Throttled::default(),
            copies: PrivateCopies::default(),
        }
    }

    fn next_handle(&mut self) -> Handle {
        let handle = Handle(self.next_handle);
        self.next_handle += 1;
        handle
    }

    pub(crate) fn opened(&mut self, node: TreeNodeId, how: OpenHow, fd: Fd) -> Handle {
        let handle = self.next_handle();
        self.open.insert(handle, node, how, fd);
        self.contents.entry(node).or_default();
        handle
    }

    pub(crate) fn open(&self, handle: Handle) -> Option<&Open> {
        self.open.get(handle)
    }

    pub(crate) fn open_mut(&mut self, handle: Handle) -> Option<&mut Open> {
        self.open.get_mut(handle)
    }

    pub(crate) fn close(&mut self, handle: Handle) -> Option<Open> {
        self.open.remove(handle)
    }

    /// The open files of a node, in the order in which they were opened.
    pub(crate) fn handles_of(&self, node: TreeNodeId) -> impl DoubleEndedIterator<Item = Handle> {
        self.open.of_node(node)
    }

    /// The fd to name a node by: that of the handle, else that of any of its open files.
    pub(crate) fn fd_for(&self, node: TreeNodeId, handle: Option<Handle>) -> Fd {
        self.open.fd_for(node, handle)
    }

    /// The nodes that are open and that no fd reaches.
    pub(crate) fn without_fd(&self) -> Vec<TreeNodeId> {
        self.open.without_fd()
    }

    /// Whether an open file goes by this fd.
    pub(crate) fn is_used(&self, fd: Fd) -> bool {
        self.open.is_used(fd)
    }

    /// The open file goes by this fd from now on.
    pub(crate) fn set_fd(&mut self, handle: Handle, fd: Fd) {
        self.open.set_fd(handle, fd);
    }

    /// The server knows no fd any more.
    pub(crate) fn forget_fds(&mut self) {
        self.open.forget_fds();
    }

    pub(crate) fn directory_opened(&mut self, directory: OpenDirectory) -> Handle {
        let handle = self.next_handle();
        self.directories.insert(handle, directory);
        handle
    }

    /// A directory is read that was not opened.
    pub(crate) fn reading_begins(&mut self, directory: OpenDirectory) -> Handle {
        let handle = self.next_handle();
        self.stateless.lists(handle, directory);
        handle
    }

    /// The listing that a program reads, by its handle: of an open directory, or of a stateless reading.
    pub(crate) fn directory_mut(&mut self, handle: Handle) -> Option<&mut OpenDirectory> {
        self.directories.get_mut(&handle).or_else(|| self.stateless.directory_mut(handle))
    }

    /// The entries of an open directory around this one. `None`: they are unavailable.
    pub(crate) fn page(&mut self, handle: Handle, index: usize) -> Option<ListingPage> {
        let page = self.directory_mut(handle)?.entries.page(index);
        self.stateless.weigh(handle);
        page
    }

    /// The approximate bytes in the listings of open directories. A shared listing counts once, and not if it `counts` elsewhere.
    pub(crate) fn listing_bytes(&self, counts: impl Fn(TreeNodeId, &Arc<Vec<DirEntry>>) -> bool) -> usize {
        listing_bytes(self.directories.values().chain(self.stateless.all()), counts)
    }

    /// An upper bound of [`Files::listing_bytes`]. Stateless readings may count twice.
    ///
    /// # Cost
    /// Looks at the open directories alone.
    pub(crate) fn listing_bytes_max(
        &self,
        counts: impl Fn(TreeNodeId, &Arc<Vec<DirEntry>>) -> bool,
    ) -> usize {
        listing_bytes(self.directories.values(), counts) + self.stateless.bytes()
    }

    /// The listings of the open directories of this node are not promised any more, and of what has this name, nothing.
    pub(crate) fn invalidate_open_listings(&mut self, node: TreeNodeId, name: Option<&[u8]>) {
        let invalidate = |open: &mut OpenDirectory| {
            open.listed.leased = false;
            open.invalidated.extend(name.map(<[u8]>::to_vec));
        };
        self.directories.values_mut().filter(|open| open.node == node).for_each(invalidate);
        self.stateless.of(node, invalidate);
    }

    /// Objects have other ids: open listings name them by these from now on. Without that, a reader that continues would bring the former
    /// ids back, as of other objects.
    pub(crate) fn made_again(&mut self, made: &BTreeMap<FileId, Stat>) {
        self.directories.values_mut().for_each(|open| open.made_again(made));
        self.stateless.made_again(made);
    }

    /// The kernel is about to keep a listing that may not be promised.
    pub(crate) fn keeps_not(&mut self, node: TreeNodeId) {
        self.kept_without_lease.insert(node);
    }

    /// Whether the kernel may keep its listing of a directory that is being opened; if not, it drops that now.
    pub(crate) fn keeps_listing(&mut self, node: TreeNodeId) -> bool {
        !self.kept_without_lease.remove(&node)
    }

    pub(crate) fn close_directory(&mut self, handle: Handle) -> Option<OpenDirectory> {
        self.directories.remove(&handle)
    }

    /// The cached contents of the file.
    pub(crate) fn contents(&mut self, node: TreeNodeId) -> &mut Contents {
        self.contents.entry(node).or_default()
    }

    /// The nodes of whose contents something is known.
    pub(crate) fn known_nodes(&self) -> impl Iterator<Item = TreeNodeId> {
        self.contents.keys().copied()
    }

    pub(crate) fn known(&self, node: TreeNodeId) -> Option<&Contents> {
        self.contents.get(&node).map(Box::as_ref)
    }

    /// Drops the contents of a node that the kernel has forgotten, unless requests about it are in progress.
    pub(crate) fn node_forgotten(&mut self, node: TreeNodeId) {
        self.unheard.remove(&node);
        self.kept_without_lease.remove(&node);
        let idle = self.contents.get(&node).is_some_and(|contents| {
            contents.writes == 0 && contents.readers.is_empty() && contents.fetching.is_empty()
        });
        if idle && !self.open.is_open(node) {
            self.forget_contents(node);
            self.contents.remove(&node);
        }
    }
}
