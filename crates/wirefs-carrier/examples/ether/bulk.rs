//! Bulk throughput in one direction: the carrier beside tcp+tls, TCP without segmentation offload, and bare packets.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use wirefs_carrier::{Carrier, Class, SendQueue};
use wirefs_op::Frame;
use wirefs_op::limits::DATA_BYTES_MAX;

use crate::Outcome;
use crate::bare;
use crate::cards::stream;
use crate::site::{Site, median};

const SPAN: Duration = Duration::from_secs(2);
/// The time before the measurement.
const WARM: Duration = Duration::from_millis(500);

pub(crate) fn run(rounds: usize) -> Outcome<()> {
    for mtu in [1_500, 9_000] {
        let site = Site::new(1, mtu)?;
        compare(&site, mtu, rounds)?;
        if mtu == 1_500 {
            let cards =
                || site.hosts.iter().flat_map(|host| site.patches.iter().map(move |it| (host, &it.device)));
            cards().try_for_each(|(host, device)| host.disable_segmentation(device))?;
            print!("each packet by itself (no TSO, GSO, GRO), ");
            compare(&site, mtu, rounds)?;
            cards().try_for_each(|(host, device)| host.disable_offloads(device))?;
            print!("without any offload (no checksums, no scatter-gather either), ");
            compare(&site, mtu, rounds)?;
        }
    }
    Ok(())
}

fn compare(site: &Site, mtu: usize, rounds: usize) -> Outcome<()> {
    let mut samples = [const { Vec::new() }; 5];
    for _ in 0..rounds {
        let [ether, tls, tcp, packets, sealed] = &mut samples;
        ether.push(megabytes(site.ether()?, SPAN)?);
        tls.push(megabytes(site.tls()?, SPAN)?);
        tcp.push(stream(site.tcp(false)?, SPAN)?);
        packets.push(bare::megabytes(site, mtu, false, SPAN)?);
        sealed.push(bare::megabytes(site, mtu, true, SPAN)?);
    }
    let [ether, tls, tcp, packets, sealed] = samples.map(median);
    println!(
        "MTU {mtu}, MB/s: ether {ether:.0}, tcp+tls {tls:.0}, TCP {tcp:.0}, packets {packets:.0}, sealed {sealed:.0}"
    );
    let (by_tls, by_tcp, by_sealed) = (ether / tls, ether / tcp, ether / sealed);
    println!("  ether / tcp+tls {by_tls:.2}, / TCP {by_tcp:.2}, / sealed packets {by_sealed:.2}");
    Ok(())
}

/// Returns the megabytes per second that arrive.
pub(crate) fn megabytes(ends: (Carrier, Carrier), span: Duration) -> Outcome<f64> {
    let data = Bytes::from(vec![7; DATA_BYTES_MAX]);
    let (received, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let (near, far) = ends;
        let out = SendQueue::start(near.sink, near.closer, |_| {});
        let (mut quiet, mut busy) = (near.source, far.source);
        let (received, stop) = (&received, &stop);
        scope.spawn(move || while let Ok(Some(_)) = quiet.receive() {});
        scope.spawn(move || {
            while let Ok(Some(body)) = busy.receive() {
                received.fetch_add(body.len() as u64, Ordering::Relaxed);
            }
        });
        let pushing = out.clone();
        scope.spawn(move || {
            while !stop.load(Ordering::Relaxed) && pushing.push_wait(frame(&data), Class::Bulk) {
                pushing.flush();
            }
        });
        std::thread::sleep(WARM);
        let (begun, before) = (Instant::now(), received.load(Ordering::Relaxed));
        std::thread::sleep(span);
        let bytes = received.load(Ordering::Relaxed) - before;
        let rate = bytes as f64 / 1e6 / begun.elapsed().as_secs_f64();
        stop.store(true, Ordering::Relaxed);
        out.close();
        far.closer.close();
        Ok(rate)
    })
}

fn frame(data: &Bytes) -> Frame {
    let mut head = vec![0; 32];
    let size = u32::try_from(head.len() + data.len()).unwrap_or(u32::MAX);
    head.splice(..4, size.to_le_bytes());
    Frame { head, data: data.clone() }
}
