//! Changes the flags of an existing mount.

use super::options::FLAGS;
use super::table::{flags_at, resolve_mountpoint};
use rustix::io::Errno;
use rustix::mount::MountFlags;
use std::io;
use std::path::{Path, PathBuf};

/// The reason why a remount failed, with the next step.
#[derive(Debug, thiserror::Error)]
pub enum RemountError {
    /// No FUSE file system is mounted there.
    #[error("no FUSE file system is mounted at {}: `findmnt -t fuse.wirefs` lists what is", mountpoint.display())]
    NotMounted {
        /// The mountpoint.
        mountpoint: PathBuf,
    },
    /// Files are open for writing.
    #[error(
        "{} cannot become read-only: files are open for writing there; close them (`fuser -vm {}` names their programs)",
        mountpoint.display(),
        mountpoint.display()
    )]
    Busy {
        /// The mountpoint.
        mountpoint: PathBuf,
    },
    /// Only root may remount.
    #[error(
        "only root may remount {}: the kernel refuses it to other users, and fusermount3 cannot do it; unmount it and mount it again",
        mountpoint.display()
    )]
    NotPermitted {
        /// The mountpoint.
        mountpoint: PathBuf,
    },
    /// The kernel refused for another reason.
    #[error("remounting {} failed: {source}", mountpoint.display())]
    Failed {
        /// The mountpoint.
        mountpoint: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
}

/// Changes flags of the mount at `mountpoint`, in the order of the options; other flags stay. A mount without
/// setuid programs or devices stays so: mount(8) run by root requests both even if the user did not. Options that
/// are not flags of `mount(2)` are ignored. The kernel first writes back modified mapped memory.
///
/// # Errors
/// Each message states the cause and the next step.
pub fn remount(mountpoint: &Path, options: &[String]) -> Result<(), RemountError> {
    let missing = || RemountError::NotMounted { mountpoint: mountpoint.to_path_buf() };
    let failed = |source| RemountError::Failed { mountpoint: mountpoint.to_path_buf(), source };
    let resolved = resolve_mountpoint(mountpoint).map_err(failed)?;
    let table = std::fs::read("/proc/self/mountinfo").map_err(failed)?;
    let present = flags_at(&table, &resolved).ok_or_else(missing)?;
    rustix::mount::mount_remount(&resolved, changed(&present, options), c"").map_err(|errno| {
        let mountpoint = mountpoint.to_path_buf();
        match errno {
            Errno::BUSY => RemountError::Busy { mountpoint },
            Errno::PERM | Errno::ACCESS => RemountError::NotPermitted { mountpoint },
            errno => RemountError::Failed { mountpoint, source: errno.into() },
        }
    })
}

/// The present flags of a mount, by name, changed by these options.
pub(super) fn changed(present: &[String], options: &[String]) -> MountFlags {
    let mut flags = MountFlags::empty();
    for name in present.iter().chain(options) {
        if let Some(&(_, flag, set)) = FLAGS.iter().find(|(known, ..)| known == name) {
            let is_kept = flag == MountFlags::NOSUID || flag == MountFlags::NODEV;
            flags.set(flag, set || (is_kept && flags.contains(flag)));
        }
    }
    flags
}
