//! Keeps blocks in circulating echo packets, reads them, and compares the CPU time with a bare loop that
//! sends each reply again without processing. Both alternate every fifth of a second, to run under the same
//! load.
//!
//! `cargo run --release -p wirefs-raw --example circulate [host] [blocks] [payload bytes] [seconds] [copies]
//! [index|root]`

use std::error::Error;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use wirefs_echo::{
    Cipher, Distance, Echo, EchoBlockId, EchoConfig, EchoKey, EchoOutput, EchoRefusal, HostConfig, HostId,
    Keep, Origin, ReceiveVerdict, Redundancy, SendRate, Time,
};
use wirefs_raw::limits::BATCH_PACKETS_MAX;
use wirefs_raw::{EchoIdent, EchoSequence, EchoSocket, PacketBatch};

type Outcome<T> = Result<T, Box<dyn Error>>;

const HOST: HostId = HostId(0);
const SLICE: Duration = Duration::from_millis(200);

/// A store and the socket of its host.
struct StoreDriver {
    echo: Echo,
    socket: EchoSocket,
    batch: PacketBatch,
    start: Instant,
}

impl StoreDriver {
    fn now(&self) -> Time {
        Time(u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// Receives and sends once.
    fn poll_once(&mut self) -> Outcome<()> {
        let max = self.echo.allowance(self.now(), HOST);
        let arrivals = self.socket.receive(&mut self.batch, max)?;
        let now = self.now();
        let echo = &mut self.echo;
        self.batch.exchange(|packet, waited| match echo.receive(now, HOST, waited, packet) {
            ReceiveVerdict::Resend(number) => Some(EchoSequence(number)),
            ReceiveVerdict::Absorb => None,
        });
        if arrivals.is_drained && max > 0 {
            echo.drained(now, HOST);
        }
        echo.tick(now);
        while !self.batch.is_sent() {
            self.socket.send(&mut self.batch)?;
        }
        self.batch.clear();
        while self.batch.push(|room| {
            echo.poll_packet(now, HOST, room).map(|written| (written.bytes, EchoSequence(written.number)))
        }) {}
        while !self.batch.is_sent() {
            self.socket.send(&mut self.batch)?;
        }
        Ok(())
    }

    fn store_block(&mut self, id: u32, bytes: usize) -> Outcome<()> {
        loop {
            match self.echo.store_block(
                self.now(),
                EchoBlockId::from(u128::from(id)),
                content(id, bytes).into(),
                Distance::Any,
            ) {
                Ok(()) => return Ok(()),
                Err(EchoRefusal::Busy | EchoRefusal::NoSpace { may_grow: true }) => self.poll_once()?,
                Err(other) => return Err(format!("{other:?}").into()),
            }
        }
    }

    /// Reads and checks a block.
    fn read(&mut self, id: u32, bytes: usize) -> Outcome<Duration> {
        let started = Instant::now();
        let wanted = EchoBlockId::from(u128::from(id));
        self.echo.fetch(self.now(), wanted).map_err(|refusal| format!("{refusal:?}"))?;
        loop {
            self.poll_once()?;
            while let Some(output) = self.echo.poll() {
                match output {
                    EchoOutput::Fetched { id: got, block } if got == wanted => {
                        assert_eq!(block, content(id, bytes), "block {id}");
                        return Ok(started.elapsed());
                    }
                    EchoOutput::Missing { .. } | EchoOutput::Lost { .. } => {
                        return Err(format!("{output:?}").into());
                    }
                    _ => {}
                }
            }
        }
    }
}

/// The bare loop with as many packets.
struct Bare {
    socket: EchoSocket,
    batch: PacketBatch,
}

impl Bare {
    fn open(host: IpAddr, packets: usize, packet_bytes: usize) -> Outcome<Bare> {
        let socket = EchoSocket::open((host, 0).into(), EchoIdent(!(std::process::id() as u16)))?;
        socket.reserve(packets + BATCH_PACKETS_MAX, packet_bytes)?;
        let mut bare = Bare { socket, batch: PacketBatch::new(packet_bytes) };
        let mut sent = 0;
        while sent < packets {
            bare.batch.clear();
            while sent < packets
                && bare.batch.push(|room| Some((packet_bytes.min(room.len()), EchoSequence(0))))
            {
                sent += 1;
            }
            bare.send()?;
        }
        Ok(bare)
    }

    fn send(&mut self) -> Outcome<()> {
        while !self.batch.is_sent() {
            self.socket.send(&mut self.batch)?;
        }
        Ok(())
    }

    fn poll_once(&mut self) -> Outcome<u64> {
        let arrivals = self.socket.receive(&mut self.batch, BATCH_PACKETS_MAX)?;
        self.batch.exchange(|_, _| Some(EchoSequence(0)));
        self.send()?;
        Ok(arrivals.replies as u64)
    }
}

/// Returns the CPU time per packet while `poll` runs for a slice of time. `poll` returns the number of
/// packets it sent again.
fn cost(mut poll: impl FnMut() -> Outcome<u64>) -> Outcome<Duration> {
    let (begun, cpu) = (Instant::now(), cpu_time());
    let mut packets = 0;
    while begun.elapsed() < SLICE {
        packets += poll()?;
    }
    Ok((cpu_time() - cpu).div_f64(packets.max(1) as f64))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn content(id: u32, bytes: usize) -> Vec<u8> {
    id.to_le_bytes().into_iter().cycle().take(bytes).collect()
}

/// CPU time of this process.
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn open(host: IpAddr, blocks: u64, packet_bytes: usize, copies: u8, is_root: bool) -> Outcome<StoreDriver> {
    let socket = EchoSocket::open((host, 0).into(), EchoIdent(std::process::id() as u16))?;
    let packets = blocks * u64::from(copies) + BATCH_PACKETS_MAX as u64;
    let room = socket.reserve(usize::try_from(packets)?, packet_bytes)? as u64;
    let host = HostConfig { buffer_packets: room, parked_packets: packets, goal_packets: 0, rate: None };
    let window_packets = usize::try_from(packets * 2)?;
    let echo = Echo::new(&EchoConfig {
        key: EchoKey([7; 32]),
        origin: Origin(1),
        cipher: Cipher::default(),
        hosts: vec![host],
        keep: if is_root { Keep::Root { window_packets } } else { Keep::Index },
        redundancy: Redundancy::Copies(copies),
        rate: SendRate::Fixed(u32::MAX),
        packet_bytes,
        ram_bytes: 0,
    })?;
    Ok(StoreDriver { echo, socket, batch: PacketBatch::new(packet_bytes), start: Instant::now() })
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let word = |index: usize, default: &str| arguments.get(index).map_or(default.to_owned(), String::clone);
    let blocks: u32 = word(1, "1000").parse()?;
    let packet_bytes = word(2, "1472").parse()?;
    let span = Duration::from_secs(word(3, "3").parse()?);
    let copies = word(4, "1").parse()?;
    let mut driver = open(
        word(0, "127.0.0.1").parse()?,
        u64::from(blocks),
        packet_bytes,
        copies,
        word(5, "index") == "root",
    )?;
    let bytes = driver.echo.block_bytes_max();
    for id in 0..blocks {
        driver.store_block(id, bytes)?;
    }
    let settle = Instant::now();
    while settle.elapsed() < Duration::from_millis(500) {
        driver.poll_once()?;
    }
    let host = word(0, "127.0.0.1").parse()?;
    let mut bare = Bare::open(host, blocks as usize * usize::from(copies), packet_bytes)?;
    let (begun, mut bare_costs, mut costs, mut ratios) = (Instant::now(), Vec::new(), Vec::new(), Vec::new());
    while begun.elapsed() < span {
        let without = cost(|| bare.poll_once())?;
        let with = cost(|| {
            let before = driver.echo.counters().circulated;
            driver.poll_once()?;
            Ok(driver.echo.counters().circulated - before)
        })?;
        bare_costs.push(without.as_secs_f64() * 1e6);
        costs.push(with.as_secs_f64() * 1e6);
        ratios.push(with.div_duration_f64(without));
    }
    println!(
        "{} packets: {:.2} us CPU a packet, bare {:.2}: {:.2} times; index {} bytes, dropped {}",
        blocks as usize * usize::from(copies),
        median(costs),
        median(bare_costs),
        median(ratios),
        driver.echo.memory_bytes().index,
        driver.socket.buffer_usage()?.dropped,
    );
    let reads = (0..blocks).step_by((blocks as usize / 200).max(1));
    let mut times = reads.map(|id| driver.read(id, bytes)).collect::<Outcome<Vec<_>>>()?;
    times.sort_unstable();
    println!(
        "{} blocks read and equal; median {:?}; {:?}",
        times.len(),
        times.get(times.len() / 2),
        driver.echo.counters()
    );
    Ok(())
}
