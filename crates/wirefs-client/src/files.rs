//! Open files and directories, and what is known of files' contents.

use crate::call::{CallId, Handle, OpenHow, PageCache};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use wirefs_cache::{NodeId, Ranges, ReadAhead};
use wirefs_op::message::target::{Fd, NOFD};
use wirefs_op::{DirEntry, Errno, Time};

/// One open file.
#[derive(Debug)]
pub(crate) struct Open {
    pub(crate) node: NodeId,
    pub(crate) how: OpenHow,
    /// The server's fd, or NOFD until one is needed.
    pub(crate) fd: Fd,
    /// An fd has been asked for.
    pub(crate) fd_asked: bool,
    pub(crate) ahead: ReadAhead,
    /// A write that failed after its caller went on; told once.
    pub(crate) error: Option<Errno>,
}

/// One open directory: its listing as of when it was opened, or as far as it is here.
#[derive(Debug)]
pub(crate) struct OpenDirectory {
    pub(crate) node: NodeId,
    pub(crate) entries: Arc<Vec<DirEntry>>,
    /// When the listing was asked for.
    pub(crate) listed_at: Time,
    pub(crate) complete: bool,
    pub(crate) error: Option<Errno>,
    /// Something was read from it already, so that offset 0 means that the reader starts again.
    pub(crate) read: bool,
    pub(crate) waiting: Vec<WaitingReaddir>,
}

/// A readdir that waits for more of the listing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WaitingReaddir {
    pub(crate) call: CallId,
    pub(crate) offset: u64,
    pub(crate) bytes_max: u32,
    pub(crate) entry_bytes: u32,
    pub(crate) with_stats: bool,
}

/// A read that waits for data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader {
    pub(crate) call: CallId,
    pub(crate) handle: Handle,
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) since: Time,
    pub(crate) tries: u8,
}

/// Something that waits until the server has answered all writes to a file.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Drained {
    /// A flush: answered, after its owner's locks fell.
    Flush { call: CallId, handle: Handle, owner: u64 },
    /// An fsync whose commit is done.
    Fsync { call: CallId, handle: Handle },
    /// A call to be started (again): its request must not overtake the writes.
    Seek { call: CallId, handle: Handle, offset: u64, hole: bool },
}

impl Drained {
    /// The call that waits.
    pub(crate) fn call(&self) -> CallId {
        match self {
            Drained::Flush { call, .. } | Drained::Fsync { call, .. } | Drained::Seek { call, .. } => *call,
        }
    }
}

/// What is known of one file's contents.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    pub(crate) ranges: Ranges,
    /// The `Stat::version` that the ranges are of, own acknowledged changes included.
    version: Option<u64>,
    /// As of when that was the file's version, but for own changes since.
    pub(crate) valid_at: Option<Time>,
    /// Counts the times that something was forgotten: what was asked for before must not be taken in after.
    pub(crate) epoch: u32,
    /// Own changes of the file, writes among them, sent and not answered.
    pub(crate) writes: u32,
    /// Where the writes among them end, and how many end there.
    ends: BTreeMap<u64, u32>,
    /// Releases of locks sent and not answered.
    pub(crate) unlocking: u32,
    /// Bytes in them.
    pub(crate) unacknowledged: u64,
    /// Writes answered since the last commit, which a crash of the server's machine could undo.
    pub(crate) uncommitted: bool,
    /// Ranges being fetched, with the epoch of their request.
    pub(crate) fetching: Vec<(u64, u64, u32)>,
    pub(crate) readers: Vec<Reader>,
    pub(crate) drained: Vec<Drained>,
    /// The version that the kernel's pages are of.
    pub(crate) kernel_version: Option<u64>,
    /// Owners that took POSIX locks.
    pub(crate) lock_owners: BTreeSet<u64>,
}

/// All open files, open directories and contents.
#[derive(Debug)]
pub(crate) struct Files {
    open: BTreeMap<Handle, Open>,
    directories: BTreeMap<Handle, OpenDirectory>,
    contents: BTreeMap<NodeId, Contents>,
    next_handle: u64,
    /// What was remembered, oldest first, to be forgotten in that order.
    remembered: VecDeque<(NodeId, u64, u64)>,
    bytes: usize,
    bytes_max: usize,
    unacknowledged: u64,
}

impl Files {
    pub(crate) fn new(bytes_max: usize) -> Files {
        Files {
            open: BTreeMap::new(),
            directories: BTreeMap::new(),
            contents: BTreeMap::new(),
            next_handle: 1,
            remembered: VecDeque::new(),
            bytes: 0,
            bytes_max,
            unacknowledged: 0,
        }
    }

    fn next_handle(&mut self) -> Handle {
        let handle = Handle(self.next_handle);
        self.next_handle += 1;
        handle
    }

    pub(crate) fn opened(&mut self, node: NodeId, how: OpenHow, fd: Fd) -> Handle {
        let handle = self.next_handle();
        let ahead = ReadAhead::default();
        self.open.insert(handle, Open { node, how, fd, fd_asked: fd != NOFD, ahead, error: None });
        self.contents.entry(node).or_default();
        handle
    }

