//! A home of its own for each test, with guards that leave no process and no mount behind.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

/// The program under test.
pub(crate) const WIREFS: &str = env!("CARGO_BIN_EXE_wirefs");

/// No wait of a test is longer.
const PATIENCE: Duration = Duration::from_secs(60);

/// A directory with a home, a runtime directory, an export and a mountpoint.
pub(crate) struct World {
    dir: PathBuf,
}

impl World {
    pub(crate) fn new() -> World {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("wirefs-command-{}-{number}", std::process::id()));
        for name in ["home", "run", "export", "mnt"] {
            std::fs::create_dir_all(dir.join(name)).unwrap();
        }
        World { dir: std::fs::canonicalize(dir).unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    pub(crate) fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        std::fs::write(self.path(name), text).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub(crate) fn url(&self) -> String {
        format!("unix://{}", self.text("socket"))
    }

    /// A program in this world; it finds `wirefs` on its path.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        self.at_home(&mut command);
        command
    }

    /// Gives a command this world's home, wherever it runs.
    pub(crate) fn at_home(&self, command: &mut Command) {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let bin = Path::new(WIREFS).parent().unwrap().to_owned();
        let path = std::env::join_paths(std::iter::once(bin).chain(std::env::split_paths(&path))).unwrap();
        command.current_dir(&self.dir).env("PATH", path).env("HOME", self.path("home"));
        command.env("XDG_RUNTIME_DIR", self.path("run")).env("NO_COLOR", "1").stdin(Stdio::null());
        for variable in ["XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"] {
            command.env_remove(variable);
        }
    }

    /// Runs `wirefs` to its end.
    pub(crate) fn wirefs(&self, arguments: &[&str]) -> Ran {
        Ran::of(self.command(WIREFS).args(arguments))
    }

    /// Runs a program to its end, and then ends what it left running.
    pub(crate) fn run_in_group(&self, command: &mut Command) -> Ran {
        let output = std::fs::File::create(self.path("output")).unwrap();
        command.process_group(0).stdout(output.try_clone().unwrap()).stderr(output);
        let mut child = command.spawn().unwrap();
        let group = Pid::from_child(&child);
        let code = child.wait().unwrap().code();
        let _none_left = kill_process_group(group, Signal::KILL);
        Ran { code, stdout: self.read("output"), stderr: String::new() }
    }

    /// Starts `wirefs serve` on the export and waits until it says where it listens.
    pub(crate) fn serve(&self, arguments: &[&str]) -> Server {
        self.serve_source("export", arguments)
    }

    /// The same with something else than the export.
    pub(crate) fn serve_source(&self, source: &str, arguments: &[&str]) -> Server {
        let mut command = self.command(WIREFS);
        command.args(["serve", source]).args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
        Server::start(command)
    }

    /// A server on a unix socket, and its export mounted.
    pub(crate) fn mounted(&self) -> Server {
        let server = self.serve(&["--listen", &self.url()]);
        self.wirefs(&["mount", &self.url(), "mnt"]).succeeds();
        server
    }

    /// The same in a mode.
    pub(crate) fn mounted_in_mode(&self, mode: &str) -> Server {
        let server = self.serve(&["--listen", &self.url()]);
        self.wirefs(&["mount", "--mode", mode, &self.url(), "mnt"]).succeeds();
        server
    }

    /// Whether the kernel has a mount at `mnt`.
    pub(crate) fn is_mounted(&self) -> bool {
        let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        let mountpoint = format!(" {} ", self.text("mnt"));
        table.lines().any(|line| line.contains(&mountpoint))
    }

    /// The status of the mount as `--json` prints it.
    pub(crate) fn status(&self) -> serde_json::Value {
        self.status_of("mnt")
    }

    pub(crate) fn status_of(&self, mountpoint: &str) -> serde_json::Value {
        serde_json::from_str(&self.wirefs(&["status", "--json", mountpoint]).succeeds()).unwrap()
    }

    /// The process that serves the mount.
    pub(crate) fn process(&self) -> Pid {
        let number = self.status()["process"].as_i64().unwrap();
        Pid::from_raw(i32::try_from(number).unwrap()).unwrap()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if self.is_mounted() {
            self.wirefs(&["umount", "-f", "mnt"]);
        }
        if self.is_mounted() {
            eprintln!("{} is still mounted", self.text("mnt"));
            return;
        }
        let _kept = std::fs::remove_dir_all(&self.dir);
    }
}

