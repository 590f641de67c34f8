//! Two rate-limited cards together, beside one TCP connection and MPTCP.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::Outcome;
use crate::bulk::megabytes;
use crate::site::{Site, median, run as on};

const SPAN: Duration = Duration::from_secs(4);
const WARM: Duration = Duration::from_millis(500);

pub(crate) fn run(rounds: usize) -> Outcome<()> {
    let site = Site::new(2, 1_500)?;
    site.limit("200mbit")?;
    let multipath = prepare_multipath(&site);
    let mut samples = [const { Vec::new() }; 3];
    for _ in 0..rounds {
        let [ether, tcp, mptcp] = &mut samples;
        ether.push(megabytes(site.ether()?, SPAN)?);
        tcp.push(stream(site.tcp(false)?, SPAN)?);
        if multipath.is_ok() {
            mptcp.push(stream(site.tcp(true)?, SPAN)?);
        }
    }
    let [ether, tcp, mptcp] = samples.map(median);
    println!("two cards of 200 Mbit/s each, MTU 1500, medians of {rounds}:");
    println!("ether {ether:.1} MB/s, one TCP {tcp:.1} MB/s, MPTCP {mptcp:.1} MB/s");
    println!("ether / TCP {:.2}, ether / MPTCP {:.2}", ether / tcp, ether / mptcp);
    if let Err(error) = multipath {
        println!("MPTCP could not be set up: {error}");
    }
    Ok(())
}

fn prepare_multipath(site: &Site) -> Outcome<()> {
    site.ip_on_both("mptcp limits set subflow 4 add_addr_accepted 4")?;
    let [near, far] = &site.hosts;
    let second = site.patches.get(1).ok_or("no second cable")?;
    on(near, "ip", &format!("mptcp endpoint add {} dev {} subflow", second.address_a, second.device))?;
    on(far, "ip", &format!("mptcp endpoint add {} dev {} signal", second.address_b, second.device))
}

/// Returns the megabytes per second that arrive over a stream.
pub(crate) fn stream((mut near, mut far): (TcpStream, TcpStream), span: Duration) -> Outcome<f64> {
    let received = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let received = &received;
        let stopping = near.try_clone()?;
        scope.spawn(move || {
            let data = vec![7; 128 << 10];
            while near.write_all(&data).is_ok() {}
        });
        scope.spawn(move || {
            let mut room = vec![0; 256 << 10];
            while let Ok(count @ 1..) = far.read(&mut room) {
                received.fetch_add(count as u64, Ordering::Relaxed);
            }
        });
        std::thread::sleep(WARM);
        let (begun, before) = (Instant::now(), received.load(Ordering::Relaxed));
        std::thread::sleep(span);
        let rate = (received.load(Ordering::Relaxed) - before) as f64 / 1e6 / begun.elapsed().as_secs_f64();
        stopping.shutdown(std::net::Shutdown::Both)?;
        Ok(rate)
    })
}
