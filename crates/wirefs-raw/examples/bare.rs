//! Measures the lower bound for a block store in echo packets: a loop that sends each reply again without
//! processing.
//!
//! `cargo run --release -p wirefs-raw --example bare [host] [packets] [payload bytes] [seconds] [stamps]`

use std::error::Error;
use std::time::{Duration, Instant};

use wirefs_raw::limits::BATCH_PACKETS_MAX;
use wirefs_raw::{EchoIdent, EchoSequence, EchoSocket, PacketBatch};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let word = |index: usize, default: &str| arguments.get(index).map_or(default.to_owned(), String::clone);
    let host: std::net::IpAddr = word(0, "127.0.0.1").parse()?;
    let packets: usize = word(1, "1000").parse()?;
    let payload_bytes: usize = word(2, "1472").parse()?;
    let span = Duration::from_secs(word(3, "3").parse()?);
    let socket = EchoSocket::open((host, 0).into(), EchoIdent(std::process::id() as u16))?;
    if word(4, "no") == "stamps" {
        socket.enable_timestamps()?;
    }
    let room = socket.reserve(packets + BATCH_PACKETS_MAX, payload_bytes)?;
    let mut batch = PacketBatch::new(payload_bytes);
    let mut sent = 0;
    while sent < packets {
        batch.clear();
        while sent < packets
            && batch.push(|payload| Some((payload_bytes.min(payload.len()), EchoSequence(sent as u16))))
        {
            sent += 1;
        }
        while !batch.is_sent() {
            socket.send(&mut batch)?;
        }
    }
    let held = socket.buffer_usage()?;
    println!(
        "room for {room}; holding {} bytes, {} a packet",
        held.held_bytes,
        held.held_bytes.checked_div(packets).unwrap_or(0)
    );
    let (start, cpu) = (Instant::now(), cpu_time());
    let (mut circulated, mut waited_sum, mut batches) = (0u64, Duration::ZERO, 0u64);
    while start.elapsed() < span {
        let arrivals = socket.receive(&mut batch, BATCH_PACKETS_MAX)?;
        circulated += arrivals.replies as u64;
        batches += 1;
        batch.exchange(|_, waited| {
            waited_sum += waited;
            Some(EchoSequence(0))
        });
        while !batch.is_sent() {
            socket.send(&mut batch)?;
        }
    }
    let (wall, cpu) = (start.elapsed(), cpu_time() - cpu);
    println!(
        "{:.1} kpackets/s, {:.2} us CPU a packet, {:.0} % CPU, {:.1} a batch, waited {:?} on average, dropped {}",
        circulated as f64 / wall.as_secs_f64() / 1e3,
        cpu.as_secs_f64() * 1e6 / circulated.max(1) as f64,
        cpu.as_secs_f64() / wall.as_secs_f64() * 100.0,
        circulated as f64 / batches as f64,
        waited_sum / u32::try_from(circulated.max(1))?,
        socket.buffer_usage()?.dropped,
    );
    Ok(())
}

/// CPU time of this process.
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
