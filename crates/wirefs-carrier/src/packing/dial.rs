//! A dialer whose carriers pack.

use std::sync::Arc;

use super::{PackedBytes, packing};
use crate::carrier::Carrier;
use crate::dial::{Dial, DialError};
use crate::path::PathStatus;
use crate::ssh::UserPrompts;

/// Dials with another dialer, and lets the carriers pack that leave this machine.
pub struct PackingDial {
    inner: Arc<dyn Dial>,
    bytes: Arc<PackedBytes>,
}

impl PackingDial {
    /// Returns a dialer that counts packed messages in `bytes`.
    pub fn new(inner: Arc<dyn Dial>, bytes: Arc<PackedBytes>) -> PackingDial {
        PackingDial { inner, bytes }
    }

    fn packing(&self, dialed: Result<Carrier, DialError>) -> Result<Carrier, DialError> {
        dialed.map(|carrier| match carrier.peer.carrier {
            "unix" | "memory" => carrier,
            _ => packing(carrier, &self.bytes),
        })
    }
}

impl Dial for PackingDial {
    fn dial(&self) -> Result<Carrier, DialError> {
        self.packing(self.inner.dial())
    }

    fn dial_again(&self) -> Result<Carrier, DialError> {
        self.packing(self.inner.dial_again())
    }

    fn dial_additional(&self) -> Result<Carrier, DialError> {
        self.packing(self.inner.dial_additional())
    }

    fn path_count(&self) -> usize {
        self.inner.path_count()
    }

    fn paths(&self) -> Vec<PathStatus> {
        self.inner.paths()
    }

    fn prompts(&self) -> Option<&UserPrompts> {
        self.inner.prompts()
    }
}
