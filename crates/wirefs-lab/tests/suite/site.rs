//! A server, its export, and mounts of it, with homes of their own; nothing of it is left afterwards.
//!
//! ```text
//! unix:  export ── wirefs serve ── socket ───────────── wirefs mount ── mnt, other …
//! tls:   export ── wirefs serve ── [server] ─ link ─ [client] wirefs mount ── mnt, other …
//! ```

use std::cell::RefCell;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use wirefs_lab::{Host, Lab, LinkHandle, LinkProfile};

/// No program of a test runs longer, in seconds.
const PROGRAM_MAX_SECS: &str = "150";
const PORT: u16 = 6_440;
/// Where wirefs looks for its files; the tests give it a home instead.
const PLACES: [&str; 3] = ["XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"];
/// Bounds every wait; only a failing test waits so long.
const PATIENCE: Duration = Duration::from_secs(60);

/// What lies between server and client. The order of fields is the order in which they go.
enum Wire {
    Unix,
    Tls { link: LinkHandle, server: Host, client: Host, other: Option<Box<(LinkHandle, Host)>>, lab: Lab },
}

/// One export and the mounts of it.
pub(crate) struct Site {
    dir: PathBuf,
    export: PathBuf,
    wire: Wire,
    user: Option<u32>,
    serve_arguments: Vec<String>,
    server: RefCell<Option<Child>>,
    mounts: RefCell<Vec<PathBuf>>,
}

impl Site {
    /// A server on a unix socket.
    pub(crate) fn unix(name: &str) -> Site {
        Site::new(name, Wire::Unix, None, &[])
    }

    /// The same; server, mounts and all programs are this ordinary user's.
    pub(crate) fn unix_of_user(name: &str, user: u32) -> Site {
        Site::new(name, Wire::Unix, Some(user), &[])
    }

    /// A server on a unix socket with more arguments.
    pub(crate) fn unix_with(name: &str, arguments: &[&str]) -> Site {
        Site::new(name, Wire::Unix, None, arguments)
    }

    /// A server and a client on two hosts, who know each other's keys.
    pub(crate) fn tls(name: &str, profile: LinkProfile) -> Site {
        let site = Site::tls_of_strangers(name, profile);
        let key = site.wirefs(&["identity"]).succeeds();
        site.authorize(&key);
        site.start_server();
        site
    }

    /// The same with a second client, on a host and a link of its own.
    pub(crate) fn tls_of_two(name: &str, profile: LinkProfile) -> Site {
        let mut site = Site::tls_of_strangers(name, profile.clone());
        if let Wire::Tls { server, other, lab, .. } = &mut site.wire {
            let host = lab.host("other").unwrap();
            *other = Some(Box::new((lab.link(server, &host, profile).unwrap(), host)));
        }
        let key = site.wirefs(&["identity"]).succeeds();
        site.authorize(&key);
        site.start_server();
        site
    }

    /// The same, and the server knows no key; it is not started.
    pub(crate) fn tls_of_strangers(name: &str, profile: LinkProfile) -> Site {
        let lab = Lab::new(name).unwrap();
        let (server, client) = (lab.host("server").unwrap(), lab.host("client").unwrap());
        let link = lab.link(&server, &client, profile).unwrap();
        Site::prepared(name, Wire::Tls { link, server, client, other: None, lab }, None, &[])
    }

    fn new(name: &str, wire: Wire, user: Option<u32>, arguments: &[&str]) -> Site {
        let site = Site::prepared(name, wire, user, arguments);
        site.start_server();
        site
    }

