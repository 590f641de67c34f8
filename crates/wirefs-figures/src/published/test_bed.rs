//! A server and a client, a directory, and mounts of it by each peer. A killed wirefs server is restarted at once.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::Ipv4Addr;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::batch::now;
use super::{PublishedPeer, PublishedPlan};
use wirefs_lab::LabError;
use wirefs_lab::LinkHandle;
use wirefs_lab::LinkProfile;
use wirefs_lab::bench;
use wirefs_lab::bench::mount::{BenchMount, unmount_command};
use wirefs_lab::homes::WirefsHomes;
use wirefs_lab::program;
use wirefs_lab::sshd::Sshd;
use wirefs_lab::{Host, Lab, Patch};

const PORT: u16 = 6_440;

/// The network between the hosts.
enum HostLink {
    Link(LinkHandle),
    Patch(Patch),
}

/// The fields are dropped in this order.
pub(super) struct PublishedTestBed {
    sshd: Option<Sshd>,
    server_process: Option<RestartableServer>,
    homes: WirefsHomes,
    wirefs: PathBuf,
    scratch: ScratchDirectory,
    network: HostLink,
    server: Host,
    client: Host,
    _lab: Lab,
}

/// The directory for all files, removed on drop.
struct ScratchDirectory(PathBuf);

impl Drop for ScratchDirectory {
    fn drop(&mut self) {
        // A directory that cannot be removed stays visible in the temporary directory.
        fs::remove_dir_all(&self.0).ok();
    }
}

/// A `wirefs serve` process that accepts connections, ended with SIGTERM on drop.
struct RestartableServer {
    process: Child,
    /// Kept open: with a closed pipe, writes of the server to standard output would fail.
    _stdout: BufReader<ChildStdout>,
}

impl Drop for RestartableServer {
    fn drop(&mut self) {
        // The process may have exited already.
        kill_process(Pid::from_child(&self.process), Signal::TERM).ok();
        self.process.wait().ok();
    }
}

impl PublishedTestBed {
    /// Creates the hosts and starts the servers; for a round-trip time of zero the hosts share a plain veth pair.
    pub(super) fn new(plan: &PublishedPlan, rtt: Duration) -> Result<PublishedTestBed, LabError> {
        let failed = |error| LabError::io(format!("make {}", plan.scratch.display()), error);
        for place in ["export", "mount"] {
            fs::create_dir_all(plan.scratch.join(place)).map_err(failed)?;
        }
        let scratch = ScratchDirectory(plan.scratch.clone());
        let lab = Lab::new("published")?;
        let (server, client) = (lab.host("server")?, lab.host("client")?);
        let network = match rtt.is_zero() {
            true => HostLink::Patch(lab.patch(&server, &client)?),
            false => HostLink::Link(lab.link(&server, &client, LinkProfile::rtt(rtt))?),
        };
        let homes = WirefsHomes::new(&client, &plan.wirefs, &scratch.0.join("wirefs"))?;
        let mut test_bed = PublishedTestBed {
            sshd: None,
            server_process: None,
            homes,
            wirefs: plan.wirefs.clone(),
            scratch,
            network,
            server,
            client,
            _lab: lab,
        };
        if plan.has_sshfs {
            let state = test_bed.scratch.0.join("sshd");
            test_bed.sshd = Some(Sshd::start(&test_bed.server, test_bed.address(), &state)?);
        }
        test_bed.server_process = Some(test_bed.serve()?);
        Ok(test_bed)
    }

    fn address(&self) -> Ipv4Addr {
        match &self.network {
            HostLink::Link(link) => link.address_a(),
            HostLink::Patch(patch) => patch.address_a,
        }
    }

    /// Returns the exported directory.
    pub(super) fn export(&self) -> PathBuf {
        self.scratch.0.join("export")
    }

