use super::sink::{PACKERS_MAX, PackingSink};
use super::source::PackingSource;
use super::stream::{Packer, Unpacker};
use super::{PackedBytes, packing};
use crate::LayeredDial;
use crate::carrier::{Carrier, FrameSink, FrameSource, SendProgress};
use crate::dial::{Dial, DialError};
use crate::lost::CarrierLost;
use crate::memory;
use bytes::Bytes;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;
use wirefs_op::limits::PACKED_BYTES_MAX;
use wirefs_op::message::version::{BootId, FEATURE_PACKED, Rversion};
use wirefs_op::wire::Text;
use wirefs_op::{Frame, NOTAG, Reply, packed};

/// A line that takes a frame, or nothing while it has no room.
#[derive(Clone, Default)]
struct FakeLine {
    taken: Arc<Mutex<VecDeque<Frame>>>,
    room: Arc<Mutex<usize>>,
}

impl FakeLine {
    fn give_room(&self, frames: usize) {
        *self.room.lock().unwrap() = frames;
    }
}

impl FrameSink for FakeLine {
    fn send(&mut self, queue: &mut VecDeque<Frame>) -> Result<SendProgress, CarrierLost> {
        let mut room = self.room.lock().unwrap();
        while let Some(frame) = queue.pop_front() {
            if *room == 0 {
                queue.push_front(frame);
                return Ok(SendProgress::Blocked);
            }
            *room -= 1;
            self.taken.lock().unwrap().push_back(frame);
        }
        Ok(SendProgress::Drained)
    }

    fn wait_writable(&mut self, _: Duration) -> Result<bool, CarrierLost> {
        Ok(true)
    }
}

impl FrameSource for FakeLine {
    fn receive(&mut self) -> Result<Option<Bytes>, CarrierLost> {
        Ok(self.taken.lock().unwrap().pop_front().map(|frame| frame.to_body()))
    }
}

/// The places of the process's compressors: a test that takes all of them has them for itself.
static PLACES: RwLock<()> = RwLock::new(());

fn some_places() -> RwLockReadGuard<'static, ()> {
    PLACES.read().unwrap_or_else(PoisonError::into_inner)
}

struct Pair {
    line: FakeLine,
    sink: PackingSink,
    source: PackingSource,
    bytes: Arc<PackedBytes>,
}

/// Both ends of one direction, which have not agreed on packing.
fn pair() -> Pair {
    let (line, bytes) = (FakeLine::default(), Arc::new(PackedBytes::default()));
    let negotiated = || Arc::new(AtomicBool::new(false));
    let sink = PackingSink::new(Box::new(line.clone()), negotiated(), Arc::clone(&bytes));
    let source = PackingSource::new(Box::new(line.clone()), negotiated(), Arc::clone(&bytes));
    Pair { line, sink, source, bytes }
}

fn version(features: u64) -> Frame {
    let version = Text::new(b"op2");
    let answer = Rversion { msize: 197_632, version, features, boot: BootId(1), resumed: false, number: 0 };
    Reply::Version(answer).encode(NOTAG)
}

fn message(number: u32, data: Vec<u8>) -> Frame {
    let size = (11 + data.len()) as u32;
    let head = [&size.to_le_bytes()[..], &[131, 1, 0], &number.to_le_bytes()].concat();
    Frame { head, data: data.into() }
}

fn text(number: u32, lines: usize) -> Frame {
    message(number, format!("static int line_{number}(void);\n").repeat(lines).into_bytes())
}

/// Bytes that no compressor shrinks (xorshift; Marsaglia, 2003).
fn noise(seed: u32, bytes: usize) -> Vec<u8> {
    let mut state = 88_172_645_463_325_252 + u64::from(seed);
    let step = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..bytes).map(step).collect()
}

/// Sends frames over a line that is full at first, and returns the bodies that arrive.
fn transfer(pair: &mut Pair, frames: Vec<Frame>) -> Vec<Bytes> {
    let mut queue = VecDeque::from(frames);
    pair.line.give_room(0);
    let mut bodies = Vec::new();
    while pair.sink.send(&mut queue).unwrap() == SendProgress::Blocked {
        pair.line.give_room(1);
        while let Some(body) = pair.source.receive().unwrap() {
            bodies.push(body);
        }
    }
    while let Some(body) = pair.source.receive().unwrap() {
        bodies.push(body);
    }
    bodies
}

