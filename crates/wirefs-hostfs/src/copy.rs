//! Tcopy: copies a range at the server, with the file system's own means if possible.

use crate::attributes;
use crate::changes::Changes;
use crate::failure::{Failure, uninterrupted};
use crate::open_files::{Access, OpenFile};
use crate::session::Session;
use rustix::buffer::spare_capacity;
use rustix::fd::AsFd;
use rustix::io::Errno as SystemErrno;
use wirefs_op::limits::DATA_BYTES_MAX;
use wirefs_op::message::copy::{Rcopy, Tcopy};
use wirefs_op::{Errno, Kind};
use wirefs_server::{Replies, Touched};

/// The most bytes per system call; the copy can be canceled between two calls.
const STEP_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// The state of a copy.
struct Progress<'a> {
    from: &'a OpenFile,
    from_offset: u64,
    to: &'a OpenFile,
    to_offset: u64,
    left: u64,
}

impl Session {
    pub(crate) fn copy(&self, request: &Tcopy, replies: &mut dyn Replies) -> Result<Rcopy, Failure> {
        self.check_writable()?;
        let from = self.locate(&request.from)?.open(Access::READ)?;
        let target = self.locate(&request.to)?;
        let to = target.open(Access::WRITE)?;
        if from.kind == Kind::Directory {
            return Err(Errno::IsDirectory.into());
        }
        for offset in [request.from_offset, request.to_offset] {
            let end = offset.checked_add(request.length).ok_or(Errno::Overflow)?;
            i64::try_from(end).map_err(|_| Errno::Overflow)?;
        }
        // The present size: within one file the copy itself may increase it.
        let size = attributes::statx(from.as_fd(), c"")?.stx_size;
        let length = request.length.min(size.saturating_sub(request.from_offset));
        if from.id == to.id && request.from_offset.abs_diff(request.to_offset) < length {
            return Err(Errno::Invalid.into());
        }
        let touched = Touched::object(to.id);
        if length > 0 {
            replies.touch(std::slice::from_ref(&touched))?;
        }
        let before = self.version_of(&*to);
        if length > 0 {
            let _guard = self.export.changes.lock_contents(to.id);
            self.defuse(&target)?;
        }
        let mut progress = Progress {
            from: &from,
            from_offset: request.from_offset,
            to: &to,
            to_offset: request.to_offset,
            left: length,
        };
        let outcome = progress.run(&self.export.changes, replies);
        let count = length - progress.left;
        let stat = self.stat_leased(&target, replies).ok();
        self.report_change(&touched, before, stat.map(|stat| stat.version), replies);
        match outcome {
            // Copied bytes count; the failure occurs again with the rest.
            Err(failure) if count == 0 => Err(failure),
            Ok(()) | Err(_) => Ok(Rcopy { count, stat }),
        }
    }
}

impl Progress<'_> {
    fn run(&mut self, changes: &Changes, replies: &dyn Replies) -> Result<(), Failure> {
        let mut in_kernel = true;
        while self.left > 0 && !replies.is_stopped() {
            let _guard = changes.lock_contents(self.to.id);
            let copied = if in_kernel {
                match uninterrupted(|| self.step_in_kernel()) {
                    Err(
                        SystemErrno::XDEV | SystemErrno::INVAL | SystemErrno::OPNOTSUPP | SystemErrno::NOSYS,
                    ) => {
                        in_kernel = false;
                        continue;
                    }
                    copied => copied?,
                }
            } else {
                self.step_by_hand()?
            };
            if copied == 0 {
                break;
            }
            self.from_offset += copied as u64;
            self.to_offset += copied as u64;
            self.left = self.left.saturating_sub(copied as u64);
        }
        Ok(())
    }

    fn step_in_kernel(&self) -> Result<usize, SystemErrno> {
        let (mut from_offset, mut to_offset) = (self.from_offset, self.to_offset);
        let length = usize::try_from(self.left.min(STEP_BYTES_MAX)).unwrap_or(usize::MAX);
        let (from, to) = (Some(&mut from_offset), Some(&mut to_offset));
        rustix::fs::copy_file_range(self.from, from, self.to, to, length)
    }

    fn step_by_hand(&self) -> Result<usize, Failure> {
        let length = usize::try_from(self.left).unwrap_or(usize::MAX).min(DATA_BYTES_MAX);
        let mut bytes = Vec::with_capacity(length);
        uninterrupted(|| rustix::io::pread(self.from, spare_capacity(&mut bytes), self.from_offset))?;
        bytes.truncate(length);
        if bytes.is_empty() {
            return Ok(0);
        }
        Ok(uninterrupted(|| rustix::io::pwrite(self.to, &bytes, self.to_offset))?)
    }
}
