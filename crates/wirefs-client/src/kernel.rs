//! The kernel's side: the calls in progress.

mod calls;

pub(crate) use calls::CallsInProgress;
