//! Bare packets, from ring to ring: unacknowledged, and sealed only if requested. Sealed ones are an upper bound for
//! any sealed protocol.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, Tag, UnboundKey};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use wirefs_raw::{EtherSocket, Frames, HardwareAddress, Ring};

use crate::Outcome;
use crate::site::Site;

/// Unlike the carrier's: also local experimental.
const ETHER_TYPE: u16 = 0x88B6;
const RECEIVE_RING_BYTES: usize = 4 << 20;
/// The receiver's ring, in bytes: the sender can continue with it while the receiver does not run.
const BULK_RING_BYTES: usize = 16 << 20;
const MTU_MAX: usize = 9_000;
/// The sleep of a sender that is too far ahead.
const PAUSE: Duration = Duration::from_micros(50);
/// Polls of a receiver before it sleeps.
const POLLS: usize = 2_000;
/// Packets of one system call.
const BATCH: usize = 16;

/// The size of a seal, in bytes.
const TAG_BYTES: usize = 16;

/// Seals and opens packets as the carrier does, all with one nonce.
struct Seal(LessSafeKey);

impl Seal {
    fn new() -> Outcome<Seal> {
        let key = UnboundKey::new(&AES_256_GCM, &[7; 32]).map_err(|_| "a key of 32 bytes")?;
        Ok(Seal(LessSafeKey::new(key)))
    }

    fn nonce() -> Nonce {
        Nonce::assume_unique_for_key([0; 12])
    }

    fn seal(&self, packet: &mut [u8]) -> Option<()> {
        let (content, field) = packet.split_last_chunk_mut::<TAG_BYTES>()?;
        let tag = self.0.seal_in_place_separate_tag(Self::nonce(), Aad::from([0; 20]), content).ok()?;
        field.copy_from_slice(tag.as_ref());
        Some(())
    }

    fn open(&self, packet: &mut [u8]) -> Option<()> {
        let (content, tag) = packet.split_last_chunk_mut::<TAG_BYTES>()?;
        let tag = Tag::from(*tag);
        self.0.open_in_place_separate_tag(Self::nonce(), Aad::from([0; 20]), tag, content, 0..).ok()?;
        Some(())
    }
}

pub(crate) struct Bare {
    pub(crate) socket: EtherSocket,
    ring: Ring,
    frames: Frames,
    seal: Option<Seal>,
}

impl Bare {
    pub(crate) fn open(device: &str, is_sealed: bool) -> Outcome<Bare> {
        Bare::with_ring(device, is_sealed, MTU_MAX, RECEIVE_RING_BYTES)
    }

    fn with_ring(device: &str, is_sealed: bool, mtu: usize, ring_bytes: usize) -> Outcome<Bare> {
        let socket = EtherSocket::open(device, ETHER_TYPE)?;
        let ring = Ring::open(&socket, mtu, ring_bytes)?;
        let seal = is_sealed.then(Seal::new).transpose()?;
        Ok(Bare { socket, ring, frames: Frames::new(MTU_MAX), seal })
    }

    pub(crate) fn send(&mut self, to: HardwareAddress, bytes: usize) {
        self.send_many(to, bytes, 1);
    }

    /// Returns the number of packets that the kernel took.
    fn send_many(&mut self, to: HardwareAddress, bytes: usize, count: usize) -> usize {
        self.frames.clear();
        for _ in 0..count {
            self.frames.push(|room| {
                if let Some(seal) = &self.seal {
                    seal.seal(room.get_mut(..bytes)?)?;
                }
                Some((to, bytes))
            });
        }
        self.socket.send(&mut self.frames).packets
    }

    /// Polls, or sleeps, until a packet arrived, or the flag is set.
    pub(crate) fn receive(&mut self, is_over: &AtomicBool, sleeps: bool) -> usize {
        while !self.ring.is_ready() && !is_over.load(Ordering::Relaxed) {
            if sleeps {
                let most = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
                // An interrupted wait is followed by a poll like any other.
                let _called = poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], Some(&most));
            } else {
                std::hint::spin_loop();
            }
        }
        let mut bytes = 0;
        self.ring.each(1, |_, payload| {
            let is_good = self.seal.as_ref().is_none_or(|seal| seal.open(payload).is_some());
            bytes = if is_good { payload.len() } else { 0 };
        });
        bytes
    }
}

/// Returns the megabytes per second that arrive, if the sender reads the receiver's progress from memory.
pub(crate) fn megabytes(site: &Site, mtu: usize, is_sealed: bool, span: Duration) -> Outcome<f64> {
    let device = &site.patches.first().ok_or("no cable")?.device;
    let [near, far] = &site.hosts;
    let open = || Bare::with_ring(device, is_sealed, mtu, BULK_RING_BYTES);
    let (mut near, mut far) = (near.run(open)??, far.run(open)??);
    // The ring holds more.
    let window = BULK_RING_BYTES / (mtu + mtu / 4);
    let to = far.socket.address();
    let (is_over, received) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut sent = 0;
            while !is_over.load(Ordering::Relaxed) {
                if sent - received.load(Ordering::Relaxed).min(sent) > window as u64 {
                    std::thread::sleep(PAUSE);
                    continue;
                }
                sent += near.send_many(to, mtu, BATCH) as u64;
            }
        });
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let polls = (0..POLLS).find(|_| far.ring.is_ready());
                if far.receive(&is_over, polls.is_none()) > 0 {
                    received.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        std::thread::sleep(span / 4);
        let (begun, before) = (Instant::now(), received.load(Ordering::Relaxed));
        std::thread::sleep(span);
        let bytes = (received.load(Ordering::Relaxed) - before) as f64 * mtu as f64;
        is_over.store(true, Ordering::Relaxed);
        Ok(bytes / 1e6 / begun.elapsed().as_secs_f64())
    })
}
