//! Packing: compresses messages while the line is slower than the compressor.
//!
//! A layer above a carrier. Both sides pack only after an Rversion that agrees on it has passed
//! ([`wirefs_op::packed`]). Then the sender packs the frames that wait while the carrier is blocked, as far as that
//! pays ([`pays`](pays::Pays)); a carrier that is never blocked carries plain messages, without delay.

mod line;
mod pays;
mod sink;
mod source;
mod stream;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::carrier::Carrier;
use sink::PackingSink;
use source::PackingSource;

/// The bytes of messages that were packed, over all carriers of a mount or connection.
#[derive(Debug, Default)]
pub struct PackedBytes {
    /// The sent ones, before and after.
    pub sent: PackedDirection,
    /// The received ones.
    pub received: PackedDirection,
}

/// The bytes of the packed messages of one direction.
#[derive(Debug, Default)]
pub struct PackedDirection {
    plain: AtomicU64,
    packed: AtomicU64,
}

impl PackedDirection {
    fn add(&self, plain: usize, packed: usize) {
        self.plain.fetch_add(plain as u64, Ordering::Relaxed);
        self.packed.fetch_add(packed as u64, Ordering::Relaxed);
    }

    /// Returns the bytes of the messages, and the bytes on the wire for them.
    pub fn get(&self) -> (u64, u64) {
        (self.plain.load(Ordering::Relaxed), self.packed.load(Ordering::Relaxed))
    }
}

/// Lets a carrier pack, once the sessions have agreed on it. A server does that for every carrier, since its peer may be
/// farther away than the carrier says, for example behind a tunnel to a unix socket. Within this process nothing is packed.
pub fn packing(carrier: Carrier, bytes: &Arc<PackedBytes>) -> Carrier {
    let Carrier { source, sink, closer, peer } = carrier;
    if sink.in_process().is_some() {
        return Carrier { source, sink, closer, peer };
    }
    let negotiated = Arc::new(AtomicBool::new(false));
    let source = PackingSource::new(source, Arc::clone(&negotiated), Arc::clone(bytes));
    let sink = PackingSink::new(sink, negotiated, Arc::clone(bytes));
    Carrier { source: Box::new(source), sink: Box::new(sink), closer, peer }
}

#[cfg(test)]
mod tests;
