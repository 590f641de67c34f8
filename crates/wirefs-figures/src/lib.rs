//! Replicas of the evaluations in three published papers, measured beside the papers' own figures; pictures of the
//! bench.
//!
//! *Holds*: peers alternate within a run, in another order each run, so that load on the machine affects all of them
//! alike; every byte that is read or written is compared with the expected contents.
//!
//! *Never*: shipped, or used by a crate that is.
//!
//! *Drive it*: `make fetch`, `make published`.
//!
//! *Proved by*: the unit tests beside `report`, `batch`, `plot` and `distance`.

pub mod distance;
pub mod fetch;
pub mod published;
