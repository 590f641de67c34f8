use super::{Class, SendQueue};
use crate::carrier::{FrameSink, SendProgress};
use crate::closer::Closer;
use crate::lost::CarrierLost;
use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};
use wirefs_op::Frame;

const PATIENCE: Duration = Duration::from_secs(60);

/// A sink that has something to free after each frame.
struct FreeingSink {
    due: Option<Instant>,
    rested: Sender<usize>,
    frames: usize,
}

impl FrameSink for FreeingSink {
    fn send(&mut self, queue: &mut VecDeque<Frame>) -> Result<SendProgress, CarrierLost> {
        if !queue.is_empty() {
            self.due = Some(Instant::now());
            self.frames += queue.drain(..).count();
        }
        Ok(SendProgress::Drained)
    }

    fn wait_writable(&mut self, _: Duration) -> Result<bool, CarrierLost> {
        Ok(true)
    }

    fn free_due(&self) -> Option<Instant> {
        self.due
    }

    fn free_unused(&mut self, now: Instant) -> Result<SendProgress, CarrierLost> {
        assert!(self.due.take().is_some_and(|due| due <= now));
        self.rested.send(self.frames).unwrap();
        Ok(SendProgress::Drained)
    }
}

fn queue() -> (SendQueue, Receiver<usize>) {
    let (rested, when_rested) = channel();
    let sink = FreeingSink { due: None, rested, frames: 0 };
    let queue = SendQueue::start(Box::new(sink), Closer::new(|| ()), |lost| panic!("{lost}"));
    (queue, when_rested)
}

#[test]
fn idle_sink_frees_what_it_used_and_goes_on() {
    let (queue, rested) = queue();
    for frames in 1..4 {
        queue.push(Frame { head: vec![7, 0, 0, 0, 100, 1, 0], data: Default::default() }, Class::Urgent);
        queue.flush();
        assert_eq!(rested.recv_timeout(PATIENCE).unwrap(), frames);
    }
    assert!(queue.finish(PATIENCE));
}
