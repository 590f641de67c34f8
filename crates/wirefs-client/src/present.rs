//! How the server's objects are shown to the kernel: whose they are, for how long they may be believed.

use crate::call::{Caller, Entry};
use crate::core::Client;
use std::time::Duration;
use wirefs_cache::NodeId;
use wirefs_op::message::target::{NOFD, Place, Target};
use wirefs_op::{Cred, Errno, SetStat, Stat, Time, TreePath};

impl Client {
    /// For how long something asked for at `at` may still be believed.
    pub(crate) fn ttl(&self, at: Time) -> Duration {
        (at + self.config.mode.window()) - self.now
    }

    pub(crate) fn is_fresh(&self, node: NodeId) -> bool {
        let window = self.config.mode.window();
        !self.files.is_writing(node)
            && self.names.node(node).is_some_and(|node| node.is_fresh(self.now, window))
    }

    /// Attributes as the kernel gets them: the server's user shown as the mounting user unless the server acts for
    /// anyone; inode numbers of file systems below the export's own kept apart.
    pub(crate) fn present(&self, stat: &Stat) -> Stat {
        let mut shown = *stat;
        if stat.id.fs != 0 {
            shown.id.ino = stat.id.ino ^ (u64::from(stat.id.fs) << 32).rotate_left(7);
        }
        if !self.attachment.acts_for_callers {
            if stat.uid == self.attachment.uid {
                shown.uid = self.config.uid;
            }
            if stat.gid == self.attachment.gid {
                shown.gid = self.config.gid;
            }
        }
        shown
    }

    /// The reverse of [`Client::present`] for attributes to be set.
    pub(crate) fn unpresent(&self, mut set: SetStat) -> SetStat {
        if !self.attachment.acts_for_callers {
            set.uid = set.uid.map(|uid| if uid == self.config.uid { self.attachment.uid } else { uid });
            set.gid = set.gid.map(|gid| if gid == self.config.gid { self.attachment.gid } else { gid });
        }
        set
    }

    pub(crate) fn cred(&self, caller: Caller, umask: u32) -> Cred {
        Cred { uid: caller.uid, gid: caller.gid, umask }
    }

    /// The node's attributes and their remaining time.
    pub(crate) fn shown_attr(&self, node: NodeId) -> Option<(Stat, Duration)> {
        let known = self.names.node(node)?;
        let ttl = if self.files.is_writing(node) {
            Duration::ZERO
        } else {
            known.known_at.map_or(Duration::ZERO, |at| self.ttl(at))
        };
        Some((self.present(&known.stat), ttl))
    }

    /// What a lookup of a name that was found at `at` to be this node tells the kernel; counts the lookup.
    pub(crate) fn entry(&mut self, node: NodeId, at: Time) -> Result<Entry, Errno> {
        let (stat, attr_ttl) = self.shown_attr(node).ok_or(Errno::Stale)?;
        self.names.count(node);
        Ok(Entry { node, stat, entry_ttl: self.ttl(at), attr_ttl })
    }

    /// How a request names this node: by an open file's fd where there is one, by path else.
    pub(crate) fn target(&self, node: NodeId, handle: Option<crate::call::Handle>) -> Result<Target, Errno> {
        let known = self.names.node(node).ok_or(Errno::Stale)?;
        let fd = self.files.fd_for(node, handle);
        let path = match self.names.path(node) {
            Some(path) => path,
            None if fd != NOFD => TreePath::root(),
            None => return Err(Errno::Stale),
        };
        Ok(Target { path, fd, id: Some(known.stat.id) })
    }

    /// How a request names an entry.
    pub(crate) fn place(&self, parent: NodeId, name: &[u8]) -> Result<Place, Errno> {
        let path = self.entry_path(parent, name)?;
        Ok(Place { path, dir: self.names.node(parent).map(|dir| dir.stat.id) })
    }

    pub(crate) fn entry_path(&self, parent: NodeId, name: &[u8]) -> Result<TreePath, Errno> {
        if name.len() > wirefs_op::limits::NAME_BYTES_MAX {
            return Err(Errno::NameTooLong);
        }
        let dir = self.names.path(parent).ok_or(Errno::Stale)?;
        dir.join(name).ok_or(Errno::Invalid)
    }
}
