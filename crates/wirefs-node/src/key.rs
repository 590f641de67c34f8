//! Keys and names of nodes.

use crate::limits::NAME_BYTES_MAX;
use std::fmt;

/// A node's ed25519 public key: its identity, independent of name and addresses.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeKey(pub [u8; NodeKey::BYTES]);

impl NodeKey {
    /// Bytes of a key.
    pub const BYTES: usize = 32;
}

impl fmt::Debug for NodeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().take(4).try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A node's name: a directory below `/net`. Letters, digits, `-`, `_` and `.`, at most [`NAME_BYTES_MAX`] bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeName(String);

impl NodeName {
    /// The name of each node for itself in its own `/net`; no node may have it.
    pub const OWN: &'static str = "SELF";

    /// Returns `None` if `text` is not a valid name.
    pub fn new(text: &str) -> Option<NodeName> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        let fits = !text.is_empty() && text.len() <= NAME_BYTES_MAX;
        let is_name =
            fits && text.bytes().all(is_plain) && !text.starts_with(['.', '-']) && text != NodeName::OWN;
        is_name.then(|| NodeName(text.to_owned()))
    }

    /// Returns the text of the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for NodeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for NodeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_is_one_path_component_and_not_self() {
        for good in ["linus1", "a", "host.example.org", "x_y-z"] {
            assert_eq!(NodeName::new(good).unwrap().as_str(), good);
        }
        let long = "x".repeat(NAME_BYTES_MAX + 1);
        for bad in ["", ".", "..", ".hidden", "-o", "a/b", "a b", "SELF", "ä", "a\0", &long] {
            assert_eq!(NodeName::new(bad), None, "{bad:?}");
        }
    }
}
