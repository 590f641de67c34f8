//! The server's attributes as the kernel gets them: the owner that is shown, and the time for which they are valid.

use crate::call::Entry;
use crate::view::View;
use crate::view::shown::ino_of;
use std::time::Duration;
use wirefs_cache::{Freshness, TreeNodeId};
use wirefs_op::message::target::{NOFD, Place, Target};
use wirefs_op::{Errno, SetStat, Stat, TreePath};

impl View {
    /// The validity of a name in the kernel.
    fn name_ttl(&self, known: Freshness) -> Duration {
        let ttl = self.coherency().ttl(known);
        self.mount.config.name_ttl_max.map_or(ttl, |max| ttl.min(max))
    }

    /// The validity of the absence of `name` in the kernel.
    pub(crate) fn absent_ttl(&mut self, parent: TreeNodeId, name: &[u8], known: Freshness) -> Duration {
        let ttl = self.name_ttl(known);
        // A recall of the name must reach the kernel, so the answer must be remembered.
        if known.leased && !ttl.is_zero() && !self.names.add_negative(parent, name) {
            return Duration::ZERO;
        }
        ttl
    }

    pub(crate) fn is_fresh(&self, node: TreeNodeId) -> bool {
        let is_known = !self.files.is_writing(node) || self.files.is_ahead(node);
        is_known && self.names.node(node).is_some_and(|node| node.is_fresh(&self.coherency()))
    }

    /// Whether the kernel may be told of the node what is known of it. With leases a name may be known for long whose attributes are
    /// not: fetching them costs nothing more, since a program that looks a name up wants them next.
    pub(crate) fn may_show(&self, node: TreeNodeId) -> bool {
        !self.mount.config.mode.takes_leases() || self.files.is_writing(node) || self.is_fresh(node)
    }

    /// Attributes as the kernel gets them: the server's user shown as the mounting user unless the server acts for
    /// anyone; inode numbers of file systems below the export's own kept apart.
    pub(crate) fn present(&self, stat: &Stat) -> Stat {
        let mut shown = self.exclusive.unconfirmed.shown(stat);
        if let Some(ino) = self.exclusive.unconfirmed.shown_ino(stat.id) {
            shown.id.ino = ino;
        } else if stat.id.fs != 0 {
            shown.id.ino = ino_of(stat.id);
        }
        if !self.mount.attachment.acts_for_callers {
            if stat.uid == self.mount.attachment.uid {
                shown.uid = self.mount.config.uid;
            }
            if stat.gid == self.mount.attachment.gid {
                shown.gid = self.mount.config.gid;
            }
        }
        shown
    }

    /// The reverse of [`View::present`] for attributes to be set.
    pub(crate) fn unpresent(&self, mut set: SetStat) -> SetStat {
        if !self.mount.attachment.acts_for_callers {
            set.uid =
                set.uid.map(|uid| if uid == self.mount.config.uid { self.mount.attachment.uid } else { uid });
            set.gid =
                set.gid.map(|gid| if gid == self.mount.config.gid { self.mount.attachment.gid } else { gid });
        }
        set
    }

    /// The node's attributes and their remaining time.
    pub(crate) fn shown_attr(&self, node: TreeNodeId) -> Option<(Stat, Duration)> {
        let known = self.names.node(node)?;
        if let Some(stat) = self.files.attributes_by_copy(node, &known.stat) {
            return Some((self.present(&stat), Duration::ZERO));
        }
        let ttl = if self.files.is_writing(node) && !self.files.is_ahead(node) {
            Duration::ZERO
        } else {
            known.freshness.map_or(Duration::ZERO, |known| self.coherency().ttl(known))
        };
        Some((self.present(&known.stat), ttl))
    }

    /// The answer to a lookup of a name of this node. Counts the lookup.
    pub(crate) fn entry(&mut self, node: TreeNodeId, name: Freshness) -> Result<Entry, Errno> {
        let (stat, attr_ttl) = self.shown_attr(node).ok_or(Errno::Stale)?;
        let is_held = self.names.node(node).is_some_and(|known| known.is_held_by_kernel());
        self.names.count_lookup(node);
        Ok(Entry { node, stat, entry_ttl: self.name_ttl(name), attr_ttl, is_held })
    }

    /// How a request names this node: by an open file's fd where there is one, by path else.
    pub(crate) fn target(
        &self,
        node: TreeNodeId,
        handle: Option<crate::call::Handle>,
    ) -> Result<Target, Errno> {
        let known = self.names.node(node).ok_or(Errno::Stale)?;
        let fd = self.files.fd_for(node, handle);
        let path = match self.names.path(node) {
            Some(path) => path,
            // One that was made a moment ago and lost its name is reached by the fd that it was made with.
            None if fd != NOFD || known.stat.id.provisional_number().is_some() => TreePath::root(),
            None => return Err(Errno::Stale),
        };
        Ok(Target { path, fd, id: Some(known.stat.id) })
    }

    /// How a request names an entry.
    pub(crate) fn place(&self, parent: TreeNodeId, name: &[u8]) -> Result<Place, Errno> {
        let path = self.entry_path(parent, name)?;
        Ok(Place { path, dir: self.names.node(parent).map(|dir| dir.stat.id) })
    }

    pub(crate) fn entry_path(&self, parent: TreeNodeId, name: &[u8]) -> Result<TreePath, Errno> {
        if name.len() > wirefs_op::limits::NAME_BYTES_MAX {
            return Err(Errno::NameTooLong);
        }
        let dir = self.names.path(parent).ok_or(Errno::Stale)?;
        dir.join(name).ok_or(Errno::Invalid)
    }
}
