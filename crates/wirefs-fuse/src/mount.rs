//! Mounting: directly as root, else through `fusermount3`.

mod error;
mod fusermount;
mod options;
mod remount;
mod table;
#[cfg(test)]
mod tests;

pub use error::MountError;
pub(crate) use fusermount::unmount as unmount_through_helper;
pub use options::MountOptions;
pub use remount::{RemountError, remount};
pub(crate) use table::find as find_in_table;
pub use table::{TableEntry, is_read_only, resolve_mountpoint};

use crate::device::{Device, open_device};
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::io::Errno;
use std::ffi::CString;
use std::path::{Path, PathBuf};

/// Mounts at the directory `mountpoint`. The caller then starts a [`Session`](crate::Session) on the device; until
/// it does, programs that access the mount block.
///
/// # Errors
/// Each message states the cause and the next step.
pub fn mount(mountpoint: &Path, options: &MountOptions) -> Result<Device, MountError> {
    let mountpoint = examine(mountpoint)?;
    if !rustix::process::geteuid().is_root() {
        return fusermount::mount(&mountpoint, options).map(Device::from);
    }
    match mount_directly(&mountpoint, options) {
        // Root without the capability to mount, as in a container: the helper may have it.
        Err(refused @ MountError::NotPermitted { .. }) => match fusermount::mount(&mountpoint, options) {
            Err(MountError::NoHelper) => Err(refused),
            result => result.map(Device::from),
        },
        result => result.map(Device::from),
    }
}

/// The real path of the mountpoint, after checks.
fn examine(mountpoint: &Path) -> Result<PathBuf, MountError> {
    let path = || mountpoint.to_path_buf();
    let entry = find_in_table(mountpoint).ok().flatten();
    let metadata = std::fs::metadata(mountpoint).map_err(|source| match Errno::from_io_error(&source) {
        Some(Errno::NOENT) => MountError::Missing { mountpoint: path() },
        Some(Errno::NOTDIR) => MountError::NotDirectory { mountpoint: path() },
        Some(Errno::NOTCONN | Errno::CONNABORTED) => MountError::Stale { mountpoint: path() },
        _ => MountError::Unreadable { mountpoint: path(), source },
    })?;
    if let Some(TableEntry { source: what, .. }) = entry {
        return Err(MountError::Mounted { mountpoint: path(), what });
    }
    if !metadata.is_dir() {
        return Err(MountError::NotDirectory { mountpoint: path() });
    }
    std::fs::canonicalize(mountpoint).map_err(|source| MountError::Unreadable { mountpoint: path(), source })
}

fn mount_directly(mountpoint: &Path, options: &MountOptions) -> Result<OwnedFd, MountError> {
    let device = open_device().map_err(MountError::from_device)?;
    let split = options.split();
    let mut data = format!(
        "fd={},rootmode=40000,user_id={},group_id={}",
        device.as_raw_fd(),
        rustix::process::getuid().as_raw(),
        rustix::process::getgid().as_raw(),
    );
    for option in &split.data {
        data.push(',');
        data.push_str(option);
    }
    let data = CString::new(data).map_err(|_| MountError::BadOption { option: "(with a NUL)".to_owned() })?;
    let kind = format!("fuse.{}", options.subtype);
    rustix::mount::mount(options.fs_name.as_str(), mountpoint, kind.as_str(), split.flags, data.as_c_str())
        .map_err(|errno| MountError::from_mount(errno, mountpoint, split.data.join(",")))?;
    Ok(device)
}
