//! The wire format: the clear header and the sealed parts.

pub(crate) mod header;
pub(crate) mod part;
pub(crate) mod writer;
