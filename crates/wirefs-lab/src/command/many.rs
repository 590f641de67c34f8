//! `wirefs-lab many`: walks a tree of very many files; measures memory, and a second mount that starts with the disk
//! cache.

use std::fs;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use clap::Args;
use rustix::mount::{UnmountFlags, unmount};
use rustix::process::{Pid, Signal, kill_process};
use wirefs_lab::{EndSignals, LabError, run_without_blocked_signals, units};

/// The maximum time until either side is ready.
const START_MAX: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// The time that a process has to end after SIGTERM, before SIGKILL.
const END_MAX: Duration = Duration::from_secs(10);
/// The directories that wirefs takes from its environment, with their names here. The names are short, because the
/// kernel limits the length of socket paths below them.
const HOME_VARIABLES: [(&str, &str); 4] = [
    ("XDG_CONFIG_HOME", "config"),
    ("XDG_STATE_HOME", "state"),
    ("XDG_CACHE_HOME", "cache"),
    ("XDG_RUNTIME_DIR", "run"),
];

/// The home directories of the two sides.
const SERVER: &str = "s";
const CLIENT: &str = "c";

#[derive(Args)]
pub(crate) struct ManyArguments {
    /// Number of entries of the tree.
    #[arg(long, value_name = "COUNT", default_value_t = 1_000_000)]
    entries: usize,
    /// Number of entries per directory, the directory itself included.
    #[arg(long, value_name = "COUNT", default_value_t = 1_000)]
    each: usize,
    /// The maximum memory of the mount.
    #[arg(long, value_name = "SIZE", default_value = "256m", value_parser = units::bytes)]
    mount_max: u64,
    /// The maximum memory of the server.
    #[arg(long, value_name = "SIZE", default_value = "200m", value_parser = units::bytes)]
    server_max: u64,
    /// The parent of the directory for the tree and all other files; removed afterwards.
    #[arg(long, value_name = "DIR")]
    scratch: Option<PathBuf>,
    /// The wirefs program; by default the one in the directory of this program.
    #[arg(long, value_name = "PROGRAM")]
    wirefs: Option<PathBuf>,
}

/// Creates the tree, walks it twice, mounts again and walks again; fails if either side needs too much memory.
pub(crate) fn run(arguments: &ManyArguments) -> anyhow::Result<ExitCode> {
    ensure!(
        arguments.each > 1 && arguments.entries > 0,
        "--entries must be positive, and --each larger than 1"
    );
    let signals = EndSignals::block().context("block signals")?;
    let is_stopped = Arc::new(AtomicBool::new(false));
    let stop = Arc::clone(&is_stopped);
    thread::spawn(move || signals.wait().map(|_| stop.store(true, Ordering::Relaxed)));
    let default_wirefs = std::env::current_exe().context("find this program")?.with_file_name("wirefs");
    let scratch = format!("many-{}", std::process::id());
    let test = ManyFilesTest {
        dir: arguments.scratch.clone().unwrap_or_else(std::env::temp_dir).join(scratch),
        wirefs: arguments.wirefs.clone().unwrap_or(default_wirefs),
        is_stopped,
    };
    let measured = measure(arguments, &test);
    test.detach_mount();
    let removed = fs::remove_dir_all(&test.dir).with_context(|| format!("remove {}", test.dir.display()));
    // The first error is reported first: after a failed setup the removal fails as well.
    let (mount, server) = measured?;
    removed?;
    let is_within = mount <= arguments.mount_max && server <= arguments.server_max;
    println!("peak memory: mount {}, server {}", mib(mount), mib(server));
    println!("allowed:     mount {}, server {}", mib(arguments.mount_max), mib(arguments.server_max));
    Ok(ExitCode::from(u8::from(!is_within)))
}

/// Returns the maximum memory of the mounts and of the server, in bytes.
fn measure(arguments: &ManyArguments, test: &ManyFilesTest) -> anyhow::Result<(u64, u64)> {
    test.make_tree(arguments.entries, arguments.each)?;
    for side in [SERVER, CLIENT] {
        for (_, name) in HOME_VARIABLES {
            let place = test.path(side).join(name);
            let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&place);
            made.with_context(|| format!("make {}", place.display()))?;
        }
    }
    fs::create_dir(test.path("mnt")).context("make the mount point")?;
    let server = test.serve()?;
    let (first, _) = test.mount()?;
    for walk in ["first walk", "second walk"] {
        test.walk(walk, arguments.entries)?;
    }
    println!("{}", test.status()?);
    let mut peak = first.memory()?;
    test.unmount(first)?;
    let (second, elapsed) = test.mount()?;
    println!("mounted again in {:.3} s", elapsed.as_secs_f64());
    test.walk("walk of the second mount", arguments.entries)?;
    println!("{}", test.status()?);
    peak = peak.max(second.memory()?);
    test.unmount(second)?;
    Ok((peak, server.memory()?))
}

/// The directory of the test, and the program under test.
struct ManyFilesTest {
    dir: PathBuf,
    wirefs: PathBuf,
    is_stopped: Arc<AtomicBool>,
}

impl ManyFilesTest {
    fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Fails if a signal has arrived.
    fn check_interrupt(&self) -> anyhow::Result<()> {
        if self.is_stopped.load(Ordering::Relaxed) { Err(LabError::Interrupted.into()) } else { Ok(()) }
    }

    /// Detaches the mount of a crashed wirefs, which would prevent the removal of the directory.
    fn detach_mount(&self) {
        // Usually nothing is mounted any more.
        let _not_mounted = unmount(self.path("mnt"), UnmountFlags::DETACH);
    }

