//! The name of this machine, which the names of conflict copies contain.

/// `HOST_NAME_MAX` of Linux, in bytes.
const BYTES_MAX: usize = 64;

/// A host's name, truncated to the length that Linux allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostName {
    bytes: [u8; BYTES_MAX],
    length: usize,
}

impl HostName {
    /// Takes the name that the system reports.
    pub fn new(name: &[u8]) -> HostName {
        let mut bytes = [0; BYTES_MAX];
        let length = name.len().min(BYTES_MAX);
        for (place, byte) in bytes.iter_mut().zip(name) {
            *place = *byte;
        }
        HostName { bytes, length }
    }

    /// The name.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}
