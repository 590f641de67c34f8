//! The operations as system calls.

use crate::operation::{FileCall, NameCall, ObjectCall, OpenFlags, TimeToSet};
use crate::posix::OperationOutcome;
use crate::posix::directory::{DirectoryExecutor, mode, observed_stat, oflags};
use rustix::fd::OwnedFd;
use rustix::fs::{
    AtFlags, Dir, FallocateFlags, FileType, Gid, Mode, RenameFlags, SeekFrom, Timespec, Timestamps,
    UTIME_OMIT, Uid, XattrFlags,
};
use rustix::io::Errno as SysErrno;
use wirefs_op::limits::XATTR_BYTES_MAX;

impl DirectoryExecutor {
    pub(super) fn file_call(
        &mut self,
        slot: usize,
        file_call: &FileCall,
    ) -> Result<OperationOutcome, SysErrno> {
        if let FileCall::Close = file_call {
            let file = self.slots.get_mut(slot).and_then(Option::take);
            return Ok(if file.is_some() { OperationOutcome::Done } else { OperationOutcome::Skipped });
        }
        let Some(file) = self.slots.get(slot).and_then(Option::as_ref) else {
            return Ok(OperationOutcome::Skipped);
        };
        match file_call {
            FileCall::Close => {}
            FileCall::Read { offset, count } => {
                let mut bytes = vec![0; *count];
                let len = rustix::io::pread(file, &mut bytes, *offset)?;
                bytes.truncate(len);
                return Ok(OperationOutcome::Data(bytes));
            }
            FileCall::Write { offset, data } => {
                return Ok(OperationOutcome::Count(rustix::io::pwrite(file, &data.bytes(), *offset)? as u64));
            }
            FileCall::Stat => return Ok(OperationOutcome::Stat(observed_stat(&rustix::fs::fstat(file)?))),
            FileCall::Truncate { size } => rustix::fs::ftruncate(file, *size)?,
            FileCall::Allocate { mode, offset, length } => {
                rustix::fs::fallocate(file, FallocateFlags::from_bits_retain(*mode), *offset, *length)?;
            }
            FileCall::CopyFrom { from, from_offset, to_offset, length } => {
                let Some(source) = self.slots.get(*from).and_then(Option::as_ref) else {
                    return Ok(OperationOutcome::Skipped);
                };
                return copy((source, *from_offset), (file, *to_offset), *length)
                    .map(OperationOutcome::Count);
            }
            FileCall::Seek { offset, hole } => {
                let to = if *hole { SeekFrom::Hole(*offset) } else { SeekFrom::Data(*offset) };
                return rustix::fs::seek(file, to).map(OperationOutcome::Offset);
            }
            FileCall::Sync => rustix::fs::fsync(file)?,
        }
        Ok(OperationOutcome::Done)
    }

    pub(super) fn name_call(&mut self, name_call: &NameCall) -> Result<OperationOutcome, SysErrno> {
        let root = &self.root;
        match name_call {
            NameCall::Mkdir { path, mode: bits } => rustix::fs::mkdirat(root, path, mode(*bits))?,
            NameCall::Mkfifo { path, mode: bits } => {
                rustix::fs::mknodat(root, path, FileType::Fifo, mode(*bits), 0)?;
            }
            NameCall::Symlink { target, path } => rustix::fs::symlinkat(target, root, path)?,
            NameCall::Link { from, to } => rustix::fs::linkat(root, from, root, to, AtFlags::empty())?,
            NameCall::Rename { from, to, flags } => {
                rustix::fs::renameat_with(root, from, root, to, RenameFlags::from_bits_retain(*flags))?;
            }
            NameCall::Unlink { path } => rustix::fs::unlinkat(root, path, AtFlags::empty())?,
            NameCall::Rmdir { path } => rustix::fs::unlinkat(root, path, AtFlags::REMOVEDIR)?,
            NameCall::Readlink { path } => {
                let target = rustix::fs::readlinkat(root, path, Vec::new())?;
                return Ok(OperationOutcome::Data(target.into_bytes()));
            }
            NameCall::List { path } => {
                let open_flags = OpenFlags { read: true, directory: true, ..OpenFlags::default() };
                let directory = rustix::fs::openat(root, path, oflags(open_flags), Mode::empty())?;
                let names = Dir::new(directory)?.map(|entry| Ok(entry?.file_name().to_bytes().to_vec()));
                let names = names.collect::<Result<Vec<_>, SysErrno>>()?.into_iter();
                return Ok(OperationOutcome::Names(
                    names.filter(|name| name != b"." && name != b"..").collect(),
                ));
            }
        }
        Ok(OperationOutcome::Done)
    }

    pub(super) fn object_call(
        &mut self,
        path: &str,
        object_call: &ObjectCall,
    ) -> Result<OperationOutcome, SysErrno> {
        let root = &self.root;
        let absolute = || self.path.join(path);
        match object_call {
            ObjectCall::Stat { follow } => {
                let open_flags = if *follow { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW };
                return Ok(OperationOutcome::Stat(observed_stat(&rustix::fs::statat(
                    root, path, open_flags,
                )?)));
            }
            ObjectCall::Truncate { size } => {
                let open_flags = OpenFlags { write: true, ..OpenFlags::default() };
                let file = rustix::fs::openat(root, path, oflags(open_flags), Mode::empty())?;
                rustix::fs::ftruncate(file, *size)?;
            }
            ObjectCall::Chmod { mode: bits } => {
                rustix::fs::chmodat(root, path, mode(*bits), AtFlags::empty())?
            }
            ObjectCall::Chown { uid, gid } => {
                let (uid, gid) = (Uid::from_raw(*uid), Gid::from_raw(*gid));
                rustix::fs::chownat(root, path, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)?;
            }
            ObjectCall::SetTimes { atime, mtime } => {
                let times = Timestamps { last_access: timespec(*atime), last_modification: timespec(*mtime) };
                rustix::fs::utimensat(root, path, &times, AtFlags::SYMLINK_NOFOLLOW)?;
            }
            ObjectCall::SetXattr { name, value, flags } => {
                rustix::fs::lsetxattr(
                    absolute(),
                    name,
                    &value.bytes(),
                    XattrFlags::from_bits_retain(*flags),
                )?;
            }
            ObjectCall::ReadXattr { name } => {
                let mut value = vec![0; XATTR_BYTES_MAX];
                let len = rustix::fs::lgetxattr(absolute(), name, &mut value)?;
                value.truncate(len);
                return Ok(OperationOutcome::Data(value));
            }
            ObjectCall::ListXattrs => {
                let mut names = vec![0; XATTR_BYTES_MAX];
                let len = rustix::fs::llistxattr(absolute(), &mut names)?;
                names.truncate(len);
                // Security modules add further names.
                let names = names.split(|byte| *byte == 0).filter(|name| name.starts_with(b"user."));
                return Ok(OperationOutcome::Names(names.map(<[u8]>::to_vec).collect()));
            }
            ObjectCall::RemoveXattr { name } => rustix::fs::lremovexattr(absolute(), name)?,
        }
        Ok(OperationOutcome::Done)
    }
}

fn timespec(time: TimeToSet) -> Timespec {
    match time {
        Some(time) => Timespec { tv_sec: time.secs, tv_nsec: time.nanos.into() },
        None => Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
    }
}

/// Copies the whole range; a single call may copy less.
fn copy(from: (&OwnedFd, u64), to: (&OwnedFd, u64), length: u64) -> Result<u64, SysErrno> {
    let ((from, mut from_offset), (to, mut to_offset)) = (from, to);
    // Limited to the source's present end, which the copy itself may move.
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
