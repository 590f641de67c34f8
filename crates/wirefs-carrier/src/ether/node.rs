//! Entropy and keys for the circuit state machine.

use ring::agreement::{EphemeralPrivateKey, X25519};
use ring::rand::{SecureRandom, SystemRandom};
use wirefs_circuit::{Card, Config, HandshakeKey, Node, Trust};

use super::error::EtherError;
use crate::tls::Identity;

/// Keys made at a time while other threads wait for the mux.
const KEYS_AT_ONCE: usize = 2;
/// Keys of a new node.
const KEYS_FIRST: usize = 8;

/// Returns a node without peers. It admits any key: dialing and accepting check keys.
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
        // Without entropy there is no key, and so no new peer; a later call may succeed.
        if let Some(key) = private.ok().and_then(HandshakeKey::new) {
            node.give_key(key);
        }
    }
}

/// Makes keys in place of used ones.
pub(super) fn top_up(node: &mut Node) {
    give_keys(node, node.keys_wanted().min(KEYS_AT_ONCE));
}
