//! Nodes in a simulated network.

mod attacks;
mod names;
mod registered;
mod troubles;
pub(crate) mod world;
