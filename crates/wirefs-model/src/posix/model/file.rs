//! System calls on an open file.

use crate::operation::OnFile;
use crate::posix::model::{ModelWorld, Opened};
use crate::posix::{Outcome, Seen};
use wirefs_op::Errno;

impl ModelWorld {
    pub(super) fn on_file(&mut self, slot: usize, on_file: &OnFile) -> Result<Outcome, Errno> {
        let Some(Opened { ino, how }) = self.opened(slot) else { return Ok(Outcome::LeftOut) };
        let check = |good: bool, errno: Errno| if good { Ok(()) } else { Err(errno) };
        match on_file {
            OnFile::Close => self.close(slot),
            OnFile::Read { offset, count } => {
                check(how.read, Errno::BadDescriptor)?;
                return Ok(Outcome::Data(self.fs.read(ino, *offset, *count as u64)?));
            }
            OnFile::Write { offset, data } => {
                check(how.write, Errno::BadDescriptor)?;
                let offset = if how.append { self.fs.contents(ino)?.size() } else { *offset };
                self.fs.write(ino, offset, &data.bytes())?;
                return Ok(Outcome::Count(data.len as u64));
            }
            OnFile::Stat => return Ok(Outcome::Seen(Seen::of(&self.fs.stat(ino)?))),
            OnFile::Truncate { size } => {
                check(how.write, Errno::Invalid)?;
                self.fs.resize(ino, *size)?;
            }
            OnFile::Allocate { mode, offset, length } => {
                check(*length > 0, Errno::Invalid)?;
                check(how.write, Errno::BadDescriptor)?;
                self.fs.allocate(ino, *mode, *offset, *length)?;
            }
            OnFile::CopyFrom { from, from_offset, to_offset, length } => {
                let Some(source) = self.opened(*from) else { return Ok(Outcome::LeftOut) };
                for ino in [source.ino, ino] {
                    self.fs.contents(ino)?;
                }
                check(source.how.read && how.write && !how.append, Errno::BadDescriptor)?;
                return Ok(Outcome::Count(self.fs.copy(
                    (source.ino, *from_offset),
                    (ino, *to_offset),
                    *length,
                )?));
            }
            OnFile::Seek { offset, hole } => return Ok(Outcome::Place(self.fs.seek(ino, *offset, *hole)?)),
            OnFile::Sync => {}
        }
        Ok(Outcome::Done)
    }
}
