//! The kernel's side: the calls in progress, the queue of invalidations, and automount triggers.

pub mod automount;
mod calls;
pub mod invalidation_queue;

pub(crate) use calls::{CallsInProgress, Patience};
