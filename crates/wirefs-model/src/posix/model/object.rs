//! System calls on the object at a path.

use crate::operation::{How, OnObject};
use crate::posix::model::ModelWorld;
use crate::posix::{Outcome, Seen};
use wirefs_op::{Errno, SetStat, SetTime};

impl ModelWorld {
    pub(super) fn on_object(&mut self, path: &str, on_object: &OnObject) -> Result<Outcome, Errno> {
        let unchanged = SetStat::default();
        match on_object {
            OnObject::Stat { follow } => {
                let ino = self.walk(path, *follow)?.existing()?;
                return Ok(Outcome::Seen(Seen::of(&self.fs.stat(ino)?)));
            }
            OnObject::Truncate { size } => {
                let how = How { write: true, ..How::default() };
                let ino = self.open(path, how, 0)?;
                self.fs.resize(ino, *size)?;
            }
            OnObject::Chmod { mode } => {
                let ino = self.walk(path, true)?.existing()?;
                self.fs.set(ino, &SetStat { mode: Some(*mode), ..unchanged })?;
            }
            OnObject::Chown { uid, gid } => {
                let set = SetStat { uid: Some(*uid), gid: Some(*gid), ..unchanged };
                self.fs.set(self.at(path)?, &set)?;
            }
            // `utimensat` that leaves both as they are does not even walk.
            OnObject::SetTimes { atime: None, mtime: None } => {}
            OnObject::SetTimes { atime, mtime } => {
                let (atime, mtime) = (atime.map(SetTime::At), mtime.map(SetTime::At));
                self.fs.set(self.at(path)?, &SetStat { atime, mtime, ..unchanged })?;
            }
            OnObject::SetXattr { name, value, flags } => {
                self.fs.set_xattr(self.at(path)?, name.as_bytes(), &value.bytes(), *flags)?;
            }
            OnObject::ReadXattr { name } => {
                return Ok(Outcome::Data(self.fs.xattr(self.at(path)?, name.as_bytes())?.to_vec()));
            }
            OnObject::ListXattrs => {
                let names = self.fs.xattr_names(self.at(path)?)?;
                return Ok(Outcome::Names(names.into_iter().map(<[u8]>::to_vec).collect()));
            }
            OnObject::RemoveXattr { name } => self.fs.remove_xattr(self.at(path)?, name.as_bytes())?,
        }
        Ok(Outcome::Done)
    }
}
