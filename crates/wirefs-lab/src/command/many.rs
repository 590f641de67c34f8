//! `wirefs-lab many`: a tree of very many files, walked; the memory that it took, and a mount that knows it still.

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

/// How long either side may take to be ready.
const START_MAX: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// How long a process may take to end before it is made to.
const END_MAX: Duration = Duration::from_secs(10);
/// The directories that wirefs takes from its environment, and their names here: short ones, since there are sockets below, whose paths
/// the kernel bounds.
const PLACES: [(&str, &str); 4] = [
    ("XDG_CONFIG_HOME", "config"),
    ("XDG_STATE_HOME", "state"),
    ("XDG_CACHE_HOME", "cache"),
    ("XDG_RUNTIME_DIR", "run"),
];

/// The homes of both sides.
const SERVER: &str = "s";
const CLIENT: &str = "c";

#[derive(Args)]
pub(crate) struct ManyArguments {
    /// Entries of the tree.
    #[arg(long, value_name = "COUNT", default_value_t = 1_000_000)]
    entries: usize,
    /// Files in each directory, but for one place that its own name takes.
    #[arg(long, value_name = "COUNT", default_value_t = 1_000)]
    each: usize,
    /// Memory that the mount may need, at most.
    #[arg(long, value_name = "SIZE", default_value = "256m", value_parser = units::bytes)]
    mount_max: u64,
    /// Memory that the server may need, at most.
    #[arg(long, value_name = "SIZE", default_value = "200m", value_parser = units::bytes)]
    server_max: u64,
    /// A directory for the tree and all else; removed afterwards.
    #[arg(long, value_name = "DIR")]
    scratch: Option<PathBuf>,
    /// The wirefs program; without it, the one beside this program.
    #[arg(long, value_name = "PROGRAM")]
    wirefs: Option<PathBuf>,
}

/// Makes the tree, walks it twice, mounts anew and walks again; fails when either side needed too much.
pub(crate) fn run(arguments: &ManyArguments) -> anyhow::Result<ExitCode> {
    ensure!(
        arguments.each > 1 && arguments.entries > 0,
        "there must be files, and more than one in a directory"
    );
    let signals = EndSignals::block().context("block signals")?;
    let is_stopped = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&is_stopped);
    thread::spawn(move || signals.wait().map(|_| told.store(true, Ordering::Relaxed)));
    let beside = std::env::current_exe().context("find this program")?.with_file_name("wirefs");
    let scratch = format!("many-{}", std::process::id());
    let site = Site {
        dir: arguments.scratch.clone().unwrap_or_else(std::env::temp_dir).join(scratch),
        wirefs: arguments.wirefs.clone().unwrap_or(beside),
        is_stopped,
    };
    let measured = measure(arguments, &site);
    site.drop_mount();
    let removed = fs::remove_dir_all(&site.dir).with_context(|| format!("remove {}", site.dir.display()));
    // Why it failed comes first: where there is nothing, nothing can be removed.
    let (mount, server) = measured?;
    removed?;
    let is_within = mount <= arguments.mount_max && server <= arguments.server_max;
    println!("most memory: mount {}, server {}", mib(mount), mib(server));
    println!("allowed:     mount {}, server {}", mib(arguments.mount_max), mib(arguments.server_max));
    Ok(ExitCode::from(u8::from(!is_within)))
}

/// The most memory that the mounts and the server needed, in bytes.
fn measure(arguments: &ManyArguments, site: &Site) -> anyhow::Result<(u64, u64)> {
    site.make_tree(arguments.entries, arguments.each)?;
    for side in [SERVER, CLIENT] {
        for (_, name) in PLACES {
            let place = site.path(side).join(name);
            let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&place);
            made.with_context(|| format!("make {}", place.display()))?;
        }
    }
    fs::create_dir(site.path("mnt")).context("make the mount point")?;
    let server = site.serve()?;
    let (first, _) = site.mount()?;
    for walk in ["first walk", "second walk"] {
        site.walk(walk, arguments.entries)?;
    }
    println!("{}", site.status()?);
    let mut most = first.memory()?;
    site.unmount(first)?;
    let (second, took) = site.mount()?;
    println!("mounted again in {:.3} s", took.as_secs_f64());
    site.walk("walk of the second mount", arguments.entries)?;
    println!("{}", site.status()?);
    most = most.max(second.memory()?);
    site.unmount(second)?;
    Ok((most, server.memory()?))
}

/// Where everything is.
struct Site {
    dir: PathBuf,
    wirefs: PathBuf,
    is_stopped: Arc<AtomicBool>,
}

impl Site {
    fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Fails once somebody asked for an end.
    fn go_on(&self) -> anyhow::Result<()> {
        if self.is_stopped.load(Ordering::Relaxed) { Err(LabError::Interrupted.into()) } else { Ok(()) }
    }

