//! The view of the mounted tree: names, listings, attributes and contents, and how far each may be used.

pub(crate) mod bounds;
pub(crate) mod conflicts;
pub(crate) mod contended;
pub(crate) mod copies;
pub(crate) mod disk_cache;
pub(crate) mod durable;
pub(crate) mod exclusive;
pub(crate) mod files;
pub(crate) mod leases;
pub(crate) mod locks;
pub(crate) mod misses;
pub(crate) mod prefetch;
pub(crate) mod publications;
pub(crate) mod rollback;
pub(crate) mod shown;
pub(crate) mod synced;
pub(crate) mod throttled;
pub(crate) mod unconfirmed;

use crate::config::{Attachment, Config};
use bounds::Trim;
use disk_cache::Stored;
use exclusive::ExclusiveState;
use files::Files;
use leases::Leases;
use locks::Locks;
use prefetch::Streams;
use wirefs_cache::{DirectoryCache, Freshness, InactiveListings, NameTree};
use wirefs_op::{FsStat, Time};

/// The terms of the mount, and the time.
#[derive(Debug)]
pub(crate) struct Mount {
    /// The user's choices.
    pub(crate) config: Config,
    /// The server's part of the agreement.
    pub(crate) attachment: Attachment,
    /// The time of the last input.
    pub(crate) now: Time,
    /// The absolute path of the mountpoint; `None` before the mount, and where it does not matter.
    pub(crate) mountpoint: Option<Vec<u8>>,
    /// Whether a link of the server that leads out of the mount was refused.
    pub(crate) has_refused_link: bool,
}

/// The cached data of the tree, and the rights to use it.
#[derive(Debug)]
pub(crate) struct View {
    pub(crate) names: NameTree,
    pub(crate) directories: DirectoryCache,
    pub(crate) inactive: InactiveListings,
    pub(crate) files: Files,
    pub(crate) disk_cache: Stored,
    pub(crate) leases: Leases,
    pub(crate) locks: Locks,
    /// The file system's figures, and the time of the request that brought them.
    pub(crate) figures: Option<(FsStat, Time)>,
    pub(crate) bounds: Trim,
    pub(crate) mount: Mount,
    pub(crate) exclusive: ExclusiveState,
    pub(crate) prefetch: Streams,
}

impl View {
    /// The view of a tree that was just attached.
    pub(crate) fn new(config: Config, attachment: Attachment, now: Time) -> View {
        let leases = Leases::new(&config.mode, &attachment, now);
        let root = Freshness { at: now, leased: attachment.root.leased && leases.are_agreed() };
        View {
            names: bounds::names_within(config.cache_bytes_max, attachment.root, root),
            directories: bounds::directories_within(config.cache_bytes_max),
            inactive: bounds::inactive_within(config.cache_bytes_max),
            files: Files::new(config.cache_bytes_max),
            disk_cache: Stored::default(),
            leases,
            locks: Locks::default(),
            figures: None,
            bounds: Trim::within(config.cache_bytes_max),
            mount: Mount { config, attachment, now, mountpoint: None, has_refused_link: false },
            exclusive: ExclusiveState::default(),
            prefetch: Streams::default(),
        }
    }
}
