//! System calls on the object at a path.

use crate::operation::{ObjectCall, OpenFlags};
use crate::posix::model::ModelExecutor;
use crate::posix::{ObservedStat, OperationOutcome};
use wirefs_op::{Errno, SetStat, SetTime};

impl ModelExecutor {
    pub(super) fn object_call(
        &mut self,
        path: &str,
        object_call: &ObjectCall,
    ) -> Result<OperationOutcome, Errno> {
        let unchanged = SetStat::default();
        match object_call {
            ObjectCall::Stat { follow } => {
                let ino = self.resolve(path, *follow)?.existing()?;
                return Ok(OperationOutcome::Stat(ObservedStat::of(&self.fs.stat(ino)?)));
            }
            ObjectCall::Truncate { size } => {
                let open_flags = OpenFlags { write: true, ..OpenFlags::default() };
                let ino = self.open(path, open_flags, 0)?;
                self.fs.resize(ino, *size)?;
            }
            ObjectCall::Chmod { mode } => {
                let ino = self.resolve(path, true)?.existing()?;
                self.fs.set(ino, &SetStat { mode: Some(*mode), ..unchanged })?;
            }
            ObjectCall::Chown { uid, gid } => {
                let set = SetStat { uid: Some(*uid), gid: Some(*gid), ..unchanged };
                self.fs.set(self.at(path)?, &set)?;
            }
            // `utimensat` that leaves both as they are does not even walk.
            ObjectCall::SetTimes { atime: None, mtime: None } => {}
            ObjectCall::SetTimes { atime, mtime } => {
                let (atime, mtime) = (atime.map(SetTime::At), mtime.map(SetTime::At));
                self.fs.set(self.at(path)?, &SetStat { atime, mtime, ..unchanged })?;
            }
            ObjectCall::SetXattr { name, value, flags } => {
                self.fs.set_xattr(self.at(path)?, name.as_bytes(), &value.bytes(), *flags)?;
            }
            ObjectCall::ReadXattr { name } => {
                return Ok(OperationOutcome::Data(self.fs.xattr(self.at(path)?, name.as_bytes())?.to_vec()));
            }
            ObjectCall::ListXattrs => {
                let names = self.fs.xattr_names(self.at(path)?)?;
                return Ok(OperationOutcome::Names(names.into_iter().map(<[u8]>::to_vec).collect()));
            }
            ObjectCall::RemoveXattr { name } => self.fs.remove_xattr(self.at(path)?, name.as_bytes())?,
        }
        Ok(OperationOutcome::Done)
    }
}
