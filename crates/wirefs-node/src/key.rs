//! Who a node is, and what it is called.

use crate::limits::NAME_BYTES_MAX;
use std::fmt;

/// A node's ed25519 public key: who it is, whatever its name and addresses.
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

/// What a node is called: a directory's name below `/net`, and no more than letters, digits, `-`, `_` and `.`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(String);

impl Name {
    /// The name of this node in each node's own `/net`, which no node may have.
    pub const OWN: &'static str = "SELF";

    /// Takes a name; `None` where it is none.
    pub fn new(text: &str) -> Option<Name> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        let fits = !text.is_empty() && text.len() <= NAME_BYTES_MAX;
        let is_name =
            fits && text.bytes().all(is_plain) && !text.starts_with(['.', '-']) && text != Name::OWN;
        is_name.then(|| Name(text.to_owned()))
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_directory_and_nobody_is_called_self() {
        for good in ["linus1", "a", "host.example.org", "x_y-z"] {
            assert_eq!(Name::new(good).unwrap().as_str(), good);
        }
        let long = "x".repeat(NAME_BYTES_MAX + 1);
        for bad in ["", ".", "..", ".hidden", "-o", "a/b", "a b", "SELF", "ä", "a\0", &long] {
            assert_eq!(Name::new(bad), None, "{bad:?}");
        }
    }
}
