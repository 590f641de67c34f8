//! What the system tells about an object, as the protocol's `Stat`.

use crate::failure::uninterrupted;
use crate::sys;
use rustix::fd::{AsFd, AsRawFd, BorrowedFd};
use rustix::fs::{AtFlags, Statx, StatxFlags, StatxTimestamp};
use rustix::io::Errno;
use std::ffi::CStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use wirefs_op::{FileId, Kind, Stat, Timestamp};

/// A device number, as `statx` has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Device {
    major: u32,
    minor: u32,
}

impl Device {
    pub(crate) fn of(statx: &Statx) -> Device {
        Device { major: statx.stx_dev_major, minor: statx.stx_dev_minor }
    }

    /// The number of this file system in an export whose root is on `home`: 0 for `home`, else never 0, and never the one
    /// that the protocol keeps for itself.
    fn number(self, home: Device) -> u32 {
        if self == home {
            return 0;
        }
        let hash = mix(u64::from(self.major) << 32 | u64::from(self.minor));
        (hash as u32).clamp(1, FileId::PROVISIONAL - 1)
    }
}

/// Spreads 64 bits (the finalizer of SplitMix64); a bijection, so nothing is lost before it is cut.
fn mix(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

fn mix_all(words: impl IntoIterator<Item = u64>) -> u64 {
    words
        .into_iter()
        .fold(0x9e37_79b9_7f4a_7c15, |hash, word| mix(hash ^ word).wrapping_add(hash.rotate_left(23)))
}

fn timestamp(time: &StatxTimestamp) -> Timestamp {
    Timestamp { secs: time.tv_sec, nanos: time.tv_nsec }
}

fn words(time: &StatxTimestamp) -> [u64; 2] {
    [time.tv_sec as u64, time.tv_nsec.into()]
}

/// Asks for all that a `Stat` needs about `name` in `dir` (about `dir` itself when `name` is empty); follows no link.
pub(crate) fn statx(dir: BorrowedFd<'_>, name: &CStr) -> Result<Statx, Errno> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::EMPTY_PATH | AtFlags::NO_AUTOMOUNT;
    uninterrupted(|| rustix::fs::statx(dir, name, flags, StatxFlags::BASIC_STATS | StatxFlags::BTIME))
}

/// The kind of an object; what has none that the protocol knows counts as a regular file would, but is never opened.
pub(crate) fn kind(statx: &Statx) -> Kind {
    Kind::from_mode(statx.stx_mode.into()).unwrap_or(Kind::Socket)
}

/// Which object it is.
pub(crate) fn file_id(statx: &Statx, home: Device) -> FileId {
    let has_birth = statx.stx_mask & StatxFlags::BTIME.bits() != 0;
    let generation = if has_birth { mix_all(words(&statx.stx_btime)) as u32 } else { 0 };
    FileId { fs: Device::of(statx).number(home), ino: statx.stx_ino, generation }
}

/// What differs whenever contents or attributes do; never 0.
pub(crate) fn version(statx: &Statx) -> u64 {
    let changes = words(&statx.stx_ctime).into_iter().chain(words(&statx.stx_mtime));
    mix_all(changes.chain([statx.stx_size])).max(1)
}

/// The attributes.
pub(crate) fn stat(statx: &Statx, home: Device, without_xattrs: bool) -> Stat {
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
        version: version(statx),
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

/// The attributes of `name` in `dir`; follows no link.
///
/// # Errors
/// As for `statx`.
///
/// # Cost
/// Two system calls. A rename between them may make them mean two objects; the attributes of each have then changed
/// their version, so that nobody keeps the mixture.
pub(crate) fn stat_name(dir: BorrowedFd<'_>, name: &CStr, home: Device) -> Result<Stat, Errno> {
    let statx = statx(dir, name)?;
    Ok(stat(&statx, home, is_without_xattrs(dir, name)))
}

/// The attributes of what `fd` stands for.
///
/// # Errors
/// As for `statx`.
///
/// # Cost
/// Two system calls.
pub(crate) fn stat_fd(fd: impl AsFd, home: Device) -> Result<Stat, Errno> {
    let statx = statx(fd.as_fd(), c"")?;
    // A directory is found from itself, even where it is held for naming only.
    let name = match kind(&statx) {
        Kind::Directory => c".",
        Kind::File | Kind::Symlink | Kind::Fifo | Kind::Socket | Kind::CharDevice | Kind::BlockDevice => c"",
    };
    Ok(stat(&statx, home, is_without_xattrs(fd.as_fd(), name)))
}

/// Whether extended attributes are known to be absent.
pub(crate) fn is_without_xattrs(dir: BorrowedFd<'_>, name: &CStr) -> bool {
    /// Set once the running kernel turned out to be older than the call.
    static OLD_KERNEL: AtomicBool = AtomicBool::new(false);
    let size = if OLD_KERNEL.load(Ordering::Relaxed) {
        list_by_proc(dir, name)
    } else {
        match sys::listxattrat_size(dir, name) {
            Err(Errno::NOSYS) => {
                OLD_KERNEL.store(true, Ordering::Relaxed);
                list_by_proc(dir, name)
            }
            // What is held for naming only takes no such call without a name beside it.
            Err(Errno::BADF) => list_by_proc(dir, name),
            size => size,
        }
    };
    matches!(size, Ok(0) | Err(Errno::OPNOTSUPP))
}

/// The size of the list of names through `/proc`, which leads to the very object that the descriptor holds.
fn list_by_proc(dir: BorrowedFd<'_>, name: &CStr) -> Result<usize, Errno> {
    let path = proc_path(dir);
    if name.is_empty() {
        return rustix::fs::listxattr_query(path);
    }
    rustix::fs::llistxattr_query(path.join(std::ffi::OsStr::from_bytes(name.to_bytes())))
}

/// A path that leads to the very object that `fd` stands for, named or not, link or not.
pub(crate) fn proc_path(fd: BorrowedFd<'_>) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", fd.as_raw_fd()))
}
