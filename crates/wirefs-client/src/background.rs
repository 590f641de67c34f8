//! Background work, for which no call waits.

mod leases;
mod unconfirmed;
