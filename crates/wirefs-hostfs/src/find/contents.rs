//! Contents of small files, and targets of symlinks.

use super::reading::Reader;
use crate::attributes::{statx, version};
use crate::failure::uninterrupted;
use crate::open_files::Access;
use bytes::Bytes;
use rustix::buffer::spare_capacity;
use rustix::fd::{AsFd, BorrowedFd};
use rustix::time::{ClockId, clock_gettime};
use std::ffi::CStr;
use wirefs_op::{Kind, Stat};

/// A file with a younger change is sent without contents. The next change may fall into the same tick of the file
/// system's clock (at most 10 ms) and not change the version. Also, the time of a change is visible before all of
/// its bytes.
const SETTLED_AFTER_NS: i128 = 20_000_000;

impl Reader<'_> {
    /// The contents that belong to these attributes of `name`, or the target of a symlink. `None` if they are not
    /// wanted or cannot be read consistently.
    ///
    /// # Cost
    /// Seven system calls for a file, four for a symlink.
    pub(super) fn contents(&self, dir: BorrowedFd<'_>, name: &CStr, stat: &Stat) -> Option<Bytes> {
        if self.inline_bytes_max == 0 || stat.size > self.inline_bytes_max as u64 {
            return None;
        }
        match stat.kind {
            Kind::File => self.file(dir, name, stat),
            Kind::Symlink => self.target(dir, name, stat),
            Kind::Directory | Kind::Fifo | Kind::Socket | Kind::CharDevice | Kind::BlockDevice => None,
        }
    }

    fn file(&self, dir: BorrowedFd<'_>, name: &CStr, stat: &Stat) -> Option<Bytes> {
        if !is_settled(stat) {
            return None;
        }
        let size = usize::try_from(stat.size).ok()?;
        let object = self.session.child_of(dir, name).ok().filter(|object| object.id == stat.id)?;
        let file = object.open(Access::READ).ok()?;
        // A read shorter than the buffer means the end.
        let mut bytes = Vec::with_capacity(size + 1);
        loop {
            let at = bytes.len() as u64;
            match uninterrupted(|| rustix::io::pread(&file, spare_capacity(&mut bytes), at)) {
                Ok(0) => break,
                Ok(_) if bytes.len() < size => {}
                Ok(_) => break,
                Err(_) => return None,
            }
        }
        let after = statx(file.as_fd(), c"").ok()?;
        (bytes.len() == size && version(&after, self.session.export.home) == stat.version)
            .then(|| Bytes::from(bytes))
    }

    /// The target of a symlink never changes, so its id is enough.
    fn target(&self, dir: BorrowedFd<'_>, name: &CStr, stat: &Stat) -> Option<Bytes> {
        let object = self.session.child_of(dir, name).ok().filter(|object| object.id == stat.id)?;
        let target = rustix::fs::readlinkat(&object, c"", Vec::new()).ok()?;
        Some(Bytes::from(target.into_bytes()))
    }
}

/// Whether each later change of the file changes its version.
fn is_settled(stat: &Stat) -> bool {
    let now = clock_gettime(ClockId::RealtimeCoarse);
    let ns = |secs: i64, nanos: i64| i128::from(secs) * 1_000_000_000 + i128::from(nanos);
    ns(now.tv_sec, now.tv_nsec) - ns(stat.ctime.secs, stat.ctime.nanos.into()) > SETTLED_AFTER_NS
}

#[cfg(test)]
mod tests;
