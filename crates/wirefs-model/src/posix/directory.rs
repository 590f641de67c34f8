//! Executes operations in a directory, through system calls.

mod calls;

use crate::operation::{OpenFlags, Operation, SLOTS};
use crate::posix::{Executor, ObservedStat, OperationOutcome};
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, FallocateFlags, FileType, Mode, OFlags, RenameFlags, Stat, XattrFlags};
use rustix::io::Errno as SysErrno;
use std::path::{Path, PathBuf};
use wirefs_op::{Errno, Kind, Timestamp};

/// Optional features of a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FsFeatures {
    /// Whether a directory's link count includes its subdirectories.
    pub counts_subdirectories: bool,
    /// User extended attributes.
    pub xattrs: bool,
    /// Punching holes.
    pub punch_hole: bool,
    /// Zeroing ranges in place.
    pub zero_range: bool,
    /// Exchanging two names.
    pub exchange: bool,
}

/// A directory, and the files open in it.
#[derive(Debug)]
pub struct DirectoryExecutor {
    path: PathBuf,
    root: OwnedFd,
    slots: [Option<OwnedFd>; SLOTS],
    pub(super) features: FsFeatures,
}

fn errno(error: SysErrno) -> Errno {
    u16::try_from(error.raw_os_error()).map_or(Errno::Io, Errno::from_code)
}

fn kind(file_type: FileType) -> Kind {
    match file_type {
        FileType::Directory => Kind::Directory,
        FileType::Symlink => Kind::Symlink,
        FileType::Fifo => Kind::Fifo,
        FileType::Socket => Kind::Socket,
        FileType::CharacterDevice => Kind::CharDevice,
        FileType::BlockDevice => Kind::BlockDevice,
        FileType::RegularFile | FileType::Unknown => Kind::File,
    }
}

pub(super) fn observed_stat(stat: &Stat) -> ObservedStat {
    let timestamp = |secs: i64, nanos: u64| Timestamp { secs, nanos: nanos as u32 };
    ObservedStat {
        kind: kind(FileType::from_raw_mode(stat.st_mode)),
        mode: stat.st_mode & 0o7777,
        nlink: stat.st_nlink as u32,
        uid: stat.st_uid,
        gid: stat.st_gid,
        size: stat.st_size as u64,
        atime: timestamp(stat.st_atime, stat.st_atime_nsec),
        mtime: timestamp(stat.st_mtime, stat.st_mtime_nsec),
    }
}

fn oflags(open_flags: OpenFlags) -> OFlags {
    let access = match (open_flags.read, open_flags.write) {
        (true, true) => OFlags::RDWR,
        (false, true) => OFlags::WRONLY,
        (_, false) => OFlags::RDONLY,
    };
    let bits = [
        (open_flags.create, OFlags::CREATE),
        (open_flags.exclusive, OFlags::EXCL),
        (open_flags.truncate, OFlags::TRUNC),
        (open_flags.append, OFlags::APPEND),
        (open_flags.no_follow, OFlags::NOFOLLOW),
        (open_flags.directory, OFlags::DIRECTORY),
    ];
    let set = bits.into_iter().filter(|(wanted, _)| *wanted).map(|(_, flag)| flag);
    // A pipe in place of an expected file must fail the test, not block it.
    set.fold(access | OFlags::CLOEXEC | OFlags::NONBLOCK, |all, flag| all | flag)
}

fn mode(bits: u32) -> Mode {
    Mode::from_raw_mode(bits)
}

impl DirectoryExecutor {
    /// Opens a directory and probes the features of its file system.
    ///
    /// # Errors
    /// Fails if it is not a directory, or if no file can be created in it.
    pub fn open(path: &Path) -> Result<DirectoryExecutor, Errno> {
        let open_flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(path, open_flags, Mode::empty()).map_err(errno)?;
        let features = probe(&root, path).map_err(errno)?;
        Ok(DirectoryExecutor { path: path.to_path_buf(), root, slots: Default::default(), features })
    }

    /// Returns the features of its file system.
    pub fn features(&self) -> FsFeatures {
        self.features
    }

    /// Returns the attributes of the directory itself.
    ///
    /// # Errors
    /// Those of `fstat`.
    pub fn root(&self) -> Result<ObservedStat, Errno> {
        rustix::fs::fstat(&self.root).map(|stat| observed_stat(&stat)).map_err(errno)
    }

    pub(super) fn open_at(&self, path: &str, open_flags: OpenFlags) -> Result<OwnedFd, SysErrno> {
        rustix::fs::openat(&self.root, path, oflags(open_flags), Mode::empty())
    }

    pub(super) fn inode_number(&self, path: &str) -> Result<u64, SysErrno> {
        rustix::fs::statat(&self.root, path, AtFlags::SYMLINK_NOFOLLOW).map(|stat| stat.st_ino)
    }
}

/// Probes the features of a file system.
fn probe(root: &OwnedFd, path: &Path) -> Result<FsFeatures, SysErrno> {
    let name = "wirefs-model-probe";
    let before = rustix::fs::fstat(root)?.st_nlink;
    rustix::fs::mkdirat(root, name, mode(0o755))?;
    let counts_subdirectories = rustix::fs::fstat(root)?.st_nlink == before + 1;
    rustix::fs::unlinkat(root, name, AtFlags::REMOVEDIR)?;
    let open_flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let file = rustix::fs::openat(root, name, open_flags, mode(0o600))?;
    let allocates =
        |flags| rustix::fs::fallocate(&file, FallocateFlags::from_bits_retain(flags), 0, 1).is_ok();
    let exchange = rustix::fs::renameat_with(root, name, root, name, RenameFlags::EXCHANGE);
    let features = FsFeatures {
        counts_subdirectories,
        xattrs: rustix::fs::setxattr(path.join(name), "user.probe", b"", XattrFlags::empty()).is_ok(),
        punch_hole: allocates(3),
        zero_range: allocates(16),
        exchange: exchange.is_ok(),
    };
    rustix::fs::unlinkat(root, name, AtFlags::empty())?;
    Ok(features)
}

impl Executor for DirectoryExecutor {
    fn perform(&mut self, operation: &Operation) -> OperationOutcome {
        let outcome = match operation {
            Operation::Open { slot, path, open_flags, mode: bits } => {
                let opened = rustix::fs::openat(&self.root, path, oflags(*open_flags), mode(*bits));
                opened.map(|file| {
                    if let Some(place) = self.slots.get_mut(*slot) {
                        *place = Some(file);
                    }
                    OperationOutcome::Done
                })
            }
            Operation::File(slot, file_call) => self.file_call(*slot, file_call),
            Operation::Name(name_call) => self.name_call(name_call),
            Operation::Object(path, object_call) => self.object_call(path, object_call),
        };
        outcome.map_err(errno).into()
    }
}

/// Returns the umask of this process, without setting it.
pub(super) fn umask() -> u32 {
    let status = rustix::fs::open("/proc/self/status", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
    let text = status.ok().map(std::fs::File::from).and_then(|file| std::io::read_to_string(file).ok());
    let line = text.as_deref().and_then(|text| text.lines().find_map(|line| line.strip_prefix("Umask:")));
    line.and_then(|digits| u32::from_str_radix(digits.trim(), 8).ok()).unwrap_or(0o022)
}
