//! Work that no call has asked for, and the prediction of replies.

mod disk_cache;
mod leases;
pub(crate) mod predict;
mod prefetch;
mod synced;
mod unconfirmed;
