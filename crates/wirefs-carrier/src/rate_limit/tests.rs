use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use wirefs_op::Frame;

use super::bucket::Bucket;
use super::sink::RateLimitedSink;
use super::source::RateLimitedSource;
use super::{RateLimit, RateLimits};
use crate::LayeredDial;
use crate::carrier::{FrameSink as _, FrameSource as _, SendProgress};
use crate::dial::{Dial as _, DialError, UnixDial};
use crate::memory;

fn frame(bytes: usize) -> Frame {
    let length = u32::try_from(bytes).unwrap().to_le_bytes();
    Frame { head: length.to_vec(), data: vec![7; bytes - 4].into() }
}

/// Moves frames as soon as each may be: the time that this takes is that of the rate.
#[test]
fn average_rate_is_exact() {
    for rate in [1_000, 123_457, 50_000_000] {
        let start = Instant::now();
        let mut now = start;
        let mut bucket = Bucket::new(Some(rate));
        let sizes: Vec<usize> = (1..200_usize).map(|number| number * 7_919 % 100_003 + 1).collect();
        for size in &sizes {
            while let Some(wait) = bucket.wait(now) {
                now += wait;
            }
            bucket.subtract(now, *size);
        }
        // The last frame goes as soon as those before it are paid for.
        let paid: usize = sizes[..sizes.len() - 1].iter().sum();
        let expected = paid as f64 / rate as f64;
        let passed = now.duration_since(start).as_secs_f64();
        assert!((passed - expected).abs() < 1e-6 + expected * 1e-9, "{rate}: {passed} {expected}");
    }
}

#[test]
fn long_rest_allows_no_long_burst() {
    let start = Instant::now();
    let mut bucket = Bucket::new(Some(1_000_000));
    assert_eq!(bucket.wait(start), None);
    let later = start + Duration::from_secs(3_600);
    bucket.subtract(later, 100_000);
    assert_eq!(bucket.wait(later), None);
    bucket.subtract(later, 50_000);
    assert_eq!(bucket.wait(later), Some(Duration::from_millis(50)));
}

#[test]
fn another_rate_begins_without_the_debt_of_the_old_one() {
    let start = Instant::now();
    let mut bucket = Bucket::new(Some(1));
    bucket.subtract(start, 1_000_000);
    assert_eq!(bucket.wait(start), Some(Duration::from_secs(1_000_000)));
    bucket.set(Some(2_000));
    assert_eq!(bucket.wait(start), None);
    bucket.set(None);
    bucket.subtract(start, 1_000_000);
    assert_eq!(bucket.wait(start), None);
    assert_eq!(Bucket::new(Some(0)).rate(), None);
}

#[test]
fn frames_wait_for_the_limit_and_go_when_it_is_lifted() {
    let (near, mut far) = memory::pair().unwrap();
    let limits = Arc::new(RateLimits::new(Some(1), None));
    let mut sink = RateLimitedSink::new(near.sink, Arc::clone(&limits), near.closer.clone());
    let mut queue: VecDeque<Frame> = [frame(100), frame(200)].into();
    assert_eq!(sink.send(&mut queue).unwrap(), SendProgress::Blocked);
    assert_eq!(far.source.receive().unwrap().unwrap().len(), 96);
    assert!(!sink.wait_writable(Duration::from_millis(1)).unwrap());
    assert_eq!(sink.send(&mut queue).unwrap(), SendProgress::Blocked);
    limits.up.set(None);
    assert!(sink.wait_writable(Duration::from_secs(60)).unwrap());
    assert_eq!(sink.send(&mut queue).unwrap(), SendProgress::Drained);
    assert_eq!(far.source.receive().unwrap().unwrap().len(), 196);
}

#[test]
fn large_frames_arrive_whole_although_the_kernel_takes_them_in_pieces() {
    let (near, mut far) = memory::pair().unwrap();
    let limits = Arc::new(RateLimits::new(Some(u64::MAX / 2), None));
    let mut sink = RateLimitedSink::new(near.sink, limits, near.closer.clone());
    let receiver = std::thread::spawn(move || {
        (0..40).map(|_| far.source.receive().unwrap().unwrap().len()).collect::<Vec<_>>()
    });
    let sizes: Vec<usize> = (0..40).map(|number| 1_000 + number % 8 * 15_000).collect();
    let mut queue: VecDeque<Frame> = sizes.iter().map(|size| frame(*size)).collect();
    while sink.send(&mut queue).unwrap() == SendProgress::Blocked {
        assert!(sink.wait_writable(Duration::from_secs(60)).unwrap());
    }
    assert_eq!(receiver.join().unwrap(), sizes.iter().map(|size| size - 4).collect::<Vec<_>>());
}

#[test]
fn closed_carrier_ends_the_wait_for_a_limit() {
    let (near, mut far) = memory::pair().unwrap();
    let limits = Arc::new(RateLimits::new(None, Some(1)));
    let mut source = RateLimitedSource::new(near.source, Arc::clone(&limits), near.closer.clone());
    far.sink.send(&mut [frame(1_000)].into()).unwrap();
    assert_eq!(source.receive().unwrap().unwrap().len(), 996);
    let closer = near.closer.clone();
    let waiting = std::thread::spawn(move || source.receive().map(|body| body.is_some()));
    closer.close();
    assert!(!waiting.join().unwrap().unwrap_or(false));
}

#[test]
fn paused_dialer_does_not_dial() {
    let limits = Arc::new(RateLimits::default());
    let dial = LayeredDial::new(Arc::new(UnixDial::new("/nowhere/socket")), Arc::clone(&limits), None);
    assert!(matches!(dial.dial_again(), Err(DialError::Connect { .. })));
    limits.set_paused(true);
    assert!(matches!(dial.dial_again(), Err(DialError::Paused)));
    limits.set_paused(false);
    assert!(matches!(dial.dial_additional(), Err(DialError::Connect { .. })));
    assert_eq!(RateLimit::new(Some(5)).rate(), Some(5));
}
