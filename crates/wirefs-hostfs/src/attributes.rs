//! Converts the system's attributes of an object to the protocol's `Stat`.

use crate::failure::uninterrupted;
use crate::sys;
use rustix::fd::{AsFd, AsRawFd, BorrowedFd};
use rustix::fs::{AtFlags, Statx, StatxFlags, StatxTimestamp};
use rustix::io::Errno;
use std::ffi::CStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use wirefs_op::message::version::BootId;
use wirefs_op::mix::{GOLDEN, mix};
use wirefs_op::{FileId, Kind, Stat, Timestamp};

/// A device number of `statx`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Device {
    major: u32,
    minor: u32,
}

impl Device {
    pub(crate) fn of(statx: &Statx) -> Device {
        Device { major: statx.stx_dev_major, minor: statx.stx_dev_minor }
    }

    /// The number of this file system in an export whose root is on `home`: 0 for `home`, else neither 0 nor the
    /// number that the protocol reserves.
    fn number(self, home: Device) -> u32 {
        if self == home {
            return 0;
        }
        let hash = mix(u64::from(self.major) << 32 | u64::from(self.minor));
        (hash as u32).clamp(1, FileId::PROVISIONAL - 1)
    }
}

/// The file system of the export's root, and the boot id: ids and versions depend on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Home {
    device: Device,
    boot: BootId,
}

impl Home {
    /// The home of an export whose root has these attributes.
    pub(crate) fn new(root: &Statx, boot: BootId) -> Home {
        Home { device: Device::of(root), boot }
    }
}

fn mix_all(words: impl IntoIterator<Item = u64>) -> u64 {
    words.into_iter().fold(GOLDEN, |hash, word| mix(hash ^ word).wrapping_add(hash.rotate_left(23)))
}

fn timestamp(time: &StatxTimestamp) -> Timestamp {
    Timestamp { secs: time.tv_sec, nanos: time.tv_nsec }
}

fn words(time: &StatxTimestamp) -> [u64; 2] {
    [time.tv_sec as u64, time.tv_nsec.into()]
}

/// The attributes that a `Stat` needs, of `name` in `dir`, or of `dir` itself if `name` is empty. Follows no
/// symlink.
pub(crate) fn statx(dir: BorrowedFd<'_>, name: &CStr) -> Result<Statx, Errno> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::EMPTY_PATH | AtFlags::NO_AUTOMOUNT;
    uninterrupted(|| rustix::fs::statx(dir, name, flags, StatxFlags::BASIC_STATS | StatxFlags::BTIME))
}

/// The kind of an object. An unknown kind counts as a socket, which is never opened.
pub(crate) fn kind(statx: &Statx) -> Kind {
    Kind::from_mode(statx.stx_mode.into()).unwrap_or(Kind::Socket)
}

/// The id of an object.
pub(crate) fn file_id(statx: &Statx, home: Home) -> FileId {
    let has_birth = statx.stx_mask & StatxFlags::BTIME.bits() != 0;
    let generation = if has_birth { mix_all(words(&statx.stx_btime)) as u32 } else { 0 };
    FileId { fs: Device::of(statx).number(home.device), ino: statx.stx_ino, generation }
}

/// A value that differs whenever contents or attributes differ; never 0. It differs after each boot, because a power
/// loss may leave other contents with the same times: `fdatasync` writes no times.
pub(crate) fn version(statx: &Statx, home: Home) -> u64 {
    let changes = words(&statx.stx_ctime).into_iter().chain(words(&statx.stx_mtime));
    home.boot.version(mix_all(changes.chain([statx.stx_size])))
}

/// The attributes.
pub(crate) fn stat(statx: &Statx, home: Home, without_xattrs: bool) -> Stat {
    let kind = kind(statx);
    let rdev = match kind {
        Kind::CharDevice | Kind::BlockDevice => {
            rustix::fs::makedev(statx.stx_rdev_major, statx.stx_rdev_minor) as u32
        }
        Kind::File | Kind::Directory | Kind::Symlink | Kind::Fifo | Kind::Socket => 0,
    };
    Stat {
        id: file_id(statx, home),
        kind,
        version: version(statx, home),
        mode: u32::from(statx.stx_mode) & 0o7777,
        nlink: statx.stx_nlink,
        uid: statx.stx_uid,
        gid: statx.stx_gid,
        rdev,
        size: statx.stx_size,
        blocks: statx.stx_blocks,
        blksize: statx.stx_blksize,
        atime: timestamp(&statx.stx_atime),
        mtime: timestamp(&statx.stx_mtime),
        ctime: timestamp(&statx.stx_ctime),
        without_xattrs,
        leased: false,
    }
}

/// The attributes of `name` in `dir`. Follows no symlink.
///
/// # Errors
/// As for `statx`.
///
/// # Cost
/// Two system calls. If a rename between them makes them refer to two objects, the versions of both have changed,
/// so that the mixture is not kept.
pub(crate) fn stat_name(dir: BorrowedFd<'_>, name: &CStr, home: Home) -> Result<Stat, Errno> {
    let statx = statx(dir, name)?;
    Ok(stat(&statx, home, is_without_xattrs(dir, name)))
}

/// The attributes of the object behind `fd`.
///
/// # Errors
/// As for `statx`.
///
/// # Cost
/// Two system calls.
pub(crate) fn stat_fd(fd: impl AsFd, home: Home) -> Result<Stat, Errno> {
    let statx = statx(fd.as_fd(), c"")?;
    // A directory can be reached as "." of itself, even with an `O_PATH` descriptor.
    let name = match kind(&statx) {
        Kind::Directory => c".",
        Kind::File | Kind::Symlink | Kind::Fifo | Kind::Socket | Kind::CharDevice | Kind::BlockDevice => c"",
    };
    Ok(stat(&statx, home, is_without_xattrs(fd.as_fd(), name)))
}

/// Whether extended attributes are known to be absent.
pub(crate) fn is_without_xattrs(dir: BorrowedFd<'_>, name: &CStr) -> bool {
    /// Whether the running kernel is older than the call.
    static OLD_KERNEL: AtomicBool = AtomicBool::new(false);
    let size = if OLD_KERNEL.load(Ordering::Relaxed) {
        list_by_proc(dir, name)
    } else {
        match sys::listxattrat_size(dir, name) {
            Err(Errno::NOSYS) => {
                OLD_KERNEL.store(true, Ordering::Relaxed);
                list_by_proc(dir, name)
            }
            // An `O_PATH` descriptor needs a name for this call.
            Err(Errno::BADF) => list_by_proc(dir, name),
            size => size,
        }
    };
    matches!(size, Ok(0) | Err(Errno::OPNOTSUPP))
}

/// The size of the list of names through `/proc`, which leads to the object of the descriptor.
fn list_by_proc(dir: BorrowedFd<'_>, name: &CStr) -> Result<usize, Errno> {
    let path = proc_path(dir);
    if name.is_empty() {
        return rustix::fs::listxattr_query(path);
    }
    rustix::fs::llistxattr_query(path.join(std::ffi::OsStr::from_bytes(name.to_bytes())))
}

/// A path that leads to the object behind `fd`, with or without a name, also if it is a symlink.
pub(crate) fn proc_path(fd: BorrowedFd<'_>) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", fd.as_raw_fd()))
}
