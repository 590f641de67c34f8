//! Nodes in a simulated network.

mod attacks;
mod names;
mod troubles;
pub(crate) mod world;
