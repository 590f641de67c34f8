//! What is in a packet: the clear header, and the parts under the seal.

pub(crate) mod header;
pub(crate) mod part;
pub(crate) mod writer;
