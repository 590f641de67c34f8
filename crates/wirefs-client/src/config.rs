//! The user's choices, and the server's part of the agreement.

use crate::call::OpenHow;
use crate::host::HostName;
use std::time::Duration;
use wirefs_cache::Mode;
use wirefs_op::message::attach::Leases as Terms;
use wirefs_op::message::version::BootId;
use wirefs_op::{Stat, Timestamp};

/// The user's choices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// When to validate, publish, fetch.
    pub mode: Mode,
    /// Longest wait of a call for a silent server. `None`: for ever (`--hard`).
    pub deadline: Option<Duration>,
    /// The user that owns the server user's files in this mount.
    pub uid: u32,
    /// The group that owns the server user's files in this mount.
    pub gid: u32,
    /// Memory for names, listings and contents, in bytes.
    pub cache_bytes_max: usize,
    /// The longest time for which the kernel may trust a name, where it cannot be told to invalidate all names without waiting.
    /// `None`: no bound.
    pub name_ttl_max: Option<Duration>,
    /// Whether the driver keeps a journal. Only then are changes answered before the server has them.
    pub journal: bool,
    /// Whether `fsync` is answered once the local disk has the journal; else once the server's disk has the file.
    pub fsync_here: bool,
    /// Whether links of the server that lead out of the mount are refused, so that no program follows them to files of this
    /// machine.
    pub confines_links: bool,
    /// The time of day when [`Time`](wirefs_op::Time) was 0, for answers before the server has reported its time.
    pub day: Timestamp,
    /// This machine, for the names of conflict copies.
    pub host: HostName,
}

impl Config {
    /// Whether the kernel must keep no pages of a file that is opened so: appended data would land in the wrong place in them.
    pub(crate) fn is_uncached(&self, how: OpenHow) -> bool {
        how.direct || how.append || !self.mode.fetch.is_cached()
    }
}

/// The server's reply when the tree was attached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attachment {
    /// The root's attributes.
    pub root: Stat,
    /// The user that the server runs as.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
    /// Whether it acts for the callers of each request.
    pub acts_for_callers: bool,
    /// Whether it refuses changes.
    pub read_only: bool,
    /// Its boot id.
    pub boot: BootId,
    /// The session continues above this change number. `None`: the server keeps no ledger, so a change without a reply cannot be
    /// sent again.
    pub ledger: Option<u64>,
    /// Whether changes that follow a barrier wait for it at the server.
    pub has_barriers: bool,
    /// The most data connections beside the first one; 0 if the server has none, or was not asked.
    pub data_connections: usize,
    /// The terms of its leases; `None` if it grants none, or was not asked.
    pub leases: Option<Terms>,
}
