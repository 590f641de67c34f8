//! Hosts on one bridge, with a node on each; drop removes everything.

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use wirefs_lab::{Host, Lab};

/// The timeout of every wait; only a failing test reaches it.
const WAIT_MAX: Duration = Duration::from_secs(60);
/// The timeout of each program, in seconds.
const PROGRAM_MAX_SECS: &str = "150";
/// The port of nodes, as in /proc/net/tcp.
const PORT_HEX: &str = ":1928";
/// The state of an established connection, as in /proc/net/tcp.
const ESTABLISHED: &str = "01";

/// Hosts on one bridge.
pub(super) struct NodeSegment {
    dir: PathBuf,
    hosts: Vec<Host>,
    switch: Host,
    user: Option<u32>,
    /// Dropped last; kills the remaining processes.
    _lab: Lab,
}

impl NodeSegment {
    /// Creates three hosts with nodes and waits until the nodes know each other.
    pub(super) fn of_three(name: &str) -> NodeSegment {
        let segment = NodeSegment::new(name, 3);
        (1..=3).for_each(|number| segment.start(number));
        for here in 1..=3 {
            wait_for("all to know each other", || {
                (1..=3).all(|there| segment.state(here, &format!("linus{there}")) == "alive")
            });
            wait_for("all to be listed", || segment.names(here).len() == 4);
        }
        segment
    }

    /// Creates hosts without nodes.
    pub(super) fn new(name: &str, count: usize) -> NodeSegment {
        NodeSegment::create(name, count, None)
    }

    /// Creates hosts whose programs run as an ordinary user.
    pub(super) fn of_users(name: &str, count: usize, user: u32) -> NodeSegment {
        NodeSegment::create(name, count, Some(user))
    }

