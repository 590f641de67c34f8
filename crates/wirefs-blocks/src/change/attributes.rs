//! Changing attributes.

use super::Change;
use crate::halt::Halt;
use crate::item::Head;
use crate::key::Ino;
use wirefs_op::{Errno, Kind, SetStat, SetTime};

impl Change<'_> {
    /// Changes attributes, in the order in which none undoes another; a failure leaves what was done before it.
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

    /// Takes set-user-id and set-group-id from a file.
    pub(crate) fn kill_privileges(&mut self, ino: Ino) -> Result<(), Halt> {
        let mut head = self.view.head(ino)?;
        drop_privileges(&mut head);
        self.touch(&mut head);
        self.put_head(ino, &head);
        Ok(())
    }
}

/// What `chown` and an unprivileged write do: the set-user-id bit falls, and the set-group-id bit of what may be
/// executed by the group (without that it once meant mandatory locking).
fn drop_privileges(head: &mut Head) {
    if !head.is_directory() {
        head.mode &= !0o4000;
        if head.mode & 0o010 != 0 {
            head.mode &= !0o2000;
        }
    }
}
