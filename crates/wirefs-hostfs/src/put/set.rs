//! Changes attributes in an order in which no change undoes another.

use crate::attributes::{self, proc_path};
use crate::failure::{Failure, uninterrupted};
use crate::open_files::{Access, OpenFile};
use crate::resolve::Object;
use crate::session::Session;
use crate::sys;
use rustix::fd::AsFd;
use rustix::fs::{AtFlags, CWD, Gid, Mode, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, Uid};
use rustix::io::Errno as SystemErrno;
use wirefs_op::{Errno, Kind, SetStat, SetTime};

const SET_UID: u32 = 0o4000;
const SET_GID: u32 = 0o2000;
/// The bits that make a program run as another user or group.
pub(super) const SET_ID: u32 = SET_UID | SET_GID;
const GROUP_EXECUTE: u32 = 0o010;
/// The system's value for "keep the owner or group".
const NO_ID: u32 = u32::MAX;

/// Applies `set`. Size first, since it needs rights that a new mode may remove; owner before mode, since a new
/// owner clears the set-id bits; times last, since the other changes update them.
pub(super) fn apply(
    object: &Object,
    file: Option<&OpenFile>,
    set: &SetStat,
    allows_set_id: bool,
) -> Result<(), Failure> {
    if let Some(size) = set.size {
        i64::try_from(size).map_err(|_| Errno::FileTooBig)?;
        match file {
            Some(file) if file.access.write => uninterrupted(|| rustix::fs::ftruncate(file, size))?,
            Some(_) | None => {
                let file = object.open(Access::WRITE)?;
                uninterrupted(|| rustix::fs::ftruncate(&*file, size))?;
            }
        }
    }
    if set.uid.is_some() || set.gid.is_some() {
        if set.uid == Some(NO_ID) || set.gid == Some(NO_ID) {
            return Err(Errno::Invalid.into());
        }
        let (uid, gid) = (set.uid.map(Uid::from_raw), set.gid.map(Gid::from_raw));
        uninterrupted(|| rustix::fs::chownat(object, c"", uid, gid, AtFlags::EMPTY_PATH))?;
    }
    if let Some(mode) = set.mode {
        let is_limited = object.kind == Kind::File && !allows_set_id && mode & SET_ID != 0;
        let refused = if is_limited { SET_ID & !present_mode(object)? } else { 0 };
        set_mode(object, mode & !refused)?;
    }
    if set.atime.is_some() || set.mtime.is_some() {
        set_times(object, set)?;
    }
    Ok(())
}

fn present_mode(object: &Object) -> Result<u32, Failure> {
    Ok(u32::from(attributes::statx(object.as_fd(), c"")?.stx_mode))
}

/// Changes the permission bits of this object; symlinks have none.
///
/// # Errors
/// As for `chmod`.
pub(crate) fn set_mode(object: &Object, mode: u32) -> Result<(), Failure> {
    let mode = mode & 0o7777;
    match uninterrupted(|| sys::chmod_path_fd(object.as_fd(), mode)) {
        Err(SystemErrno::NOSYS) => {
            let path = proc_path(object.as_fd());
            Ok(uninterrupted(|| rustix::fs::chmod(&path, Mode::from_raw_mode(mode)))?)
        }
        outcome => Ok(outcome?),
    }
}

fn set_times(object: &Object, set: &SetStat) -> Result<(), Failure> {
    let times = Timestamps { last_access: timespec(set.atime), last_modification: timespec(set.mtime) };
    match uninterrupted(|| rustix::fs::utimensat(object, c"", &times, AtFlags::EMPTY_PATH)) {
        // Kernels before 5.8 accept no empty path here.
        Err(SystemErrno::INVAL | SystemErrno::NOENT) => {
            let path = proc_path(object.as_fd());
            Ok(uninterrupted(|| rustix::fs::utimensat(CWD, &path, &times, AtFlags::empty()))?)
        }
        outcome => Ok(outcome?),
    }
}

fn timespec(time: Option<SetTime>) -> Timespec {
    let (tv_sec, tv_nsec) = match time {
        None => (0, UTIME_OMIT),
        Some(SetTime::Now) => (0, UTIME_NOW),
        Some(SetTime::At(at)) => (at.secs, at.nanos.into()),
    };
    Timespec { tv_sec, tv_nsec }
}

impl Session {
    /// Removes set-id bits before the contents of a file change, where clients may not set them: else a client could
    /// replace the contents of a program that has them.
    ///
    /// # Cost
    /// One system call. The kernel removes file capabilities itself.
    pub(crate) fn defuse(&self, object: &Object) -> Result<(), Failure> {
        if self.export.options.allows_set_id || object.kind != Kind::File {
            return Ok(());
        }
        let mode = present_mode(object)?;
        if mode & SET_ID == 0 { Ok(()) } else { set_mode(object, mode & !SET_ID) }
    }

    /// Removes set-id bits and file capabilities before the contents change. `sets_mode`: the request sets the mode
    /// anyway.
    pub(super) fn kill_privileges(&self, object: &Object, sets_mode: bool) -> Result<(), Failure> {
        let mode = present_mode(object)?;
        let mut falling = mode & SET_UID;
        if mode & GROUP_EXECUTE != 0 {
            falling |= mode & SET_GID;
        }
        if falling != 0 && !sets_mode {
            match set_mode(object, mode & !falling) {
                // Not the owner: the kernel removes them at the write.
                Ok(()) | Err(Failure::Errno(Errno::NotPermitted)) => {}
                Err(failure) => return Err(failure),
            }
        }
        match rustix::fs::removexattr(proc_path(object.as_fd()), c"security.capability") {
            // Absent, or not supported. A server without the permission writes without it as well, so the kernel
            // removes the capabilities at the write.
            Ok(()) | Err(SystemErrno::NODATA | SystemErrno::OPNOTSUPP | SystemErrno::PERM) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
