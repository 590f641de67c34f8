//! System calls on an open file.

use crate::operation::FileCall;
use crate::posix::model::{ModelExecutor, OpenModelFile};
use crate::posix::{ObservedStat, OperationOutcome};
use wirefs_op::Errno;

impl ModelExecutor {
    pub(super) fn file_call(&mut self, slot: usize, file_call: &FileCall) -> Result<OperationOutcome, Errno> {
        let Some(OpenModelFile { ino, open_flags }) = self.opened(slot) else {
            return Ok(OperationOutcome::Skipped);
        };
        let check = |good: bool, errno: Errno| if good { Ok(()) } else { Err(errno) };
        match file_call {
            FileCall::Close => self.close(slot),
            FileCall::Read { offset, count } => {
                check(open_flags.read, Errno::BadDescriptor)?;
                return Ok(OperationOutcome::Data(self.fs.read(ino, *offset, *count as u64)?));
            }
            FileCall::Write { offset, data } => {
                check(open_flags.write, Errno::BadDescriptor)?;
                let offset = if open_flags.append { self.fs.contents(ino)?.size() } else { *offset };
                self.fs.write(ino, offset, &data.bytes())?;
                return Ok(OperationOutcome::Count(data.len as u64));
            }
            FileCall::Stat => return Ok(OperationOutcome::Stat(ObservedStat::of(&self.fs.stat(ino)?))),
            FileCall::Truncate { size } => {
                check(open_flags.write, Errno::Invalid)?;
                self.fs.resize(ino, *size)?;
            }
            FileCall::Allocate { mode, offset, length } => {
                check(*length > 0, Errno::Invalid)?;
                check(open_flags.write, Errno::BadDescriptor)?;
                self.fs.allocate(ino, *mode, *offset, *length)?;
            }
            FileCall::CopyFrom { from, from_offset, to_offset, length } => {
                let Some(source) = self.opened(*from) else { return Ok(OperationOutcome::Skipped) };
                for ino in [source.ino, ino] {
                    self.fs.contents(ino)?;
                }
                check(
                    source.open_flags.read && open_flags.write && !open_flags.append,
                    Errno::BadDescriptor,
                )?;
                return Ok(OperationOutcome::Count(self.fs.copy(
                    (source.ino, *from_offset),
                    (ino, *to_offset),
                    *length,
                )?));
            }
            FileCall::Seek { offset, hole } => {
                return Ok(OperationOutcome::Offset(self.fs.seek(ino, *offset, *hole)?));
            }
            FileCall::Sync => {}
        }
        Ok(OperationOutcome::Done)
    }
}