    pub(crate) fn directory_opened(&mut self, directory: OpenDirectory) -> Handle {
        let handle = self.next_handle();
        self.directories.insert(handle, directory);
        handle
    }

    pub(crate) fn open(&self, handle: Handle) -> Option<&Open> {
        self.open.get(&handle)
    }

    pub(crate) fn open_mut(&mut self, handle: Handle) -> Option<&mut Open> {
        self.open.get_mut(&handle)
    }

    pub(crate) fn directory_mut(&mut self, handle: Handle) -> Option<&mut OpenDirectory> {
        self.directories.get_mut(&handle)
    }

    pub(crate) fn close(&mut self, handle: Handle) -> Option<Open> {
        self.open.remove(&handle)
    }

    pub(crate) fn close_directory(&mut self, handle: Handle) -> Option<OpenDirectory> {
        self.directories.remove(&handle)
    }

    /// What is known of the file's contents.
    pub(crate) fn contents(&mut self, node: NodeId) -> &mut Contents {
        self.contents.entry(node).or_default()
    }

    pub(crate) fn known(&self, node: NodeId) -> Option<&Contents> {
        self.contents.get(&node)
    }

    /// The open files of a node.
    pub(crate) fn handles_of(&self, node: NodeId) -> Vec<Handle> {
        self.open.iter().filter(|(_, open)| open.node == node).map(|(handle, _)| *handle).collect()
    }

    /// The fd to name a node by: that of the handle, else that of any of its open files.
    pub(crate) fn fd_for(&self, node: NodeId, handle: Option<Handle>) -> Fd {
        let own = handle.and_then(|handle| self.open.get(&handle)).map_or(NOFD, |open| open.fd);
        if own != NOFD {
            return own;
        }
        let any = self.open.values().find(|open| open.node == node && open.fd != NOFD);
        any.map_or(NOFD, |open| open.fd)
    }

    /// Whether an open file goes by this fd.
    pub(crate) fn is_used(&self, fd: Fd) -> bool {
        self.open.values().any(|open| open.fd == fd)
    }

    /// Whether own changes of the file are on their way.
    pub(crate) fn is_writing(&self, node: NodeId) -> bool {
        self.contents.get(&node).is_some_and(|contents| contents.writes > 0)
    }

    /// Bytes on their way, over all files.
    pub(crate) fn unacknowledged(&self) -> u64 {
        self.unacknowledged
    }

    pub(crate) fn cached_bytes(&self) -> usize {
        self.bytes
    }

    /// Whether contents that came with this version belong to what is known of the file. While own changes are under
    /// way nobody can tell.
    pub(crate) fn is_of(&self, node: NodeId, version: u64) -> bool {
        self.contents
            .get(&node)
            .is_some_and(|contents| contents.writes == 0 && contents.version == Some(version))
    }

    /// Notes a write on its way.
    pub(crate) fn write_sent(&mut self, node: NodeId, bytes: u64) {
        self.unacknowledged += bytes;
        let contents = self.contents(node);
        contents.writes += 1;
        contents.unacknowledged += bytes;
    }

    /// Notes a write that was answered, or failed.
    pub(crate) fn write_answered(&mut self, node: NodeId, bytes: u64) {
        self.unacknowledged = self.unacknowledged.saturating_sub(bytes);
        let contents = self.contents(node);
        contents.writes = contents.writes.saturating_sub(1);
        contents.unacknowledged = contents.unacknowledged.saturating_sub(bytes);
    }

    /// Notes that a write on its way makes the file reach to `end` at least.
    pub(crate) fn reaches(&mut self, node: NodeId, end: u64) {
        *self.contents(node).ends.entry(end).or_default() += 1;
    }

    /// Notes that it was answered, or failed.
    pub(crate) fn reached(&mut self, node: NodeId, end: u64) {
        let ends = &mut self.contents(node).ends;
        if let Some(count) = ends.get_mut(&end) {
            *count -= 1;
            if *count == 0 {
                ends.remove(&end);
            }
        }
    }

    /// The size that the file has for its writers when the server says `size`, behind the writes that it answered.
    pub(crate) fn size_for_writers(&self, node: NodeId, size: u64) -> u64 {
        let end = self.contents.get(&node).and_then(|contents| contents.ends.last_key_value());
        end.map_or(size, |(end, _)| size.max(*end))
    }

    /// Each open file of the node that may write will tell of this error once.
    pub(crate) fn write_failed(&mut self, node: NodeId, errno: Errno) {
        for open in self.open.values_mut().filter(|open| open.node == node && open.how.write) {
            open.error.get_or_insert(errno);
        }
    }

    /// The error that the open file has to tell.
    pub(crate) fn error(&self, handle: Handle) -> Option<Errno> {
        self.open.get(&handle)?.error
    }

    /// The same, told for good.
    pub(crate) fn take_error(&mut self, handle: Handle) -> Option<Errno> {
        self.open.get_mut(&handle)?.error.take()
    }

