//! Network cards without offloads: packets on a virtual cable then look as on a real one.

use std::io;

use rustix::net::{AddressFamily, SocketType, socket};

use crate::error::LabError;
use crate::lab::Host;
use crate::sys;

/// Segmentation offloads, with which the kernel passes up to 64 KiB as one packet.
const SEGMENTATION: [u32; 3] = [sys::SET_TSO, sys::SET_GSO, sys::SET_GRO];
/// Checksum and scatter-gather offloads. A veth pair passes packets without valid checksums.
const CHECKSUMS_AND_SG: [u32; 3] = [sys::SET_RXCSUM, sys::SET_TXCSUM, sys::SET_SG];

impl Host {
    /// Disables segmentation offloads (TSO, GSO and GRO) of a card of this host. A veth pair then carries no packets
    /// larger than its MTU, like a real cable.
    ///
    /// # Errors
    /// Fails if there is no such card, or if it does not support the change.
    pub fn disable_segmentation(&self, device: &str) -> Result<(), LabError> {
        self.turn_off(device, &SEGMENTATION)
    }

    /// Disables all offloads: segmentation, checksums and scatter-gather.
    ///
    /// # Errors
    /// Same as [`Host::disable_segmentation`].
    pub fn disable_offloads(&self, device: &str) -> Result<(), LabError> {
        self.disable_segmentation(device)?;
        self.turn_off(device, &CHECKSUMS_AND_SG)
    }

    fn turn_off(&self, device: &str, features: &[u32]) -> Result<(), LabError> {
        let failed = |source| LabError::Io { action: format!("disable the offloads of {device}"), source };
        self.run(|| -> io::Result<()> {
            let any = socket(AddressFamily::INET, SocketType::DGRAM, None)?;
            features.iter().try_for_each(|feature| sys::set_card_feature(&any, device, *feature, false))
        })?
        .map_err(failed)
    }
}
