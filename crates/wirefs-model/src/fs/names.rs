//! Names: lookup, create, link, remove, list.

use crate::contents::FileContents;
use crate::fs::inode::InodeEntry;
use crate::fs::{InodeBody, ModelFs, ModelIno, NewInode, ROOT};
use std::collections::BTreeMap;
use wirefs_op::limits::NAME_BYTES_MAX;
use wirefs_op::{Errno, Kind};

/// The maximum length of a symbolic link's target, in bytes (`PATH_MAX` without the NUL).
const TARGET_BYTES_MAX: usize = 4095;

/// Validates the target of a symbolic link.
pub(crate) fn check_target(target: &[u8]) -> Result<(), Errno> {
    match target.len() {
        0 => Err(Errno::NotFound),
        1..=TARGET_BYTES_MAX => Ok(()),
        _ => Err(Errno::NameTooLong),
    }
}

impl ModelFs {
    pub(super) fn entries(&self, dir: ModelIno) -> Result<&BTreeMap<Vec<u8>, InodeEntry>, Errno> {
        match &self.inode(dir)?.body {
            InodeBody::Directory { entries, .. } => Ok(entries),
            InodeBody::File(_) | InodeBody::Symlink(_) | InodeBody::Node(_) => Err(Errno::NotDirectory),
        }
    }

    pub(super) fn entries_mut(&mut self, dir: ModelIno) -> Result<&mut BTreeMap<Vec<u8>, InodeEntry>, Errno> {
        match &mut self.inode_mut(dir)?.body {
            InodeBody::Directory { entries, .. } => Ok(entries),
            InodeBody::File(_) | InodeBody::Symlink(_) | InodeBody::Node(_) => Err(Errno::NotDirectory),
        }
    }

    /// Returns the inode of `name` in `dir`.
    pub(crate) fn lookup(&self, dir: ModelIno, name: &[u8]) -> Result<ModelIno, Errno> {
        let entries = self.entries(dir)?;
        if name.len() > NAME_BYTES_MAX {
            return Err(Errno::NameTooLong);
        }
        entries.get(name).map(|entry| entry.ino).ok_or(Errno::NotFound)
    }

    /// Checks that `name` can be created in `dir`.
    pub(super) fn check_free(&self, dir: ModelIno, name: &[u8]) -> Result<(), Errno> {
        match self.lookup(dir, name) {
            Ok(_) => Err(Errno::Exists),
            Err(Errno::NotFound) if self.inode(dir)?.nlink == 0 => Err(Errno::NotFound),
            Err(Errno::NotFound) => Ok(()),
            Err(errno) => Err(errno),
        }
    }

    /// Creates an inode with a name.
    pub(crate) fn create(&mut self, dir: ModelIno, name: &[u8], new: &NewInode) -> Result<ModelIno, Errno> {
        if new.kind == Kind::Symlink {
            check_target(&new.target)?;
        }
        self.check_free(dir, name)?;
        let ino = self.create_unnamed(dir, new)?;
        self.add_entry(dir, name, ino)?;
        Ok(ino)
    }

    /// Creates an inode without a name, with the inherited properties of `dir`.
    pub(crate) fn create_unnamed(&mut self, dir: ModelIno, new: &NewInode) -> Result<ModelIno, Errno> {
        self.entries(dir)?;
        let parent = self.inode(dir)?;
        let mut new = new.clone();
        if new.kind == Kind::Directory {
            // `mkdir` ignores set-id bits; a directory gets them from its parent or by `chmod`.
            new.mode &= 0o1777;
        }
        if parent.mode & 0o2000 != 0 {
            new.gid = parent.gid;
            if new.kind == Kind::Directory {
                new.mode |= 0o2000;
            }
        }
        let body = match new.kind {
            Kind::File => InodeBody::File(FileContents::default()),
            Kind::Directory => InodeBody::Directory { entries: BTreeMap::new(), parent: dir },
            Kind::Symlink => InodeBody::Symlink(new.target.clone()),
            Kind::Fifo | Kind::Socket | Kind::CharDevice | Kind::BlockDevice => InodeBody::Node(new.kind),
        };
        if new.kind == Kind::Symlink {
            new.mode = 0o777;
        }
        Ok(self.add(body, &new))
    }

    /// Adds a name to an inode; the parent of a directory becomes `dir`.
    pub(super) fn add_entry(&mut self, dir: ModelIno, name: &[u8], ino: ModelIno) -> Result<(), Errno> {
        let cookie = self.tick();
        self.entries_mut(dir)?.insert(name.to_vec(), InodeEntry { ino, cookie });
        let inode = self.inode_mut(ino)?;
        inode.nlink += 1;
        inode.is_fresh = false;
        if let InodeBody::Directory { parent, .. } = &mut inode.body {
            *parent = dir;
        }
        self.modify(dir);
        Ok(())
    }

    /// Removes a name from an inode.
    pub(super) fn remove_entry(&mut self, dir: ModelIno, name: &[u8]) -> Result<(), Errno> {
        let entry = self.entries_mut(dir)?.remove(name).ok_or(Errno::NotFound)?;
        let inode = self.inode_mut(entry.ino)?;
        inode.nlink = inode.nlink.saturating_sub(1);
        self.modify(dir);
        self.touch(entry.ino);
        self.free_if_unused(entry.ino);
        Ok(())
    }

    /// `link`: adds a further or a first name to an existing inode.
    pub(crate) fn link(&mut self, ino: ModelIno, dir: ModelIno, name: &[u8]) -> Result<(), Errno> {
        self.check_free(dir, name)?;
        let inode = self.inode(ino)?;
        if inode.is_directory() {
            return Err(Errno::NotPermitted);
        }
        if inode.nlink == 0 && !inode.is_fresh {
            return Err(Errno::NotFound);
        }
        self.add_entry(dir, name, ino)?;
        self.touch(ino);
        Ok(())
    }

    /// `unlink`.
    pub(crate) fn unlink(&mut self, dir: ModelIno, name: &[u8]) -> Result<(), Errno> {
        let ino = self.lookup(dir, name)?;
        if self.inode(ino)?.is_directory() {
            return Err(Errno::IsDirectory);
        }
        self.remove_entry(dir, name)
    }

    /// `rmdir`.
    pub(crate) fn rmdir(&mut self, dir: ModelIno, name: &[u8]) -> Result<(), Errno> {
        let ino = self.lookup(dir, name)?;
        if !self.entries(ino)?.is_empty() {
            return Err(Errno::NotEmpty);
        }
        self.remove_entry(dir, name)
    }

    /// Returns the entries of a directory after the cookie `after`, in order.
    pub(crate) fn list(&self, dir: ModelIno, after: u64) -> Result<Vec<(Vec<u8>, InodeEntry)>, Errno> {
        let entries = self.entries(dir)?.iter();
        let mut listed: Vec<(Vec<u8>, InodeEntry)> = entries
            .filter(|(_, entry)| entry.cookie > after)
            .map(|(name, entry)| (name.clone(), *entry))
            .collect();
        listed.sort_by_key(|(_, entry)| entry.cookie);
        Ok(listed)
    }

    /// Returns whether `ino` is `inner` or one of its ancestors.
    pub(super) fn contains(&self, ino: ModelIno, inner: ModelIno) -> bool {
        let mut at = inner;
        loop {
            if at == ino {
                return true;
            }
            match self.inodes.get(&at).map(|inode| &inode.body) {
                Some(InodeBody::Directory { parent, .. }) if at != ROOT => at = *parent,
                _ => return false,
            }
        }
    }
}
