//! Names: looking up, making, linking, removing, listing.

use crate::contents::Contents;
use crate::fs::inode::Entry;
use crate::fs::{Body, Fs, Ino, New, ROOT};
use std::collections::BTreeMap;
use wirefs_op::limits::NAME_BYTES_MAX;
use wirefs_op::{Errno, Kind};

/// The longest target of a symbolic link, in bytes (`PATH_MAX` without its NUL).
const TARGET_BYTES_MAX: usize = 4095;

/// Checks what a symbolic link is to say.
pub(crate) fn check_target(target: &[u8]) -> Result<(), Errno> {
    match target.len() {
        0 => Err(Errno::NotFound),
        1..=TARGET_BYTES_MAX => Ok(()),
        _ => Err(Errno::NameTooLong),
    }
}

impl Fs {
    pub(super) fn entries(&self, dir: Ino) -> Result<&BTreeMap<Vec<u8>, Entry>, Errno> {
        match &self.inode(dir)?.body {
            Body::Directory { entries, .. } => Ok(entries),
            Body::File(_) | Body::Symlink(_) | Body::Node(_) => Err(Errno::NotDirectory),
        }
    }

    pub(super) fn entries_mut(&mut self, dir: Ino) -> Result<&mut BTreeMap<Vec<u8>, Entry>, Errno> {
        match &mut self.inode_mut(dir)?.body {
            Body::Directory { entries, .. } => Ok(entries),
            Body::File(_) | Body::Symlink(_) | Body::Node(_) => Err(Errno::NotDirectory),
        }
    }

    /// What `name` in `dir` is.
    pub(crate) fn lookup(&self, dir: Ino, name: &[u8]) -> Result<Ino, Errno> {
        let entries = self.entries(dir)?;
        if name.len() > NAME_BYTES_MAX {
            return Err(Errno::NameTooLong);
        }
        entries.get(name).map(|entry| entry.ino).ok_or(Errno::NotFound)
    }

    /// Checks that `name` in `dir` can be made.
    pub(super) fn check_free(&self, dir: Ino, name: &[u8]) -> Result<(), Errno> {
        match self.lookup(dir, name) {
            Ok(_) => Err(Errno::Exists),
            Err(Errno::NotFound) if self.inode(dir)?.nlink == 0 => Err(Errno::NotFound),
            Err(Errno::NotFound) => Ok(()),
            Err(errno) => Err(errno),
        }
    }

    /// Makes an object and its name.
    pub(crate) fn create(&mut self, dir: Ino, name: &[u8], new: &New) -> Result<Ino, Errno> {
        if new.kind == Kind::Symlink {
            check_target(&new.target)?;
        }
        self.check_free(dir, name)?;
        let ino = self.create_nameless(dir, new)?;
        self.enter(dir, name, ino)?;
        Ok(ino)
    }

    /// Makes an object without a name, as if it were in `dir`.
    pub(crate) fn create_nameless(&mut self, dir: Ino, new: &New) -> Result<Ino, Errno> {
        self.entries(dir)?;
        let parent = self.inode(dir)?;
        let mut new = new.clone();
        if new.kind == Kind::Directory {
            // `mkdir` knows no set-id bits; a directory has them from its parent or by `chmod`.
            new.mode &= 0o1777;
        }
        if parent.mode & 0o2000 != 0 {
            new.gid = parent.gid;
            if new.kind == Kind::Directory {
                new.mode |= 0o2000;
            }
        }
        let body = match new.kind {
            Kind::File => Body::File(Contents::default()),
            Kind::Directory => Body::Directory { entries: BTreeMap::new(), parent: dir },
            Kind::Symlink => Body::Symlink(new.target.clone()),
            Kind::Fifo | Kind::Socket | Kind::CharDevice | Kind::BlockDevice => Body::Node(new.kind),
        };
        if new.kind == Kind::Symlink {
            new.mode = 0o777;
        }
        Ok(self.add(body, &new))
    }

    /// Gives an object a name; a directory's parent becomes `dir`.
    pub(super) fn enter(&mut self, dir: Ino, name: &[u8], ino: Ino) -> Result<(), Errno> {
        let place = self.tick();
        self.entries_mut(dir)?.insert(name.to_vec(), Entry { ino, place });
        let inode = self.inode_mut(ino)?;
        inode.nlink += 1;
        inode.is_fresh = false;
        if let Body::Directory { parent, .. } = &mut inode.body {
            *parent = dir;
        }
        self.modify(dir);
        Ok(())
    }

    /// Takes a name away from an object.
    pub(super) fn leave(&mut self, dir: Ino, name: &[u8]) -> Result<(), Errno> {
        let entry = self.entries_mut(dir)?.remove(name).ok_or(Errno::NotFound)?;
        let inode = self.inode_mut(entry.ino)?;
        inode.nlink = inode.nlink.saturating_sub(1);
        self.modify(dir);
        self.touch(entry.ino);
        self.forget_if_unused(entry.ino);
        Ok(())
    }

    /// `link`: gives an existing object one more name, or its first.
    pub(crate) fn link(&mut self, ino: Ino, dir: Ino, name: &[u8]) -> Result<(), Errno> {
        self.check_free(dir, name)?;
        let inode = self.inode(ino)?;
        if inode.is_directory() {
            return Err(Errno::NotPermitted);
        }
        if inode.nlink == 0 && !inode.is_fresh {
            return Err(Errno::NotFound);
        }
        self.enter(dir, name, ino)?;
        self.touch(ino);
        Ok(())
    }

    /// `unlink`.
    pub(crate) fn unlink(&mut self, dir: Ino, name: &[u8]) -> Result<(), Errno> {
        let ino = self.lookup(dir, name)?;
        if self.inode(ino)?.is_directory() {
            return Err(Errno::IsDirectory);
        }
        self.leave(dir, name)
    }

    /// `rmdir`.
    pub(crate) fn rmdir(&mut self, dir: Ino, name: &[u8]) -> Result<(), Errno> {
        let ino = self.lookup(dir, name)?;
        if !self.entries(ino)?.is_empty() {
            return Err(Errno::NotEmpty);
        }
        self.leave(dir, name)
    }

    /// The entries of a directory behind `place`, in the order of their places.
    pub(crate) fn list(&self, dir: Ino, after: u64) -> Result<Vec<(Vec<u8>, Entry)>, Errno> {
        let entries = self.entries(dir)?.iter();
        let mut listed: Vec<(Vec<u8>, Entry)> = entries
            .filter(|(_, entry)| entry.place > after)
            .map(|(name, entry)| (name.clone(), *entry))
            .collect();
        listed.sort_by_key(|(_, entry)| entry.place);
        Ok(listed)
    }

    /// Whether `ino` is `inner` or one of the directories above it.
    pub(super) fn contains(&self, ino: Ino, inner: Ino) -> bool {
        let mut at = inner;
        loop {
            if at == ino {
                return true;
            }
            match self.inodes.get(&at).map(|inode| &inode.body) {
                Some(Body::Directory { parent, .. }) if at != ROOT => at = *parent,
                _ => return false,
            }
        }
    }
}