    /// Takes in that the file was at this version at `sent`, when nothing of our own was on its way. Tells whether
    /// somebody else changed it since.
    pub(crate) fn observe(&mut self, node: NodeId, version: u64, sent: Time) -> bool {
        let Some(contents) = self.contents.get_mut(&node) else {
            return false;
        };
        if contents.valid_at.is_some_and(|at| sent < at) {
            return false;
        }
        contents.valid_at = Some(sent);
        let known = contents.version.replace(version);
        let changed = known.is_some_and(|known| known != version);
        if changed {
            self.forget_contents(node);
        }
        changed
    }

    /// Takes in that an own change led from version `before` to `after`. Tells whether somebody else came between.
    pub(crate) fn advance(&mut self, node: NodeId, before: u64, after: u64, sent: Time) -> bool {
        let contents = self.contents.entry(node).or_default();
        let known = contents.version.replace(after);
        contents.valid_at = contents.valid_at.max(Some(sent));
        let foreign = known.is_some_and(|known| known != before);
        // The kernel's pages have our own writes already.
        if contents.kernel_version.is_some() && contents.kernel_version == known && !foreign {
            contents.kernel_version = Some(after);
        }
        if foreign {
            self.forget_contents(node);
        }
        foreign
    }

    /// What the kernel is to do with its pages when the file is opened.
    pub(crate) fn page_cache(&mut self, node: NodeId, bypass: bool) -> PageCache {
        let contents = self.contents.entry(node).or_default();
        if bypass {
            return PageCache::Bypass;
        }
        let keep = contents.writes > 0 || contents.kernel_version == contents.version;
        contents.kernel_version = contents.version;
        if keep { PageCache::Keep } else { PageCache::Drop }
    }

    /// Forgets all contents of a file.
    pub(crate) fn forget_contents(&mut self, node: NodeId) {
        if let Some(contents) = self.contents.get_mut(&node) {
            self.bytes -= contents.ranges.bytes();
            contents.ranges.clear();
            contents.epoch += 1;
        }
    }

    /// Forgets contents from `size` on.
    pub(crate) fn truncate_contents(&mut self, node: NodeId, size: u64) {
        self.change_ranges(node, |ranges| ranges.truncate(size));
        self.contents(node).epoch += 1;
    }

    /// Remembers bytes just written.
    pub(crate) fn remember_written(&mut self, node: NodeId, offset: u64, data: bytes::Bytes) {
        let end = offset + data.len() as u64;
        self.change_ranges(node, |ranges| ranges.insert(offset, data));
        self.remembered.push_back((node, offset, end));
        self.shrink();
    }

    /// Remembers bytes just read, where nothing newer is known.
    pub(crate) fn remember_read(&mut self, node: NodeId, offset: u64, data: &bytes::Bytes) {
        self.change_ranges(node, |ranges| ranges.insert_missing(offset, data));
        self.remembered.push_back((node, offset, offset + data.len() as u64));
        self.shrink();
    }

    fn change_ranges(&mut self, node: NodeId, change: impl FnOnce(&mut Ranges)) {
        let contents = self.contents.entry(node).or_default();
        let before = contents.ranges.bytes();
        change(&mut contents.ranges);
        self.bytes = self.bytes - before + contents.ranges.bytes();
    }

    fn shrink(&mut self) {
        while self.bytes > self.bytes_max {
            let Some((node, start, end)) = self.remembered.pop_front() else {
                return;
            };
            if self.contents.contains_key(&node) {
                self.change_ranges(node, |ranges| ranges.remove(start, end));
            }
        }
        // Notes of what was overwritten or forgotten since are dropped before they outgrow what they stand for.
        if self.remembered.len() > 65_536 {
            let contents = &self.contents;
            self.remembered.retain(|(node, start, _)| {
                contents.get(node).is_some_and(|contents| contents.ranges.known_to(*start) > *start)
            });
        }
    }

    /// How many bytes may be read ahead without pushing each other out.
    pub(crate) fn read_ahead_bytes_max(&self) -> u64 {
        self.bytes_max as u64 / 2
    }

    /// The node is gone for the kernel: so are its contents, unless something is under way.
    pub(crate) fn node_forgotten(&mut self, node: NodeId) {
        let idle = self.contents.get(&node).is_some_and(|contents| {
            contents.writes == 0 && contents.readers.is_empty() && contents.fetching.is_empty()
        });
        if idle && self.handles_of_is_empty(node) {
            self.forget_contents(node);
            self.contents.remove(&node);
        }
    }

    fn handles_of_is_empty(&self, node: NodeId) -> bool {
        !self.open.values().any(|open| open.node == node)
    }

    /// The server knows no fd any more.
    pub(crate) fn forget_fds(&mut self) {
        for open in self.open.values_mut() {
            open.fd = NOFD;
            open.fd_asked = false;
        }
    }

    /// The server's machine was started anew: what was not committed may be lost, and must not be passed over.
    pub(crate) fn doubt_uncommitted(&mut self) {
        let doubtful: Vec<NodeId> = self
            .contents
            .iter()
            .filter(|(_, contents)| contents.uncommitted)
            .map(|(node, _)| *node)
            .collect();
        for node in doubtful {
            self.write_failed(node, Errno::Io);
            self.forget_contents(node);
            self.contents(node).uncommitted = false;
        }
    }
}
