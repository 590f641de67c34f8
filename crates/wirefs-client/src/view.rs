//! The view of the mounted tree: names, listings, attributes and contents, and how far each may be used.

pub(crate) mod bounds;
pub(crate) mod conflicts;
pub(crate) mod contended;
pub(crate) mod disk_cache;
pub(crate) mod durable;
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
