//! Measures each carrier on this machine: MB/s of 128 KiB frames in one and both directions, and small round trips.
//!
//! `cargo run --release -p wirefs-carrier --example throughput [seconds] [carrier]`

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use wirefs_carrier::tls::{Identity, KnownHosts, TlsDial};
use wirefs_carrier::{
    Address, Carrier, Class, Dial, ListenOptions, Listener, SendQueue, TcpDial, UnixDial, memory,
};
use wirefs_op::Frame;
use wirefs_op::limits::DATA_BYTES_MAX;

type Outcome<T> = Result<T, Box<dyn Error>>;

const HEAD_BYTES: usize = 32;
const TIMEOUT: Duration = Duration::from_secs(10);

fn frame(data: &Bytes) -> Frame {
    let mut head = vec![0; HEAD_BYTES];
    let size = u32::try_from(HEAD_BYTES + data.len()).unwrap_or(u32::MAX);
    head.splice(..4, size.to_le_bytes());
    Frame { head, data: data.clone() }
}

fn connect_pair(dial: &dyn Dial, listener: &Listener) -> Outcome<(Carrier, Carrier)> {
    std::thread::scope(|scope| {
        let dialed = scope.spawn(|| dial.dial());
        let server = listener.accept()?.finish(TIMEOUT)?;
        let client = dialed.join().map_err(|_| "the dialing thread failed")??;
        Ok((client, server))
    })
}

fn connect(kind: &str, scratch: &Path) -> Outcome<(Carrier, Carrier)> {
    let mut options = ListenOptions::default();
    match kind {
        "memory" => Ok(memory::pair()?),
        "unix" => {
            let path = scratch.join("socket");
            let listener = Listener::bind(&Address::Unix(path.clone()), &options)?;
            connect_pair(&UnixDial::new(path), &listener)
        }
        "tls" => {
            let client = Arc::new(Identity::open(&scratch.join("client"))?);
            let authorized = scratch.join("authorized_keys");
            std::fs::write(&authorized, client.line())?;
            options.identity = Some(Arc::new(Identity::open(&scratch.join("server"))?));
            options.authorized_keys = Some(authorized);
            let listener = Listener::bind(&"tls://127.0.0.1:0".parse()?, &options)?;
            let Address::Tls(host) = listener.address().clone() else { return Err("not tls".into()) };
            connect_pair(
                &TlsDial::new(host, client, KnownHosts::new(scratch.join("known_hosts")), TIMEOUT),
                &listener,
            )
        }
        _ => {
            let listener = Listener::bind(&"tcp+plain://127.0.0.1:0".parse()?, &options)?;
            let Address::TcpPlain(host) = listener.address().clone() else { return Err("not tcp".into()) };
            connect_pair(&TcpDial::new(host, TIMEOUT), &listener)
        }
    }
}

/// Returns the processor seconds that this process has used.
fn cpu_seconds() -> f64 {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    used.tv_sec as f64 + used.tv_nsec as f64 / 1e9
}

/// Pushes for `time` from one or both ends. Returns the MB received in total, per second and per processor second. The
/// second figure is meaningful on a busy machine too.
fn bulk(ends: (Carrier, Carrier), both: bool, time: Duration) -> (f64, f64) {
    let data = Bytes::from(vec![7; DATA_BYTES_MAX]);
    let (received, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let (start, cpu) = (Instant::now(), cpu_seconds());
    std::thread::scope(|scope| {
        let mut send_queues = Vec::new();
        for (index, Carrier { mut source, sink, closer, .. }) in [ends.0, ends.1].into_iter().enumerate() {
            let send_queue = SendQueue::start(sink, closer, |_| {});
            send_queues.push(send_queue.clone());
            let (received, stop, data) = (&received, &stop, &data);
            scope.spawn(move || {
                while let Ok(Some(body)) = source.receive() {
                    received.fetch_add(body.len() as u64, Ordering::Relaxed);
                }
            });
            if both || index == 0 {
                scope.spawn(move || {
                    while !stop.load(Ordering::Relaxed) && send_queue.push_wait(frame(data), Class::Bulk) {
                        send_queue.flush();
                    }
                });
            }
        }
        std::thread::sleep(time);
        let (seconds, cpu) = (start.elapsed().as_secs_f64(), cpu_seconds() - cpu);
        let megabytes = received.load(Ordering::Relaxed) as f64 / 1e6;
        stop.store(true, Ordering::Relaxed);
        for send_queue in send_queues {
            send_queue.close();
        }
        (megabytes / seconds, megabytes / cpu)
    })
}

/// Returns round trips of a small frame per second.
fn round_trips(ends: (Carrier, Carrier), time: Duration) -> Outcome<f64> {
    let (client, server) = ends;
    let mut source = client.source;
    let out = SendQueue::start(client.sink, client.closer, |_| {});
    let back = SendQueue::start(server.sink, server.closer, |_| {});
    let mut far = server.source;
    std::thread::scope(|scope| {
        scope.spawn(move || {
            while let Ok(Some(_)) = far.receive() {
                back.push(frame(&Bytes::new()), Class::Urgent);
                back.flush();
            }
        });
        let start = Instant::now();
        let mut count = 0u32;
        while start.elapsed() < time {
            out.push(frame(&Bytes::new()), Class::Urgent);
            out.flush();
            source.receive()?.ok_or("the peer closed")?;
            count += 1;
        }
        let rate = f64::from(count) / start.elapsed().as_secs_f64();
        out.close();
        Ok(rate)
    })
}

fn main() -> Outcome<()> {
    let seconds = std::env::args().nth(1).map_or(Ok(2), |text| text.parse())?;
    let time = Duration::from_secs(seconds);
    let kinds = match std::env::args().nth(2) {
        Some(kind) => vec![kind],
        None => ["memory", "unix", "tcp+plain", "tls"].map(str::to_owned).to_vec(),
    };
    let scratch = std::env::temp_dir().join(format!("wirefs-throughput-{}", std::process::id()));
    std::fs::create_dir_all(&scratch)?;
    println!(
        "{:10} {:>16} {:>16} {:>16} {:>16} {:>14}",
        "carrier", "one way MB/s", "per cpu second", "both ways MB/s", "per cpu second", "round trips/s"
    );
    for kind in kinds {
        let one = bulk(connect(&kind, &scratch)?, false, time);
        let both = bulk(connect(&kind, &scratch)?, true, time);
        let trips = round_trips(connect(&kind, &scratch)?, time)?;
        println!("{kind:10} {:16.0} {:16.0} {:16.0} {:16.0} {trips:14.0}", one.0, one.1, both.0, both.1);
    }
    std::fs::remove_dir_all(&scratch)?;
    Ok(())
}
