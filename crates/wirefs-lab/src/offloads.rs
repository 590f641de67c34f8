//! Cards that send and receive each packet by itself, as the cable has it.

use std::io;

use rustix::net::{AddressFamily, SocketType, socket};

use crate::error::LabError;
use crate::lab::Host;
use crate::sys;

/// What lets the kernel move up to 64 KiB through a card as if it were one packet.
const BUNDLING: [u32; 3] = [sys::SET_TSO, sys::SET_GSO, sys::SET_GRO];
/// The rest of what a card can do for the kernel. A virtual cable does none of it: it has the packets go without checksums.
const HELP: [u32; 3] = [sys::SET_RXCSUM, sys::SET_TXCSUM, sys::SET_SG];

impl Host {
    /// Has a card of this host neither cut large segments nor join received ones (TSO, GSO and GRO off): a virtual cable then
    /// carries packets no larger than its MTU, as a real one does.
    ///
    /// # Errors
    /// There is no such card, or it does not let itself be told so.
    pub fn unbundle(&self, device: &str) -> Result<(), LabError> {
        self.turn_off(device, &BUNDLING)
    }

    /// The same, and has the kernel make and check checksums and put each packet into one piece: a card without any offload.
    ///
    /// # Errors
    /// As of [`Host::unbundle`].
    pub fn unaid(&self, device: &str) -> Result<(), LabError> {
        self.unbundle(device)?;
        self.turn_off(device, &HELP)
    }

    fn turn_off(&self, device: &str, features: &[u32]) -> Result<(), LabError> {
        let failed = |source| LabError::Io { action: format!("turn the offloads of {device} off"), source };
        self.run(|| -> io::Result<()> {
            let any = socket(AddressFamily::INET, SocketType::DGRAM, None)?;
            features.iter().try_for_each(|what| sys::set_card_feature(&any, device, *what, false))
        })?
        .map_err(failed)
    }
}