    fn create(name: &str, count: usize, user: Option<u32>) -> NodeSegment {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let nth = COUNT.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("wirefs-nodes-{name}-{}-{nth}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        // A copy, because an ordinary user may not have access to cargo's target directory.
        let built = Path::new(env!("CARGO_BIN_EXE_wirefs-lab")).with_file_name("wirefs");
        assert!(built.exists(), "{} is missing: cargo build --package wirefs", built.display());
        if fs::hard_link(&built, dir.join("wirefs")).is_err() {
            crate::site::copy_program(&built, &dir.join("wirefs"));
        }
        let lab = Lab::new(name).unwrap();
        let switch = lab.host("switch").unwrap();
        ip(&switch, "link add bridge type bridge");
        ip(&switch, "link set bridge up");
        let mut segment = NodeSegment { dir, hosts: Vec::new(), switch, user, _lab: lab };
        (1..=count).for_each(|number| segment.add_host(number));
        segment
    }

    fn add_host(&mut self, number: usize) {
        let host = self._lab.host(&format!("linus{number}")).unwrap();
        let name = host.name();
        ip(&self.switch, &format!("link add port{number} type veth peer name eth0 netns {name}"));
        ip(&self.switch, &format!("link set port{number} master bridge up"));
        ip(&host, &format!("addr add 10.77.0.{number}/24 dev eth0"));
        ip(&host, "link set eth0 up");
        self.hosts.push(host);
        for directory in ["home", "run", "share", "net"] {
            let directory = self.directory(number, directory);
            fs::create_dir_all(&directory).unwrap();
            chown(&directory, self.user, self.user).unwrap();
        }
        fs::set_permissions(self.directory(number, "run"), fs::Permissions::from_mode(0o700)).unwrap();
        fs::write(self.share(number).join("file"), format!("of {number}\n")).unwrap();
    }

    /// Adds a second card `eth1` to each host: on a second bridge, or each on an isolated cable.
    pub(super) fn add_second_cards(&self, joined: bool) {
        ip(&self.switch, "link add second type bridge");
        ip(&self.switch, "link set second up");
        for (index, host) in self.hosts.iter().enumerate() {
            let (number, name) = (index + 1, host.name());
            ip(&self.switch, &format!("link add second{number} type veth peer name eth1 netns {name}"));
            let master = if joined { " master second" } else { "" };
            ip(&self.switch, &format!("link set second{number}{master} up"));
            ip(host, &format!("addr add 10.78.0.{number}/24 dev eth1"));
            ip(host, "link set eth1 up");
        }
    }

    /// Disables multicast on the bridge; unicast and broadcast still work.
    pub(super) fn carry_no_multicast(&self) {
        ip(&self.switch, "link set bridge type bridge mcast_snooping 0");
        for number in 1..=self.hosts.len() {
            ip(&self.switch, &format!("link set port{number} type bridge_slave mcast_flood off"));
        }
    }

    /// Gives the switch the address 10.77.0.254.
    pub(super) fn give_switch_an_address(&self) {
        ip(&self.switch, "addr add 10.77.0.254/24 dev bridge");
    }

    pub(super) fn switch(&self) -> &Host {
        &self.switch
    }

    /// Returns the number of elapsed protocol periods of a host's node.
    pub(super) fn periods(&self, number: usize) -> u64 {
        let json = self.node(number, &["list", "--json"]).succeeds();
        let rows: Vec<serde_json::Value> = serde_json::from_str(&json).unwrap();
        rows.iter().find_map(|row| row["turns"].as_u64()).unwrap()
    }

    /// Returns a path in the segment's directory.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Sets the cable of a host's second card up or down.
    pub(super) fn set_second_cable(&self, number: usize, state: &str) {
        ip(&self.switch, &format!("link set second{number} {state}"));
    }

    fn directory(&self, number: usize, name: &str) -> PathBuf {
        self.dir.join(number.to_string()).join(name)
    }

    pub(super) fn host(&self, number: usize) -> &Host {
        &self.hosts[number - 1]
    }

    pub(super) fn net(&self, number: usize) -> PathBuf {
        self.directory(number, "net")
    }

    pub(super) fn share(&self, number: usize) -> PathBuf {
        self.directory(number, "share")
    }

    pub(super) fn write(&self, name: &str, text: &str) -> String {
        let path = self.dir.join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// Returns a command on a host, with the host's home.
    pub(super) fn program(&self, number: usize, program: &str) -> Command {
        let mut command = self.host(number).command("timeout");
        command.arg(PROGRAM_MAX_SECS);
        if let Some(user) = self.user {
            // After the namespace was entered, which requires root.
            let [uid, gid] = ["--reuid", "--regid"].map(|option| format!("{option}={user}"));
            command.args(["setpriv", &uid, &gid, "--clear-groups"]);
        }
        command.arg(program).current_dir(&self.dir).stdin(Stdio::null());
        command
            .env("HOME", self.directory(number, "home"))
            .env("XDG_RUNTIME_DIR", self.directory(number, "run"));
        for directory in ["XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"] {
            command.env_remove(directory);
        }
        command
    }

    pub(super) fn wirefs(&self, number: usize, arguments: &[&str]) -> NodeCommandResult {
        let program = self.dir.join("wirefs");
        let output = self.program(number, program.to_str().unwrap()).args(arguments).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        NodeCommandResult {
            code: output.status.code(),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }

    /// Runs `wirefs node …` on a host.
    pub(super) fn node(&self, number: usize, arguments: &[&str]) -> NodeCommandResult {
        self.wirefs(number, &[&["node"], arguments].concat())
    }

    /// Starts a node with a given name.
    pub(super) fn up_as(&self, number: usize, name: &str, more: &[&str]) -> NodeCommandResult {
        let (share, net) = (self.share(number), self.net(number));
        let (share, net) = (share.to_str().unwrap(), net.to_str().unwrap());
        let words = ["up", "--name", name, "--share", share, "--at", net];
        let open: &[&str] = if more.contains(&"--authorized") { &[] } else { &["--open"] };
        self.node(number, &[&words, open, more].concat())
    }

    /// Starts the default node of a host.
    pub(super) fn start(&self, number: usize) {
        self.up_as(number, &format!("linus{number}"), &[]).succeeds();
    }

    /// Kills the process of a node with SIGKILL.
    pub(super) fn kill(&self, number: usize) {
        for process in self.processes(number) {
            kill_process(process, Signal::KILL).unwrap();
            wait_for("the process's end", || test_kill_process(process).is_err() || is_zombie(process));
        }
    }

    /// Returns the processes of a host's node: those with its export's directory in their arguments.
    pub(super) fn processes(&self, number: usize) -> Vec<Pid> {
        let share = self.share(number);
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        let is_node_process = |pid: &i32| {
            let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            words.split(|&byte| byte == 0).any(|word| word == share.as_os_str().as_encoded_bytes())
        };
        pids.filter(is_node_process).filter_map(Pid::from_raw).collect()
    }

    pub(super) fn identity(&self, number: usize) -> String {
        self.wirefs(number, &["identity"]).succeeds()
    }

    /// Returns the state of a node in another node's list.
    pub(super) fn state(&self, here: usize, name: &str) -> String {
        let list = self.node(here, &["list"]).succeeds();
        let mut lines = list.lines().map(str::split_whitespace);
        let state = lines.find_map(|mut words| (words.next()? == name).then(|| words.next()).flatten());
        state.unwrap_or("unknown").to_owned()
    }

    /// Returns the names in a host's /net.
    pub(super) fn names(&self, number: usize) -> Vec<String> {
        let entries = fs::read_dir(self.net(number)).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    /// Opens a file in a host's /net; retries, because on a busy machine a node may count as dead for a moment.
    pub(super) fn open(&self, number: usize, path: &str) -> File {
        wait_for_some("a live node", || File::open(self.net(number).join(path)).ok())
    }

    /// Reads a file in a host's /net.
    pub(super) fn read(&self, number: usize, path: &str) -> String {
        let path = self.net(number).join(path);
        wait_for_some("a live node", || fs::read_to_string(&path).ok())
    }

    /// Returns the number of a host's connections to ports of nodes.
    pub(super) fn connections(&self, number: usize) -> usize {
        let table =
            self.host(number).run(|| fs::read_to_string("/proc/thread-self/net/tcp")).unwrap().unwrap();
        let to_node = |line: &&str| {
            let mut words = line.split_whitespace().skip(2);
            words.next().is_some_and(|remote| remote.ends_with(PORT_HEX)) && words.next() == Some(ESTABLISHED)
        };
        table.lines().filter(to_node).count()
    }

    /// Limits the send rate of a host's card.
    pub(super) fn limit(&self, number: usize, card: &str, rate: &str) {
        let words = format!("qdisc replace dev {card} root tbf rate {rate} burst 64kb limit 512kb");
        run("tc", self.host(number), &words);
    }

    /// Returns the number of bytes that a host's card has received.
    pub(super) fn received_bytes(&self, number: usize, card: &str) -> u64 {
        let table =
            self.host(number).run(|| fs::read_to_string("/proc/thread-self/net/dev")).unwrap().unwrap();
        let line = table.lines().find_map(|line| line.trim().strip_prefix(card)?.strip_prefix(':'));
        line.and_then(|counts| counts.split_whitespace().next()).unwrap().parse().unwrap()
    }

    /// Sets a host's cable up or down.
    pub(super) fn set_cable(&self, number: usize, state: &str) {
        ip(&self.switch, &format!("link set port{number} {state}"));
    }
}

impl NodeSegment {
    /// Returns the mounts below the segment's directory, in the order of the mount table.
    fn mounts(&self) -> Vec<PathBuf> {
        let table = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let directories = table.lines().filter_map(|line| line.split(' ').nth(4)).map(PathBuf::from);
        directories.filter(|directory| directory.starts_with(&self.dir)).collect()
    }
}

impl Drop for NodeSegment {
    fn drop(&mut self) {
        // No panics here: the test may be panicking already, and the remaining cleanup must run.
        for number in 1..=self.hosts.len() {
            let program = self.dir.join("wirefs").display().to_string();
            let _stopped = self.program(number, &program).args(["node", "down"]).output();
            for process in self.processes(number) {
                let _already_ended = kill_process(process, Signal::KILL);
            }
        }
        // Leftovers of killed nodes, in reverse order: later mounts cover earlier ones.
        for directory in self.mounts().iter().rev() {
            let _unmounted = Command::new("umount").arg("-lq").arg(directory).stderr(Stdio::null()).status();
        }
        match self.mounts().as_slice() {
            [] => drop(fs::remove_dir_all(&self.dir)),
            left => eprintln!("still mounted: {left:?}"),
        }
    }
}

fn ip(host: &Host, words: &str) {
    run("ip", host, words);
}

/// Runs `ip` or `tc` for a host.
fn run(program: &str, host: &Host, words: &str) {
    let output = Command::new(program).args(["-n", host.name()]).args(words.split(' ')).output().unwrap();
    assert!(output.status.success(), "{program} {words}: {}", String::from_utf8_lossy(&output.stderr));
}

fn is_zombie(process: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero())).unwrap_or_default();
    stat.rsplit(')').next().unwrap_or_default().trim_start().starts_with('Z')
}

/// The exit code and the output of a program.
#[derive(Debug)]
pub(super) struct NodeCommandResult {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl NodeCommandResult {
    /// Returns the standard output; panics if the program failed.
    #[track_caller]
    pub(super) fn succeeds(self) -> String {
        assert_eq!(self.code, Some(0), "{self:?}");
        self.stdout
    }

    pub(super) fn is_success(&self) -> bool {
        self.code == Some(0)
    }

    /// Asserts that the program failed with a message that contains `words`.
    #[track_caller]
    pub(super) fn fails_with(self, words: &str) {
        assert_eq!(self.code, Some(1), "{self:?}");
        assert!(self.stderr.starts_with("wirefs: ") || self.stderr.contains("\nwirefs: "), "{}", self.stderr);
        assert!(self.stderr.contains(words), "`{words}` is not in: {}", self.stderr);
    }
}

/// Waits until `find` returns a value; panics after a timeout.
#[track_caller]
fn wait_for_some<T>(condition_name: &str, mut find: impl FnMut() -> Option<T>) -> T {
    let mut found = None;
    wait_for(condition_name, || {
        found = find();
        found.is_some()
    });
    found.unwrap()
}

/// Waits until a condition is true; panics after a timeout.
#[track_caller]
pub(super) fn wait_for(condition_name: &str, mut is_true: impl FnMut() -> bool) {
    let deadline = Instant::now() + WAIT_MAX;
    while !is_true() {
        assert!(Instant::now() < deadline, "timeout: waited for {condition_name}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