    fn make_tree(&self, entries: usize, each: usize) -> anyhow::Result<()> {
        let tree = self.path("tree");
        let mut dir = tree.clone();
        fs::create_dir_all(&dir).with_context(|| format!("make {}", dir.display()))?;
        for entry in 0..entries {
            if entry % each == 0 {
                self.check_interrupt()?;
                dir = tree.join(format!("d{:06}", entry / each));
                fs::create_dir(&dir).with_context(|| format!("make {}", dir.display()))?;
            } else {
                let file = dir.join(format!("file-{:07}", entry % each));
                fs::File::create_new(&file).with_context(|| format!("make {}", file.display()))?;
            }
        }
        Ok(())
    }

    fn source(&self) -> String {
        format!("unix://{}", self.path("socket").display())
    }

    fn command(&self, side: &str) -> Command {
        let (mut command, home) = (Command::new(&self.wirefs), self.path(side));
        command.env("HOME", &home).envs(HOME_VARIABLES.map(|(place, name)| (place, home.join(name))));
        command.stdin(Stdio::null()).stdout(Stdio::null());
        run_without_blocked_signals(&mut command);
        command
    }

    fn serve(&self) -> anyhow::Result<ManagedProcess> {
        let mut command = self.command(SERVER);
        command.arg("serve").arg(self.path("tree")).args(["--listen", &self.source()]);
        let mut server = ManagedProcess(command.spawn().context("run wirefs serve")?);
        server.wait_until("the server to listen", || self.path("socket").exists())?;
        Ok(server)
    }

    /// Mounts; returns the elapsed time too.
    fn mount(&self) -> anyhow::Result<(ManagedProcess, Duration)> {
        let (mut command, at, begin) = (self.command(CLIENT), self.path("mnt"), Instant::now());
        command.args(["mount", "--foreground", &self.source()]).arg(&at);
        let mut mount = ManagedProcess(command.spawn().context("run wirefs mount")?);
        let is_mounted = || {
            let table = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
            table.contains(&format!(" {} ", at.display()))
        };
        mount.wait_until("the mount", is_mounted)?;
        Ok((mount, begin.elapsed()))
    }

    fn unmount(&self, mut mount: ManagedProcess) -> anyhow::Result<()> {
        let done = self.command(CLIENT).arg("umount").arg(self.path("mnt")).status();
        ensure!(done.context("run wirefs umount")?.success(), "the mount could not be unmounted");
        mount.0.wait().context("wait for the mount")?;
        Ok(())
    }

    /// Fails unless `find` reports all entries.
    fn walk(&self, label: &str, entries: usize) -> anyhow::Result<()> {
        self.check_interrupt()?;
        let (begin, list) = (Instant::now(), self.path("found"));
        let file = fs::File::create(&list).with_context(|| format!("make {}", list.display()))?;
        let mut command = Command::new("find");
        command.arg(self.path("mnt")).args(["-mindepth", "1", "-printf", "x"]).stdout(file);
        run_without_blocked_signals(&mut command);
        let mut find = ManagedProcess(command.spawn().context("run find")?);
        let status = loop {
            if let Some(status) = find.0.try_wait().context("check find")? {
                break status;
            }
            // On a hanging mount `find` never ends.
            self.check_interrupt()?;
            thread::sleep(POLL_INTERVAL);
        };
        ensure!(status.success(), "find failed with {status}");
        let found = fs::metadata(&list).context("check the output of find")?.len();
        ensure!(found == entries as u64, "find found {found} of {entries} entries");
        println!("{label}: {entries} entries in {:.1} s", begin.elapsed().as_secs_f64());
        Ok(())
    }

    fn status(&self) -> anyhow::Result<String> {
        let mut command = self.command(CLIENT);
        let output = command.arg("status").arg(self.path("mnt")).stdout(Stdio::piped()).output();
        Ok(String::from_utf8_lossy(&output.context("run wirefs status")?.stdout).trim_end().to_owned())
    }
}

/// A child process; drop sends SIGTERM, then SIGKILL.
struct ManagedProcess(Child);

impl ManagedProcess {
    fn wait_until(&mut self, label: &str, is_ready: impl Fn() -> bool) -> anyhow::Result<()> {
        let end = Instant::now() + START_MAX;
        while !is_ready() {
            if let Some(status) = self.0.try_wait().context("check wirefs")? {
                bail!("wirefs ended with {status}");
            }
            ensure!(Instant::now() < end, "timeout: waited for {label}");
            thread::sleep(POLL_INTERVAL);
        }
        Ok(())
    }

    /// Returns the peak memory of the process, in bytes.
    fn memory(&self) -> anyhow::Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.0.id())).context("check wirefs")?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|rest| rest.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
        Ok(kib.context("the kernel does not report the memory of wirefs")? * 1024)
    }
}

impl Drop for ManagedProcess {
    fn drop(&mut self) {
        for signal in [Signal::TERM, Signal::KILL] {
            if !matches!(self.0.try_wait(), Ok(None)) {
                return;
            }
            kill_process(Pid::from_child(&self.0), signal).ok();
            let end = Instant::now() + END_MAX;
            while matches!(self.0.try_wait(), Ok(None)) && Instant::now() < end {
                thread::sleep(POLL_INTERVAL);
            }
        }
    }
}

fn mib(bytes: u64) -> String {
    format!("{:.0} MiB", bytes as f64 / f64::from(1 << 20))
}
