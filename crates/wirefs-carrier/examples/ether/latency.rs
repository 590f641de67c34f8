//! Round trips without sleeping, and with both ends sleeping on one processor: bare packets through rings, TCP, and the
//! carrier.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use bytes::Bytes;
use wirefs_carrier::{Carrier, Class, SendQueue};
use wirefs_op::Frame;

use crate::Outcome;
use crate::bare::Bare;
use crate::site::{Site, median, pin};

const TRIPS: usize = 4_000;
const WARM: usize = 500;

/// How the ends wait for each other.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Regime {
    /// Each has a processor, and busy-polls.
    Polling,
    /// They share one, and sleep.
    Blocking,
}

impl Regime {
    fn sleeps(self) -> bool {
        self == Regime::Blocking
    }

    /// Pins the answering end to its processor.
    fn pin_far(self) {
        pin(usize::from(!self.sleeps()));
    }
}

pub(crate) fn run(rounds: usize, regime: Regime) -> Outcome<()> {
    let site = Site::new(1, 9_000)?;
    println!(
        "{:>6} {:>14} {:>14} {:>14} {:>14} {:>10} {:>10} {:>6}",
        "bytes", "packets µs", "sealed µs", "tcp µs", "ether µs", "/ packets", "/ sealed", "/ tcp"
    );
    for bytes in [64, 1_024, 4_096] {
        let mut samples = [const { Vec::new() }; 4];
        let mut tails = [const { Vec::new() }; 4];
        for _ in 0..rounds {
            let measured = [
                packets(&site, bytes, regime, false)?,
                packets(&site, bytes, regime, true)?,
                tcp(&site, bytes, regime)?,
                ether(&site, bytes, regime)?,
            ];
            for ((to, tail), trips) in samples.iter_mut().zip(&mut tails).zip(measured) {
                to.push(median(trips.clone()));
                tail.push(percentile(trips, 95));
            }
        }
        let [packets, sealed, tcp, ether] = samples.map(median);
        let tails = tails.map(median);
        print!("{bytes:6}");
        for (middle, tail) in [packets, sealed, tcp, ether].into_iter().zip(tails) {
            print!(" {middle:6.1} ({tail:5.1})");
        }
        println!(" {:10.2} {:10.2} {:6.2}", ether / packets, ether / sealed, ether / tcp);
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

fn packets(site: &Site, bytes: usize, regime: Regime, is_sealed: bool) -> Outcome<Vec<f64>> {
    let device = &site.patches.first().ok_or("no cable")?.device;
    let [near, far] = &site.hosts;
    let mut near = near.run(|| Bare::open(device, is_sealed))??;
    let mut far = far.run(|| Bare::open(device, is_sealed))??;
    let (near_address, far_address) = (near.socket.address(), far.socket.address());
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            regime.pin_far();
            loop {
                match far.receive(&is_over, regime.sleeps()) {
                    0 => return,
                    bytes => far.send(near_address, bytes),
                }
            }
        });
        pin(0);
        let never = AtomicBool::new(false);
        let samples = time(|| {
            near.send(far_address, bytes);
            near.receive(&never, regime.sleeps());
            Ok(())
        });
        is_over.store(true, Ordering::Relaxed);
        samples
    })
}

/// Polls until all bytes arrived. Returns `false` if the peer has closed.
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

fn tcp(site: &Site, bytes: usize, regime: Regime) -> Outcome<Vec<f64>> {
    let (mut near, mut far) = site.tcp(false)?;
    near.set_nonblocking(!regime.sleeps())?;
    far.set_nonblocking(!regime.sleeps())?;
    std::thread::scope(|scope| {
        scope.spawn(move || -> Outcome<()> {
            regime.pin_far();
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

/// Returns a frame of this total size.
fn frame(bytes: usize) -> Frame {
    let mut head = (bytes as u32).to_le_bytes().to_vec();
    head.resize(32, 0);
    Frame { head, data: Bytes::from(vec![7; bytes - 32]) }
}

fn ether(site: &Site, bytes: usize, regime: Regime) -> Outcome<Vec<f64>> {
    let (near, far) = site.ether()?;
    std::thread::scope(|scope| {
        let Carrier { mut source, sink, closer, .. } = far;
        scope.spawn(move || {
            regime.pin_far();
            let back = SendQueue::start(sink, closer, |_| {});
            while let Ok(Some(_)) = source.receive() {
                back.push(frame(bytes), Class::Urgent);
                back.flush();
            }
        });
        pin(0);
        let Carrier { mut source, sink, closer, .. } = near;
        let out = SendQueue::start(sink, closer, |_| {});
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
