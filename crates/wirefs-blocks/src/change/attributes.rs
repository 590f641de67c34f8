//! Attribute changes (`setattr`).

use super::Change;
use crate::halt::Halt;
use crate::item::Head;
use crate::key::Ino;
use wirefs_op::{Errno, Kind, SetStat, SetTime};

impl Change<'_> {
    /// Sets attributes in an order in which no step reverts another. On failure, earlier steps stay applied.
    pub(crate) fn set(&mut self, ino: Ino, set: &SetStat) -> Result<(), Halt> {
        if let Some(size) = set.size {
            self.resize(ino, size)?;
        }
        let mut head = self.view.head(ino)?;
        if set.uid.is_some() || set.gid.is_some() {
            head.uid = set.uid.unwrap_or(head.uid);
            head.gid = set.gid.unwrap_or(head.gid);
            drop_privileges(&mut head);
            self.touch(&mut head);
            self.put_head(ino, &head);
        }
        if let Some(mode) = set.mode {
            if head.kind == Kind::Symlink {
                return Err(Halt::Failed(Errno::NotSupported));
            }
            head.mode = mode & 0o7777;
            self.touch(&mut head);
            self.put_head(ino, &head);
        }
        if set.atime.is_some() || set.mtime.is_some() {
            let time = |set: SetTime| match set {
                SetTime::Now => self.basis.now,
                SetTime::At(at) => at,
            };
            head.atime = set.atime.map_or(head.atime, time);
            head.mtime = set.mtime.map_or(head.mtime, time);
            self.touch(&mut head);
            self.put_head(ino, &head);
        }
        Ok(())
    }

    /// Clears set-user-ID and set-group-ID of a file.
    pub(crate) fn kill_privileges(&mut self, ino: Ino) -> Result<(), Halt> {
        let mut head = self.view.head(ino)?;
        drop_privileges(&mut head);
        self.touch(&mut head);
        self.put_head(ino, &head);
        Ok(())
    }
}

/// Clears set-user-ID, and set-group-ID if the group may execute the file, as `chown` and unprivileged writes
/// do. Set-group-ID without group execute is the historical mark of mandatory locking and stays.
fn drop_privileges(head: &mut Head) {
    if !head.is_directory() {
        head.mode &= !0o4000;
        if head.mode & 0o010 != 0 {
            head.mode &= !0o2000;
        }
    }
}
