//! A server, its export, and mounts of it, with their own home directories; drop removes everything.
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

/// The timeout of each program, in seconds.
const PROGRAM_MAX_SECS: &str = "150";
const PORT: u16 = 6_440;
/// The environment variables that would override the home directories of the tests.
const HOME_VARIABLES: [&str; 3] = ["XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"];
/// The timeout of every wait; only a failing test reaches it.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// The network between server and client. The fields are dropped in this order.
enum SiteNetwork {
    Unix,
    Tls { link: LinkHandle, server: Host, client: Host, other: Option<Box<(LinkHandle, Host)>>, lab: Lab },
}

/// One export and its mounts.
pub(crate) struct Site {
    dir: PathBuf,
    export: PathBuf,
    network: SiteNetwork,
    user: Option<u32>,
    serve_arguments: Vec<String>,
    server: RefCell<Option<Child>>,
    mounts: RefCell<Vec<PathBuf>>,
}

impl Site {
    /// Starts a server on a unix socket.
    pub(crate) fn unix(name: &str) -> Site {
        Site::new(name, SiteNetwork::Unix, None, &[])
    }

    /// The same, with server, mounts and programs of an ordinary user.
    pub(crate) fn unix_of_user(name: &str, user: u32) -> Site {
        Site::new(name, SiteNetwork::Unix, Some(user), &[])
    }

    /// Starts a server on a unix socket with further arguments.
    pub(crate) fn unix_with(name: &str, arguments: &[&str]) -> Site {
        Site::new(name, SiteNetwork::Unix, None, arguments)
    }

    /// Starts a server and a client on two hosts; the server knows the client's key.
    pub(crate) fn tls(name: &str, profile: LinkProfile) -> Site {
        let site = Site::tls_unauthorized(name, profile);
        let key = site.wirefs(&["identity"]).succeeds();
        site.authorize(&key);
        site.start_server();
        site
    }

    /// The same with a second client, on its own host and link.
    pub(crate) fn tls_with_two_clients(name: &str, profile: LinkProfile) -> Site {
        let mut site = Site::tls_unauthorized(name, profile.clone());
        if let SiteNetwork::Tls { server, other, lab, .. } = &mut site.network {
            let host = lab.host("other").unwrap();
            *other = Some(Box::new((lab.link(server, &host, profile).unwrap(), host)));
        }
        let key = site.wirefs(&["identity"]).succeeds();
        site.authorize(&key);
        site.start_server();
        site
    }

    /// The same without an authorized key; the server is not started.
    pub(crate) fn tls_unauthorized(name: &str, profile: LinkProfile) -> Site {
        let lab = Lab::new(name).unwrap();
        let (server, client) = (lab.host("server").unwrap(), lab.host("client").unwrap());
        let link = lab.link(&server, &client, profile).unwrap();
        Site::create(name, SiteNetwork::Tls { link, server, client, other: None, lab }, None, &[])
    }

    fn new(name: &str, network: SiteNetwork, user: Option<u32>, arguments: &[&str]) -> Site {
        let site = Site::create(name, network, user, arguments);
        site.start_server();
        site
    }

