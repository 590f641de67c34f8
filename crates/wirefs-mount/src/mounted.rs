//! A mount, and the handle that controls it.

use std::path::PathBuf;
use std::sync::Arc;

use wirefs_carrier::Dial;
use wirefs_fuse::{Session, StartError, UnmountError};
use wirefs_op::Errno;

use super::ending::Holder;
use super::engine::Engine;
use super::status::MountStatus;

/// Why a mount could not be made, after the server was reached.
#[derive(Debug, thiserror::Error)]
pub enum MountError {
    /// The kernel would not mount.
    #[error(transparent)]
    Mount(#[from] wirefs_fuse::MountError),
    /// The kernel would not be served.
    #[error(transparent)]
    Start(#[from] StartError),
    /// No thread could be made.
    #[error("a thread could not be started: {0}")]
    Thread(#[from] std::io::Error),
}

/// A mount that is served.
pub struct Mounted {
    pub(super) engine: Arc<Engine>,
    pub(super) session: Session,
    pub(super) dial: Arc<dyn Dial>,
    pub(super) mountpoint: PathBuf,
}

/// Asks and commands a mount from other threads than the one that waits for its end.
#[derive(Clone)]
pub struct MountControl {
    engine: Arc<Engine>,
    dial: Arc<dyn Dial>,
    mountpoint: PathBuf,
}

impl Mounted {
    /// A handle for other threads.
    pub fn control(&self) -> MountControl {
        let dial = Arc::clone(&self.dial);
        MountControl { engine: Arc::clone(&self.engine), dial, mountpoint: self.mountpoint.clone() }
    }

    /// Waits until it is unmounted, then until what was on its way is at the server, at most as long as a caller would
    /// have waited.
    pub fn wait(self) {
        self.session.until_gone();
        self.engine.note(&Holder::Ending);
        let _ = self.session.join();
        end(&self.engine);
    }
}

impl MountControl {
    /// What it has done and is doing.
    pub fn status(&self) -> MountStatus {
        MountStatus { paths: self.dial.paths(), ..self.engine.status(&self.mountpoint) }
    }

    /// Waits until everything is on the server's stable storage.
    ///
    /// # Errors
    /// As `syncfs`.
    pub fn sync(&self) -> Result<(), Errno> {
        self.engine.sync()
    }

    /// Unmounts; `lazy` takes it out of sight at once, whoever still uses it.
    ///
    /// # Errors
    /// It is busy, or gone.
    pub fn unmount(&self, lazy: bool) -> Result<(), UnmountError> {
        wirefs_fuse::unmount(&self.mountpoint, lazy)
    }
}

/// Ends a mount without callers: sends its changes, for at most as long as a caller would wait.
pub(super) fn end(engine: &Engine) {
    let is_settled = engine.settle() && engine.settle_journal();
    engine.rest();
    engine.stop();
    engine.leave();
    engine.end_journal(is_settled);
}
