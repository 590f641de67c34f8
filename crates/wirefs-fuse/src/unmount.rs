//! Unmounting, normally or by force. Neither accesses the mount's server.

use crate::mount::{TableEntry, find_in_table, resolve_mountpoint, unmount_through_helper};
use rustix::io::Errno;
use rustix::mount::UnmountFlags;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// The reason why an unmount failed, with the next step.
#[derive(Debug, thiserror::Error)]
pub enum UnmountError {
    /// No FUSE file system is mounted there.
    #[error("no FUSE file system is mounted at {}: `findmnt -t fuse.wirefs` lists what is", mountpoint.display())]
    NotMounted {
        /// The mountpoint.
        mountpoint: PathBuf,
    },
    /// Programs use the mount.
    #[error(
        "{} is in use: close what is open there (`fuser -vm {}` names it), or `wirefs umount -f {}`",
        mountpoint.display(),
        mountpoint.display(),
        mountpoint.display()
    )]
    Busy {
        /// The mountpoint.
        mountpoint: PathBuf,
    },
    /// The mount belongs to another user.
    #[error("{} may not be unmounted by this user: do it as root or as the one who mounted it", mountpoint.display())]
    NotPermitted {
        /// The mountpoint.
        mountpoint: PathBuf,
    },
    /// `fusermount3` is not installed.
    #[error("fusermount3 is not installed, and only root can unmount without it: install the package fuse3")]
    NoHelper,
    /// `fusermount3` failed.
    #[error("fusermount3 could not unmount: {message}")]
    Helper {
        /// Its message.
        message: String,
    },
    /// The kernel's control directory for FUSE is not mounted.
    #[error(
        "the connection cannot be cut: /sys/fs/fuse/connections is not mounted; as root: \
         `mount -t fusectl none /sys/fs/fuse/connections`"
    )]
    NoControl,
    /// The kernel refused for another reason.
    #[error("unmounting {} failed: {source}", mountpoint.display())]
    Failed {
        /// The mountpoint.
        mountpoint: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
}

/// The kernel's path of the mountpoint, and its mount. Only FUSE mounts are found.
fn locate(mountpoint: &Path) -> Result<(PathBuf, TableEntry), UnmountError> {
    let missing = || UnmountError::NotMounted { mountpoint: mountpoint.to_path_buf() };
    let failed = |source| UnmountError::Failed { mountpoint: mountpoint.to_path_buf(), source };
    let resolved = resolve_mountpoint(mountpoint).map_err(|error| match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => missing(),
        _ => failed(error),
    })?;
    let entry = find_in_table(&resolved).map_err(failed)?.ok_or_else(missing)?;
    Ok((resolved, entry))
}

/// Unmounts. `lazy`: removes the mountpoint at once, and the file system after its last use.
///
/// # Errors
/// Each message states the cause and the next step.
pub fn unmount(mountpoint: &Path, lazy: bool) -> Result<(), UnmountError> {
    let (mountpoint, _) = locate(mountpoint)?;
    if !rustix::process::geteuid().is_root() {
        return unmount_with_helper(mountpoint, lazy);
    }
    let mut flags = UnmountFlags::NOFOLLOW;
    flags.set(UnmountFlags::DETACH, lazy);
    match rustix::mount::unmount(&mountpoint, flags) {
        Ok(()) => Ok(()),
        Err(Errno::BUSY) => Err(UnmountError::Busy { mountpoint }),
        Err(Errno::INVAL | Errno::NOENT) => Err(UnmountError::NotMounted { mountpoint }),
        Err(Errno::PERM) => match unmount_with_helper(mountpoint.clone(), lazy) {
            Err(UnmountError::NoHelper) => Err(UnmountError::NotPermitted { mountpoint }),
            result => result,
        },
        Err(errno) => Err(UnmountError::Failed { mountpoint, source: errno.into() }),
    }
}

fn unmount_with_helper(mountpoint: PathBuf, lazy: bool) -> Result<(), UnmountError> {
    let Err(error) = unmount_through_helper(&mountpoint, lazy) else {
        return Ok(());
    };
    if error.kind() == ErrorKind::NotFound {
        return Err(UnmountError::NoHelper);
    }
    let message = error.to_string();
    Err(if message.contains("busy") {
        UnmountError::Busy { mountpoint }
    } else if message.contains("not found in") || message.contains("Invalid argument") {
        UnmountError::NotMounted { mountpoint }
    } else if message.contains("not permitted") || message.contains("ermission denied") {
        UnmountError::NotPermitted { mountpoint }
    } else {
        UnmountError::Helper { message }
    })
}

/// Aborts the connection between a mount and its server. All waiting and later calls fail until the mount is
/// unmounted. If the kernel's control directory is not mounted, root aborts with a forced unmount, which also
/// unmounts an unused mount.
///
/// # Errors
/// Each message states the cause and the next step.
pub fn abort(mountpoint: &Path) -> Result<(), UnmountError> {
    let (mountpoint, TableEntry { minor, .. }) = locate(mountpoint)?;
    let control = format!("/sys/fs/fuse/connections/{minor}/abort");
    let Err(error) = std::fs::OpenOptions::new().write(true).open(control).and_then(|mut file| {
        use std::io::Write;
        file.write_all(b"1")
    }) else {
        return Ok(());
    };
    match error.kind() {
        ErrorKind::NotFound if rustix::process::geteuid().is_root() => force(mountpoint),
        ErrorKind::NotFound => Err(UnmountError::NoControl),
        ErrorKind::PermissionDenied => Err(UnmountError::NotPermitted { mountpoint }),
        _ => Err(UnmountError::Failed { mountpoint, source: error }),
    }
}

/// The kernel aborts the connection before it checks whether the mount is in use.
fn force(mountpoint: PathBuf) -> Result<(), UnmountError> {
    match rustix::mount::unmount(&mountpoint, UnmountFlags::FORCE | UnmountFlags::NOFOLLOW) {
        Ok(()) | Err(Errno::BUSY) => Ok(()),
        Err(Errno::INVAL | Errno::NOENT) => Err(UnmountError::NotMounted { mountpoint }),
        Err(Errno::PERM) => Err(UnmountError::NotPermitted { mountpoint }),
        Err(errno) => Err(UnmountError::Failed { mountpoint, source: errno.into() }),
    }
}
