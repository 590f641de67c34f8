//! Nodes in a simulated network.

mod attacks;
mod faults;
mod names;
pub(crate) mod network;
mod registered;
