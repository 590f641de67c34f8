//! A directory as a world.

mod calls;

use crate::operation::{How, Operation, SLOTS};
use crate::posix::{Outcome, Seen, World};
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, FallocateFlags, FileType, Mode, OFlags, RenameFlags, Stat, XattrFlags};
use rustix::io::Errno as SysErrno;
use std::path::{Path, PathBuf};
use wirefs_op::{Errno, Kind, Timestamp};

/// What not every file system can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Abilities {
    /// A directory's links count its subdirectories.
    pub counts_subdirectories: bool,
    /// Extended attributes of users.
    pub xattrs: bool,
    /// Punching holes.
    pub punches: bool,
    /// Zeroing ranges in place.
    pub zeroes: bool,
    /// Exchanging two names.
    pub exchanges: bool,
}

/// A directory, and the files open in it.
#[derive(Debug)]
pub struct DirectoryWorld {
    path: PathBuf,
    root: OwnedFd,
    slots: [Option<OwnedFd>; SLOTS],
    pub(super) abilities: Abilities,
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

pub(super) fn seen(stat: &Stat) -> Seen {
    let timestamp = |secs: i64, nanos: u64| Timestamp { secs, nanos: nanos as u32 };
    Seen {
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

fn flags(how: How) -> OFlags {
    let access = match (how.read, how.write) {
        (true, true) => OFlags::RDWR,
        (false, true) => OFlags::WRONLY,
        (_, false) => OFlags::RDONLY,
    };
    let bits = [
        (how.create, OFlags::CREATE),
        (how.exclusive, OFlags::EXCL),
        (how.truncate, OFlags::TRUNC),
        (how.append, OFlags::APPEND),
        (how.no_follow, OFlags::NOFOLLOW),
        (how.directory, OFlags::DIRECTORY),
    ];
    let set = bits.into_iter().filter(|(wanted, _)| *wanted).map(|(_, flag)| flag);
    // Should a pipe stand where the model has none, the test is to fail and not to hang.
    set.fold(access | OFlags::CLOEXEC | OFlags::NONBLOCK, |all, flag| all | flag)
}

fn mode(bits: u32) -> Mode {
    Mode::from_raw_mode(bits)
}

impl DirectoryWorld {
    /// Takes a directory, and tries in it what its file system can do.
    ///
    /// # Errors
    /// It is no directory, or nothing can be made in it.
    pub fn open(path: &Path) -> Result<DirectoryWorld, Errno> {
        let how = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(path, how, Mode::empty()).map_err(errno)?;
        let abilities = probe(&root, path).map_err(errno)?;
        Ok(DirectoryWorld { path: path.to_path_buf(), root, slots: Default::default(), abilities })
    }

    /// What its file system can do.
    pub fn abilities(&self) -> Abilities {
        self.abilities
    }

    /// The attributes of the directory itself.
    ///
    /// # Errors
    /// As of `fstat`.
    pub fn root(&self) -> Result<Seen, Errno> {
        rustix::fs::fstat(&self.root).map(|stat| seen(&stat)).map_err(errno)
    }

    pub(super) fn open_at(&self, path: &str, how: How) -> Result<OwnedFd, SysErrno> {
        rustix::fs::openat(&self.root, path, flags(how), Mode::empty())
    }

    pub(super) fn inode_number(&self, path: &str) -> Result<u64, SysErrno> {
        rustix::fs::statat(&self.root, path, AtFlags::SYMLINK_NOFOLLOW).map(|stat| stat.st_ino)
    }
}

/// Tries what a file system can do.
fn probe(root: &OwnedFd, path: &Path) -> Result<Abilities, SysErrno> {
    let name = "wirefs-model-probe";
    let before = rustix::fs::fstat(root)?.st_nlink;
    rustix::fs::mkdirat(root, name, mode(0o755))?;
    let counts_subdirectories = rustix::fs::fstat(root)?.st_nlink == before + 1;
    rustix::fs::unlinkat(root, name, AtFlags::REMOVEDIR)?;
    let how = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let file = rustix::fs::openat(root, name, how, mode(0o600))?;
    let allocates =
        |flags| rustix::fs::fallocate(&file, FallocateFlags::from_bits_retain(flags), 0, 1).is_ok();
    let exchange = rustix::fs::renameat_with(root, name, root, name, RenameFlags::EXCHANGE);
    let abilities = Abilities {
        counts_subdirectories,
        xattrs: rustix::fs::setxattr(path.join(name), "user.probe", b"", XattrFlags::empty()).is_ok(),
        punches: allocates(3),
        zeroes: allocates(16),
        exchanges: exchange.is_ok(),
    };
    rustix::fs::unlinkat(root, name, AtFlags::empty())?;
    Ok(abilities)
}

impl World for DirectoryWorld {
    fn perform(&mut self, operation: &Operation) -> Outcome {
        let outcome = match operation {
            Operation::Open { slot, path, how, mode: bits } => {
                let opened = rustix::fs::openat(&self.root, path, flags(*how), mode(*bits));
                opened.map(|file| {
                    if let Some(place) = self.slots.get_mut(*slot) {
                        *place = Some(file);
                    }
                    Outcome::Done
                })
            }
            Operation::File(slot, on_file) => self.on_file(*slot, on_file),
            Operation::Name(on_name) => self.on_name(on_name),
            Operation::Object(path, on_object) => self.on_object(path, on_object),
        };
        outcome.map_err(errno).into()
    }
}

/// The umask of this process, which a thread can ask for without setting it.
pub(super) fn umask() -> u32 {
    let status = rustix::fs::open("/proc/self/status", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
    let text = status.ok().map(std::fs::File::from).and_then(|file| std::io::read_to_string(file).ok());
    let line = text.as_deref().and_then(|text| text.lines().find_map(|line| line.strip_prefix("Umask:")));
    line.and_then(|digits| u32::from_str_radix(digits.trim(), 8).ok()).unwrap_or(0o022)
}
