//! Round trips where nobody sleeps: bare packets through rings, TCP, and the carrier.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use bytes::Bytes;
use wirefs_carrier::{Carrier, Class, Outbox};
use wirefs_op::Frame;
use wirefs_raw::{EtherSocket, Frames, HardwareAddress, Ring};

use crate::Outcome;
use crate::site::{Site, median, pin};

const TRIPS: usize = 4_000;
const WARM: usize = 500;
/// Another one than the carrier's: local experimental too.
const ETHER_TYPE: u16 = 0x88B6;
const RING_BYTES: usize = 4 << 20;

pub(crate) fn run(rounds: usize) -> Outcome<()> {
    let site = Site::new(1, 9_000)?;
    println!(
        "{:>6} {:>16} {:>16} {:>16} {:>12} {:>12}",
        "bytes", "packets µs", "tcp µs", "ether µs", "/ packets", "/ tcp"
    );
    for bytes in [64, 1_024, 4_096] {
        let mut samples = [const { Vec::new() }; 3];
        let mut tails = [const { Vec::new() }; 3];
        for _ in 0..rounds {
            let measured = [packets(&site, bytes)?, tcp(&site, bytes)?, ether(&site, bytes)?];
            for ((to, tail), trips) in samples.iter_mut().zip(&mut tails).zip(measured) {
                to.push(median(trips.clone()));
                tail.push(percentile(trips, 95));
            }
        }
        let [packets, tcp, ether] = samples.map(median);
        let [packets_tail, tcp_tail, ether_tail] = tails.map(median);
        println!(
            "{bytes:6} {packets:7.1} ({packets_tail:6.1}) {tcp:7.1} ({tcp_tail:6.1}) {ether:7.1} ({ether_tail:6.1}) {:12.2} {:12.2}",
            ether / packets,
            ether / tcp
        );
    }
    println!("medians of {rounds} rounds, interleaved; 95 % of each round in brackets");
    Ok(())
}

fn percentile(mut samples: Vec<f64>, percent: usize) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples.get(samples.len() * percent / 100).copied().unwrap_or(f64::NAN)
}

/// Times each trip, in microseconds.
fn time(mut trip: impl FnMut() -> Outcome<()>) -> Outcome<Vec<f64>> {
    let mut samples = Vec::with_capacity(TRIPS);
    for at in 0..TRIPS + WARM {
        let begun = Instant::now();
        trip()?;
        if at >= WARM {
            samples.push(begun.elapsed().as_secs_f64() * 1e6);
        }
    }
    Ok(samples)
}

struct Bare {
    socket: EtherSocket,
    ring: Ring,
    frames: Frames,
}

impl Bare {
    fn open(device: &str) -> Result<Bare, wirefs_raw::RawError> {
        let socket = EtherSocket::open(device, ETHER_TYPE)?;
        let ring = Ring::open(&socket, 9_000, RING_BYTES)?;
        Ok(Bare { socket, ring, frames: Frames::new(9_000) })
    }

    fn send(&mut self, to: HardwareAddress, bytes: usize) {
        self.frames.clear();
        self.frames.push(|_| Some((to, bytes)));
        self.socket.send(&mut self.frames);
    }

    /// Looks until something came, or the flag says that nothing will.
    fn receive(&mut self, is_over: &AtomicBool) -> usize {
        while !self.ring.is_ready() && !is_over.load(Ordering::Relaxed) {
            std::hint::spin_loop();
        }
        let mut bytes = 0;
        self.ring.each(1, |_, payload| bytes = payload.len());
        bytes
    }
}

fn packets(site: &Site, bytes: usize) -> Outcome<Vec<f64>> {
    let device = &site.patches.first().ok_or("no cable")?.device;
    let [near, far] = &site.hosts;
    let mut near = near.run(|| Bare::open(device))??;
    let mut far = far.run(|| Bare::open(device))??;
    let (near_address, far_address) = (near.socket.address(), far.socket.address());
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            pin(1);
            loop {
                match far.receive(&is_over) {
                    0 => return,
                    bytes => far.send(near_address, bytes),
                }
            }
        });
        pin(0);
        let never = AtomicBool::new(false);
        let samples = time(|| {
            near.send(far_address, bytes);
            near.receive(&never);
            Ok(())
        });
        is_over.store(true, Ordering::Relaxed);
        samples
    })
}

/// Looks until all came. False: the peer has closed.
fn read(stream: &mut TcpStream, room: &mut [u8]) -> Outcome<bool> {
    let mut at = 0;
    while at < room.len() {
        match stream.read(room.get_mut(at..).unwrap_or_default()) {
            Ok(0) => return Ok(false),
            Ok(count) => at += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::hint::spin_loop(),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(true)
}

fn tcp(site: &Site, bytes: usize) -> Outcome<Vec<f64>> {
    let (mut near, mut far) = site.tcp(false)?;
    near.set_nonblocking(true)?;
    far.set_nonblocking(true)?;
    std::thread::scope(|scope| {
        scope.spawn(move || -> Outcome<()> {
            pin(1);
            let mut room = vec![0; bytes];
            while read(&mut far, &mut room)? {
                far.write_all(&room)?;
            }
            Ok(())
        });
        pin(0);
        let mut room = vec![0; bytes];
        let samples = time(|| {
            near.write_all(&room)?;
            read(&mut near, &mut room)?;
            Ok(())
        });
        drop(near);
        samples
    })
}

/// A frame of so many bytes in all.
fn frame(bytes: usize) -> Frame {
    let mut head = (bytes as u32).to_le_bytes().to_vec();
    head.resize(32, 0);
    Frame { head, data: Bytes::from(vec![7; bytes - 32]) }
}

fn ether(site: &Site, bytes: usize) -> Outcome<Vec<f64>> {
    let (near, far) = site.ether()?;
    std::thread::scope(|scope| {
        let Carrier { mut source, sink, closer, .. } = far;
        scope.spawn(move || {
            pin(1);
            let back = Outbox::start(sink, closer, |_| {});
            while let Ok(Some(_)) = source.receive() {
                back.push(frame(bytes), Class::Urgent);
                back.flush();
            }
        });
        pin(0);
        let Carrier { mut source, sink, closer, .. } = near;
        let out = Outbox::start(sink, closer, |_| {});
        let samples = time(|| {
            out.push(frame(bytes), Class::Urgent);
            out.flush();
            source.receive()?.ok_or("the peer closed")?;
            Ok(())
        });
        out.close();
        samples
    })
}
