//! The root of `/net`: a small tree in memory.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use wirefs_client::call::{Answer, Call, CallId, Caller, Entry, Handle, Listed, PageCache, ROOT, TreeNodeId};
use wirefs_fuse::{FileSystem, ReaderRole, Reply};
use wirefs_op::{Errno, FileId, FsStat, Kind, Stat, Timestamp};

/// The time for which the kernel caches a name and its attributes. Absent names are not cached.
const TTL: Duration = Duration::from_secs(1);
/// The alignment of a directory entry in a listing, in bytes.
const ENTRY_ALIGN: usize = 8;

/// The root of `/net`.
pub(super) struct NetRoot {
    state: Mutex<State>,
    born: Timestamp,
    owner: (u32, u32),
}

struct State {
    names: BTreeMap<String, NameEntry>,
    next: u64,
}

/// An entry of the root.
#[derive(Clone, Debug)]
struct NameEntry {
    node: TreeNodeId,
    kind: EntryKind,
    /// Listings show the entry.
    is_listed: bool,
    /// Until this thread has looked the name up, no other one sees it.
    visible_to: Option<u32>,
}

/// The kind of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum EntryKind {
    /// A directory to mount on.
    Directory,
    /// A symbolic link.
    Link(String),
}

impl NetRoot {
    pub(super) fn new() -> NetRoot {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        NetRoot {
            state: Mutex::new(State { names: BTreeMap::new(), next: ROOT.0 + 1 }),
            born: Timestamp {
                secs: i64::try_from(now.as_secs()).unwrap_or(i64::MAX),
                nanos: now.subsec_nanos(),
            },
            owner: (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a name, hidden from other threads until this thread has looked it up, or until [`NetRoot::show`].
    pub(super) fn make(&self, name: &str, kind: EntryKind) {
        let mut state = self.lock();
        let node = TreeNodeId(state.next);
        state.next += 1;
        let visible_to = u32::try_from(rustix::thread::gettid().as_raw_nonzero().get()).ok();
        state.names.insert(name.to_owned(), NameEntry { node, kind, is_listed: false, visible_to });
    }

    /// Shows a name to all threads, and lists it or not.
    pub(super) fn show(&self, name: &str, is_listed: bool) {
        if let Some(place) = self.lock().names.get_mut(name) {
            place.visible_to = None;
            place.is_listed = is_listed;
        }
    }

    pub(super) fn remove(&self, name: &str) {
        self.lock().names.remove(name);
    }

    fn stat(&self, node: TreeNodeId, kind: &EntryKind) -> Stat {
        let (kind, mode, size) = match kind {
            EntryKind::Directory => (Kind::Directory, 0o755, 0),
            EntryKind::Link(target) => (Kind::Symlink, 0o777, target.len() as u64),
        };
        Stat {
            mode,
            size,
            nlink: if kind == Kind::Directory { 2 } else { 1 },
            uid: self.owner.0,
            gid: self.owner.1,
            blksize: 4_096,
            atime: self.born,
            mtime: self.born,
            ctime: self.born,
            ..Stat::blank(FileId { fs: 0, ino: node.0, generation: 0 }, kind)
        }
    }

    fn entry(&self, place: &NameEntry) -> Entry {
        let stat = self.stat(place.node, &place.kind);
        Entry { node: place.node, stat, entry_ttl: TTL, attr_ttl: TTL, is_held: true }
    }

    fn answer(&self, caller: Caller, call: &Call<'_>) -> Answer {
        match call {
            Call::Lookup { parent: ROOT, name } => self.lookup(caller, name),
            Call::Getattr { node, .. } => self.attributes(*node),
            Call::Readlink { node } => self.target(*node),
            Call::Opendir { node: ROOT } => Answer::Opened(Handle(0), PageCache::Drop),
            Call::Readdir { node: ROOT, offset, bytes_max, entry_bytes, with_stats, .. } => {
                Answer::Listing(self.list(*offset, *bytes_max, *entry_bytes, *with_stats))
            }
            Call::Releasedir { .. } | Call::Access { .. } | Call::Fsyncdir { .. } | Call::Syncfs { .. } => {
                Answer::Done
            }
            Call::Statfs { .. } => Answer::FsStat(FsStat {
                block_bytes: 4_096,
                blocks: 0,
                blocks_free: 0,
                blocks_available: 0,
                files: 0,
                files_free: 0,
                name_bytes_max: 255,
            }),
            Call::Getxattr { .. } => Answer::Fail(Errno::NoData),
            Call::Listxattr { size_max: 0, .. } => Answer::Size(0),
            Call::Listxattr { .. } => Answer::Data(bytes::Bytes::new()),
            // Nothing is mounted there: the node is down.
            Call::Lookup { .. } | Call::Opendir { .. } | Call::Readdir { .. } => {
                Answer::Fail(Errno::HostDown)
            }
            _ => Answer::Fail(Errno::ReadOnly),
        }
    }

    fn lookup(&self, caller: Caller, name: &[u8]) -> Answer {
        let mut state = self.lock();
        let place = std::str::from_utf8(name).ok().and_then(|name| state.names.get_mut(name));
        let place = place.filter(|place| place.visible_to.is_none_or(|thread| thread == caller.pid));
        place.map_or(Answer::NoEntry(Duration::ZERO), |place| {
            // From now on the kernel has cached the name, and revalidates it as any process. To hide it then would
            // detach the mount in progress.
            place.visible_to = None;
            Answer::Entry(self.entry(place))
        })
    }

    fn attributes(&self, node: TreeNodeId) -> Answer {
        if node == ROOT {
            return Answer::Attr(self.stat(ROOT, &EntryKind::Directory), TTL);
        }
        let state = self.lock();
        let place = state.names.values().find(|place| place.node == node);
        place.map_or(Answer::Fail(Errno::Stale), |place| Answer::Attr(self.stat(node, &place.kind), TTL))
    }

    fn target(&self, node: TreeNodeId) -> Answer {
        let state = self.lock();
        match state.names.values().find(|place| place.node == node).map(|place| &place.kind) {
            Some(EntryKind::Link(target)) => Answer::Data(target.clone().into_bytes().into()),
            Some(EntryKind::Directory) => Answer::Fail(Errno::Invalid),
            None => Answer::Fail(Errno::Stale),
        }
    }

    /// Lists the entries after `offset`, the number of entries before them, as many as fit.
    fn list(&self, offset: u64, bytes_max: u32, entry_bytes: u32, with_stats: bool) -> Vec<Listed> {
        let state = self.lock();
        let directory = |name: &str| {
            let place =
                NameEntry { node: ROOT, kind: EntryKind::Directory, is_listed: true, visible_to: None };
            (name.to_owned(), place)
        };
        let listed = state.names.iter().filter(|(_, place)| place.is_listed);
        let listed = listed.map(|(name, place)| (name.clone(), place.clone()));
        let all = [directory("."), directory("..")].into_iter().chain(listed);
        let (mut room, mut entries) = (usize::try_from(bytes_max).unwrap_or(0), Vec::new());
        for ((name, place), next) in all.zip(1_u64..).skip(usize::try_from(offset).unwrap_or(usize::MAX)) {
            let bytes = usize::try_from(entry_bytes).unwrap_or(usize::MAX).saturating_add(name.len());
            let Some(left) = room.checked_sub(bytes.next_multiple_of(ENTRY_ALIGN)) else { break };
            room = left;
            let entry = (with_stats && place.node != ROOT).then(|| self.entry(&place));
            let st_mode = self.stat(place.node, &place.kind).st_mode();
            entries.push(Listed { name: name.into_bytes(), next, ino: place.node.0, st_mode, entry });
        }
        entries
    }
}

impl FileSystem for NetRoot {
    fn call(&self, caller: Caller, call: Call<'_>, reply: Reply, _: &ReaderRole<'_>) {
        if !matches!(call, Call::Forget { .. }) {
            reply.answer(self.answer(caller, &call));
        }
    }

    /// Each call is answered at once.
    fn interrupt(&self, _: CallId) -> bool {
        true
    }
}

#[cfg(test)]
mod tests;
