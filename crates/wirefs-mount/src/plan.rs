//! The plan of a mount.

use std::sync::Arc;
use std::time::Duration;

use wirefs_cache::Mode;
use wirefs_carrier::{Carrier, Dial, DialError};

use super::journal::JournalPlan;
use super::slow_step::{MountStep, SlowStep};
use super::store::StorePlan;

/// The maximum number of connections of a mount.
pub const CONNECTIONS_MAX: usize = 4;

/// The plan of a mount.
#[derive(Clone)]
pub struct MountPlan {
    /// The dialer of the server, used again after each loss.
    pub dial: Arc<dyn Dial>,
    /// The directory below the export, without a leading `/`.
    pub path: Vec<u8>,
    /// The mounting user's name, for the server's log.
    pub user: String,
    /// When data is validated, published and fetched.
    pub mode: Mode,
    /// How long a call waits for an unreachable server; `None`: forever.
    pub deadline: Option<Duration>,
    /// The maximum size of cached file contents, in bytes.
    pub cache_bytes_max: usize,
    /// The number of threads that read requests from the kernel.
    pub threads: usize,
    /// The maximum number of connections to the server. Beside the first one, data connections for file contents are
    /// opened when socket buffers limit it. 1: no data connections.
    pub connections_max: usize,
    /// The local owner of files that belong to the server's user.
    pub uid: u32,
    /// Their local group.
    pub gid: u32,
    /// Whether links of the server that lead out of the mount are refused.
    pub confines_links: bool,
    /// The disk cache for the next mount, if any.
    pub store: Option<StorePlan>,
    /// The journals of the source, if any.
    pub journal: Option<JournalPlan>,
    /// Called with the step that mounting waits for, if it takes longer than 1 s.
    pub tell: fn(MountStep),
}

impl MountPlan {
    /// Dials the server, and reports a dial that takes long.
    pub(super) fn dial(&self) -> Result<Carrier, DialError> {
        let _slow = SlowStep::begin(self.tell, MountStep::Connection);
        self.dial.dial()
    }
}
