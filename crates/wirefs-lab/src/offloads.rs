//! Cards that send and receive each packet by itself, as the cable has it.

use std::io;

use rustix::net::{AddressFamily, SocketType, socket};

use crate::error::LabError;
use crate::lab::Host;
use crate::sys;

/// What lets the kernel move up to 64 KiB through a card as if it were one packet.
const BUNDLING: [u32; 3] = [sys::SET_TSO, sys::SET_GSO, sys::SET_GRO];

impl Host {
    /// Has a card of this host neither cut large segments nor join received ones (TSO, GSO and GRO off): a virtual cable then
    /// carries packets no larger than its MTU, as a real one does.
    ///
    /// # Errors
    /// There is no such card, or it does not let itself be told so.
    pub fn unbundle(&self, device: &str) -> Result<(), LabError> {
        let failed = |source| LabError::Io { action: format!("turn the offloads of {device} off"), source };
        self.run(|| -> io::Result<()> {
            let any = socket(AddressFamily::INET, SocketType::DGRAM, None)?;
            BUNDLING.iter().try_for_each(|what| sys::set_card_feature(&any, device, *what, false))
        })?
        .map_err(failed)
    }
}
