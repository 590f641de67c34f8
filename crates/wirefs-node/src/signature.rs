//! Signatures. A signed message begins with its purpose, so that no signature can be used for another one; no TLS
//! message begins with these prefixes.

use crate::key::NodeKey;
use ring::signature::{ED25519, UnparsedPublicKey};

/// Bytes of an ed25519 signature.
pub(crate) const SIGNATURE_BYTES: usize = 64;

type Sign = dyn Fn(&[u8]) -> Option<[u8; SIGNATURE_BYTES]> + Send + Sync;

/// Signs with this node's key; returns `None` if the key refuses.
pub struct Signer(Box<Sign>);

impl Signer {
    /// Wraps a function that returns the ed25519 signature of its argument.
    pub fn new(sign: impl Fn(&[u8]) -> Option<[u8; 64]> + Send + Sync + 'static) -> Signer {
        Signer(Box::new(sign))
    }

    pub(crate) fn sign(&self, purpose: &[u8], message: &[u8]) -> Option<[u8; SIGNATURE_BYTES]> {
        (self.0)(&[purpose, message].concat())
    }
}

impl std::fmt::Debug for Signer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Signer")
    }
}

/// Returns whether the last bytes are this key's signature of all bytes before them.
pub(crate) fn is_signed(purpose: &[u8], key: &NodeKey, bytes: &[u8]) -> bool {
    let Some((message, signature)) = bytes.split_last_chunk::<SIGNATURE_BYTES>() else {
        return false;
    };
    let message = [purpose, message].concat();
    UnparsedPublicKey::new(&ED25519, key.0).verify(&message, signature).is_ok()
}
