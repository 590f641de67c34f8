//! Frames to send, and checks of received ones.

use std::collections::VecDeque;
use std::sync::mpsc;
use std::time::Duration;

use bytes::Bytes;
use wirefs_carrier::{CarrierLost, FrameSink, FrameSource, SendProgress, SendQueue};
use wirefs_op::Frame;
use wirefs_op::limits::DATA_BYTES_MAX;

/// Longer than any healthy test; a hang fails with this.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Returns a valid frame with its sender and number, and data made from them.
pub fn frame(sender: u8, number: u32, data_bytes: usize) -> Frame {
    let size = 4 + 1 + 4 + 2 + data_bytes;
    let mut head = u32::try_from(size).unwrap().to_le_bytes().to_vec();
    head.push(sender);
    head.extend_from_slice(&number.to_le_bytes());
    head.extend_from_slice(&[0, 0]);
    Frame { head, data: data(sender, number, data_bytes) }
}

fn data(sender: u8, number: u32, data_bytes: usize) -> Bytes {
    let start = number.wrapping_mul(31).wrapping_add(u32::from(sender));
    let pattern: Vec<u8> = (0..251).map(|step: u32| (start.wrapping_add(step) % 251) as u8).collect();
    let mut data = pattern.repeat(data_bytes / 251 + 1);
    data.truncate(data_bytes);
    data.into()
}

/// Returns the sender and number of a received body, after checking each byte.
pub fn check(body: &Bytes) -> (u8, u32) {
    let sender = body[0];
    let number = u32::from_le_bytes(body[1..5].try_into().unwrap());
    assert!(body.slice(7..) == data(sender, number, body.len() - 7), "frame {number} of {sender} is damaged");
    (sender, number)
}

/// Sizes at all edges of the buffers.
pub fn data_bytes(number: u32) -> usize {
    let edges = [0, 1, 100, 4_085, 4_086, 16_384, 65_536, DATA_BYTES_MAX - 1, DATA_BYTES_MAX];
    if number % 16 == 15 { edges[(number / 16) as usize % edges.len()] } else { (number as usize * 7) % 300 }
}

/// Starts a send queue; its loss, if any, can be received.
pub fn send_queue(
    carrier: Box<dyn FrameSink>,
    closer: wirefs_carrier::Closer,
) -> (SendQueue, mpsc::Receiver<CarrierLost>) {
    let (notify, notified) = mpsc::channel();
    let send_queue = SendQueue::start(carrier, closer, move |lost| {
        let _gone = notify.send(lost);
    });
    (send_queue, notified)
}

/// Receives one frame that must come.
pub fn receive(source: &mut Box<dyn FrameSource>) -> (u8, u32) {
    check(&source.receive().unwrap().expect("the peer closed too early"))
}

/// Sends until the kernel's buffer is full.
pub fn fill(sink: &mut Box<dyn FrameSink>) -> Result<(), CarrierLost> {
    for number in 0..10_000 {
        let mut queue = VecDeque::from([frame(9, number, DATA_BYTES_MAX)]);
        if sink.send(&mut queue)? == SendProgress::Blocked {
            return Ok(());
        }
    }
    panic!("the kernel takes everything");
}
