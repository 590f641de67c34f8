//! Making, linking and removing names.

use super::Change;
use crate::halt::{Halt, both};
use crate::item::{Body, Entry, Head};
use crate::key::{Ino, Key, Part, ROOT};
use crate::limits::TWINS_MAX;
use crate::view::names::places;
use bytes::Bytes;
use std::collections::BTreeSet;
use wirefs_op::limits::NAME_BYTES_MAX;
use wirefs_op::{Errno, Kind};

/// The longest target of a symbolic link, in bytes (`PATH_MAX` without its NUL).
const TARGET_BYTES_MAX: usize = 4095;

/// What an object that is to be made is like.
#[derive(Clone, Debug)]
pub(crate) struct New {
    pub(crate) kind: Kind,
    /// Permission bits, the umask applied.
    pub(crate) mode: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) rdev: u32,
    /// A symbolic link's target.
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
    /// The head of a directory.
    pub(super) fn directory(&self, dir: Ino) -> Result<Head, Halt> {
        let head = self.view.head(dir)?;
        if head.is_directory() { Ok(head) } else { Err(Halt::Failed(Errno::NotDirectory)) }
    }

    /// What `name` in `dir` is.
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

    /// Checks that `name` in `dir` can be made.
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

    /// Makes an object and its name.
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
        self.enter(dir, Entry { ino, generation, kind: new.kind, name })?;
        Ok(ino)
    }

    /// Makes an object without a name, as if it were in `dir`.
    pub(crate) fn create_nameless(&mut self, dir: Ino, new: &New) -> Result<Ino, Halt> {
        self.directory(dir)?;
        let (ino, head) = self.make(dir, new)?;
        self.put_head(ino, &head);
        self.put(Key::dead(ino), Some(Bytes::new()));
        self.orphaned.push(Self::id_of(ino, &head));
        Ok(ino)
    }

    /// An inode number for a new object, near those of the objects made in the same directory before it.
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
            // `mkdir` knows no set-id bits; a directory has them from its parent or by `chmod`.
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

    /// Puts an entry into a directory.
    pub(super) fn enter(&mut self, dir: Ino, entry: Entry) -> Result<(), Halt> {
        let places = places(dir, Part::Entry, &entry.name);
        let taken = self.view.scan(places.clone(), TWINS_MAX as usize)?;
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

    /// Takes an entry out of a directory.
    pub(super) fn leave(&mut self, dir: Ino, name: &[u8]) -> Result<Entry, Halt> {
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

    /// Notes that an object has lost a name; without any it goes, as soon as nobody has it open.
    pub(super) fn lose_name(&mut self, entry: &Entry) -> Result<(), Halt> {
        let mut head = match self.view.head(entry.ino) {
            // Its attributes cannot be changed now; they may come back.
            Err(Halt::Lost(_)) => return self.note_name_lost(entry.ino),
            // What is corrupt has none that could change.
            Err(Halt::Failed(_)) => return Ok(()),
            outcome => outcome?,
        };
        self.renamed.insert(entry.ino);
        head.nlink = if head.is_directory() { 0 } else { head.nlink.saturating_sub(1) };
        self.touch(&mut head);
        self.put_head(entry.ino, &head);
        if head.nlink == 0 { self.remove_or_orphan(entry.ino, head) } else { Ok(()) }
    }

    /// `link`: gives an existing object one more name, or its first.
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
                self.put(Key::dead(ino), None);
            }
            self.adopted.push(Self::id_of(ino, &head));
        }
        head.nlink = head.nlink.checked_add(1).ok_or(Errno::TooManyLinks)?;
        head.is_fresh = false;
        head.parent = dir;
        self.touch(&mut head);
        self.put_head(ino, &head);
        let name = Bytes::copy_from_slice(name);
        self.enter(dir, Entry { ino, generation: head.generation, kind: head.kind, name })
    }

    /// `unlink`.
    pub(crate) fn unlink(&mut self, dir: Ino, name: &[u8]) -> Result<(), Halt> {
        if self.lookup(dir, name)?.kind == Kind::Directory {
            return Err(Halt::Failed(Errno::IsDirectory));
        }
        let entry = self.leave(dir, name)?;
        self.lose_name(&entry)
    }

    /// `rmdir`.
    pub(crate) fn rmdir(&mut self, dir: Ino, name: &[u8]) -> Result<(), Halt> {
        let entry = self.lookup(dir, name)?;
        self.check_empty(&entry)?;
        let entry = self.leave(dir, name)?;
        self.lose_name(&entry)
    }

    /// Checks that an entry is an empty directory's.
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

    /// Checks that nothing is in a directory whose head cannot be had. Where its entries cannot be had either, they may be
    /// there still, only late.
    fn check_entries(&self, dir: Ino) -> Result<(), Halt> {
        let entries = Key::new(dir, Part::Entry, 0)..=Key::new(dir, Part::Entry, u64::MAX);
        match self.view.scan(entries, 1) {
            Ok(found) if found.is_empty() => Ok(()),
            Ok(_) => Err(Halt::Failed(Errno::NotEmpty)),
            Err(Halt::Lost(_)) => Err(Halt::Failed(Errno::Io)),
            Err(halt) => Err(halt),
        }
    }

    /// Whether `ino` is `inner` or one of the directories above it.
    pub(super) fn contains(&self, ino: Ino, inner: Ino) -> Result<bool, Halt> {
        let mut at = inner;
        // Each step leads up; a tree that is corrupt may lead round.
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