fn bodies(frames: &[Frame]) -> Vec<Bytes> {
    frames.iter().map(Frame::to_body).collect()
}

#[test]
fn messages_that_wait_are_packed_after_both_sides_agreed() {
    let _places = some_places();
    let mut pair = pair();
    let early: Vec<Frame> = (0..10).map(|number| text(number, 100)).collect();
    assert_eq!(transfer(&mut pair, early.clone()), bodies(&early));
    assert_eq!(pair.bytes.sent.get(), (0, 0), "not agreed");

    let first = [version(FEATURE_PACKED)];
    assert_eq!(transfer(&mut pair, first.to_vec()), bodies(&first));
    let texts: Vec<Frame> = (0..1000).map(|number| text(number, 100)).collect();
    assert_eq!(transfer(&mut pair, texts.clone()), bodies(&texts));
    let (plain, packed) = pair.bytes.sent.get();
    assert!(plain > 2_000_000, "{plain}");
    assert!(packed * 5 < plain, "{packed} of {plain}");
    assert_eq!(pair.bytes.received.get(), (plain, packed));
}

#[test]
fn a_server_that_does_not_agree_gets_plain_messages() {
    let mut pair = pair();
    let frames: Vec<Frame> =
        std::iter::once(version(0)).chain((0..10).map(|number| text(number, 100))).collect();
    assert_eq!(transfer(&mut pair, frames.clone()), bodies(&frames));
    assert_eq!(pair.bytes.sent.get(), (0, 0));
}

#[test]
fn an_unlimited_line_carries_plain_messages() {
    let mut pair = pair();
    pair.line.give_room(usize::MAX);
    let frames: Vec<Frame> =
        std::iter::once(version(FEATURE_PACKED)).chain((0..1000).map(|number| text(number, 100))).collect();
    assert_eq!(pair.sink.send(&mut VecDeque::from(frames)).unwrap(), SendProgress::Drained);
    assert_eq!(pair.bytes.sent.get(), (0, 0));
}

/// Also with Rversion in the queue of a full line: it stays readable.
#[test]
fn any_messages_arrive_as_they_were() {
    let _places = some_places();
    let mut pair = pair();
    let mut frames = vec![version(FEATURE_PACKED)];
    for number in 0..40 {
        frames.push(text(number, 20));
        frames.push(message(number, noise(number, number as usize * 4500)));
        frames.push(message(number, Vec::new()));
    }
    frames.push(message(0, vec![0; PACKED_BYTES_MAX]));
    assert_eq!(transfer(&mut pair, frames.clone()), bodies(&frames));
    assert!(pair.bytes.sent.get().0 > 0);
}

#[test]
fn data_that_do_not_shrink_are_sent_plain() {
    let _places = some_places();
    let mut pair = pair();
    transfer(&mut pair, vec![version(FEATURE_PACKED)]);
    let frames: Vec<Frame> = (0..200).map(|number| message(number, noise(number, 100_000))).collect();
    assert_eq!(transfer(&mut pair, frames.clone()), bodies(&frames));
    let (plain, packed) = pair.bytes.sent.get();
    assert!(plain < 2_000_000, "samples of 20 MB: {plain}");
    assert!(packed < plain + plain / 100, "{packed} of {plain}");
}

#[test]
fn a_peer_cannot_send_more_than_the_limit_or_anything_else() {
    let _places = some_places();
    let stream = |plain: &[u8]| Packer::new().unwrap().pack(plain).unwrap();
    let mut most = message(0, Vec::new());
    most.data = vec![0; PACKED_BYTES_MAX - most.head.len()].into();
    // The size is a field of the message.
    most.head[..4].copy_from_slice(&(PACKED_BYTES_MAX as u32).to_le_bytes());
    let whole = [most.head.as_slice(), &most.data].concat();
    assert_eq!(Unpacker::new().unwrap().unpack(&stream(&whole)).unwrap(), whole);

    let bombs = [stream(&vec![0; PACKED_BYTES_MAX + 1]), stream(&vec![0; 64 << 20])];
    let window = {
        let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
        encoder.window_log(27).unwrap();
        std::io::Write::write_all(&mut encoder, &whole).unwrap();
        std::io::Write::flush(&mut encoder).unwrap();
        Bytes::copy_from_slice(encoder.get_ref())
    };
    let others = [Bytes::from_static(b"no stream"), window, stream(b"no message")];
    for wrong in bombs.into_iter().chain(others) {
        let mut pair = pair();
        transfer(&mut pair, vec![version(FEATURE_PACKED)]);
        pair.line.taken.lock().unwrap().push_back(packed::frame(wrong.clone()));
        let lost = pair.source.receive().unwrap_err();
        assert!(matches!(lost, CarrierLost::Packed(_)), "{lost}");
    }
}

