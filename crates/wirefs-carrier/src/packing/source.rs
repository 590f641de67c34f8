//! The receiving direction.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use wirefs_op::packed;

use super::PackedBytes;
use super::stream::Unpacker;
use crate::carrier::FrameSource;
use crate::lost::CarrierLost;

pub(super) struct PackingSource {
    inner: Box<dyn FrameSource>,
    negotiated: Arc<AtomicBool>,
    bytes: Arc<PackedBytes>,
    /// `None` before the first packed message, and after the end of a frame.
    pub(super) unpacker: Option<Unpacker>,
    /// Unpacked messages that are not taken yet: those of one packed message at most.
    bodies: VecDeque<Bytes>,
}

impl PackingSource {
    pub(super) fn new(
        inner: Box<dyn FrameSource>,
        negotiated: Arc<AtomicBool>,
        bytes: Arc<PackedBytes>,
    ) -> PackingSource {
        PackingSource { inner, negotiated, bytes, unpacker: None, bodies: VecDeque::new() }
    }

    fn unpack(&mut self, data: &Bytes) -> Result<(), CarrierLost> {
        let unpacker = match &mut self.unpacker {
            Some(unpacker) => unpacker,
            none => none.insert(Unpacker::new()?),
        };
        let plain = unpacker.unpack(data).map_err(|error| CarrierLost::Packed(error.to_string()))?;
        self.bytes.received.add(plain.len(), packed::frame(data.clone()).wire_len());
        let bodies = packed::split(&plain).map_err(|malformed| CarrierLost::Packed(malformed.to_string()))?;
        self.bodies.extend(bodies);
        if unpacker.has_ended {
            self.unpacker = None;
        }
        Ok(())
    }
}

impl FrameSource for PackingSource {
    fn receive(&mut self) -> Result<Option<Bytes>, CarrierLost> {
        loop {
            if let Some(body) = self.bodies.pop_front() {
                return Ok(Some(body));
            }
            let Some(body) = self.inner.receive()? else { return Ok(None) };
            // Before that, the decoder of messages refuses a packed one.
            if !self.negotiated.load(Ordering::Relaxed) {
                if packed::agrees(&body) {
                    self.negotiated.store(true, Ordering::Relaxed);
                }
                return Ok(Some(body));
            }
            match packed::data(&body) {
                Some(data) => self.unpack(&data)?,
                None => return Ok(Some(body)),
            }
        }
    }
}
