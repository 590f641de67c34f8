//! Failures to mount, with the next step.

use rustix::io::Errno;
use std::io;
use std::path::{Path, PathBuf};

/// The reason why a mount failed, with the next step.
#[derive(Debug, thiserror::Error)]
pub enum MountError {
    /// FUSE is missing in the kernel, or hidden.
    #[error(
        "/dev/fuse is missing: load the kernel's module with `modprobe fuse`; in a container, start it with \
         `--device /dev/fuse`"
    )]
    NoDevice,
    /// `/dev/fuse` may not be opened.
    #[error(
        "/dev/fuse may not be opened ({source}): make it usable for all with `chmod 0666 /dev/fuse` as root"
    )]
    DeviceRefused {
        /// The kernel's error.
        source: io::Error,
    },
    /// `fusermount3` is not installed.
    #[error("fusermount3 is not installed, and only root can mount without it: install the package fuse3")]
    NoHelper,
    /// `fusermount3` failed.
    #[error("fusermount3 could not mount: {message}")]
    Helper {
        /// Its message.
        message: String,
    },
    /// The mountpoint does not exist.
    #[error("the mountpoint {} does not exist: make it with `mkdir -p {}`", mountpoint.display(), mountpoint.display())]
    Missing {
        /// The mountpoint.
        mountpoint: PathBuf,
    },
    /// The mountpoint is not a directory.
    #[error("the mountpoint {} is not a directory: name an existing directory", mountpoint.display())]
    NotDirectory {
        /// The mountpoint.
        mountpoint: PathBuf,
    },
    /// There is a dead mount.
    #[error(
        "{} is a mount whose server is gone (\"Transport endpoint is not connected\"): clear it with \
         `wirefs umount -f {}`",
        mountpoint.display(),
        mountpoint.display()
    )]
    Stale {
        /// The mountpoint.
        mountpoint: PathBuf,
    },
    /// A FUSE file system is already mounted there.
    #[error(
        "{what} is mounted at {} already: unmount it first with `wirefs umount {}`",
        mountpoint.display(),
        mountpoint.display()
    )]
    Mounted {
        /// The mountpoint.
        mountpoint: PathBuf,
        /// The source of that mount.
        what: String,
    },
    /// The mountpoint cannot be accessed.
    #[error("the mountpoint {} cannot be used: {source}", mountpoint.display())]
    Unreadable {
        /// The mountpoint.
        mountpoint: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// Other users may not be allowed to use the mount.
    #[error(
        "only root may let other users into a mount (allow_other): add the line `user_allow_other` to /etc/fuse.conf, \
         or mount without it"
    )]
    AllowOther,
    /// The user may not mount on the mountpoint.
    #[error("{} may not be mounted on by this user: use a directory of your own", mountpoint.display())]
    NotOwned {
        /// The mountpoint.
        mountpoint: PathBuf,
    },
    /// Mounting is not permitted.
    #[error(
        "mounting at {} is not permitted: run as root with the right to mount (in a container: `--cap-add SYS_ADMIN`)",
        mountpoint.display()
    )]
    NotPermitted {
        /// The mountpoint.
        mountpoint: PathBuf,
    },
    /// The kernel does not know an option.
    #[error("the kernel does not take these mount options: {option}")]
    BadOption {
        /// The options.
        option: String,
    },
    /// The kernel refused for another reason.
    #[error("mounting at {} failed: {source}", mountpoint.display())]
    Refused {
        /// The mountpoint.
        mountpoint: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
}

impl MountError {
    /// Opening `/dev/fuse` failed.
    pub(super) fn from_device(errno: Errno) -> MountError {
        match errno {
            Errno::NOENT | Errno::NODEV | Errno::NXIO => MountError::NoDevice,
            errno => MountError::DeviceRefused { source: errno.into() },
        }
    }

    /// `mount(2)` failed.
    pub(super) fn from_mount(errno: Errno, mountpoint: &Path, options: String) -> MountError {
        let mountpoint = mountpoint.to_path_buf();
        match errno {
            Errno::PERM | Errno::ACCESS => MountError::NotPermitted { mountpoint },
            Errno::NODEV => MountError::NoDevice,
            Errno::INVAL => MountError::BadOption { option: options },
            Errno::NOENT => MountError::Missing { mountpoint },
            Errno::NOTDIR => MountError::NotDirectory { mountpoint },
            Errno::NOTCONN => MountError::Stale { mountpoint },
            errno => MountError::Refused { mountpoint, source: errno.into() },
        }
    }

    /// `fusermount3` failed with a message. It has no error codes; its messages have been stable since version 3.0.
    pub(super) fn from_helper(output: &str, mountpoint: &Path) -> MountError {
        let mountpoint = mountpoint.to_path_buf();
        let message = output.trim().trim_start_matches("fusermount3:").trim().to_owned();
        if output.contains("user_allow_other") {
            MountError::AllowOther
        } else if output.contains("Transport endpoint is not connected") {
            MountError::Stale { mountpoint }
        } else if output.contains("no write access to mountpoint") || output.contains("not owned by user") {
            MountError::NotOwned { mountpoint }
        } else if output.contains("device not found") {
            MountError::NoDevice
        } else if output.contains("failed to open /dev/fuse") {
            MountError::DeviceRefused { source: io::Error::other(message) }
        } else {
            MountError::Helper { message }
        }
    }
}
