//! `renameat2`, with the error precedence of Linux.

use crate::fs::{ModelFs, ModelIno};
use wirefs_op::Errno;
use wirefs_op::message::rename::{EXCHANGE, NOREPLACE};

/// Validates the flags of a rename; the kernel does so before any lookup.
pub(crate) fn check_flags(flags: u32) -> Result<(), Errno> {
    if matches!(flags, 0 | NOREPLACE | EXCHANGE) { Ok(()) } else { Err(Errno::Invalid) }
}

impl ModelFs {
    /// Renames `from` to `to`; each is a directory and a name in it.
    pub(crate) fn rename(
        &mut self,
        from: (ModelIno, &[u8]),
        to: (ModelIno, &[u8]),
        flags: u32,
    ) -> Result<(), Errno> {
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
            // Both names are the same inode: rename does nothing, and both stay.
            Some(target) if target == source => Ok(()),
            Some(target) if flags == EXCHANGE => self.exchange((from, source), (to, target)),
            Some(target) => {
                self.check_replaceable(source, target)?;
                self.remove_entry(to.0, to.1)?;
                self.relocate(from, to, source)
            }
            None => self.relocate(from, to, source),
        }
    }

    fn check_replaceable(&self, source: ModelIno, target: ModelIno) -> Result<(), Errno> {
        match (self.inode(source)?.is_directory(), self.inode(target)?.is_directory()) {
            (true, false) => Err(Errno::NotDirectory),
            (false, true) => Err(Errno::IsDirectory),
            (true, true) if !self.entries(target)?.is_empty() => Err(Errno::NotEmpty),
            (true, true) | (false, false) => Ok(()),
        }
    }

    fn relocate(
        &mut self,
        from: (ModelIno, &[u8]),
        to: (ModelIno, &[u8]),
        ino: ModelIno,
    ) -> Result<(), Errno> {
        // Held, so that the inode survives without a name.
        self.hold(ino);
        let moved = self.remove_entry(from.0, from.1).and_then(|()| self.add_entry(to.0, to.1, ino));
        self.release(ino);
        moved
    }

    fn exchange(
        &mut self,
        one: ((ModelIno, &[u8]), ModelIno),
        other: ((ModelIno, &[u8]), ModelIno),
    ) -> Result<(), Errno> {
        let (((one_dir, one_name), one), ((other_dir, other_name), other)) = (one, other);
        self.hold(one);
        self.hold(other);
        let swapped = self
            .remove_entry(one_dir, one_name)
            .and_then(|()| self.remove_entry(other_dir, other_name))
            .and_then(|()| self.add_entry(one_dir, one_name, other))
            .and_then(|()| self.add_entry(other_dir, other_name, one));
        self.release(one);
        self.release(other);
        swapped
    }
}
