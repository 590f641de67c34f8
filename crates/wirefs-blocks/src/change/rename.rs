//! `renameat2`, with the error precedence of Linux.

use super::Change;
use crate::halt::Halt;
use crate::item::Entry;
use crate::key::Ino;
use bytes::Bytes;
use wirefs_op::message::rename::{EXCHANGE, NOREPLACE};
use wirefs_op::{Errno, Kind};

/// A directory and a name in it.
type Place<'a> = (Ino, &'a [u8]);

/// Fails for invalid flags. The kernel checks them before it looks up the names.
pub(crate) fn check_flags(flags: u32) -> Result<(), Errno> {
    if matches!(flags, 0 | NOREPLACE | EXCHANGE) { Ok(()) } else { Err(Errno::Invalid) }
}

impl Change<'_> {
    /// Renames `from` to `to`.
    pub(crate) fn rename(&mut self, from: Place<'_>, to: Place<'_>, flags: u32) -> Result<(), Halt> {
        let source = self.lookup(from.0, from.1)?;
        let target = match self.lookup(to.0, to.1) {
            Ok(_) if flags == NOREPLACE => return Err(Halt::Failed(Errno::Exists)),
            Ok(target) => Some(target),
            Err(Halt::Failed(Errno::NotFound)) if flags != EXCHANGE => None,
            Err(halt) => return Err(halt),
        };
        if source.kind == Kind::Directory && self.contains(source.ino, to.0)? {
            return Err(Halt::Failed(Errno::Invalid));
        }
        if let Some(target) = &target
            && target.kind == Kind::Directory
            && self.contains(target.ino, from.0)?
        {
            return Err(Halt::Failed(if flags == EXCHANGE { Errno::Invalid } else { Errno::NotEmpty }));
        }
        match target {
            // Two names of one object: POSIX requires that both stay.
            Some(target) if target.ino == source.ino => Ok(()),
            Some(_) if flags == EXCHANGE => self.exchange(from, to),
            Some(target) => {
                self.check_replaceable(&source, &target)?;
                let replaced = self.remove_entry(to.0, to.1)?;
                self.decrement_links(&replaced)?;
                self.relocate(from, to)
            }
            None => self.relocate(from, to),
        }
    }

    fn check_replaceable(&self, source: &Entry, target: &Entry) -> Result<(), Halt> {
        match (source.kind == Kind::Directory, target.kind == Kind::Directory) {
            (true, false) => Err(Halt::Failed(Errno::NotDirectory)),
            (false, true) => Err(Halt::Failed(Errno::IsDirectory)),
            (true, true) => self.check_empty(target),
            (false, false) => Ok(()),
        }
    }

    fn relocate(&mut self, from: Place<'_>, to: Place<'_>) -> Result<(), Halt> {
        let entry = self.remove_entry(from.0, from.1)?;
        self.arrive(to, entry)
    }

    fn exchange(&mut self, one: Place<'_>, other: Place<'_>) -> Result<(), Halt> {
        let (from_one, from_other) = (self.remove_entry(one.0, one.1)?, self.remove_entry(other.0, other.1)?);
        self.arrive(one, from_other)?;
        self.arrive(other, from_one)
    }

    /// Inserts the entry of a moved object at its new place.
    fn arrive(&mut self, to: Place<'_>, entry: Entry) -> Result<(), Halt> {
        let mut head = self.view.head(entry.ino)?;
        self.renamed.insert(entry.ino);
        head.parent = to.0;
        self.touch(&mut head);
        self.put_head(entry.ino, &head);
        self.insert_entry(to.0, Entry { name: Bytes::copy_from_slice(to.1), ..entry })
    }
}