    /// A mount that is left is in the way of removing what it is in: so that of a program that died.
    fn drop_mount(&self) {
        // There is none, as a rule.
        let _none = unmount(self.path("mnt"), UnmountFlags::DETACH);
    }

    fn make_tree(&self, entries: usize, each: usize) -> anyhow::Result<()> {
        let tree = self.path("tree");
        let mut dir = tree.clone();
        fs::create_dir_all(&dir).with_context(|| format!("make {}", dir.display()))?;
        for entry in 0..entries {
            if entry % each == 0 {
                self.go_on()?;
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
        command.env("HOME", &home).envs(PLACES.map(|(place, name)| (place, home.join(name))));
        command.stdin(Stdio::null()).stdout(Stdio::null());
        run_without_blocked_signals(&mut command);
        command
    }

    fn serve(&self) -> anyhow::Result<Process> {
        let mut command = self.command(SERVER);
        command.arg("serve").arg(self.path("tree")).args(["--listen", &self.source()]);
        let mut server = Process(command.spawn().context("run wirefs serve")?);
        server.wait_until("the server to listen", || self.path("socket").exists())?;
        Ok(server)
    }

    /// Mounts; tells how long that took.
    fn mount(&self) -> anyhow::Result<(Process, Duration)> {
        let (mut command, at, begin) = (self.command(CLIENT), self.path("mnt"), Instant::now());
        command.args(["mount", "--foreground", &self.source()]).arg(&at);
        let mut mount = Process(command.spawn().context("run wirefs mount")?);
        let is_mounted = || {
            let table = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
            table.contains(&format!(" {} ", at.display()))
        };
        mount.wait_until("the mount", is_mounted)?;
        Ok((mount, begin.elapsed()))
    }

    fn unmount(&self, mut mount: Process) -> anyhow::Result<()> {
        let done = self.command(CLIENT).arg("umount").arg(self.path("mnt")).status();
        ensure!(done.context("run wirefs umount")?.success(), "the mount could not be unmounted");
        mount.0.wait().context("wait for the mount")?;
        Ok(())
    }

    /// What `find` finds must be all there is.
    fn walk(&self, what: &str, entries: usize) -> anyhow::Result<()> {
        self.go_on()?;
        let (begin, list) = (Instant::now(), self.path("found"));
        let file = fs::File::create(&list).with_context(|| format!("make {}", list.display()))?;
        let mut command = Command::new("find");
        command.arg(self.path("mnt")).args(["-mindepth", "1", "-printf", "x"]).stdout(file);
        run_without_blocked_signals(&mut command);
        let mut find = Process(command.spawn().context("run find")?);
        let status = loop {
            if let Some(status) = find.0.try_wait().context("look at find")? {
                break status;
            }
            // A mount that hangs lets it wait without end.
            self.go_on()?;
            thread::sleep(LOOK_EVERY);
        };
        ensure!(status.success(), "find failed with {status}");
        let found = fs::metadata(&list).context("look at what find found")?.len();
        ensure!(found == entries as u64, "find found {found} of {entries} entries");
        println!("{what}: {entries} entries in {:.1} s", begin.elapsed().as_secs_f64());
        Ok(())
    }

    fn status(&self) -> anyhow::Result<String> {
        let mut command = self.command(CLIENT);
        let output = command.arg("status").arg(self.path("mnt")).stdout(Stdio::piped()).output();
        Ok(String::from_utf8_lossy(&output.context("run wirefs status")?.stdout).trim_end().to_owned())
    }
}

/// A process that is asked to end, if it has not, when it is dropped; one that does not is made to.
struct Process(Child);

impl Process {
    fn wait_until(&mut self, what: &str, is_so: impl Fn() -> bool) -> anyhow::Result<()> {
        let end = Instant::now() + START_MAX;
        while !is_so() {
            if let Some(status) = self.0.try_wait().context("look at wirefs")? {
                bail!("wirefs ended with {status}");
            }
            ensure!(Instant::now() < end, "waited in vain for {what}");
            thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    /// The most memory that it had so far, in bytes.
    fn memory(&self) -> anyhow::Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.0.id())).context("look at wirefs")?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|rest| rest.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
        Ok(kib.context("the kernel does not say how much memory wirefs had")? * 1024)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        for signal in [Signal::TERM, Signal::KILL] {
            if !matches!(self.0.try_wait(), Ok(None)) {
                return;
            }
            kill_process(Pid::from_child(&self.0), signal).ok();
            let end = Instant::now() + END_MAX;
            while matches!(self.0.try_wait(), Ok(None)) && Instant::now() < end {
                thread::sleep(LOOK_EVERY);
            }
        }
    }
}

fn mib(bytes: u64) -> String {
    format!("{:.0} MiB", bytes as f64 / f64::from(1 << 20))
}
