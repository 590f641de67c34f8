//! Open cards, over which any peer can be dialed.

use std::sync::Arc;
use std::time::Duration;

use super::HardwareAddress;
use super::dial::EtherDial;
use super::error::EtherError;
use super::handle::SharedNode;
use crate::tls::{Identity, PublicKey};

/// Open cards of this machine: one node, from which many peers can be dialed. CAP_NET_RAW can be dropped meanwhile.
#[derive(Clone, Debug)]
pub struct EtherCards {
    pub(super) names: Vec<String>,
    pub(super) shared_node: Arc<SharedNode>,
    pub(super) identity: Arc<Identity>,
}

impl EtherCards {
    /// Opens cards for dialing only.
    ///
    /// # Errors
    /// Fails if a card cannot be opened; the text names the next step.
    pub fn open(names: &[String], identity: Arc<Identity>) -> Result<EtherCards, EtherError> {
        let shared_node = SharedNode::open(names, &identity, false)?;
        Ok(EtherCards { names: names.to_vec(), shared_node, identity })
    }

    /// Returns the names of the cards.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Returns their hardware addresses, in the same order.
    pub fn hardware(&self) -> Vec<HardwareAddress> {
        self.shared_node.engine.cards.iter().map(|card| card.socket.address()).collect()
    }

    /// Returns a dialer of the node with this key. `paths`: the index of a local card, and the peer's hardware address.
    pub fn dial_to(
        &self,
        paths: &[(usize, HardwareAddress)],
        key: PublicKey,
        timeout: Duration,
    ) -> EtherDial {
        EtherDial::expecting(self, paths, key, timeout)
    }
}