/// A second mount of a world's export, at `other`.
pub(crate) struct Other<'a>(&'a World);

impl Other<'_> {
    pub(crate) fn mount<'a>(world: &'a World, mode: &str) -> Other<'a> {
        Other::mount_with_deadline(world, mode, "10s")
    }

    pub(crate) fn mount_with_deadline<'a>(world: &'a World, mode: &str, deadline: &str) -> Other<'a> {
        std::fs::create_dir(world.path("other")).unwrap();
        world.wirefs(&["mount", "--mode", mode, "--deadline", deadline, &world.url(), "other"]).succeeds();
        Other(world)
    }
}

impl Drop for Other<'_> {
    fn drop(&mut self) {
        self.0.wirefs(&["umount", "-f", "other"]);
    }
}

/// How a program ended.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    pub(crate) fn of(command: &mut Command) -> Ran {
        let Output { status, stdout, stderr } = command.output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Ran { code: status.code(), stdout: text(stdout), stderr: text(stderr) }
    }

    /// Its standard output, if it succeeded.
    #[track_caller]
    pub(crate) fn succeeds(self) -> String {
        assert_eq!(self.code, Some(0), "{self:?}");
        self.stdout
    }

    /// It failed, and told a person why: each of `words` is in what it said.
    #[track_caller]
    pub(crate) fn fails_with(self, words: &[&str]) -> String {
        assert_eq!(self.code, Some(1), "{self:?}");
        assert!(self.stderr.starts_with("wirefs: "), "{}", self.stderr);
        for word in words {
            assert!(self.stderr.contains(word), "`{word}` is not in: {}", self.stderr);
        }
        for debug in ["Error {", "Os {", "Some(", "panicked", "RUST_BACKTRACE"] {
            assert!(!self.stderr.contains(debug), "a debug dump: {}", self.stderr);
        }
        self.stderr
    }
}

/// A running server, ended with the test.
pub(crate) struct Server {
    child: Child,
    output: BufReader<ChildStdout>,
    /// Its first line.
    pub(crate) line: String,
}

impl Server {
    pub(crate) fn start(mut command: Command) -> Server {
        let mut child = command.spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        if line.is_empty() {
            let mut said = String::new();
            child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
            panic!("the server did not start: {said}");
        }
        Server { child, output, line }
    }

    /// The address that it listens on.
    pub(crate) fn address(&self) -> String {
        let (_, rest) = self.line.split_once(" on ").unwrap();
        rest.split([' ', ';']).next().unwrap().to_owned()
    }

    /// Sends a signal; where it stops the server, waits until all of it has stopped.
    pub(crate) fn kill(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
        if signal == Signal::STOP {
            wait_for("the server to stop", || self.is_stopped());
        }
    }

    fn is_stopped(&self) -> bool {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
        let state = |stat: String| stat.rsplit(')').next().unwrap().trim_start().starts_with('T');
        // One that has ended meanwhile runs as little.
        tasks.flatten().all(|task| std::fs::read_to_string(task.path().join("stat")).map_or(true, state))
    }

    /// Waits for its end; its exit status and all that it said since its first line.
    pub(crate) fn end(mut self) -> Ran {
        let (mut stdout, mut stderr) = (String::new(), String::new());
        let code = wait_child(&mut self.child);
        self.output.read_to_string(&mut stdout).unwrap();
        self.child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        Ran { code, stdout, stderr }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}

fn wait_child(child: &mut Child) -> Option<i32> {
    let mut status = None;
    wait_for("the program's end", || {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    status.unwrap().code()
}

/// Waits until something is so, and fails when it does not come to be.
#[track_caller]
pub(crate) fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Whether a process is there and no zombie.
pub(crate) fn is_alive(process: Pid) -> bool {
    std::fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero()))
        .is_ok_and(|stat| !stat.rsplit(')').next().unwrap_or_default().trim_start().starts_with('Z'))
}

/// Copies the program under test, so that it can be started at once. Not by this process: one that another of its threads starts
/// meanwhile has the copy open for writing too until it executes, and as long as anybody has that, the kernel starts no such
/// program (ETXTBSY).
pub(crate) fn copy_program(to: &Path) {
    let copied = Command::new("cp").arg(WIREFS).arg(to).status().unwrap();
    assert!(copied.success(), "cp {WIREFS} {}", to.display());
}
