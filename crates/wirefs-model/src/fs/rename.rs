//! `renameat2`, with the order of its errors as Linux has it.

use crate::fs::{Fs, Ino};
use wirefs_op::Errno;
use wirefs_op::message::rename::{EXCHANGE, NOREPLACE};

/// Checks the flags of a rename, which a kernel does before it looks at the names.
pub(crate) fn check_flags(flags: u32) -> Result<(), Errno> {
    if matches!(flags, 0 | NOREPLACE | EXCHANGE) { Ok(()) } else { Err(Errno::Invalid) }
}

impl Fs {
    /// Renames `from` to `to`, each a directory and a name in it.
    pub(crate) fn rename(&mut self, from: (Ino, &[u8]), to: (Ino, &[u8]), flags: u32) -> Result<(), Errno> {
        let source = self.lookup(from.0, from.1)?;
        let target = match self.lookup(to.0, to.1) {
            Ok(_) if flags == NOREPLACE => return Err(Errno::Exists),
            Ok(target) => Some(target),
            Err(Errno::NotFound) if flags != EXCHANGE => None,
            Err(errno) => return Err(errno),
        };
        if self.contains(source, to.0) {
            return Err(Errno::Invalid);
        }
        if let Some(target) = target
            && self.contains(target, from.0)
        {
            return Err(if flags == EXCHANGE { Errno::Invalid } else { Errno::NotEmpty });
        }
        match target {
            // Two names of one object: nothing happens, both stay.
            Some(target) if target == source => Ok(()),
            Some(target) if flags == EXCHANGE => self.exchange((from, source), (to, target)),
            Some(target) => {
                self.check_replaceable(source, target)?;
                self.leave(to.0, to.1)?;
                self.relocate(from, to, source)
            }
            None => self.relocate(from, to, source),
        }
    }

    fn check_replaceable(&self, source: Ino, target: Ino) -> Result<(), Errno> {
        match (self.inode(source)?.is_directory(), self.inode(target)?.is_directory()) {
            (true, false) => Err(Errno::NotDirectory),
            (false, true) => Err(Errno::IsDirectory),
            (true, true) if !self.entries(target)?.is_empty() => Err(Errno::NotEmpty),
            (true, true) | (false, false) => Ok(()),
        }
    }

    fn relocate(&mut self, from: (Ino, &[u8]), to: (Ino, &[u8]), ino: Ino) -> Result<(), Errno> {
        // Held, so that it lives while it has no name.
        self.hold(ino);
        let moved = self.leave(from.0, from.1).and_then(|()| self.enter(to.0, to.1, ino));
        self.release(ino);
        moved
    }

    fn exchange(&mut self, one: ((Ino, &[u8]), Ino), other: ((Ino, &[u8]), Ino)) -> Result<(), Errno> {
        let (((one_dir, one_name), one), ((other_dir, other_name), other)) = (one, other);
        self.hold(one);
        self.hold(other);
        let swapped = self
            .leave(one_dir, one_name)
            .and_then(|()| self.leave(other_dir, other_name))
            .and_then(|()| self.enter(one_dir, one_name, other))
            .and_then(|()| self.enter(other_dir, other_name, one));
        self.release(one);
        self.release(other);
        swapped
    }
}
