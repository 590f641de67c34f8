//! A directory as a world: the operations as system calls.

use crate::operation::{How, Operation, SLOTS, SetTo};
use crate::posix::{Outcome, Seen, World};
use rustix::fd::OwnedFd;
use rustix::fs::{
    AtFlags, Dir, FallocateFlags, FileType, Gid, Mode, OFlags, RenameFlags, SeekFrom, Stat, Timespec,
    Timestamps, UTIME_OMIT, Uid, XattrFlags,
};
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

fn timespec(time: SetTo) -> Timespec {
    match time {
        Some(time) => Timespec { tv_sec: time.secs, tv_nsec: time.nanos.into() },
        None => Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
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

    fn on_open(&mut self, slot: usize, operation: &Operation) -> Result<Outcome, SysErrno> {
        let Some(file) = self.slots.get(slot).and_then(Option::as_ref) else {
            return Ok(Outcome::LeftOut);
        };
        Ok(match operation {
            Operation::Read { offset, count, .. } => {
                let mut bytes = vec![0; *count];
                let len = rustix::io::pread(file, &mut bytes, *offset)?;
                bytes.truncate(len);
                Outcome::Data(bytes)
            }
            Operation::Write { offset, data, .. } => {
                Outcome::Count(rustix::io::pwrite(file, &data.bytes(), *offset)? as u64)
            }
            Operation::TruncateOpen { size, .. } => {
                rustix::fs::ftruncate(file, *size)?;
                Outcome::Done
            }
            Operation::Allocate { mode, offset, length, .. } => {
                rustix::fs::fallocate(file, FallocateFlags::from_bits_retain(*mode), *offset, *length)?;
                Outcome::Done
            }
            Operation::Copy { from, from_offset, to_offset, length, .. } => {
                let Some(source) = self.slots.get(*from).and_then(Option::as_ref) else {
                    return Ok(Outcome::LeftOut);
                };
                Outcome::Count(copy((source, *from_offset), (file, *to_offset), *length)?)
            }
            Operation::Seek { offset, hole, .. } => {
                let to = if *hole { SeekFrom::Hole(*offset) } else { SeekFrom::Data(*offset) };
                Outcome::Place(rustix::fs::seek(file, to)?)
            }
            Operation::StatOpen { .. } => Outcome::Seen(seen(&rustix::fs::fstat(file)?)),
            Operation::Sync { .. } => {
                rustix::fs::fsync(file)?;
                Outcome::Done
            }
            _ => Outcome::Done,
        })
    }

    fn on_names(&mut self, operation: &Operation) -> Result<Outcome, SysErrno> {
        let root = &self.root;
        match operation {
            Operation::Mkdir { path, mode: bits } => rustix::fs::mkdirat(root, path, mode(*bits))?,
            Operation::Mkfifo { path, mode: bits } => {
                rustix::fs::mknodat(root, path, FileType::Fifo, mode(*bits), 0)?;
            }
            Operation::Symlink { target, path } => rustix::fs::symlinkat(target, root, path)?,
            Operation::Link { from, to } => rustix::fs::linkat(root, from, root, to, AtFlags::empty())?,
            Operation::Rename { from, to, flags } => {
                rustix::fs::renameat_with(root, from, root, to, RenameFlags::from_bits_retain(*flags))?;
            }
            Operation::Unlink { path } => rustix::fs::unlinkat(root, path, AtFlags::empty())?,
            Operation::Rmdir { path } => rustix::fs::unlinkat(root, path, AtFlags::REMOVEDIR)?,
            Operation::Readlink { path } => {
                let target = rustix::fs::readlinkat(root, path, Vec::new())?;
                return Ok(Outcome::Data(target.into_bytes()));
            }
            Operation::List { path } => {
                let directory = self.open_at(path, How { read: true, directory: true, ..How::default() })?;
                let names = Dir::new(directory)?
                    .map(|entry| entry.map(|entry| entry.file_name().to_bytes().to_vec()));
                let names = names.collect::<Result<Vec<_>, _>>()?.into_iter();
                return Ok(Outcome::Names(names.filter(|name| name != b"." && name != b"..").collect()));
            }
            _ => {}
        }
        Ok(Outcome::Done)
    }

    fn on_attributes(&mut self, operation: &Operation) -> Result<Outcome, SysErrno> {
        let root = &self.root;
        match operation {
            Operation::Stat { path, follow } => {
                let how = if *follow { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW };
                return Ok(Outcome::Seen(seen(&rustix::fs::statat(root, path, how)?)));
            }
            Operation::Truncate { path, size } => {
                let file = self.open_at(path, How { write: true, ..How::default() })?;
                rustix::fs::ftruncate(file, *size)?;
            }
            Operation::Chmod { path, mode: bits } => {
                rustix::fs::chmodat(root, path, mode(*bits), AtFlags::empty())?;
            }
            Operation::Chown { path, uid, gid } => {
                let (uid, gid) = (Uid::from_raw(*uid), Gid::from_raw(*gid));
                rustix::fs::chownat(root, path, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)?;
            }
            Operation::SetTimes { path, atime, mtime } => {
                let times = Timestamps { last_access: timespec(*atime), last_modification: timespec(*mtime) };
                rustix::fs::utimensat(root, path, &times, AtFlags::SYMLINK_NOFOLLOW)?;
            }
            Operation::SetXattr { path, name, value, flags } => {
                let flags = XattrFlags::from_bits_retain(*flags);
                rustix::fs::lsetxattr(self.path.join(path), name, &value.bytes(), flags)?;
            }
            Operation::ReadXattr { path, name } => {
                let mut value = vec![0; 1 << 16];
                let len = rustix::fs::lgetxattr(self.path.join(path), name, &mut value)?;
                value.truncate(len);
                return Ok(Outcome::Data(value));
            }
            Operation::ListXattrs { path } => {
                let mut names = vec![0; 1 << 16];
                let len = rustix::fs::llistxattr(self.path.join(path), &mut names)?;
                names.truncate(len);
                // Security modules add names of their own.
                let names = names.split(|byte| *byte == 0).filter(|name| name.starts_with(b"user."));
                return Ok(Outcome::Names(names.map(<[u8]>::to_vec).collect()));
            }
            Operation::RemoveXattr { path, name } => rustix::fs::lremovexattr(self.path.join(path), name)?,
            _ => return self.on_names(operation),
        }
        Ok(Outcome::Done)
    }
}

/// Copies all that can be copied; one call may copy less.
fn copy(from: (&OwnedFd, u64), to: (&OwnedFd, u64), length: u64) -> Result<u64, SysErrno> {
    let ((from, mut from_offset), (to, mut to_offset)) = (from, to);
    // Cut at the end that the source has now: the copy itself may move it.
    let there = (rustix::fs::fstat(from)?.st_size as u64).saturating_sub(from_offset);
    let wanted = length.min(there);
    let call = |left: u64, from_offset: &mut u64, to_offset: &mut u64| {
        rustix::fs::copy_file_range(from, Some(from_offset), to, Some(to_offset), left as usize)
    };
    let mut done = call(length, &mut from_offset, &mut to_offset)? as u64;
    while done < wanted {
        match call(wanted - done, &mut from_offset, &mut to_offset)? {
            0 => break,
            count => done += count as u64,
        }
    }
    Ok(done)
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
                let Some(place) = self.slots.get_mut(*slot) else {
                    return Outcome::LeftOut;
                };
                // Closed first, as the model does: it may be the last hold on a file without a name.
                *place = None;
                let opened = rustix::fs::openat(&self.root, path, flags(*how), mode(*bits));
                opened.map(|file| {
                    *place = Some(file);
                    Outcome::Done
                })
            }
            Operation::Close { slot } => {
                let file = self.slots.get_mut(*slot).and_then(Option::take);
                Ok(if file.is_some() { Outcome::Done } else { Outcome::LeftOut })
            }
            other => match other.slot() {
                Some(slot) => self.on_open(slot, other),
                None => self.on_attributes(other),
            },
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
