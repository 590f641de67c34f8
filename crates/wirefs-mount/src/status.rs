//! What a mount tells of itself.

use super::journal::JournalStatus;
use super::store::StoreStatus;
use std::path::PathBuf;
use std::time::Duration;
use wirefs_cache::Mode;
use wirefs_carrier::{PathStatus, PeerInfo};
use wirefs_client::Snapshot;

/// One mount at one moment.
#[derive(Clone, Debug)]
pub struct MountStatus {
    /// Where it is mounted.
    pub mountpoint: PathBuf,
    /// Who the server is, and over what.
    pub peer: PeerInfo,
    /// The ways that its connection takes; none where the carrier has but one.
    pub paths: Vec<PathStatus>,
    /// When it validates, publishes, fetches.
    pub mode: Mode,
    /// How long calls wait for a silent server; `None`: for ever.
    pub deadline: Option<Duration>,
    /// What the core has done and is doing.
    pub snapshot: Snapshot,
    /// What it has on disk; `None`: nothing.
    pub store: Option<StoreStatus>,
    /// What its journal holds; `None`: it keeps none.
    pub journal: Option<JournalStatus>,
    /// Since when it is mounted.
    pub up_for: Duration,
}