    fn prepared(name: &str, wire: Wire, user: Option<u32>, arguments: &[&str]) -> Site {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("wirefs-site-{name}-{}-{number}", std::process::id()));
        for name in ["", "export", "server/.config/wirefs", "client/.config/wirefs", "client/run", "local"] {
            fs::DirBuilder::new().recursive(true).mode(0o755).create(dir.join(name)).unwrap();
        }
        // A copy, because an ordinary user may not reach the directory that cargo builds in.
        let built = Path::new(env!("CARGO_BIN_EXE_wirefs-lab")).with_file_name("wirefs");
        assert!(built.exists(), "{} is missing: cargo build --package wirefs", built.display());
        if fs::hard_link(&built, dir.join("wirefs")).is_err() {
            copy_program(&built, &dir.join("wirefs"));
        }
        let site = Site {
            export: dir.join("export"),
            dir,
            wire,
            user,
            serve_arguments: arguments.iter().map(|&word| word.to_owned()).collect(),
            server: RefCell::default(),
            mounts: RefCell::default(),
        };
        if user.is_some() {
            site.give_to_user(&site.dir);
        }
        site
    }

    fn give_to_user(&self, path: &Path) {
        std::os::unix::fs::chown(path, self.user, self.user).unwrap();
        for entry in fs::read_dir(path).unwrap().map(Result::unwrap) {
            match entry.file_type().unwrap().is_dir() {
                true => self.give_to_user(&entry.path()),
                false if entry.file_name() == "wirefs" => {}
                false => std::os::unix::fs::chown(entry.path(), self.user, self.user).unwrap(),
            }
        }
    }

    /// The server's directory.
    pub(crate) fn export(&self) -> &Path {
        &self.export
    }

    /// Something in this site's own directory, outside the export.
    pub(crate) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.dir.join(name)
    }

    /// Serves another directory from the next start on.
    pub(crate) fn set_export(&mut self, export: &Path) {
        self.export = export.to_owned();
    }

    pub(crate) fn link(&self) -> &LinkHandle {
        match &self.wire {
            Wire::Tls { link, .. } => link,
            Wire::Unix => panic!("a unix socket has no link"),
        }
    }

    /// The second client's link.
    pub(crate) fn other_link(&self) -> &LinkHandle {
        match &self.wire {
            Wire::Tls { other: Some(other), .. } => &other.0,
            Wire::Tls { other: None, .. } | Wire::Unix => panic!("there is no second client"),
        }
    }

    /// Mounts the export at `name` on the second client, with these options; gives the mount.
    pub(crate) fn mount_other(&self, name: &str, options: &[&str]) -> PathBuf {
        let Wire::Tls { other: Some(other), .. } = &self.wire else { panic!("there is no second client") };
        let at = self.path(name);
        fs::create_dir_all(&at).unwrap();
        self.mounts.borrow_mut().push(at.clone());
        let mut command = other.1.command("timeout");
        command.args(["--foreground", "--signal=KILL", PROGRAM_MAX_SECS]).arg(self.path("wirefs"));
        self.at_home(&mut command, "client");
        command.arg("mount").arg(format!("tls://{}:{PORT}/", other.0.address_a())).arg(&at).args(options);
        Ran::of(&mut command).succeeds();
        at
    }

    /// Where the server listens.
    pub(crate) fn url(&self) -> String {
        match &self.wire {
            Wire::Unix => format!("unix://{}", self.path("socket").display()),
            Wire::Tls { link, .. } => format!("tls://{}:{PORT}", link.address_a()),
        }
    }

    /// What to mount.
    pub(crate) fn source(&self) -> String {
        match &self.wire {
            Wire::Unix => self.url(),
            Wire::Tls { .. } => format!("{}/", self.url()),
        }
    }

    /// Lets the owner of this key in.
    pub(crate) fn authorize(&self, key: &str) {
        let file = self.path("server/.config/wirefs/authorized_keys");
        fs::write(&file, key).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    }

    /// Starts the server, and waits until it listens.
    pub(crate) fn start_server(&self) {
        let mut command = self.on_server(self.path("wirefs"));
        let (log, errors) = (self.path("server/log"), self.path("server/errors"));
        command.arg("serve").arg(&self.export).args(["--listen", &self.url()]).args(&self.serve_arguments);
        if let Wire::Tls { other: Some(other), .. } = &self.wire {
            command.args(["--listen", &format!("tls://{}:{PORT}", other.0.address_a())]);
        }
        command.stdout(fs::File::create(&log).unwrap()).stderr(fs::File::create(&errors).unwrap());
        let mut child = command.spawn().unwrap();
        wait_for("the server to listen", || {
            if let Some(status) = child.try_wait().unwrap() {
                panic!("the server ended with {status}: {}", fs::read_to_string(&errors).unwrap());
            }
            fs::read_to_string(&log).unwrap().contains(" on ")
        });
        self.server.replace(Some(child));
    }

    /// A program on the server's host, with the server's home.
    pub(crate) fn on_server(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = match &self.wire {
            Wire::Unix => Command::new(program),
            Wire::Tls { server, .. } => server.command(program),
        };
        self.at_home(&mut command, "server");
        command
    }

    /// Kills the server without warning.
    pub(crate) fn kill_server(&self) {
        if let Some(mut child) = self.server.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// A program on the client, ended by force when it runs too long.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = match &self.wire {
            Wire::Unix => Command::new("timeout"),
            Wire::Tls { client, .. } => client.command("timeout"),
        };
        command.args(["--foreground", "--signal=KILL", PROGRAM_MAX_SECS]).arg(program);
        self.at_home(&mut command, "client");
        command
    }

    fn at_home(&self, command: &mut Command, home: &str) {
        command.env("HOME", self.path(home)).env("XDG_RUNTIME_DIR", self.path("client/run"));
        command.current_dir("/").stdin(Stdio::null());
        for place in PLACES {
            command.env_remove(place);
        }
        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
    }

    /// Runs `wirefs` on the client.
    pub(crate) fn wirefs(&self, arguments: &[&str]) -> Ran {
        Ran::of(self.command(self.path("wirefs")).args(arguments))
    }

    /// Mounts the export at `name`, with these options; gives the mount.
    pub(crate) fn mount(&self, name: &str, options: &[&str]) -> PathBuf {
        let at = self.path(name);
        fs::create_dir_all(&at).unwrap();
        if self.user.is_some() {
            std::os::unix::fs::chown(&at, self.user, self.user).unwrap();
        }
        self.mounts.borrow_mut().push(at.clone());
        let (source, text) = (self.source(), at.to_str().unwrap().to_owned());
        let words: Vec<&str> = ["mount", &source, &text].into_iter().chain(options.iter().copied()).collect();
        self.wirefs(&words).succeeds();
        at
    }

    /// Waits until everything is at the server, and unmounts.
    ///
    /// What this process had open there a moment ago, a process that another of its threads is just starting may still have.
    pub(crate) fn unmount(&self, at: &Path) {
        wait_for("the mount to be free", || {
            let ran = self.wirefs(&["umount", at.to_str().unwrap()]);
            let is_in_use = ran.stderr.contains(" is in use: ");
            if !is_in_use {
                ran.succeeds();
            }
            !is_in_use
        });
    }

    /// Whether the kernel has a mount there.
    pub(crate) fn is_mounted(&self, at: &Path) -> bool {
        let table = fs::read_to_string("/proc/self/mountinfo").unwrap();
        table.contains(&format!(" {} ", at.display()))
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        for at in self.mounts.take() {
            if self.is_mounted(&at) {
                self.wirefs(&["umount", "-f", at.to_str().unwrap()]);
            }
            if self.is_mounted(&at) {
                eprintln!("{} did not unmount", at.display());
                Command::new("umount").args(["--lazy", "--force"]).arg(&at).status().ok();
            }
        }
        self.kill_server();
        let is_free =
            !fs::read_to_string("/proc/self/mountinfo").unwrap().contains(self.dir.to_str().unwrap());
        if is_free {
            fs::remove_dir_all(&self.dir).ok();
        }
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
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Ran { code: status.code(), stdout: text(stdout), stderr: text(stderr) }
    }

    /// Its standard output, if it succeeded.
    #[track_caller]
    pub(crate) fn succeeds(self) -> String {
        assert_eq!(self.code, Some(0), "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        self.stdout
    }
}

/// A process that is killed with the test, if it has not ended.
pub(crate) struct Running(pub(crate) Child);

impl Running {
    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.0)
    }

    pub(crate) fn kill(&mut self) {
        // It may have ended.
        kill_process(self.pid(), Signal::KILL).ok();
        self.0.wait().ok();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Waits until something is so, and fails when it does not come to be.
#[track_caller]
pub(crate) fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let (mut waited, mut looked) = (Duration::ZERO, Instant::now());
    while !is_so() {
        // A machine that was stopped meanwhile, as virtual ones are, has not waited.
        waited += looked.elapsed().min(PATIENCE / 10);
        looked = Instant::now();
        assert!(waited < PATIENCE, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Copies a program, so that it can be started at once. Not by this process: one that another of its threads starts meanwhile has the
/// copy open for writing too until it executes, and as long as anybody has that, the kernel starts no such program (ETXTBSY).
pub(crate) fn copy_program(from: &Path, to: &Path) {
    let copied = Command::new("cp").args([from, to]).status().unwrap();
    assert!(copied.success(), "cp {} {}", from.display(), to.display());
}
