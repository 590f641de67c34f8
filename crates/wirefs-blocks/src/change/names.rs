//! Creating, linking and removing names.

use super::Change;
use crate::halt::{Halt, both};
use crate::item::{Body, Entry, Head};
use crate::key::{Ino, Key, Part, ROOT};
use crate::limits::HASH_COLLISIONS_MAX;
use crate::view::names::positions;
use bytes::Bytes;
use std::collections::BTreeSet;
use wirefs_op::limits::NAME_BYTES_MAX;
use wirefs_op::{Errno, Kind};

/// The longest target of a symbolic link, in bytes (`PATH_MAX` without its NUL).
const TARGET_BYTES_MAX: usize = 4095;

/// The attributes of an object to create.
#[derive(Clone, Debug)]
pub(crate) struct New {
    pub(crate) kind: Kind,
    /// Permission bits after applying the umask.
    pub(crate) mode: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) rdev: u32,
    /// The target of a symbolic link.
    pub(crate) target: Bytes,
}

fn check_target(target: &[u8]) -> Result<(), Errno> {
    match target.len() {
        0 => Err(Errno::NotFound),
        1..=TARGET_BYTES_MAX => Ok(()),
        _ => Err(Errno::NameTooLong),
    }
}

impl Change<'_> {
    /// Returns the head of a directory.
    pub(super) fn directory(&self, dir: Ino) -> Result<Head, Halt> {
        let head = self.view.head(dir)?;
        if head.is_directory() { Ok(head) } else { Err(Halt::Failed(Errno::NotDirectory)) }
    }

    /// Looks up `name` in `dir`.
    ///
    /// # Errors
    /// `NotDirectory`, `NameTooLong`, `NotFound`.
    pub(crate) fn lookup(&self, dir: Ino, name: &[u8]) -> Result<Entry, Halt> {
        let (_, found) = both(self.directory(dir), self.view.find(dir, name))?;
        if name.len() > NAME_BYTES_MAX {
            return Err(Halt::Failed(Errno::NameTooLong));
        }
        found.map(|(_, entry)| entry).ok_or(Halt::Failed(Errno::NotFound))
    }

    /// Fails unless `name` can be created in `dir`.
    fn check_free(&self, dir: Ino, name: &[u8]) -> Result<(), Halt> {
        match self.lookup(dir, name) {
            Ok(_) => Err(Halt::Failed(Errno::Exists)),
            Err(Halt::Failed(Errno::NotFound)) if self.view.head(dir)?.nlink == 0 => {
                Err(Halt::Failed(Errno::NotFound))
            }
            Err(Halt::Failed(Errno::NotFound)) => Ok(()),
            Err(halt) => Err(halt),
        }
    }

    /// Creates an object and its directory entry.
    pub(crate) fn create(&mut self, dir: Ino, name: &[u8], new: &New) -> Result<Ino, Halt> {
        if new.kind == Kind::Symlink {
            check_target(&new.target)?;
        }
        self.check_free(dir, name)?;
        let (ino, mut head) = self.make(dir, new)?;
        head.nlink = if new.kind == Kind::Directory { 2 } else { 1 };
        head.is_fresh = false;
        let generation = head.generation;
        self.put_head(ino, &head);
        let name = Bytes::copy_from_slice(name);
        self.insert_entry(dir, Entry { ino, generation, kind: new.kind, name })?;
        Ok(ino)
    }

    /// Creates an object without a name (`O_TMPFILE`), in the group of `dir`.
    pub(crate) fn create_nameless(&mut self, dir: Ino, new: &New) -> Result<Ino, Halt> {
        self.directory(dir)?;
        let (ino, head) = self.make(dir, new)?;
        self.put_head(ino, &head);
        self.put(Key::orphan(ino), Some(Bytes::new()));
        self.orphaned.push(Self::id_of(ino, &head));
        Ok(ino)
    }

    /// Allocates an inode number near those of earlier objects of the same directory.
    fn number(&mut self, dir: Ino, parent: &mut Head, kind: Kind) -> Result<Ino, Halt> {
        let mut group = || {
            let first = Ino::first_of(self.next_group).ok_or(Errno::NoSpace)?;
            self.next_group += 1;
            Ok::<Ino, Errno>(first)
        };
        if kind == Kind::Directory {
            return Ok(group()?);
        }
        let ino = parent.next_ino;
        parent.next_ino = match ino.next() {
            Some(next) => next,
            None => group()?.next().ok_or(Errno::NoSpace)?,
        };
        self.put_head(dir, parent);
        Ok(ino)
    }

    fn make(&mut self, dir: Ino, new: &New) -> Result<(Ino, Head), Halt> {
        let mut parent = self.directory(dir)?;
        let ino = self.number(dir, &mut parent, new.kind)?;
        let mut mode = new.mode & 0o7777;
        let mut gid = new.gid;
        if new.kind == Kind::Directory {
            // `mkdir` ignores set-ID bits; a directory gets them from its parent or by `chmod`.
            mode &= 0o1777;
        }
        if parent.mode & 0o2000 != 0 {
            gid = parent.gid;
            if new.kind == Kind::Directory {
                mode |= 0o2000;
            }
        }
        let now = self.basis.now;
        let mut head = Head {
            kind: new.kind,
            is_fresh: true,
            is_trimmed: false,
            mode: if new.kind == Kind::Symlink { 0o777 } else { mode },
            nlink: 0,
            uid: new.uid,
            gid,
            rdev: new.rdev,
            size: 0,
            generation: self.basis.volume.root.era,
            version: self.version(),
            atime: now,
            mtime: now,
            ctime: now,
            parent: dir,
            next_ino: if new.kind == Kind::Directory { ino.next().unwrap_or_default() } else { Ino(0) },
            xattrs: 0,
            pieces: 0,
            body: Body::Inline(Bytes::new()),
        };
        if new.kind == Kind::Symlink {
            self.store(ino, &mut head, 0, &new.target)?;
        }
        Ok((ino, head))
    }

    /// Inserts a directory entry.
    pub(super) fn insert_entry(&mut self, dir: Ino, entry: Entry) -> Result<(), Halt> {
        let places = positions(dir, Part::Entry, &entry.name);
        let taken = self.view.scan(places.clone(), HASH_COLLISIONS_MAX as usize)?;
        let taken: BTreeSet<u64> = taken.into_iter().map(|item| item.key.sub).collect();
        let free = (places.start().sub..=places.end().sub).find(|place| !taken.contains(place));
        let place = free.ok_or(Errno::NoSpace)?;
        let mut head = self.directory(dir)?;
        head.size += 1;
        if entry.kind == Kind::Directory {
            head.nlink = head.nlink.checked_add(1).ok_or(Errno::TooManyLinks)?;
        }
        self.modify(&mut head);
        self.put_head(dir, &head);
        self.put(Key::new(dir, Part::Entry, place), Some(entry.encode()));
        Ok(())
    }

    /// Removes a directory entry and returns it.
    pub(super) fn remove_entry(&mut self, dir: Ino, name: &[u8]) -> Result<Entry, Halt> {
        let (mut head, found) = both(self.directory(dir), self.view.find(dir, name))?;
        let (key, entry) = found.ok_or(Errno::NotFound)?;
        head.size = head.size.saturating_sub(1);
        if entry.kind == Kind::Directory {
            head.nlink = head.nlink.saturating_sub(1);
        }
        self.modify(&mut head);
        self.put_head(dir, &head);
        self.put(key, None);
        Ok(entry)
    }

    /// Decrements the link count of an object. At 0 the object is removed once nothing has it open.
    pub(super) fn decrement_links(&mut self, entry: &Entry) -> Result<(), Halt> {
        let mut head = match self.view.head(entry.ino) {
            // The head is missing now but may return; the lost name is recorded.
            Err(Halt::Lost(_)) => return self.record_lost_name(entry.ino),
            // A corrupt head has no attributes to update.
            Err(Halt::Failed(_)) => return Ok(()),
            outcome => outcome?,
        };
        self.renamed.insert(entry.ino);
        head.nlink = if head.is_directory() { 0 } else { head.nlink.saturating_sub(1) };
        self.touch(&mut head);
        self.put_head(entry.ino, &head);
        if head.nlink == 0 { self.remove_or_orphan(entry.ino, head) } else { Ok(()) }
    }

    /// `link`: adds a name to an existing object; for a nameless object, its first.
    pub(crate) fn link(&mut self, ino: Ino, dir: Ino, name: &[u8]) -> Result<(), Halt> {
        self.check_free(dir, name)?;
        let mut head = self.view.head(ino)?;
        if head.is_directory() {
            return Err(Halt::Failed(Errno::NotPermitted));
        }
        if head.nlink == 0 && !head.is_fresh {
            return Err(Halt::Failed(Errno::NotFound));
        }
        if head.nlink == 0 {
            if !head.is_trimmed {
                self.put(Key::orphan(ino), None);
            }
            self.adopted.push(Self::id_of(ino, &head));
        }
        head.nlink = head.nlink.checked_add(1).ok_or(Errno::TooManyLinks)?;
        head.is_fresh = false;
        head.parent = dir;
        self.touch(&mut head);
        self.put_head(ino, &head);
        let name = Bytes::copy_from_slice(name);
        self.insert_entry(dir, Entry { ino, generation: head.generation, kind: head.kind, name })
    }

    /// `unlink`.
    pub(crate) fn unlink(&mut self, dir: Ino, name: &[u8]) -> Result<(), Halt> {
        if self.lookup(dir, name)?.kind == Kind::Directory {
            return Err(Halt::Failed(Errno::IsDirectory));
        }
        let entry = self.remove_entry(dir, name)?;
        self.decrement_links(&entry)
    }

    /// `rmdir`.
    pub(crate) fn rmdir(&mut self, dir: Ino, name: &[u8]) -> Result<(), Halt> {
        let entry = self.lookup(dir, name)?;
        self.check_empty(&entry)?;
        let entry = self.remove_entry(dir, name)?;
        self.decrement_links(&entry)
    }

    /// Fails unless the entry refers to an empty directory.
    pub(super) fn check_empty(&self, entry: &Entry) -> Result<(), Halt> {
        if entry.kind != Kind::Directory {
            return Err(Halt::Failed(Errno::NotDirectory));
        }
        match self.view.head(entry.ino) {
            Ok(head) if head.size > 0 => Err(Halt::Failed(Errno::NotEmpty)),
            Ok(_) => Ok(()),
            Err(Halt::Lost(_)) => self.check_entries(entry.ino),
            Err(halt) => Err(halt),
        }
    }

    /// Fails unless a directory whose head is missing has no entries. If its entries cannot be read either,
    /// they may only be delayed.
    fn check_entries(&self, dir: Ino) -> Result<(), Halt> {
        let entries = Key::new(dir, Part::Entry, 0)..=Key::new(dir, Part::Entry, u64::MAX);
        match self.view.scan(entries, 1) {
            Ok(found) if found.is_empty() => Ok(()),
            Ok(_) => Err(Halt::Failed(Errno::NotEmpty)),
            Err(Halt::Lost(_)) => Err(Halt::Failed(Errno::Io)),
            Err(halt) => Err(halt),
        }
    }

    /// Returns whether `ino` is `inner` or one of its ancestors.
    pub(super) fn contains(&self, ino: Ino, inner: Ino) -> Result<bool, Halt> {
        let mut at = inner;
        // Bounded, because a corrupt tree may contain a cycle.
        for _ in 0..wirefs_op::limits::PATH_BYTES_MAX {
            if at == ino {
                return Ok(true);
            }
            if at == ROOT {
                return Ok(false);
            }
            at = self.view.head(at)?.parent;
        }
        Err(Halt::Failed(Errno::Loop))
    }
}
