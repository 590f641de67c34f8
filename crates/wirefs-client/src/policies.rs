//! Policies: decisions that concern several rooms of the client.

mod bounds;
mod contended;
mod disk_cache;
mod inactive;
mod leases;
pub(crate) mod predict;
mod prefetch;
mod rollback;
mod synced;
mod unconfirmed;