/// A dialer of carriers in this process's memory.
struct MemoryDial;

impl Dial for MemoryDial {
    fn dial(&self) -> Result<Carrier, DialError> {
        Ok(memory::pair().unwrap().0)
    }
}

#[test]
fn a_client_packs_only_what_leaves_the_machine_and_a_server_takes_what_comes() {
    let near = LayeredDial::new(Arc::new(MemoryDial), Arc::default(), Some(Arc::default())).dial().unwrap();
    assert!(!near.sink.packs());
    // Behind a tunnel to a unix socket may be a client far away.
    assert!(packing(memory::pair().unwrap().0, &Arc::default()).sink.packs());
}

#[test]
fn the_agreement_of_one_side_is_not_that_of_the_other() {
    let line = FakeLine::default();
    let negotiated = Arc::new(AtomicBool::new(false));
    let mut source = PackingSource::new(Box::new(line.clone()), Arc::clone(&negotiated), Arc::default());
    let early = packed::frame(Bytes::from_static(b"early"));
    line.taken.lock().unwrap().push_back(early.clone());
    assert_eq!(source.receive().unwrap(), Some(early.to_body()), "for the decoder, which refuses it");
    assert!(!negotiated.load(Ordering::Relaxed));
}

/// Packs texts in this direction. Returns whether they were packed.
fn packs(pair: &mut Pair, number: u32) -> bool {
    let before = pair.bytes.sent.get().1;
    let texts: Vec<Frame> = (number..number + 100).map(|number| text(number, 100)).collect();
    assert_eq!(transfer(pair, texts.clone()), bodies(&texts));
    pair.bytes.sent.get().1 > before
}

// S-200
#[test]
fn compressor_that_was_not_used_is_freed_at_both_ends() {
    let _places = some_places();
    let mut pair = pair();
    transfer(&mut pair, vec![version(FEATURE_PACKED)]);
    assert_eq!(pair.sink.free_due(), None);
    for number in 0..3 {
        assert!(packs(&mut pair, number));
        let due = pair.sink.free_due().unwrap();
        pair.line.give_room(usize::MAX);
        pair.sink.free_unused(due - Duration::from_millis(1)).unwrap();
        assert!(pair.sink.free_due().is_some() && pair.source.unpacker.is_some());
        assert_eq!(pair.sink.free_unused(due).unwrap(), SendProgress::Drained);
        assert_eq!(pair.source.receive().unwrap(), None);
        assert!(pair.sink.free_due().is_none() && pair.source.unpacker.is_none());
    }
}

/// The end of the frame waits for room like any other message, and stays ahead of later ones.
#[test]
fn stream_continues_after_an_end_that_had_to_wait() {
    let _places = some_places();
    let mut pair = pair();
    transfer(&mut pair, vec![version(FEATURE_PACKED)]);
    assert!(packs(&mut pair, 0));
    pair.line.give_room(0);
    let due = pair.sink.free_due().unwrap();
    assert_eq!(pair.sink.free_unused(due).unwrap(), SendProgress::Blocked);
    assert!(packs(&mut pair, 1));
}

// S-200
#[test]
fn places_of_idle_compressors_go_to_other_carriers() {
    let _all = PLACES.write().unwrap_or_else(PoisonError::into_inner);
    let negotiated = || {
        let mut pair = pair();
        transfer(&mut pair, vec![version(FEATURE_PACKED)]);
        pair
    };
    let mut first: Vec<Pair> = (0..PACKERS_MAX).map(|_| negotiated()).collect();
    assert!(first.iter_mut().all(|pair| packs(pair, 0)));
    let mut later = negotiated();
    assert!(!packs(&mut later, 0), "{PACKERS_MAX} are in use");
    for pair in &mut first {
        pair.line.give_room(usize::MAX);
        let due = pair.sink.free_due().unwrap();
        pair.sink.free_unused(due).unwrap();
    }
    assert!(packs(&mut later, 0));
}
