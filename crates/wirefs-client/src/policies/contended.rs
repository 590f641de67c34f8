//! Contended directories: those in which programs at the server change something. An exclusive creation there waits for
//! the server, since such a program may be creating the same name (`docs/design/0030-exclusive-creation.md`).
//!
//! ```text
//!   listing learned, changed less than 60 s ago ──► contended for the rest of that time
//!   recall of the directory, or of anything below it ──► contended for 60 s
//!   made by this mount, or learned unchanged for 60 s, and nothing recalled ──► not contended
//! ```
//! INVARIANT: if a directory's names are leased and it is not contended, the server has noticed no change of it by
//! another program in the last 60 s.

use crate::view::View;
use std::time::Duration;
use wirefs_cache::{CachedLookup, ROOT, TreeNodeId};
use wirefs_op::message::attach::Watch;
use wirefs_op::message::put::PutMode;
use wirefs_op::message::recall::RecallItem;
use wirefs_op::message::rename::NOREPLACE;
use wirefs_op::{FileId, Kind, Request, is_lock_name};

/// The last name of the path that a request creates exclusively; `None`: it creates none, or takes one that is there as well.
fn exclusive_name(request: &Request) -> Option<&[u8]> {
    match request {
        Request::Put(put) if put.mode.has(PutMode::CREATE) && put.mode.has(PutMode::EXCLUSIVE) => {
            put.target.path.split_last().map(|(_, name)| name)
        }
        Request::Link(link) => link.to.path.split_last().map(|(_, name)| name),
        Request::Rename(rename) if rename.flags & NOREPLACE != 0 => {
            rename.to.path.split_last().map(|(_, name)| name)
        }
        _ => None,
    }
}

impl View {
    /// Whether a request creates a name exclusively in `dir` that a program at the server may be creating too.
    pub(crate) fn has_rivals(&self, request: &Request, dir: Option<TreeNodeId>) -> bool {
        let Some(name) = exclusive_name(request) else { return false };
        let dir = dir.and_then(|dir| self.names.node(dir));
        let is_contended = dir.is_none_or(|dir| self.exclusive.contended.is(self.mount.now, dir.stat.id));
        // A server that watches for nothing says that it has no other programs.
        self.leases.watch() != Watch::None && (is_lock_name(name) || is_contended)
    }

    /// Notes that the server has executed a request. If the request took a lock by creating a name, changes that others
    /// made before they released that lock must be visible now. In modes with leases, the server has recalled the
    /// changed data. In modes with a window, cached data is requested again.
    pub(crate) fn note_acquired(&mut self, request: &Request) {
        if exclusive_name(request).is_some_and(is_lock_name) {
            self.exclusive.acquired = Some(self.mount.now);
        }
    }

    /// Whether a program at the server may have put something else in the place of a node: where one is at work in its directory, and what the
    /// name means has been recalled. The kernel may go on with the node until it has taken in the recall.
    pub(crate) fn is_place_contended(&self, node: TreeNodeId) -> bool {
        let id = self.names.node(node).map(|known| known.stat.id);
        self.names.links(node).into_iter().any(|(dir, name)| {
            let dir_id = self.names.node(dir).map(|known| known.stat.id);
            let is_contended = dir_id.is_some_and(|dir| self.exclusive.contended.is(self.mount.now, dir));
            is_contended
                && !matches!(self.directories.find(dir, &name, &self.coherency()),
                    CachedLookup::Entry(found) if Some(found.stat.id) == id)
        })
    }

    /// A directory's listing was learned from the server. Its time of change says how long ago it changed at the latest, by this machine's
    /// clock; the server reports the changes since.
    pub(crate) fn note_listed(&mut self, dir: TreeNodeId) {
        let Some(stat) = self.names.node(dir).map(|known| known.stat).filter(|_| self.has_journal()) else {
            return;
        };
        // Rounded down.
        let age = self.time_of_day().secs.saturating_sub(stat.ctime.secs).saturating_sub(1);
        let age = Duration::from_secs(u64::try_from(age).unwrap_or(0));
        self.exclusive.contended.changed(self.mount.now, stat.id, age);
    }

    /// The server recalls what other programs have changed.
    pub(crate) fn note_contended(&mut self, items: &[RecallItem]) {
        if items.is_empty() {
            self.exclusive.contended.all_changed(self.mount.now);
        }
        for item in items {
            let node = self.names.of_file(item.id);
            let mut dirs = match node {
                Some(node) => self.directories_above(node),
                None => Vec::new(),
            };
            let child = node.zip(item.name.as_ref()).and_then(|(dir, name)| self.names.child(dir, name));
            let with_names: Vec<TreeNodeId> = node.into_iter().chain(child).collect();
            for known in with_names.into_iter().filter_map(|node| self.names.node(node)) {
                dirs.extend((known.stat.kind == Kind::Directory).then_some(known.stat.id));
            }
            // A directory may be known by an inactive listing alone.
            dirs.extend(node.is_none().then_some(item.id));
            for dir in dirs {
                self.exclusive.contended.changed(self.mount.now, dir, Duration::ZERO);
            }
        }
    }

    /// The directories on the way to a node, by each of its names.
    fn directories_above(&self, node: TreeNodeId) -> Vec<FileId> {
        let mut above = Vec::new();
        for (parent, _) in self.names.links(node) {
            let mut at = parent;
            loop {
                above.extend(self.names.node(at).map(|known| known.stat.id));
                let next = self.names.parent(at);
                if at == ROOT || next == at {
                    break;
                }
                at = next;
            }
        }
        above
    }
}
