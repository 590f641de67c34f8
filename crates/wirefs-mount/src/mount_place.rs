//! The place of a mount among the names of its callers.
//!
//! An absolute link to the mountpoint stays inside the mount only for a program to which that path leads there. After a
//! `chroot`, in a container, or below another mount, it leads to other files.

use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags, StatxFlags};
use rustix::io::Errno;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use wirefs_client::call::Answer;
use wirefs_fuse::{TableEntry, resolve_mountpoint};

use super::log;
use wirefs_carrier::printable;

/// `AT_STATX_DONT_SYNC` (linux/fcntl.h): no request to the server.
const DONT_SYNC: AtFlags = AtFlags::from_bits_retain(0x4000);

/// A walk through cached names alone fails with `EAGAIN` if any name or mount of the machine changes meanwhile.
const ATTEMPTS_MAX: usize = 100;

/// The path of the mountpoint, and the file system that is mounted there.
#[derive(Debug)]
pub(super) struct MountPlace {
    mountpoint: PathBuf,
    minor: u32,
    has_refused: AtomicBool,
}

impl MountPlace {
    /// Returns the place of a mount at `mountpoint`, which may be relative, and may lead there through links.
    pub(super) fn new(mountpoint: &Path, entry: &TableEntry) -> std::io::Result<MountPlace> {
        Ok(MountPlace {
            mountpoint: resolve_mountpoint(mountpoint)?,
            minor: entry.minor,
            has_refused: AtomicBool::new(false),
        })
    }

    /// The absolute path of the mountpoint, without links.
    pub(super) fn mountpoint(&self) -> &Path {
        &self.mountpoint
    }

    /// Returns the answer that a thread may have that reads a link: an absolute one only if the thread sees the mount.
    pub(super) fn confine(&self, thread: u32, answer: Answer) -> Answer {
        let Answer::Data(target) = &answer else { return answer };
        if !target.starts_with(b"/") || self.is_seen_by(thread) {
            return answer;
        }
        if !self.has_refused.swap(true, Ordering::Relaxed) {
            log::line(format_args!(
                "a link of the server to {} was refused with EACCES to a program in whose directories {} is not this mount, or \
                 is not known to be; further ones are not reported. To follow them, mount with --symlinks=all",
                printable(target),
                self.mountpoint.display()
            ));
        }
        Answer::Fail(wirefs_op::Errno::AccessDenied)
    }

    /// Returns whether the path of the mountpoint leads a thread to the mount. `false` if that cannot be told without a
    /// wait, or without a right.
    ///
    /// # Cost
    /// Three system calls, which never wait; up to [`ATTEMPTS_MAX`] more while mounts change.
    pub(super) fn is_seen_by(&self, thread: u32) -> bool {
        self.device_for(thread) == Ok((0, self.minor))
    }

    /// Returns the device of the mountpoint's file system, as the thread sees it.
    fn device_for(&self, thread: u32) -> Result<(u32, u32), Errno> {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        // In the thread's name space, from its root on.
        let root = rustix::fs::open(format!("/proc/{thread}/root"), flags, Mode::empty())?;
        let resolve = ResolveFlags::IN_ROOT
            | ResolveFlags::NO_SYMLINKS
            | ResolveFlags::NO_MAGICLINKS
            | ResolveFlags::CACHED;
        let mut attempts = 0;
        let place = loop {
            match rustix::fs::openat2(&root, &self.mountpoint, flags, Mode::empty(), resolve) {
                Err(Errno::AGAIN) if attempts < ATTEMPTS_MAX => attempts += 1,
                opened => break opened?,
            }
        };
        let seen = rustix::fs::statx(&place, c"", AtFlags::EMPTY_PATH | DONT_SYNC, StatxFlags::empty())?;
        Ok((seen.stx_dev_major, seen.stx_dev_minor))
    }
}

#[cfg(test)]
mod tests;
