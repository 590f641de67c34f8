//! What else goes over the cards: datagrams from the server to the client, at a part of the rate.

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::site::Site;
use wirefs_lab::LabError;

/// Bytes of a datagram: with its headers a whole frame at an MTU of 1500.
const DATAGRAM_BYTES: usize = 1_472;
/// Bytes of the frame, the Ethernet header included.
const FRAME_BYTES: u64 = 1_514;
/// Between two looks at what is due.
const STEP: Duration = Duration::from_millis(1);
/// More is not sent at once: what a machine that was late missed is left out.
const AT_ONCE_MAX: u64 = 64;

/// Load on each card, until it is dropped.
pub(super) struct Load {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    /// Who sends to a port where nobody listens is told so, which would be load too.
    _sinks: Vec<UdpSocket>,
}

impl Load {
    /// Loads each card with so many hundredths of its rate, in bits a second.
    pub(super) fn start(site: &Site, rate_bits: u64, percent: u64) -> Result<Load, LabError> {
        let mut load = Load { stop: Arc::default(), threads: Vec::new(), _sinks: Vec::new() };
        if percent == 0 {
            return Ok(load);
        }
        let failed = |error| LabError::io("make a socket for the load", error);
        for link in &site.links {
            let (from, to) = (link.address_a(), link.address_b());
            let sink = site.client.run(|| UdpSocket::bind((to, 0)))?.map_err(failed)?;
            let port = sink.local_addr().map_err(failed)?.port();
            let source = site.server.run(|| UdpSocket::bind((from, 0)))?.map_err(failed)?;
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
        sent = sent.max(due.saturating_sub(AT_ONCE_MAX));
        while sent < due {
            // What a full card does not take is lost, as on any network.
            let _lost = source.send(&[0; DATAGRAM_BYTES]);
            sent += 1;
        }
        thread::sleep(STEP);
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // It panics never.
            let _ended = thread.join();
        }
    }
}
