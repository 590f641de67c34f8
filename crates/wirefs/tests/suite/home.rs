//! A home directory for each test, with guards that leave no process and no mount behind.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

/// The program under test.
pub(crate) const WIREFS: &str = env!("CARGO_BIN_EXE_wirefs");

/// The timeout of all waits.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Fails without root: a skipped test would count as passed.
pub(crate) fn need_root() {
    assert!(
        rustix::process::geteuid().is_root(),
        "this test mounts or acts for other users: run the tests as root (sudo make test)"
    );
}

/// A directory with a home, a runtime directory, an export and a mountpoint.
pub(crate) struct TestHome {
    dir: PathBuf,
}

impl TestHome {
    pub(crate) fn new() -> TestHome {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("wirefs-command-{}-{number}", std::process::id()));
        for name in ["home", "run", "export", "mnt"] {
            std::fs::create_dir_all(dir.join(name)).unwrap();
        }
        TestHome { dir: std::fs::canonicalize(dir).unwrap() }
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

    /// Returns a command in this home; it finds `wirefs` on its path.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        self.at_home(&mut command);
        command
    }

    /// Sets the environment of this home for a command.
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
    pub(crate) fn wirefs(&self, arguments: &[&str]) -> Finished {
        Finished::of(self.command(WIREFS).args(arguments))
    }

    /// Runs a program to its end, and then ends its background processes.
    pub(crate) fn run_in_group(&self, command: &mut Command) -> Finished {
        let output = std::fs::File::create(self.path("output")).unwrap();
        command.process_group(0).stdout(output.try_clone().unwrap()).stderr(output);
        let mut child = command.spawn().unwrap();
        let group = Pid::from_child(&child);
        let code = child.wait().unwrap().code();
        let _none_left = kill_process_group(group, Signal::KILL);
        Finished { code, stdout: self.read("output"), stderr: String::new() }
    }

    /// Starts `wirefs serve` on the export and waits for its address line.
    pub(crate) fn serve(&self, arguments: &[&str]) -> Server {
        self.serve_source("export", arguments)
    }

    /// The same for another source.
    pub(crate) fn serve_source(&self, source: &str, arguments: &[&str]) -> Server {
        let mut command = self.command(WIREFS);
        command.args(["serve", source]).args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
        Server::start(command)
    }

    /// Starts a server on a unix socket, and mounts its export.
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

    /// Returns whether the kernel has a mount at `mnt`.
    pub(crate) fn is_mounted(&self) -> bool {
        let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        let mountpoint = format!(" {} ", self.text("mnt"));
        table.lines().any(|line| line.contains(&mountpoint))
    }

    /// Returns the status of the mount from `--json`.
    pub(crate) fn status(&self) -> serde_json::Value {
        self.status_of("mnt")
    }

    pub(crate) fn status_of(&self, mountpoint: &str) -> serde_json::Value {
        serde_json::from_str(&self.wirefs(&["status", "--json", mountpoint]).succeeds()).unwrap()
    }

    /// Returns the logs of all mounts.
    pub(crate) fn log(&self) -> String {
        let files = std::fs::read_dir(self.path("home/.local/state/wirefs")).unwrap().flatten();
        let logs = files.filter(|file| file.path().extension().is_some_and(|it| it == "log"));
        logs.map(|file| std::fs::read_to_string(file.path()).unwrap()).collect()
    }

    /// Returns the process of the mount.
    pub(crate) fn process(&self) -> Pid {
        let number = self.status()["process"].as_i64().unwrap();
        Pid::from_raw(i32::try_from(number).unwrap()).unwrap()
    }
}

impl Drop for TestHome {
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

/// A second mount of a home's export, at `other`.
pub(crate) struct SecondMount<'a>(&'a TestHome);

impl SecondMount<'_> {
    pub(crate) fn mount<'a>(home: &'a TestHome, mode: &str) -> SecondMount<'a> {
        SecondMount::mount_with_deadline(home, mode, "10s")
    }

    pub(crate) fn mount_with_deadline<'a>(home: &'a TestHome, mode: &str, deadline: &str) -> SecondMount<'a> {
        std::fs::create_dir(home.path("other")).unwrap();
        home.wirefs(&["mount", "--mode", mode, "--deadline", deadline, &home.url(), "other"]).succeeds();
        SecondMount(home)
    }
}

impl Drop for SecondMount<'_> {
    fn drop(&mut self) {
        self.0.wirefs(&["umount", "-f", "other"]);
    }
}

/// The result of a program.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Finished {
    pub(crate) fn of(command: &mut Command) -> Finished {
        let Output { status, stdout, stderr } = command.output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Finished { code: status.code(), stdout: text(stdout), stderr: text(stderr) }
    }

    /// Returns its standard output; panics unless it succeeded.
    #[track_caller]
    pub(crate) fn succeeds(self) -> String {
        assert_eq!(self.code, Some(0), "{self:?}");
        self.stdout
    }

    /// Panics unless it failed with an error that contains each of `words`. Returns the error.
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
            let mut output = String::new();
            child.stderr.take().unwrap().read_to_string(&mut output).unwrap();
            panic!("the server did not start: {output}");
        }
        Server { child, output, line }
    }

    /// Returns the address that it listens on.
    pub(crate) fn address(&self) -> String {
        let (_, rest) = self.line.split_once(" on ").unwrap();
        rest.split([' ', ';']).next().unwrap().to_owned()
    }

    /// Sends a signal; after SIGSTOP, waits until all threads have stopped.
    pub(crate) fn kill(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
        if signal == Signal::STOP {
            wait_for("the server to stop", || is_stopped(self.process()));
        }
    }

    pub(crate) fn process(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Waits for its end. Returns its exit status and its output after the first line.
    pub(crate) fn end(mut self) -> Finished {
        let (mut stdout, mut stderr) = (String::new(), String::new());
        let code = wait_child(&mut self.child);
        self.output.read_to_string(&mut stdout).unwrap();
        if let Some(mut errors) = self.child.stderr.take() {
            errors.read_to_string(&mut stderr).unwrap();
        }
        Finished { code, stdout, stderr }
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

/// Waits until a condition holds, and panics on a timeout.
#[track_caller]
pub(crate) fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + TIMEOUT;
    while !is_so() {
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Returns whether all threads of a process have stopped.
pub(crate) fn is_stopped(process: Pid) -> bool {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", process.as_raw_nonzero())).unwrap();
    let state = |stat: String| stat.rsplit(')').next().unwrap().trim_start().starts_with('T');
    // A thread that has ended meanwhile counts as stopped.
    tasks.flatten().all(|task| std::fs::read_to_string(task.path().join("stat")).map_or(true, state))
}

/// Returns whether a process exists and is no zombie.
pub(crate) fn is_alive(process: Pid) -> bool {
    std::fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero()))
        .is_ok_and(|stat| !stat.rsplit(')').next().unwrap_or_default().trim_start().starts_with('Z'))
}

/// Copies the program under test, ready to be started. In another process: a child of this one would inherit the copy
/// open for writing until it executes, and the kernel starts no program that is open for writing (ETXTBSY).
pub(crate) fn copy_program(to: &Path) {
    let copied = Command::new("cp").arg(WIREFS).arg(to).status().unwrap();
    assert!(copied.success(), "cp {WIREFS} {}", to.display());
}