    fn create(name: &str, network: SiteNetwork, user: Option<u32>, arguments: &[&str]) -> Site {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("wirefs-site-{name}-{}-{number}", std::process::id()));
        for name in ["", "export", "server/.config/wirefs", "client/.config/wirefs", "client/run", "local"] {
            fs::DirBuilder::new().recursive(true).mode(0o755).create(dir.join(name)).unwrap();
        }
        // A copy, because an ordinary user may not have access to cargo's target directory.
        let built = Path::new(env!("CARGO_BIN_EXE_wirefs-lab")).with_file_name("wirefs");
        assert!(built.exists(), "{} is missing: cargo build --package wirefs", built.display());
        if fs::hard_link(&built, dir.join("wirefs")).is_err() {
            copy_program(&built, &dir.join("wirefs"));
        }
        let site = Site {
            export: dir.join("export"),
            dir,
            network,
            user,
            serve_arguments: arguments.iter().map(|&word| word.to_owned()).collect(),
            server: RefCell::default(),
            mounts: RefCell::default(),
        };
        if user.is_some() {
            site.chown_to_user(&site.dir);
        }
        site
    }

    fn chown_to_user(&self, path: &Path) {
        std::os::unix::fs::chown(path, self.user, self.user).unwrap();
        for entry in fs::read_dir(path).unwrap().map(Result::unwrap) {
            match entry.file_type().unwrap().is_dir() {
                true => self.chown_to_user(&entry.path()),
                false if entry.file_name() == "wirefs" => {}
                false => std::os::unix::fs::chown(entry.path(), self.user, self.user).unwrap(),
            }
        }
    }

    /// Returns the exported directory.
    pub(crate) fn export(&self) -> &Path {
        &self.export
    }

    /// Returns a path in this site's directory, outside the export.
    pub(crate) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.dir.join(name)
    }

    /// Exports another directory from the next start on.
    pub(crate) fn set_export(&mut self, export: &Path) {
        self.export = export.to_owned();
    }

    pub(crate) fn link(&self) -> &LinkHandle {
        match &self.network {
            SiteNetwork::Tls { link, .. } => link,
            SiteNetwork::Unix => panic!("a unix socket has no link"),
        }
    }

    /// Returns the second client's link.
    pub(crate) fn other_link(&self) -> &LinkHandle {
        match &self.network {
            SiteNetwork::Tls { other: Some(other), .. } => &other.0,
            SiteNetwork::Tls { other: None, .. } | SiteNetwork::Unix => panic!("there is no second client"),
        }
    }

    /// Mounts the export at `name` on the second client; returns the mount point.
    pub(crate) fn mount_other(&self, name: &str, options: &[&str]) -> PathBuf {
        let SiteNetwork::Tls { other: Some(other), .. } = &self.network else {
            panic!("there is no second client")
        };
        let at = self.path(name);
        fs::create_dir_all(&at).unwrap();
        self.mounts.borrow_mut().push(at.clone());
        let mut command = other.1.command("timeout");
        command.args(["--foreground", "--signal=KILL", PROGRAM_MAX_SECS]).arg(self.path("wirefs"));
        self.set_home(&mut command, "client");
        command.arg("mount").arg(format!("tls://{}:{PORT}/", other.0.address_a())).arg(&at).args(options);
        ProgramResult::of(&mut command).succeeds();
        at
    }

    /// Returns the address of the server.
    pub(crate) fn url(&self) -> String {
        match &self.network {
            SiteNetwork::Unix => format!("unix://{}", self.path("socket").display()),
            SiteNetwork::Tls { link, .. } => format!("tls://{}:{PORT}", link.address_a()),
        }
    }

    /// Returns the source to mount.
    pub(crate) fn source(&self) -> String {
        match &self.network {
            SiteNetwork::Unix => self.url(),
            SiteNetwork::Tls { .. } => format!("{}/", self.url()),
        }
    }

    /// Authorizes a key.
    pub(crate) fn authorize(&self, key: &str) {
        let file = self.path("server/.config/wirefs/authorized_keys");
        fs::write(&file, key).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    }

    /// Starts the server and waits until it listens.
    pub(crate) fn start_server(&self) {
        let mut command = self.on_server(self.path("wirefs"));
        let (log, errors) = (self.path("server/log"), self.path("server/errors"));
        // Programs of tests have the rights that they have locally.
        let rights = ["--suid", "--dev", "--cross-mounts"];
        let listen = ["--listen", &self.url()];
        command.arg("serve").arg(&self.export).args(listen).args(rights).args(&self.serve_arguments);
        if let SiteNetwork::Tls { other: Some(other), .. } = &self.network {
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

    /// Returns a command on the server's host, with the server's home.
    pub(crate) fn on_server(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = match &self.network {
            SiteNetwork::Unix => Command::new(program),
            SiteNetwork::Tls { server, .. } => server.command(program),
        };
        self.set_home(&mut command, "server");
        command
    }

    /// Kills the server with SIGKILL.
    pub(crate) fn kill_server(&self) {
        if let Some(mut child) = self.server.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Returns a command on the client; it is killed after a timeout.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = match &self.network {
            SiteNetwork::Unix => Command::new("timeout"),
            SiteNetwork::Tls { client, .. } => client.command("timeout"),
        };
        command.args(["--foreground", "--signal=KILL", PROGRAM_MAX_SECS]).arg(program);
        self.set_home(&mut command, "client");
        command
    }

    fn set_home(&self, command: &mut Command, home: &str) {
        command.env("HOME", self.path(home)).env("XDG_RUNTIME_DIR", self.path("client/run"));
        command.current_dir("/").stdin(Stdio::null());
        for variable in HOME_VARIABLES {
            command.env_remove(variable);
        }
        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
    }

    /// Runs `wirefs` on the client.
    pub(crate) fn wirefs(&self, arguments: &[&str]) -> ProgramResult {
        ProgramResult::of(self.command(self.path("wirefs")).args(arguments))
    }

    /// Mounts the export at `name`; returns the mount point.
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

    /// Waits until all changes are at the server, and unmounts.
    ///
    /// Retries while the mount is busy: a child process that another thread forks may still have our former
    /// descriptors.
    pub(crate) fn unmount(&self, at: &Path) {
        wait_for("the mount to be free", || {
            let result = self.wirefs(&["umount", at.to_str().unwrap()]);
            let is_in_use = result.stderr.contains(" is in use: ");
            if !is_in_use {
                result.succeeds();
            }
            !is_in_use
        });
    }

    /// Returns whether the kernel has a mount there.
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

/// The exit code and the output of a program.
#[derive(Debug)]
pub(crate) struct ProgramResult {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl ProgramResult {
    pub(crate) fn of(command: &mut Command) -> ProgramResult {
        let Output { status, stdout, stderr } = command.output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        ProgramResult { code: status.code(), stdout: text(stdout), stderr: text(stderr) }
    }

    /// Returns the standard output; panics if the program failed.
    #[track_caller]
    pub(crate) fn succeeds(self) -> String {
        assert_eq!(self.code, Some(0), "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        self.stdout
    }
}

/// A process, killed on drop.
pub(crate) struct ChildGuard(pub(crate) Child);

impl ChildGuard {
    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.0)
    }

    pub(crate) fn kill(&mut self) {
        // The process may have ended already.
        kill_process(self.pid(), Signal::KILL).ok();
        self.0.wait().ok();
    }
}

impl Drop for ChildGuard {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Waits until a condition is true; panics after a timeout.
#[track_caller]
pub(crate) fn wait_for(condition_name: &str, mut is_true: impl FnMut() -> bool) {
    let (mut waited, mut last_check) = (Duration::ZERO, Instant::now());
    while !is_true() {
        // The time of a suspended machine, as virtual ones are, does not count.
        waited += last_check.elapsed().min(WAIT_MAX / 10);
        last_check = Instant::now();
        assert!(waited < WAIT_MAX, "timeout: waited for {condition_name}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Copies a program that can be started at once, with `cp` instead of this process. A child that another thread forks
/// would inherit our writable descriptor until its exec, and the kernel refuses to start a program open for writing
/// (ETXTBSY).
pub(crate) fn copy_program(from: &Path, to: &Path) {
    let copied = Command::new("cp").args([from, to]).status().unwrap();
    assert!(copied.success(), "cp {} {}", from.display(), to.display());
}