    /// Starts a server and waits until it listens.
    fn serve(&self) -> Result<RestartableServer, LabError> {
        let mut command = self.homes.with_server_home(self.server.command(&self.wirefs));
        command.arg("serve").arg(self.export());
        command.args(["--listen", &format!("tls://{}:{PORT}", self.address())]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(self.homes.server_log()?);
        let mut process = command.spawn().map_err(|error| LabError::io("run wirefs serve", error))?;
        let failed = |process: &mut Child, stderr: String| {
            process.kill().ok();
            process.wait().ok();
            LabError::CommandFailed { command: "wirefs serve".to_owned(), stderr }
        };
        let Some(stdout) = process.stdout.take() else {
            return Err(failed(&mut process, "its output cannot be read".to_owned()));
        };
        let (mut stdout, mut line) = (BufReader::new(stdout), String::new());
        // The server prints its address when it listens.
        match stdout.read_line(&mut line) {
            Ok(1..) => Ok(RestartableServer { process, _stdout: stdout }),
            Ok(0) => Err(failed(&mut process, "it ended without listening".to_owned())),
            Err(error) => Err(failed(&mut process, error.to_string())),
        }
    }

    /// Returns the process id of the server.
    pub(super) fn server_pid(&self) -> Option<i32> {
        self.server_process
            .as_ref()
            .map(|server_process| Pid::from_child(&server_process.process).as_raw_nonzero().get())
    }

    /// Ends the server with SIGTERM, so that a waiting [`await_crash`](Self::await_crash) fails.
    pub(super) fn end(process: Option<i32>) {
        if let Some(process) = process.and_then(Pid::from_raw) {
            // A stopped process handles SIGTERM only after SIGCONT.
            kill_process(process, Signal::TERM).ok();
            kill_process(process, Signal::CONT).ok();
        }
    }

    /// Waits until the server is killed and restarts it at once; returns the time at which it listens again.
    pub(super) fn await_crash(&mut self) -> Result<Duration, LabError> {
        let Some(mut server_process) = self.server_process.take() else {
            return Err(measurement_error("there is no server to wait for".to_owned()));
        };
        let ended =
            server_process.process.wait().map_err(|error| LabError::io("wait for wirefs serve", error))?;
        self.server_process = Some(self.serve()?);
        match ended.signal() == Some(Signal::KILL.as_raw()) {
            true => Ok(now()),
            false => Err(measurement_error(format!("wirefs serve ended by itself: {ended}"))),
        }
    }

    /// Mounts the directory with this peer.
    pub(super) fn mount(&self, peer: PublishedPeer) -> Result<BenchMount, LabError> {
        let at = self.scratch.0.join("mount");
        match (peer, &self.sshd) {
            (PublishedPeer::Local, _) => Ok(BenchMount::local(&self.export())),
            (PublishedPeer::Sshfs, Some(sshd)) => {
                let unmount = unmount_command(&self.client, bench::BenchPeer::Sshfs, &self.wirefs, &at);
                let command = sshd.mount_command(&self.client, &self.export(), &at);
                BenchMount::by(command, &at, unmount, None)
            }
            (PublishedPeer::Sshfs, None) => Err(LabError::missing("sshfs", "sshfs")),
            (_, _) => {
                let unmount = unmount_command(&self.client, bench::BenchPeer::Wirefs, &self.wirefs, &at);
                let mut command = self.homes.with_client_home(self.client.command(&self.wirefs));
                // No disk cache, so that cold calls are cold; `--hard`, so that a slow machine is not reported as an
                // error.
                command.args(["mount", "--no-cache", "--hard"]).args(peer.options());
                command.arg(format!("tls://{}:{PORT}/", self.address())).arg(&at);
                BenchMount::by(command, &at, self.homes.with_client_home(unmount), None)
            }
        }
    }

    /// Returns the number of bytes that the client has sent to the server.
    pub(super) fn sent_bytes(&self) -> Result<u64, LabError> {
        match &self.network {
            HostLink::Link(link) => Ok(link.counters().b_to_a.offered_bytes),
            HostLink::Patch(patch) => Ok(self.client.sent(&patch.device)?.bytes),
        }
    }
}

pub(super) fn measurement_error(problem: String) -> LabError {
    LabError::Probe { measurement: "a published evaluation", problem }
}

/// Fails if a required program is missing.
pub(super) fn check_programs(plan: &PublishedPlan) -> Result<(), LabError> {
    if plan.has_sshfs {
        for (name, package) in
            [("sshfs", "sshfs"), ("sshd", "openssh-server"), ("ssh-keygen", "openssh-client")]
        {
            program::find(name, package)?;
        }
    }
    program::find("fusermount3", "fuse3")?;
    check_built(&plan.wirefs)
}

fn check_built(wirefs: &Path) -> Result<(), LabError> {
    match wirefs.is_file() {
        true => Ok(()),
        false => Err(LabError::MissingProgram {
            program: wirefs.display().to_string(),
            remedy: "build it: cargo build --release -p wirefs".to_owned(),
        }),
    }
}
