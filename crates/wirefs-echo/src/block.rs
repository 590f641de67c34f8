//! What is stored: bytes under an id, neither of which the store looks into.

/// The name of a block. Whoever makes blocks never gives the same name to different bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockId(pub [u8; BlockId::BYTES]);

impl BlockId {
    /// Its size in bytes.
    pub const BYTES: usize = 16;
}

impl From<u128> for BlockId {
    fn from(number: u128) -> BlockId {
        BlockId(number.to_be_bytes())
    }
}

impl std::fmt::Debug for BlockId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl std::fmt::Display for BlockId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Debug::fmt(self, f)
    }
}
