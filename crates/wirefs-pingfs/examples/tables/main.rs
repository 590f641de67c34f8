//! Repeats the measurements of the PingFS paper: the RTT of pings (1), a small file at 0 to 4 ms of added
//! delay (2), with a CPU quota (3), and in nested directories at 3 to 5 ms (4). Beside the first row of table
//! 2 it prints the time of the same FUSE calls when each is answered at once.
//!
//! `cargo build --release -p wirefs -p wirefs-pingfs -p wirefs-fuse --examples --bins`, then as root
//! `target/release/examples/tables [reads] [option of wirefs echo …]`

mod quota;

use std::error::Error;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use quota::Quota;
use wirefs_lab::{Host, Lab, LinkProfile};
use wirefs_pingfs::{EchoOptions, EchoStore};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Added one-way delays in milliseconds, as in the paper.
const DELAYS_MS: [u64; 4] = [0, 1, 2, 4];
/// Nesting depths of the file.
const DEPTHS: [usize; 5] = [0, 1, 2, 4, 8];

/// CPU quotas of the mount in percent.
const QUOTAS: [u64; 5] = [5, 10, 20, 40, 80];
/// The paper scales a CPU of 3.9 GHz. Its table is not legible; this is from its text.
const SOURCE_3: &str =
    "the source: from 800 to 1,200 MHz the mean falls by 1.10 ms, from 3,200 to 3,600 MHz by 0.067 ms";
/// Limit of the time to mount.
const MOUNTED_WITHIN: Duration = Duration::from_secs(60);

struct Bench {
    floor: PathBuf,
    reader: PathBuf,
    wirefs: PathBuf,
    mountpoint: String,
    reads: String,
    options: Vec<String>,
}

/// Runs a program to its end and returns its last line of output.
fn output_of(mut command: Command) -> Outcome<String> {
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
    /// Mounts over pings to this address and measures reads below each directory.
    fn read(&self, near: &Host, address: IpAddr, rtt: Duration, dirs: &[String]) -> Outcome<Vec<String>> {
        self.read_with(None, near, address, rtt, dirs)
    }

    fn read_with(
        &self,
        quota: Option<&Quota>,
        near: &Host,
        address: IpAddr,
        rtt: Duration,
        dirs: &[String],
    ) -> Outcome<Vec<String>> {
        let address = address.to_string();
        let mut words = vec!["echo", &self.mountpoint, "--host", &address, "--discard"];
        words.extend(self.options.iter().map(String::as_str));
        match quota.map(Quota::members) {
            None => output_of(with(near, &self.wirefs, &words))?,
            Some(members) => {
                let enter = ["-c", r#"echo $$ > "$0" && exec "$@""#];
                let mut command = with(near, Path::new("sh"), &enter);
                output_of({
                    command.arg(members).arg(&self.wirefs).args(&words);
                    command
                })?
            }
        };
        // Longer than blocks stay buffered.
        let pause = (rtt.as_micros() * 3).max(3_000).to_string();
        let measured = dirs.iter().map(|dir| {
            let dir = format!("{}/{dir}", self.mountpoint);
            output_of(with(near, &self.reader, &[&dir, "16", &pause, "prepare"]))?;
            output_of(with(near, &self.reader, &[&dir, &self.reads, &pause]))
        });
        let measured: Outcome<Vec<String>> = measured.collect();
        output_of(with(near, &self.wirefs, &["umount", &self.mountpoint]))?;
        measured
    }

    /// Measures the same reads where each call is answered at once. Returns the times and the calls.
    fn read_floor(&self, near: &Host, options: &[&str]) -> Outcome<(String, String)> {
        let mut mounting = with(near, &self.floor, &[&[self.mountpoint.as_str()], options].concat());
        let mut floor = mounting.stdout(Stdio::piped()).spawn()?;
        let end = Instant::now() + MOUNTED_WITHIN;
        let file = format!("{}/small0", self.mountpoint);
        while !near.run(|| Path::new(&file).exists())? {
            if Instant::now() >= end || floor.try_wait()?.is_some() {
                return Err("the floor is not mounted".into());
            }
            std::thread::yield_now();
        }
        let measured = output_of(with(near, &self.reader, &[&self.mountpoint, &self.reads, "3000"]));
        output_of(with(near, Path::new("umount"), &[&self.mountpoint]))?;
        let output = floor.wait_with_output()?;
        Ok((measured?, String::from_utf8_lossy(&output.stdout).trim().to_owned()))
    }

    /// Measures table 3. Prints an error if the machine provides no CPU quota.
    fn read_with_quotas(&self, near: &Host, address: IpAddr) -> Outcome<()> {
        for percent in QUOTAS {
            let quota = match Quota::new(percent) {
                Ok(quota) => quota,
                Err(error) => {
                    println!("table 3: this machine provides no CPU quota: {error}");
                    return Ok(());
                }
            };
            let measured = self.read_with(Some(&quota), near, address, Duration::ZERO, &[String::new()])?;
            println!("table 3: {percent} % of a processor: {}", measured.join(""));
        }
        println!("table 3: {SOURCE_3}");
        Ok(())
    }
}

/// Returns the shortest ping to this address, as the store measures it.
fn ping(near: &Host, address: IpAddr) -> Outcome<Duration> {
    let open = || EchoStore::open(EchoOptions::new(vec![(address, 0).into()])).map(|store| store.status());
    let status = near.run(open)??;
    Ok(status.hosts.first().and_then(|host| host.rtt).unwrap_or_default())
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let here = std::env::current_exe()?;
    let examples = here.parent().ok_or("the program has no directory")?;
    let dir = std::env::temp_dir().join(format!("wirefs-tables-{}", std::process::id()));
    std::fs::create_dir_all(&dir)?;
    let bench = Bench {
        floor: examples.join("floor"),
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
        if delay_ms == 0 {
            for (what, options) in [("", [].as_slice()), (", names and attributes believed", &["believing"])]
            {
                let (floor, calls) = bench.read_floor(&near, options)?;
                println!("table 2: answered at once{what}: {floor}");
                println!("table 2: {calls}");
            }
        }
    }
    bench.read_with_quotas(&near, loopback)?;
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
