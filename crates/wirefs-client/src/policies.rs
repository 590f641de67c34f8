//! Policies: rules over the view. They decide how data is used, kept, shown and invalidated, and send nothing.

pub(crate) mod affected;
mod bounds;
mod connections;
mod contended;
mod disk_cache;
mod inactive;
pub(crate) mod invalidation;
mod leases;
pub(crate) mod prefetch;
mod present;
mod rollback;
mod sending;
mod synced;
mod unconfirmed;
