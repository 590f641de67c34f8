//! Work that no call has asked for.

mod leases;
mod unconfirmed;
