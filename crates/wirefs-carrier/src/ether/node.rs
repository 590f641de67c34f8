//! What the machine of circuits needs from the system: chance and keys.

use ring::agreement::{EphemeralPrivateKey, X25519};
use ring::rand::{SecureRandom, SystemRandom};
use wirefs_circuit::{Card, CircuitConfig as Config, CircuitNode as Node, HandshakeKey, PeerTrust as Trust};

use super::error::EtherError;
use crate::tls::Identity;

/// Keys that are made at once while others wait for the machine.
const KEYS_AT_ONCE: usize = 2;
/// Keys that a node has when it begins.
const KEYS_FIRST: usize = 8;

/// Makes a node that knows nobody. Whose word counts is decided where it is dialled or accepted.
pub(super) fn node(identity: &Identity, cards: Vec<Card>) -> Result<Node, EtherError> {
    let mut secret = [0; 32];
    SystemRandom::new().fill(&mut secret).map_err(|_| EtherError::Chance)?;
    let identity = identity.pair().ok_or(EtherError::Identity)?;
    let mut node = Node::new(Config { identity, secret, cards, trust: Trust::Anyone })?;
    give_keys(&mut node, KEYS_FIRST);
    Ok(node)
}

fn give_keys(node: &mut Node, count: usize) {
    for _ in 0..count {
        let private = EphemeralPrivateKey::generate(&X25519, &SystemRandom::new());
        // Without chance there is no key, and so no new peer; a later call may find some.
        if let Some(key) = private.ok().and_then(HandshakeKey::new) {
            node.give_key(key);
        }
    }
}

/// Makes keys in place of those that were used.
pub(super) fn top_up(node: &mut Node) {
    give_keys(node, node.keys_wanted().min(KEYS_AT_ONCE));
}
