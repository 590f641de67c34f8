//! A mounted `/net`.

use super::root::NetRoot;
use super::updater::NetUpdater;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wirefs_fuse::{MountOptions, Session, SessionOptions};
use wirefs_mount::{MountPlan, MountStartError};
use wirefs_node::NodeRecord;
use wirefs_nodehost::NodeHost;

/// Returns the plan to mount a node; `None` for a node that is not mounted.
pub type Reach = Box<dyn Fn(&NodeRecord) -> Option<MountPlan> + Send>;

/// The plan of `/net`.
pub struct NetPlan {
    /// The mount point of `/net`.
    pub at: PathBuf,
    /// The directory that this node shares.
    pub share: Option<PathBuf>,
    /// The private directory of an ordinary user's mounts. `None`: they are mounted below `at`, as root.
    pub mounts: Option<PathBuf>,
    /// The plan to mount each node.
    pub reach: Reach,
}

/// A mounted `/net`.
pub struct Net {
    at: PathBuf,
    updater: std::thread::JoinHandle<()>,
}

impl Net {
    /// Mounts `/net`, and keeps it up to date until the node leaves.
    ///
    /// # Errors
    /// The kernel's refusal, with advice.
    pub fn start(plan: NetPlan, host: &Arc<NodeHost>) -> Result<Net, MountStartError> {
        let options = options("wirefs-net", plan.mounts.is_none());
        let root = Arc::new(NetRoot::new());
        let device = wirefs_fuse::mount(&plan.at, &options)?;
        let at = plan.at.clone();
        let served: Arc<NetRoot> = Arc::clone(&root);
        let session_options = SessionOptions { threads: 2, ..SessionOptions::default() };
        let started =
            Session::start(device, served, session_options).map_err(MountStartError::from).and_then(|_| {
                let updater = NetUpdater::new(plan, root, Arc::clone(host));
                let thread = std::thread::Builder::new().name("wirefs-net".into());
                Ok(thread.spawn(move || updater.run())?)
            });
        match started {
            Ok(updater) => Ok(Net { at, updater }),
            Err(error) => {
                // INVARIANT: no caller may wait on a mount without a server.
                let _gone = wirefs_fuse::unmount(&at, true);
                Err(error)
            }
        }
    }

    /// Unmounts it, after the node has left.
    pub fn end(self) {
        let _ended = self.updater.join();
        let _gone = wirefs_fuse::unmount(&self.at, true);
    }
}

/// Unmounts what a killed process left at `at`, with all mounts below it.
///
/// # Errors
/// The mount cannot be removed.
pub fn clear(at: &Path) -> io::Result<()> {
    let is_of_dead = |error: io::Error| {
        let errno = rustix::io::Errno::from_io_error(&error);
        matches!(errno, Some(rustix::io::Errno::NOTCONN | rustix::io::Errno::CONNABORTED))
    };
    // The kernel may still have cached attributes of a dead mount, but no listing.
    match std::fs::metadata(at).is_err_and(is_of_dead) || std::fs::read_dir(at).is_err_and(is_of_dead) {
        true => wirefs_fuse::unmount(at, true).map_err(io::Error::other),
        false => Ok(()),
    }
}

/// The mount options of a part of `/net`. If all users have access, the kernel checks permissions.
pub(super) fn options(name: &str, is_public: bool) -> MountOptions {
    MountOptions {
        fs_name: name.to_owned(),
        allow_other: is_public,
        default_permissions: true,
        ..MountOptions::default()
    }
}
