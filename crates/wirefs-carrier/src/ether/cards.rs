//! Cards that are open, over which any peer can be dialled.

use std::sync::Arc;
use std::time::Duration;

use super::HardwareAddress;
use super::dial::EtherDial;
use super::error::EtherError;
use super::owner::Owner;
use crate::tls::{Identity, PublicKey};

/// Cards of this machine that are open: one node, over which many peers are dialled. The right to open cards can be given up
/// meanwhile.
#[derive(Clone, Debug)]
pub struct EtherCards {
    pub(super) names: Vec<String>,
    pub(super) owner: Arc<Owner>,
    pub(super) identity: Arc<Identity>,
}

impl EtherCards {
    /// Opens cards for one that dials and answers nobody.
    ///
    /// # Errors
    /// They cannot be opened; the text says what to do.
    pub fn open(names: &[String], identity: Arc<Identity>) -> Result<EtherCards, EtherError> {
        let owner = Owner::open(names, &identity, false)?;
        Ok(EtherCards { names: names.to_vec(), owner, identity })
    }

    /// The names of the cards.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Their hardware addresses, in the same order.
    pub fn hardware(&self) -> Vec<HardwareAddress> {
        self.owner.engine.cards.iter().map(|card| card.socket.address()).collect()
    }

    /// Will dial who has this key, from these cards, by their place among ours, to these addresses; giving the handshake
    /// `timeout`.
    pub fn dial_to(&self, ways: &[(usize, HardwareAddress)], key: PublicKey, timeout: Duration) -> EtherDial {
        EtherDial::expecting(self, ways, key, timeout)
    }
}
