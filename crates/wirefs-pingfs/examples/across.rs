//! Replicates a tree on two nodes, and measures how many round trips after a write on one node the file is
//! readable on the other.
//!
//! `cargo build --release -p wirefs -p wirefs-pingfs --examples --bins`, then as root
//! `target/release/examples/across [round trip in ms] [files] [option of wirefs echo …]`

use std::error::Error;
use std::fs;
use std::os::unix::fs::FileExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use wirefs_lab::{Host, Lab, LinkHandle, LinkProfile};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Limit of the waits for nodes and files.
const PATIENCE: Duration = Duration::from_secs(60);
/// Size of a file in bytes; less than a block.
const FILE_BYTES: usize = 1_000;

/// A node: a host with its own line to the hub that answers pings.
struct Node {
    host: Host,
    link: LinkHandle,
    mountpoint: PathBuf,
}

fn run(mut command: Command) -> Outcome<()> {
    let status = command.status()?;
    if status.success() { Ok(()) } else { Err(format!("{command:?}: {status}").into()) }
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) -> Outcome<()> {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        if Instant::now() >= end {
            return Err(format!("timed out waiting for {what}").into());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

/// Makes the hub answer pings whose source address is on another of its lines.
fn accept_foreign_sources() -> std::io::Result<()> {
    for device in fs::read_dir("/proc/sys/net/ipv4/conf")? {
        fs::write(device?.path().join("rp_filter"), "0")?;
    }
    Ok(())
}

/// Returns the median as a multiple of the round trip.
fn median(mut times: Vec<Duration>, rtt: Duration) -> f64 {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default().as_secs_f64() / rtt.as_secs_f64()
}

fn mount(wirefs: &Path, nodes: &[Node], number: usize, key: &Path, options: &[String]) -> Outcome<()> {
    let node = nodes.get(number).ok_or("no such node")?;
    let mut command = node.host.command(wirefs.to_string_lossy().as_ref());
    command.arg("echo").arg(&node.mountpoint).args(["--host", &node.link.address_a().to_string()]);
    command.args(["--discard", "--node", &(number + 1).to_string()]).arg("--key").arg(key);
    for peer in nodes {
        command.args(["--peer", &peer.link.address_b().to_string()]);
    }
    command.args(options);
    run(command)
}

/// Times of one kind: changes on one node, and the reads on the other right after them.
#[derive(Default)]
struct Times {
    changed: Vec<Duration>,
    read: Vec<Duration>,
    both: Vec<Duration>,
}

impl Times {
    /// Changes a file, reads it on the other node, and records the times.
    fn note(&mut self, at: &Path, text: &str, change: impl FnOnce() -> std::io::Result<()>) -> Outcome<()> {
        let begun = Instant::now();
        change()?;
        let answered = Instant::now();
        let found = fs::read_to_string(at)?;
        let ended = Instant::now();
        if found != text {
            return Err(format!("{} differs from the written contents", at.display()).into());
        }
        self.changed.push(answered - begun);
        self.read.push(ended - answered);
        self.both.push(ended - begun);
        Ok(())
    }

    fn print(self, what: &str, rtt: Duration) {
        let count = self.both.len();
        let [changed, read, both] = [self.changed, self.read, self.both].map(|times| median(times, rtt));
        println!(
            "{count} times {what} at {} ms, medians in round trips: until it was answered {changed:.2}, \
             then read on the other {read:.2}, both {both:.2}",
            rtt.as_millis()
        );
    }
}

/// Returns the time from the start of a write until a polling program on the other node reads the new
/// contents.
fn until_seen(at: &Path, text: &str, change: impl FnOnce() -> std::io::Result<()>) -> Outcome<Duration> {
    let begun = Instant::now();
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            while begun.elapsed() < PATIENCE {
                if fs::read_to_string(at).is_ok_and(|found| found == text) {
                    return Some(begun.elapsed());
                }
            }
            None
        });
        change()?;
        reader.join().ok().flatten().ok_or_else(|| format!("{} was not seen", at.display()).into())
    })
}

/// Writes new files and open files on one node, and reads each on the other at once.
fn measure(from: &Path, to: &Path, files: usize, rtt: Duration) -> Outcome<()> {
    let (mut whole, mut calls, mut seen) = (Times::default(), Times::default(), Vec::new());
    for number in 0..files {
        let name = format!("file{number}");
        let text = |word: &str| format!("{word} {number} ").repeat(FILE_BYTES / 10);
        let (first, second) = (text("new"), text("old"));
        whole.note(&to.join(&name), &first, || fs::write(from.join(&name), &first))?;
        let file = fs::OpenOptions::new().write(true).open(from.join(&name))?;
        calls.note(&to.join(&name), &second, || file.write_all_at(second.as_bytes(), 0))?;
        seen.push(until_seen(&to.join(&name), &first, || file.write_all_at(first.as_bytes(), 0))?);
        drop(file);
        fs::remove_file(from.join(&name))?;
    }
    whole.print("a file made, written and closed", rtt);
    calls.print("one write into an open file", rtt);
    println!(
        "from the beginning of such a write until a program on the other has read it: {:.2}",
        median(seen, rtt)
    );
    Ok(())
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let rtt = Duration::from_millis(arguments.first().map_or(Ok(10), |word| word.parse())?);
    let files: usize = arguments.get(1).map_or(Ok(100), |word| word.parse())?;
    let options: Vec<String> = arguments.iter().skip(2).cloned().collect();
    let wirefs =
        std::env::current_exe()?.parent().ok_or("the program has no directory")?.with_file_name("wirefs");
    let dir = std::env::temp_dir().join(format!("wirefs-across-{}", std::process::id()));

    let lab = Lab::new("across")?;
    let hub = lab.host("hub")?;
    let mut nodes = Vec::new();
    for number in 1..=2 {
        let host = lab.host(&format!("node{number}"))?;
        let link = lab.link(&hub, &host, LinkProfile::rtt(rtt))?;
        let mountpoint = dir.join(number.to_string());
        fs::create_dir_all(&mountpoint)?;
        nodes.push(Node { host, link, mountpoint });
    }
    hub.run(accept_foreign_sources)??;
    let key = dir.join("key");
    fs::write(&key, "a secret of both of these nodes")?;
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600))?;
    for number in 0..nodes.len() {
        mount(&wirefs, &nodes, number, &key, &options)?;
    }
    let [first, second] = nodes.as_slice() else { return Err("two nodes are needed".into()) };
    fs::write(first.mountpoint.join("together"), "yes")?;
    let outcome = wait_until("the nodes to be together", || second.mountpoint.join("together").exists())
        .and_then(|()| measure(&first.mountpoint, &second.mountpoint, files, rtt))
        .and_then(|()| measure(&second.mountpoint, &first.mountpoint, files, rtt));
    for node in &nodes {
        let mut command = node.host.command(wirefs.to_string_lossy().as_ref());
        command.arg("umount").arg(&node.mountpoint);
        run(command)?;
    }
    fs::remove_dir_all(&dir)?;
    outcome
}
