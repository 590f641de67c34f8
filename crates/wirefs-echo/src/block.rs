//! Block ids of the echo store. The store interprets neither ids nor contents.

/// Identifies a block. The caller never uses one id for two different contents.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EchoBlockId(pub [u8; EchoBlockId::BYTES]);

impl EchoBlockId {
    /// Size of an id in bytes.
    pub const BYTES: usize = 16;
}

impl From<u128> for EchoBlockId {
    fn from(number: u128) -> EchoBlockId {
        EchoBlockId(number.to_be_bytes())
    }
}

impl std::fmt::Debug for EchoBlockId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl std::fmt::Display for EchoBlockId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Debug::fmt(self, f)
    }
}
