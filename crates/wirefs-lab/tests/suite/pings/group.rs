//! Nodes that share one PingFS, around a host that answers pings; drop removes everything.

use std::fs;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::process::{Pid, Signal, kill_process};
use wirefs_lab::{Host, Lab, LinkHandle, LinkProfile};

use crate::site::{ProgramResult, wait_for};

/// The timeout of each program, in seconds.
const PROGRAM_MAX_SECS: &str = "150";

struct GroupMember {
    host: Host,
    link: LinkHandle,
}

/// Hosts around a hub, each with its own link.
pub(super) struct PingFsGroup {
    dir: PathBuf,
    members: Vec<GroupMember>,
    /// Dropped last; kills the remaining processes.
    _lab: Lab,
}

impl PingFsGroup {
    /// Creates `count` hosts, numbered from 1, without mounts.
    pub(super) fn new(name: &str, count: usize, profile: &LinkProfile) -> PingFsGroup {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let nth = COUNT.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("wirefs-pings-{name}-{}-{nth}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let lab = Lab::new(name).unwrap();
        let hub = lab.host("hub").unwrap();
        // The hub must answer pings with the source address of another node, which is on another link.
        hub.run(|| fs::write("/proc/sys/net/ipv4/conf/all/rp_filter", "0").unwrap()).unwrap();
        let mut members = Vec::new();
        for number in 1..=count {
            let host = lab.host(&format!("node{number}")).unwrap();
            let link = lab.link(&hub, &host, profile.clone()).unwrap();
            members.push(GroupMember { host, link });
            for directory in ["mnt", "home", "run"] {
                let directory = dir.join(number.to_string()).join(directory);
                fs::DirBuilder::new().recursive(true).mode(0o700).create(directory).unwrap();
            }
        }
        let disable_rp_filter =
            |device: &str| fs::write(format!("/proc/sys/net/ipv4/conf/{device}/rp_filter"), "0");
        let devices = || fs::read_dir("/proc/sys/net/ipv4/conf").unwrap();
        hub.run(|| {
            devices()
                .for_each(|device| disable_rp_filter(device.unwrap().file_name().to_str().unwrap()).unwrap())
        })
        .unwrap();
        fs::write(dir.join("key"), "a secret of all of these nodes").unwrap();
        fs::set_permissions(dir.join("key"), fs::Permissions::from_mode(0o600)).unwrap();
        PingFsGroup { dir, members, _lab: lab }
    }

    fn member(&self, number: usize) -> &GroupMember {
        &self.members[number - 1]
    }

    /// Returns a path in the mount of a node.
    pub(super) fn at(&self, number: usize, name: impl AsRef<Path>) -> PathBuf {
        self.dir.join(number.to_string()).join("mnt").join(name)
    }

    /// Returns a command on a node; it is killed after a timeout.
    pub(super) fn command(&self, number: usize, program: impl AsRef<std::ffi::OsStr>) -> Command {
        self.command_within(number, PROGRAM_MAX_SECS, program)
    }

    /// The same, killed after this many seconds.
    pub(super) fn command_within(
        &self,
        number: usize,
        seconds: &str,
        program: impl AsRef<std::ffi::OsStr>,
    ) -> Command {
        let mut command = self.member(number).host.command("timeout");
        command.args(["--foreground", "--signal=KILL", seconds]).arg(program);
        let home = self.dir.join(number.to_string());
        command.env("HOME", home.join("home")).env("XDG_RUNTIME_DIR", home.join("run"));
        command.current_dir("/").stdin(Stdio::null());
        for directory in ["XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"] {
            command.env_remove(directory);
        }
        command
    }

    /// Runs `wirefs` on a node.
    pub(super) fn wirefs(&self, number: usize, words: &[&str]) -> ProgramResult {
        let built = Path::new(env!("CARGO_BIN_EXE_wirefs-lab")).with_file_name("wirefs");
        assert!(built.exists(), "{} is missing: cargo build --package wirefs", built.display());
        ProgramResult::of(self.command(number, built).args(words))
    }

    fn mountpoint(&self, number: usize) -> String {
        self.at(number, "").to_str().unwrap().trim_end_matches('/').to_owned()
    }

    /// Mounts the shared PingFS on a node, with all hosts as peers.
    pub(super) fn mount(&self, number: usize, words: &[&str]) {
        let (node, key) = (number.to_string(), self.dir.join("key"));
        let hub = self.link(number).address_a().to_string();
        let mountpoint = self.mountpoint(number);
        let mut all = vec![
            "echo",
            &mountpoint,
            "--host",
            &hub,
            "--discard",
            "--node",
            &node,
            "--key",
            key.to_str().unwrap(),
        ];
        let others = self.members.iter().map(|member| member.link.address_b().to_string());
        let peers: Vec<String> = others.collect();
        for peer in &peers {
            all.extend(["--peer", peer]);
        }
        all.extend(words);
        self.wirefs(number, &all).succeeds();
    }

    /// Mounts a PingFS of this node alone.
    pub(super) fn mount_alone(&self, number: usize, words: &[&str]) {
        let hub = self.link(number).address_a().to_string();
        let mountpoint = self.mountpoint(number);
        let all = ["echo", &mountpoint, "--host", &hub, "--discard"].into_iter().chain(words.iter().copied());
        self.wirefs(number, &all.collect::<Vec<&str>>()).succeeds();
    }

    /// Returns the link between a node and the hub.
    pub(super) fn link(&self, number: usize) -> &LinkHandle {
        &self.member(number).link
    }

    /// Returns the status of a node's PingFS.
    pub(super) fn status(&self, number: usize) -> serde_json::Value {
        let json = self.wirefs(number, &["echo", "status", "--json", &self.mountpoint(number)]).succeeds();
        serde_json::from_str(&json).unwrap()
    }

    /// Returns the members in the view of a node.
    pub(super) fn members(&self, number: usize) -> Vec<u64> {
        let nodes = self.status(number)["nodes"]["nodes"].as_array().unwrap().clone();
        let members = nodes.iter().filter(|node| node["is_member"] == true);
        members.map(|node| node["node"].as_u64().unwrap()).collect()
    }

    /// Returns the root of a node.
    pub(super) fn root(&self, number: usize) -> String {
        self.status(number)["nodes"]["root"].as_str().unwrap().to_owned()
    }

    /// Waits until exactly these nodes are members.
    pub(super) fn wait_for_members(&self, numbers: &[usize]) {
        let all: Vec<u64> = numbers.iter().map(|number| *number as u64).collect();
        for number in numbers {
            wait_for("all to be members", || self.members(*number) == all);
        }
    }

    /// Waits until these nodes have the same root.
    pub(super) fn wait_for_equal_roots(&self, numbers: &[usize]) {
        wait_for("all to have the same root", || {
            let roots: Vec<String> = numbers.iter().map(|number| self.root(*number)).collect();
            roots.iter().all(|root| *root == roots[0])
        });
    }

    /// Unmounts on a node, which leaves the group.
    pub(super) fn unmount(&self, number: usize) {
        wait_for("the mount to be free", || {
            let result = self.wirefs(number, &["umount", &self.mountpoint(number)]);
            let is_in_use = result.stderr.contains(" is in use: ");
            if !is_in_use {
                result.succeeds();
            }
            !is_in_use
        });
    }

    /// Kills the process of a node with SIGKILL. Its dead mount remains.
    pub(super) fn kill(&self, number: usize) {
        let json = self.wirefs(number, &["status", "--json", &self.mountpoint(number)]).succeeds();
        let status: serde_json::Value = serde_json::from_str(&json).unwrap();
        let process = i32::try_from(status["process"].as_i64().unwrap()).unwrap();
        kill_process(Pid::from_raw(process).unwrap(), Signal::KILL).unwrap();
    }

    /// Removes the dead mount of a node.
    pub(super) fn remove_mount(&self, number: usize) {
        let at = self.mountpoint(number);
        wait_for("the mount to be gone", || {
            // The process may still be ending.
            let _unmounted =
                Command::new("umount").args(["--lazy", "--force", &at]).stderr(Stdio::null()).status();
            !is_mounted(&at)
        });
    }
}

impl Drop for PingFsGroup {
    fn drop(&mut self) {
        for number in 1..=self.members.len() {
            let at = self.mountpoint(number);
            if is_mounted(&at) {
                self.wirefs(number, &["umount", "-f", "--discard", &at]);
            }
            if is_mounted(&at) {
                eprintln!("{at} did not unmount");
                Command::new("umount").args(["--lazy", "--force", &at]).status().ok();
            }
        }
        let table = fs::read_to_string("/proc/self/mountinfo").unwrap();
        if !table.contains(self.dir.to_str().unwrap()) {
            fs::remove_dir_all(&self.dir).ok();
        }
    }
}

fn is_mounted(at: &str) -> bool {
    fs::read_to_string("/proc/self/mountinfo").unwrap().contains(&format!(" {at} "))
}
