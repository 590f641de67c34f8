//! The sending direction.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use wirefs_op::limits::{PACKED_BYTES_MAX, PACKED_MESSAGES_MAX};
use wirefs_op::{Frame, packed};

use super::PackedBytes;
use super::line::Line;
use super::pays::Pays;
use super::stream::Packer;
use crate::carrier::{FrameSink, SendProgress};
use crate::gauge::Gauge;
use crate::lost::CarrierLost;
use crate::place::CountedPlace;

/// Fewer bytes are sent plain.
const PACK_BYTES_MIN: usize = 512;
/// Compressors in this process at most, of about 1 MiB each. Further carriers send plain messages.
pub(super) const PACKERS_MAX: usize = 64;

/// A compressor that was not used for this long is freed.
const PACKER_IDLE: Duration = Duration::from_secs(10);

static PACKERS: AtomicUsize = AtomicUsize::new(0);

/// A compressor with its place.
struct CountedPacker {
    packer: Packer,
    _place: CountedPlace,
    used: Instant,
}

impl CountedPacker {
    fn new(now: Instant) -> Option<CountedPacker> {
        let place = CountedPlace::take(&PACKERS, PACKERS_MAX)?;
        Some(CountedPacker { packer: Packer::new().ok()?, _place: place, used: now })
    }
}

/// INVARIANT: packed messages reach the inner sink in the order in which they were packed: the only one that it does
/// not have yet is in `packed`.
pub(super) struct PackingSink {
    inner: Box<dyn FrameSink>,
    negotiated: Arc<AtomicBool>,
    bytes: Arc<PackedBytes>,
    packer: Option<CountedPacker>,
    packed: VecDeque<Frame>,
    plain: Vec<u8>,
    line: Line,
    pays: Pays,
}

impl PackingSink {
    pub(super) fn new(
        inner: Box<dyn FrameSink>,
        negotiated: Arc<AtomicBool>,
        bytes: Arc<PackedBytes>,
    ) -> PackingSink {
        PackingSink {
            inner,
            negotiated,
            bytes,
            packer: None,
            packed: VecDeque::new(),
            plain: Vec::new(),
            line: Line::default(),
            pays: Pays::new(),
        }
    }

    /// Offers frames to the inner sink, and measures the line.
    fn offer(&mut self, queue: Option<&mut VecDeque<Frame>>) -> Result<SendProgress, CarrierLost> {
        let queue = queue.unwrap_or(&mut self.packed);
        let before = wire_len(queue);
        let progress = self.inner.send(queue)?;
        self.line.took(before - wire_len(queue));
        if progress == SendProgress::Blocked {
            self.line.blocked(Instant::now());
        }
        Ok(progress)
    }

    /// Packs frames from the front of the queue. Returns whether it did.
    fn pack(&mut self, queue: &mut VecDeque<Frame>) -> Result<bool, CarrierLost> {
        if !self.negotiated.load(Ordering::Relaxed) || !self.line.is_limit(Instant::now()) {
            return Ok(false);
        }
        if !self.pays.pays(self.line.rate()) {
            return Ok(false);
        }
        let (count, bytes) = prefix(queue);
        if bytes < PACK_BYTES_MIN {
            return Ok(false);
        }
        let begun = Instant::now();
        if self.packer.is_none() {
            self.packer = CountedPacker::new(begun);
        }
        let Some(counted) = &mut self.packer else { return Ok(false) };
        counted.used = begun;
        self.plain.clear();
        for frame in queue.drain(..count) {
            self.plain.extend_from_slice(&frame.head);
            self.plain.extend_from_slice(&frame.data);
        }
        let packed = packed::frame(counted.packer.pack(&self.plain)?);
        self.pays.packed(bytes, packed.wire_len(), begun.elapsed(), self.line.rate());
        self.bytes.sent.add(bytes, packed.wire_len());
        self.packed.push_back(packed);
        Ok(true)
    }
}

/// Returns the number and the bytes of the first frames that may go into one packed message.
fn prefix(queue: &VecDeque<Frame>) -> (usize, usize) {
    let (mut count, mut bytes) = (0, 0);
    for frame in queue.iter().take_while(|frame| packed::may_pack(frame)).take(PACKED_MESSAGES_MAX) {
        if bytes + frame.wire_len() > PACKED_BYTES_MAX {
            break;
        }
        (count, bytes) = (count + 1, bytes + frame.wire_len());
    }
    (count, bytes)
}

fn wire_len(queue: &VecDeque<Frame>) -> usize {
    queue.iter().map(Frame::wire_len).sum()
}

impl FrameSink for PackingSink {
    fn send(&mut self, queue: &mut VecDeque<Frame>) -> Result<SendProgress, CarrierLost> {
        // The server's Rversion agrees; the client's source sees it arrive.
        if !self.negotiated.load(Ordering::Relaxed) && queue.iter().any(packed::is_agreement) {
            let progress = self.offer(Some(queue))?;
            if !queue.iter().any(packed::is_agreement) {
                self.negotiated.store(true, Ordering::Relaxed);
            }
            return Ok(progress);
        }
        loop {
            // Also without a frame: the inner sink may hold the rest of one.
            if self.offer(None)? == SendProgress::Blocked {
                return Ok(SendProgress::Blocked);
            }
            if queue.is_empty() {
                return Ok(SendProgress::Drained);
            }
            if !self.pack(queue)? {
                let before = wire_len(queue);
                let progress = self.offer(Some(queue))?;
                self.pays.skipped(before - wire_len(queue));
                return Ok(progress);
            }
        }
    }

    fn wait_writable(&mut self, timeout: Duration) -> Result<bool, CarrierLost> {
        self.inner.wait_writable(timeout)
    }

    fn free_due(&self) -> Option<Instant> {
        self.packer.as_ref().map(|counted| counted.used + PACKER_IDLE)
    }

    fn free_unused(&mut self, now: Instant) -> Result<SendProgress, CarrierLost> {
        let is_due = self.free_due().is_some_and(|due| due <= now);
        if let Some(counted) = self.packer.take_if(|_| is_due) {
            self.packed.push_back(packed::frame(counted.packer.end()?));
        }
        self.plain = Vec::new();
        self.offer(None)
    }

    fn gauge(&self) -> Option<Gauge> {
        self.inner.gauge()
    }

    fn packs(&self) -> bool {
        true
    }
}
