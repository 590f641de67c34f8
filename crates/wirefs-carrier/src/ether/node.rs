//! Entropy and keys for the circuit state machine.

use ring::agreement::{EphemeralPrivateKey, X25519};
use ring::rand::{SecureRandom, SystemRandom};
use wirefs_circuit::{Card, CircuitConfig, CircuitNode, HandshakeKey, PeerTrust};

use super::error::EtherError;
use crate::tls::Identity;

/// Keys made at a time while other threads wait for the mux.
const KEYS_AT_ONCE: usize = 2;
/// Keys of a new node.
const KEYS_FIRST: usize = 8;

/// Returns a node without peers. It admits any key: dialing and accepting check keys.
pub(super) fn node(identity: &Identity, cards: Vec<Card>) -> Result<CircuitNode, EtherError> {
    let mut secret = [0; 32];
    SystemRandom::new().fill(&mut secret).map_err(|_| EtherError::Chance)?;
    let identity = identity.pair().ok_or(EtherError::Identity)?;
    let mut node = CircuitNode::new(CircuitConfig { identity, secret, cards, trust: PeerTrust::Anyone })?;
    give_keys(&mut node, KEYS_FIRST);
    Ok(node)
}

fn give_keys(node: &mut CircuitNode, count: usize) {
    for _ in 0..count {
        let private = EphemeralPrivateKey::generate(&X25519, &SystemRandom::new());
        // Without entropy there is no key, and so no new peer; a later call may succeed.
        if let Some(key) = private.ok().and_then(HandshakeKey::new) {
            node.give_key(key);
        }
    }
}

/// Makes keys in place of used ones.
pub(super) fn top_up(node: &mut CircuitNode) {
    give_keys(node, node.keys_wanted().min(KEYS_AT_ONCE));
}
