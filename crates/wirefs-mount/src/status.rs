//! The status of a mount.

use super::journal::JournalStatus;
use super::store::StoreStatus;
use std::path::PathBuf;
use std::time::Duration;
use wirefs_cache::Mode;
use wirefs_carrier::{PathStatus, PeerInfo};
use wirefs_client::Snapshot;

/// The state of a mount at one moment.
#[derive(Clone, Debug)]
pub struct MountStatus {
    /// The mount point.
    pub mountpoint: PathBuf,
    /// The server and its carrier.
    pub peer: PeerInfo,
    /// The error of the last dial; `None` while there is a connection.
    pub dial_error: Option<String>,
    /// The paths of the connection; empty if its carrier has a single one.
    pub paths: Vec<PathStatus>,
    /// The mode.
    pub mode: Mode,
    /// The time for which calls wait for an unreachable server; `None`: forever.
    pub deadline: Option<Duration>,
    /// The state and counters of the core.
    pub snapshot: Snapshot,
    /// The disk cache, if any.
    pub store: Option<StoreStatus>,
    /// The journal, if any.
    pub journal: Option<JournalStatus>,
    /// The time since the mount.
    pub up_for: Duration,
}
