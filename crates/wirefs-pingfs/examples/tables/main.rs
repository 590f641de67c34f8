//! Measures the tables of the source again: the round trip of pings (1), a small file at 0 to 4 ms of delay each way (2), and a
//! file in nested directories at 3 to 5 ms (4).
//!
//! `cargo build --release -p wirefs -p wirefs-pingfs --examples --bins`, then as root
//! `target/release/examples/tables [reads] [option of wirefs echo …]`

use std::error::Error;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use wirefs_lab::{Host, Lab, LinkProfile};
use wirefs_pingfs::{EchoOptions, EchoStore};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Delays each way, in milliseconds, as the source added them.
const DELAYS_MS: [u64; 4] = [0, 1, 2, 4];
/// Directories above a file.
const DEPTHS: [usize; 5] = [0, 1, 2, 4, 8];

struct Bench {
    reader: PathBuf,
    wirefs: PathBuf,
    mountpoint: String,
    reads: String,
    options: Vec<String>,
}

/// Runs a program to its end; what it printed last.
fn told(mut command: Command) -> Outcome<String> {
    let output = command.output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        Ok(text.lines().last().unwrap_or_default().to_owned())
    } else {
        Err(format!("{command:?}: {} {}", output.status, String::from_utf8_lossy(&output.stderr)).into())
    }
}

fn with(host: &Host, program: &Path, words: &[&str]) -> Command {
    let mut command = host.command(program.to_string_lossy().as_ref());
    command.args(words);
    command
}

impl Bench {
    /// Mounts over pings to this address and measures reads below each of these directories.
    fn read(&self, near: &Host, address: IpAddr, rtt: Duration, dirs: &[String]) -> Outcome<Vec<String>> {
        let address = address.to_string();
        let mut words = vec!["echo", &self.mountpoint, "--host", &address, "--discard"];
        words.extend(self.options.iter().map(String::as_str));
        told(with(near, &self.wirefs, &words))?;
        // Longer than what passed is at hand.
        let pause = (rtt.as_micros() * 3).max(3_000).to_string();
        let measured = dirs.iter().map(|dir| {
            let dir = format!("{}/{dir}", self.mountpoint);
            told(with(near, &self.reader, &[&dir, "16", &pause, "prepare"]))?;
            told(with(near, &self.reader, &[&dir, &self.reads, &pause]))
        });
        let measured: Outcome<Vec<String>> = measured.collect();
        told(with(near, &self.wirefs, &["umount", &self.mountpoint]))?;
        measured
    }
}

/// The shortest ping to this address, as a store finds it.
fn ping(near: &Host, address: IpAddr) -> Outcome<Duration> {
    let open = || EchoStore::open(EchoOptions::new(vec![(address, 0).into()])).map(|store| store.status());
    let status = near.run(open)??;
    Ok(status.hosts.first().and_then(|host| host.rtt).unwrap_or_default())
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let here = std::env::current_exe()?;
    let examples = here.parent().ok_or("the program is nowhere")?;
    let dir = std::env::temp_dir().join(format!("wirefs-tables-{}", std::process::id()));
    std::fs::create_dir_all(&dir)?;
    let bench = Bench {
        reader: examples.join("read_file"),
        wirefs: examples.with_file_name("wirefs"),
        mountpoint: dir.to_string_lossy().into_owned(),
        reads: arguments.first().map_or("1000", String::as_str).to_owned(),
        options: arguments.iter().skip(1).cloned().collect(),
    };
    let lab = Lab::new("tables")?;
    let near = lab.host("near")?;
    let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
    println!("table 1: shortest ping to this host {:.1?}", ping(&near, loopback)?);
    for delay_ms in DELAYS_MS {
        let rtt = Duration::from_millis(delay_ms * 2);
        let far = lab.host(&format!("far{delay_ms}"))?;
        let link = lab.link(&near, &far, LinkProfile::rtt(rtt))?;
        let address = if delay_ms == 0 { loopback } else { link.address_b().into() };
        let measured = bench.read(&near, address, rtt, &[String::new()])?;
        println!("table 2: {delay_ms} ms each way: {}", measured.join(""));
    }
    let far = lab.host("nested")?;
    let jitter = Duration::from_millis(1);
    let profile = LinkProfile::rtt(Duration::from_millis(3)).with(|lane| lane.jitter = jitter);
    let link = lab.link(&near, &far, profile)?;
    let dirs: Vec<String> = DEPTHS.iter().map(|depth| vec!["d"; *depth].join("/")).collect();
    let measured = bench.read(&near, link.address_b().into(), Duration::from_millis(5), &dirs)?;
    for (depth, line) in DEPTHS.iter().zip(measured) {
        println!("table 4: {depth} directories: {line}");
    }
    std::fs::remove_dir(&dir)?;
    Ok(())
}
