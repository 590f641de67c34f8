//! A mount, and the handle that controls it.

use std::path::PathBuf;
use std::sync::Arc;

use wirefs_carrier::Dial;
use wirefs_carrier::ssh::UserPrompts;
use wirefs_fuse::{Session, StartError, UnmountError};
use wirefs_metrics::CallLatencies;
use wirefs_op::{Errno, Time};

use super::engine::Engine;
use super::meter::{FinishedWait, PresentWait};
use super::previous_mount::MountNote;
use super::status::MountStatus;
use super::unsent::Unsent;

/// The reason why an attached tree could not be mounted.
#[derive(Debug, thiserror::Error)]
pub enum MountStartError {
    /// The kernel refuses the mount.
    #[error(transparent)]
    Mount(#[from] wirefs_fuse::MountError),
    /// The FUSE session cannot start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// No thread can be started.
    #[error("a thread could not be started: {0}")]
    Thread(#[from] std::io::Error),
}

/// A running mount.
pub struct Mounted {
    pub(super) engine: Arc<Engine>,
    pub(super) session: Session,
    pub(super) dial: Arc<dyn Dial>,
    pub(super) mountpoint: PathBuf,
}

/// Controls a mount from threads other than the one that waits for its end.
#[derive(Clone)]
pub struct MountControl {
    engine: Arc<Engine>,
    dial: Arc<dyn Dial>,
    mountpoint: PathBuf,
}

impl Mounted {
    /// Returns a handle for other threads.
    pub fn control(&self) -> MountControl {
        let dial = Arc::clone(&self.dial);
        MountControl { engine: Arc::clone(&self.engine), dial, mountpoint: self.mountpoint.clone() }
    }

    /// Waits until the mount is unmounted, then until the server has everything that programs wrote. Gives up when the
    /// server has answered nothing for as long as a call would have waited, and returns the changes that it does not
    /// have.
    ///
    /// # Guarantee
    /// S-75.
    pub fn wait(self) -> Unsent {
        self.session.wait_until_unmounted();
        self.engine.note(&MountNote::Ending);
        let _ = self.session.join();
        end(&self.engine)
    }
}

impl MountControl {
    /// Returns the status.
    pub fn status(&self) -> MountStatus {
        MountStatus { paths: self.dial.paths(), ..self.engine.status(&self.mountpoint) }
    }

    /// Returns the times of the calls so far.
    pub fn call_times(&self) -> &CallLatencies {
        &self.engine.meter.times
    }

    /// Returns the present time on the mount's clock.
    pub fn time(&self) -> Time {
        self.engine.now()
    }

    /// Returns the calls without an answer, the longest first.
    pub fn present_waits(&self) -> Vec<PresentWait> {
        self.engine.present_waits()
    }

    /// Returns the last calls that took at least 20 ms, the oldest first.
    pub fn finished_waits(&self) -> Vec<FinishedWait> {
        self.engine.meter.finished()
    }

    /// Closes the connection, as if it were lost. The mount dials again at once.
    pub fn disconnect(&self) {
        let closer = self.engine.lock().closer.clone();
        if let Some(closer) = closer {
            closer.close();
        }
    }

    /// Dials now, if there is no connection.
    pub fn connect_now(&self) {
        self.engine.dial_now();
    }

    /// Returns the users who may answer questions of the next dial; `None` if the carrier asks nothing.
    pub fn prompts(&self) -> Option<&UserPrompts> {
        self.dial.prompts()
    }

    /// Returns the changes that the server does not have now.
    pub fn unsent(&self) -> Unsent {
        self.engine.unsent()
    }

    /// Waits until everything is on the server's stable storage.
    ///
    /// # Errors
    /// Those of `syncfs`.
    pub fn sync(&self) -> Result<(), Errno> {
        self.engine.sync()
    }

    /// Unmounts. `lazy` detaches the mount even while it is in use.
    ///
    /// # Errors
    /// The mount is busy, or does not exist.
    pub fn unmount(&self, lazy: bool) -> Result<(), UnmountError> {
        wirefs_fuse::unmount(&self.mountpoint, lazy)
    }
}

/// Ends a mount without callers: sends its changes, for at most as long as a caller would wait.
/// Returns the changes that the server does not have.
pub(super) fn end(engine: &Engine) -> Unsent {
    let is_settled = engine.settle() && engine.settle_journal();
    let unsent = if is_settled { Unsent::default() } else { engine.unsent() };
    engine.release_leases();
    engine.stop();
    engine.save_cache();
    engine.end_journal(is_settled);
    unsent
}
