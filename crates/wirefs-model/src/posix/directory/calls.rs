//! The operations as system calls.

use crate::operation::{How, OnFile, OnName, OnObject, SetTo};
use crate::posix::Outcome;
use crate::posix::directory::{DirectoryWorld, flags, mode, seen};
use rustix::fd::OwnedFd;
use rustix::fs::{
    AtFlags, Dir, FallocateFlags, FileType, Gid, Mode, RenameFlags, SeekFrom, Timespec, Timestamps,
    UTIME_OMIT, Uid, XattrFlags,
};
use rustix::io::Errno as SysErrno;
use wirefs_op::limits::XATTR_BYTES_MAX;

impl DirectoryWorld {
    pub(super) fn on_file(&mut self, slot: usize, on_file: &OnFile) -> Result<Outcome, SysErrno> {
        if let OnFile::Close = on_file {
            let file = self.slots.get_mut(slot).and_then(Option::take);
            return Ok(if file.is_some() { Outcome::Done } else { Outcome::LeftOut });
        }
        let Some(file) = self.slots.get(slot).and_then(Option::as_ref) else { return Ok(Outcome::LeftOut) };
        match on_file {
            OnFile::Close => {}
            OnFile::Read { offset, count } => {
                let mut bytes = vec![0; *count];
                let len = rustix::io::pread(file, &mut bytes, *offset)?;
                bytes.truncate(len);
                return Ok(Outcome::Data(bytes));
            }
            OnFile::Write { offset, data } => {
                return Ok(Outcome::Count(rustix::io::pwrite(file, &data.bytes(), *offset)? as u64));
            }
            OnFile::Stat => return Ok(Outcome::Seen(seen(&rustix::fs::fstat(file)?))),
            OnFile::Truncate { size } => rustix::fs::ftruncate(file, *size)?,
            OnFile::Allocate { mode, offset, length } => {
                rustix::fs::fallocate(file, FallocateFlags::from_bits_retain(*mode), *offset, *length)?;
            }
            OnFile::CopyFrom { from, from_offset, to_offset, length } => {
                let Some(source) = self.slots.get(*from).and_then(Option::as_ref) else {
                    return Ok(Outcome::LeftOut);
                };
                return copy((source, *from_offset), (file, *to_offset), *length).map(Outcome::Count);
            }
            OnFile::Seek { offset, hole } => {
                let to = if *hole { SeekFrom::Hole(*offset) } else { SeekFrom::Data(*offset) };
                return rustix::fs::seek(file, to).map(Outcome::Place);
            }
            OnFile::Sync => rustix::fs::fsync(file)?,
        }
        Ok(Outcome::Done)
    }

    pub(super) fn on_name(&mut self, on_name: &OnName) -> Result<Outcome, SysErrno> {
        let root = &self.root;
        match on_name {
            OnName::Mkdir { path, mode: bits } => rustix::fs::mkdirat(root, path, mode(*bits))?,
            OnName::Mkfifo { path, mode: bits } => {
                rustix::fs::mknodat(root, path, FileType::Fifo, mode(*bits), 0)?;
            }
            OnName::Symlink { target, path } => rustix::fs::symlinkat(target, root, path)?,
            OnName::Link { from, to } => rustix::fs::linkat(root, from, root, to, AtFlags::empty())?,
            OnName::Rename { from, to, flags } => {
                rustix::fs::renameat_with(root, from, root, to, RenameFlags::from_bits_retain(*flags))?;
            }
            OnName::Unlink { path } => rustix::fs::unlinkat(root, path, AtFlags::empty())?,
            OnName::Rmdir { path } => rustix::fs::unlinkat(root, path, AtFlags::REMOVEDIR)?,
            OnName::Readlink { path } => {
                let target = rustix::fs::readlinkat(root, path, Vec::new())?;
                return Ok(Outcome::Data(target.into_bytes()));
            }
            OnName::List { path } => {
                let how = How { read: true, directory: true, ..How::default() };
                let directory = rustix::fs::openat(root, path, flags(how), Mode::empty())?;
                let names = Dir::new(directory)?.map(|entry| Ok(entry?.file_name().to_bytes().to_vec()));
                let names = names.collect::<Result<Vec<_>, SysErrno>>()?.into_iter();
                return Ok(Outcome::Names(names.filter(|name| name != b"." && name != b"..").collect()));
            }
        }
        Ok(Outcome::Done)
    }

    pub(super) fn on_object(&mut self, path: &str, on_object: &OnObject) -> Result<Outcome, SysErrno> {
        let root = &self.root;
        let absolute = || self.path.join(path);
        match on_object {
            OnObject::Stat { follow } => {
                let how = if *follow { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW };
                return Ok(Outcome::Seen(seen(&rustix::fs::statat(root, path, how)?)));
            }
            OnObject::Truncate { size } => {
                let how = How { write: true, ..How::default() };
                let file = rustix::fs::openat(root, path, flags(how), Mode::empty())?;
                rustix::fs::ftruncate(file, *size)?;
            }
            OnObject::Chmod { mode: bits } => rustix::fs::chmodat(root, path, mode(*bits), AtFlags::empty())?,
            OnObject::Chown { uid, gid } => {
                let (uid, gid) = (Uid::from_raw(*uid), Gid::from_raw(*gid));
                rustix::fs::chownat(root, path, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)?;
            }
            OnObject::SetTimes { atime, mtime } => {
                let times = Timestamps { last_access: timespec(*atime), last_modification: timespec(*mtime) };
                rustix::fs::utimensat(root, path, &times, AtFlags::SYMLINK_NOFOLLOW)?;
            }
            OnObject::SetXattr { name, value, flags } => {
                rustix::fs::lsetxattr(
                    absolute(),
                    name,
                    &value.bytes(),
                    XattrFlags::from_bits_retain(*flags),
                )?;
            }
            OnObject::ReadXattr { name } => {
                let mut value = vec![0; XATTR_BYTES_MAX];
                let len = rustix::fs::lgetxattr(absolute(), name, &mut value)?;
                value.truncate(len);
                return Ok(Outcome::Data(value));
            }
            OnObject::ListXattrs => {
                let mut names = vec![0; XATTR_BYTES_MAX];
                let len = rustix::fs::llistxattr(absolute(), &mut names)?;
                names.truncate(len);
                // Security modules add names of their own.
                let names = names.split(|byte| *byte == 0).filter(|name| name.starts_with(b"user."));
                return Ok(Outcome::Names(names.map(<[u8]>::to_vec).collect()));
            }
            OnObject::RemoveXattr { name } => rustix::fs::lremovexattr(absolute(), name)?,
        }
        Ok(Outcome::Done)
    }
}

fn timespec(time: SetTo) -> Timespec {
    match time {
        Some(time) => Timespec { tv_sec: time.secs, tv_nsec: time.nanos.into() },
        None => Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
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
