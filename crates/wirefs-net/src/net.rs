//! `/net` while it is mounted.

use super::front::Front;
use super::keeper::Keeper;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wirefs_fuse::{MountOptions, Session, SessionOptions};
use wirefs_mount::{MountError, MountPlan};
use wirefs_node::NodeRecord;
use wirefs_nodehost::NodeHost;

/// How a node is mounted; `None`: it is not.
pub type Reach = Box<dyn Fn(&NodeRecord) -> Option<MountPlan> + Send>;

/// How `/net` is made.
pub struct NetPlan {
    /// Where.
    pub at: PathBuf,
    /// What this node shares.
    pub share: Option<PathBuf>,
    /// An ordinary user's: a private directory for the mounts. `None`: they are made below `at`, which takes root.
    pub mounts: Option<PathBuf>,
    /// How a node is mounted.
    pub reach: Reach,
}

/// A `/net` that stands.
pub struct Net {
    at: PathBuf,
    keeper: std::thread::JoinHandle<()>,
}

impl Net {
    /// Makes it, and keeps it right until the node leaves.
    ///
    /// # Errors
    /// The kernel refuses; the text says what to do.
    pub fn start(plan: NetPlan, host: &Arc<NodeHost>) -> Result<Net, MountError> {
        let options = options("wirefs-net", plan.mounts.is_none());
        let front = Arc::new(Front::new());
        let device = wirefs_fuse::mount(&plan.at, &options)?;
        let at = plan.at.clone();
        let served: Arc<Front> = Arc::clone(&front);
        let session_options = SessionOptions { threads: 2, ..SessionOptions::default() };
        let started =
            Session::start(device, served, session_options).map_err(MountError::from).and_then(|_| {
                let keeper = Keeper::new(plan, front, Arc::clone(host));
                let thread = std::thread::Builder::new().name("wirefs-net".into());
                Ok(thread.spawn(move || keeper.run())?)
            });
        match started {
            Ok(keeper) => Ok(Net { at, keeper }),
            Err(error) => {
                // INVARIANT: no caller may be left waiting on a mount that nobody serves.
                let _gone = wirefs_fuse::unmount(&at, true);
                Err(error)
            }
        }
    }

    /// Takes it away. Call it once the node has left.
    pub fn end(self) {
        let _ended = self.keeper.join();
        let _gone = wirefs_fuse::unmount(&self.at, true);
    }
}

/// Takes away what a process that died has left at `at`, with all that is mounted below it.
///
/// # Errors
/// It is in the way, and cannot be taken away.
pub fn clear(at: &Path) -> io::Result<()> {
    let is_of_dead = |error: io::Error| {
        let errno = rustix::io::Errno::from_io_error(&error);
        matches!(errno, Some(rustix::io::Errno::NOTCONN | rustix::io::Errno::CONNABORTED))
    };
    // The kernel may know the attributes for a moment longer than there is anybody to ask; a listing it asks for each time.
    match std::fs::metadata(at).is_err_and(is_of_dead) || std::fs::read_dir(at).is_err_and(is_of_dead) {
        true => wirefs_fuse::unmount(at, true).map_err(io::Error::other),
        false => Ok(()),
    }
}

/// How a part of `/net` is mounted. Where all users are let in, the kernel checks rights for each.
pub(super) fn options(name: &str, lets_all_in: bool) -> MountOptions {
    MountOptions {
        fs_name: name.to_owned(),
        allow_other: lets_all_in,
        default_permissions: true,
        ..MountOptions::default()
    }
}
