//! The plan of a mount.

use std::sync::Arc;
use std::time::Duration;

use wirefs_cache::Mode;
use wirefs_carrier::{Carrier, Dial, DialError};

use super::journal::JournalPlan;
use super::slow::{Slow, Waits};
use super::store::StorePlan;

/// Connections that a mount makes to its server, at most.
pub const CONNECTIONS_MAX: usize = 4;

/// What to mount, and how.
#[derive(Clone)]
pub struct MountPlan {
    /// How to reach the server, as often as it takes.
    pub dial: Arc<dyn Dial>,
    /// The directory below the export, without a leading `/`.
    pub path: Vec<u8>,
    /// Who mounts, for the server's log.
    pub user: String,
    /// When to validate, publish, fetch.
    pub mode: Mode,
    /// How long a call may wait for a silent server; `None`: for ever.
    pub deadline: Option<Duration>,
    /// File contents remembered, in bytes, at most.
    pub cache_bytes_max: usize,
    /// Threads that read requests from the kernel.
    pub threads: usize,
    /// Connections to the server, at most: beside the first one those are made by themselves over which contents of files come when
    /// socket buffers limit it. 1: no others.
    pub connections_max: usize,
    /// The user whose files the server user's files are shown as.
    pub uid: u32,
    /// The group likewise.
    pub gid: u32,
    /// Where what is known is kept for the next mount; `None`: nowhere.
    pub store: Option<StorePlan>,
    /// Where the journal is, and whether one is kept; `None`: nowhere.
    pub journal: Option<JournalPlan>,
    /// Told what the making of the mount waits for when that takes longer than 1 s.
    pub tell: fn(Waits),
}

impl MountPlan {
    /// Dials the server, and says so where that takes long.
    pub(super) fn dial(&self) -> Result<Carrier, DialError> {
        let _slow = Slow::begin(self.tell, Waits::Connection);
        self.dial.dial()
    }
}
