//! Attributes and extended attributes.

use crate::fs::{InodeBody, ModelFs, ModelIno};
use wirefs_op::{Errno, Kind, SetStat, SetTime, Stat};

/// `XATTR_CREATE`.
const XATTR_CREATE: u32 = 1;
/// `XATTR_REPLACE`.
const XATTR_REPLACE: u32 = 2;

impl ModelFs {
    pub(crate) fn stat(&self, ino: ModelIno) -> Result<Stat, Errno> {
        let inode = self.inode(ino)?;
        let subdirectories = match &inode.body {
            InodeBody::Directory { entries, .. } => {
                let inodes = entries.values().filter_map(|entry| self.inodes.get(&entry.ino));
                inodes.filter(|inode| inode.is_directory()).count() as u32
            }
            InodeBody::File(_) | InodeBody::Symlink(_) | InodeBody::Node(_) => 0,
        };
        Ok(inode.stat(ino, subdirectories))
    }

    /// Changes attributes, in an order in which none undoes another. An error does not undo the preceding changes.
    pub(crate) fn set(&mut self, ino: ModelIno, set: &SetStat) -> Result<(), Errno> {
        if let Some(size) = set.size {
            self.resize(ino, size)?;
        }
        if set.uid.is_some() || set.gid.is_some() {
            let inode = self.inode_mut(ino)?;
            inode.uid = set.uid.unwrap_or(inode.uid);
            inode.gid = set.gid.unwrap_or(inode.gid);
            inode.drop_privileges();
            self.touch(ino);
        }
        if let Some(mode) = set.mode {
            let inode = self.inode_mut(ino)?;
            if inode.kind() == Kind::Symlink {
                return Err(Errno::NotSupported);
            }
            inode.mode = mode & 0o7777;
            self.touch(ino);
        }
        if set.atime.is_some() || set.mtime.is_some() {
            let now = self.now();
            let time = |set: SetTime| match set {
                SetTime::Now => now,
                SetTime::At(at) => at,
            };
            let inode = self.inode_mut(ino)?;
            inode.atime = set.atime.map_or(inode.atime, time);
            inode.mtime = set.mtime.map_or(inode.mtime, time);
            self.touch(ino);
        }
        Ok(())
    }

    /// Clears the set-user-id and set-group-id bits of a file.
    pub(crate) fn kill_privileges(&mut self, ino: ModelIno) -> Result<(), Errno> {
        self.inode_mut(ino)?.drop_privileges();
        self.touch(ino);
        Ok(())
    }

    pub(crate) fn set_xattr(
        &mut self,
        ino: ModelIno,
        name: &[u8],
        value: &[u8],
        flags: u32,
    ) -> Result<(), Errno> {
        self.check_user_xattr(ino, name, Errno::NotPermitted)?;
        let xattrs = &mut self.inode_mut(ino)?.xattrs;
        match (flags, xattrs.contains_key(name)) {
            (XATTR_CREATE, true) => return Err(Errno::Exists),
            (XATTR_REPLACE, false) => return Err(Errno::NoData),
            (0, _) | (XATTR_CREATE, false) | (XATTR_REPLACE, true) => {}
            (_, _) => return Err(Errno::Invalid),
        }
        xattrs.insert(name.to_vec(), value.to_vec());
        self.touch(ino);
        Ok(())
    }

    pub(crate) fn xattr(&self, ino: ModelIno, name: &[u8]) -> Result<&[u8], Errno> {
        self.check_user_xattr(ino, name, Errno::NoData)?;
        self.inode(ino)?.xattrs.get(name).map(Vec::as_slice).ok_or(Errno::NoData)
    }

    pub(crate) fn xattr_names(&self, ino: ModelIno) -> Result<Vec<&[u8]>, Errno> {
        Ok(self.inode(ino)?.xattrs.keys().map(Vec::as_slice).collect())
    }

    pub(crate) fn remove_xattr(&mut self, ino: ModelIno, name: &[u8]) -> Result<(), Errno> {
        self.check_user_xattr(ino, name, Errno::NotPermitted)?;
        self.inode_mut(ino)?.xattrs.remove(name).ok_or(Errno::NoData)?;
        self.touch(ino);
        Ok(())
    }

    /// `user.` attributes are allowed for files and directories only; other namespaces are not modeled.
    fn check_user_xattr(&self, ino: ModelIno, name: &[u8], refused: Errno) -> Result<(), Errno> {
        match (self.inode(ino)?.kind(), name.strip_prefix(b"user.")) {
            (_, None | Some(b"")) => Err(Errno::NotSupported),
            (Kind::File | Kind::Directory, Some(_)) => Ok(()),
            (Kind::Symlink | Kind::Fifo | Kind::Socket | Kind::CharDevice | Kind::BlockDevice, Some(_)) => {
                Err(refused)
            }
        }
    }
}

impl crate::fs::Inode {
    /// The effect of `chown` and of an unprivileged write: clears the set-user-id bit, and the set-group-id bit if the
    /// group may execute the file (otherwise it used to mean mandatory locking).
    fn drop_privileges(&mut self) {
        if !self.is_directory() {
            self.mode &= !0o4000;
            if self.mode & 0o010 != 0 {
                self.mode &= !0o2000;
            }
        }
    }
}
