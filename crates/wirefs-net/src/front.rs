//! The root of `/net`: a small tree that is made of names alone, and answers from memory.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use wirefs_client::call::{Answer, Call, CallId, Caller, Entry, Handle, Listed, PageCache, ROOT, TreeNodeId};
use wirefs_fuse::{FileSystem, Reading, Reply};
use wirefs_op::{Errno, FileId, FsStat, Kind, Stat, Timestamp};

/// How long the kernel may believe a name and its attributes. Absent names are asked for each time.
const TTL: Duration = Duration::from_secs(1);
/// What a listing takes for an entry beside its name, rounded up to this.
const ENTRY_ALIGN: usize = 8;

/// The root of `/net`.
pub(super) struct Front {
    state: Mutex<State>,
    born: Timestamp,
    owner: (u32, u32),
}

struct State {
    names: BTreeMap<String, Place>,
    next: u64,
}

/// What a name leads to.
#[derive(Clone, Debug)]
struct Place {
    node: TreeNodeId,
    kind: Shape,
    /// Who looks at the listing sees it.
    is_listed: bool,
    /// The thread that mounts there is the first to see it.
    only_for: Option<u32>,
}

/// What stands in `/net`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// A directory for something to be mounted on.
    Directory,
    /// A symbolic link.
    Link(String),
}

impl Front {
    pub(super) fn new() -> Front {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Front {
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

    /// Makes a name, which nobody sees before this thread has looked it up, or [`Front::show`].
    pub(super) fn make(&self, name: &str, kind: Shape) {
        let mut state = self.lock();
        let node = TreeNodeId(state.next);
        state.next += 1;
        let only_for = u32::try_from(rustix::thread::gettid().as_raw_nonzero().get()).ok();
        state.names.insert(name.to_owned(), Place { node, kind, is_listed: false, only_for });
    }

    /// Lets all see a name, and list it or not.
    pub(super) fn show(&self, name: &str, is_listed: bool) {
        if let Some(place) = self.lock().names.get_mut(name) {
            place.only_for = None;
            place.is_listed = is_listed;
        }
    }

    pub(super) fn remove(&self, name: &str) {
        self.lock().names.remove(name);
    }

    fn stat(&self, node: TreeNodeId, kind: &Shape) -> Stat {
        let (kind, mode, size) = match kind {
            Shape::Directory => (Kind::Directory, 0o755, 0),
            Shape::Link(target) => (Kind::Symlink, 0o777, target.len() as u64),
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

    fn entry(&self, place: &Place) -> Entry {
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
            // Where nothing could be mounted, there is nobody.
            Call::Lookup { .. } | Call::Opendir { .. } | Call::Readdir { .. } => {
                Answer::Fail(Errno::HostDown)
            }
            _ => Answer::Fail(Errno::ReadOnly),
        }
    }

    fn lookup(&self, caller: Caller, name: &[u8]) -> Answer {
        let mut state = self.lock();
        let place = std::str::from_utf8(name).ok().and_then(|name| state.names.get_mut(name));
        let place = place.filter(|place| place.only_for.is_none_or(|thread| thread == caller.pid));
        place.map_or(Answer::NoEntry(Duration::ZERO), |place| {
            // From now on the kernel has the name, and asks for it again in the name of anyone. Who denied it then would have
            // the kernel detach what is being mounted there.
            place.only_for = None;
            Answer::Entry(self.entry(place))
        })
    }

    fn attributes(&self, node: TreeNodeId) -> Answer {
        if node == ROOT {
            return Answer::Attr(self.stat(ROOT, &Shape::Directory), TTL);
        }
        let state = self.lock();
        let place = state.names.values().find(|place| place.node == node);
        place.map_or(Answer::Fail(Errno::Stale), |place| Answer::Attr(self.stat(node, &place.kind), TTL))
    }

    fn target(&self, node: TreeNodeId) -> Answer {
        let state = self.lock();
        match state.names.values().find(|place| place.node == node).map(|place| &place.kind) {
            Some(Shape::Link(target)) => Answer::Data(target.clone().into_bytes().into()),
            Some(Shape::Directory) => Answer::Fail(Errno::Invalid),
            None => Answer::Fail(Errno::Stale),
        }
    }

    /// What comes after `offset`, which is the number of entries before, as much as fits.
    fn list(&self, offset: u64, bytes_max: u32, entry_bytes: u32, with_stats: bool) -> Vec<Listed> {
        let state = self.lock();
        let directory = |name: &str| {
            let place = Place { node: ROOT, kind: Shape::Directory, is_listed: true, only_for: None };
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

impl FileSystem for Front {
    fn call(&self, caller: Caller, call: Call<'_>, reply: Reply, _: &Reading<'_>) {
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
