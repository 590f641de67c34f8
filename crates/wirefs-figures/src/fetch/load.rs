//! Background load: datagrams from the server to the client, at a percentage of the card's rate.

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::test_bed::FetchTestBed;
use wirefs_lab::LabError;

/// Bytes of a datagram; with its headers it fills a frame at an MTU of 1500.
const DATAGRAM_BYTES: usize = 1_472;
/// Bytes of the frame, the Ethernet header included.
const FRAME_BYTES: u64 = 1_514;
/// The interval between two bursts.
const BURST_INTERVAL: Duration = Duration::from_millis(1);
/// The maximum number of datagrams per burst. After a long delay of the thread, the rest is skipped.
const BURST_MAX: u64 = 64;

/// Background load on each card, until it is dropped.
pub(super) struct BackgroundLoad {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    /// Bound receivers: without them the client would answer with ICMP errors, which are load as well.
    _sinks: Vec<UdpSocket>,
}

impl BackgroundLoad {
    /// Loads each card with `percent` of `rate_bits` (bits per second).
    pub(super) fn start(
        test_bed: &FetchTestBed,
        rate_bits: u64,
        percent: u64,
    ) -> Result<BackgroundLoad, LabError> {
        let mut load = BackgroundLoad { stop: Arc::default(), threads: Vec::new(), _sinks: Vec::new() };
        if percent == 0 {
            return Ok(load);
        }
        let failed = |error| LabError::io("make a socket for the load", error);
        for link in &test_bed.links {
            let (from, to) = (link.address_a(), link.address_b());
            let sink = test_bed.client.run(|| UdpSocket::bind((to, 0)))?.map_err(failed)?;
            let port = sink.local_addr().map_err(failed)?.port();
            let source = test_bed.server.run(|| UdpSocket::bind((from, 0)))?.map_err(failed)?;
            source.connect((to, port)).map_err(failed)?;
            let (stop, bytes_per_second) = (Arc::clone(&load.stop), rate_bits / 8 * percent / 100);
            load.threads.push(thread::spawn(move || send(&source, bytes_per_second, &stop)));
            load._sinks.push(sink);
        }
        Ok(load)
    }
}

fn send(source: &UdpSocket, bytes_per_second: u64, stop: &AtomicBool) {
    let begun = Instant::now();
    let mut sent = 0;
    while !stop.load(Ordering::Relaxed) {
        let elapsed_us = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
        let due = elapsed_us.saturating_mul(bytes_per_second) / 1_000_000 / FRAME_BYTES;
        sent = sent.max(due.saturating_sub(BURST_MAX));
        while sent < due {
            // Datagrams that a full queue rejects are lost, as on any network.
            let _lost = source.send(&[0; DATAGRAM_BYTES]);
            sent += 1;
        }
        thread::sleep(BURST_INTERVAL);
    }
}

impl Drop for BackgroundLoad {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // The thread never panics.
            let _ended = thread.join();
        }
    }
}
