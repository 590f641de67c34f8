//! A server and a client, a directory, and all ways to it; the server of wirefs can be killed, and is started again at once.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::Ipv4Addr;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::batch::now;
use super::{Peer, Plan};
use wirefs_lab::LabError;
use wirefs_lab::LinkHandle;
use wirefs_lab::LinkProfile;
use wirefs_lab::bench;
use wirefs_lab::bench::mount::{Mount, unmount_command};
use wirefs_lab::homes::Homes;
use wirefs_lab::program;
use wirefs_lab::sshd::Sshd;
use wirefs_lab::{Host, Lab, Patch};

const PORT: u16 = 6_440;

/// The wire between the hosts.
enum Wire {
    Link(LinkHandle),
    Patch(Patch),
}

/// The order of fields is the order in which they go.
pub(super) struct Grounds {
    sshd: Option<Sshd>,
    serving: Option<Serving>,
    homes: Homes,
    wirefs: PathBuf,
    scratch: Scratch,
    wire: Wire,
    server: Host,
    client: Host,
    _lab: Lab,
}

/// The directory of everything, gone at the end.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed shows up there.
        fs::remove_dir_all(&self.0).ok();
    }
}

/// A server that takes connections; told to end, and waited for, when it is dropped.
struct Serving {
    process: Child,
    /// Closed, what the server says would be an error to it.
    _said: BufReader<ChildStdout>,
}

impl Drop for Serving {
    fn drop(&mut self) {
        // It may have ended.
        kill_process(Pid::from_child(&self.process), Signal::TERM).ok();
        self.process.wait().ok();
    }
}

impl Grounds {
    /// Makes the hosts and starts the servers; without a round-trip time the wire is a plain veth pair.
    pub(super) fn new(plan: &Plan, rtt: Duration) -> Result<Grounds, LabError> {
        let failed = |error| LabError::io(format!("make {}", plan.scratch.display()), error);
        for place in ["export", "mount"] {
            fs::create_dir_all(plan.scratch.join(place)).map_err(failed)?;
        }
        let scratch = Scratch(plan.scratch.clone());
        let lab = Lab::new("published")?;
        let (server, client) = (lab.host("server")?, lab.host("client")?);
        let wire = match rtt.is_zero() {
            true => Wire::Patch(lab.patch(&server, &client)?),
            false => Wire::Link(lab.link(&server, &client, LinkProfile::rtt(rtt))?),
        };
        let homes = Homes::new(&client, &plan.wirefs, &scratch.0.join("wirefs"))?;
        let mut grounds = Grounds {
            sshd: None,
            serving: None,
            homes,
            wirefs: plan.wirefs.clone(),
            scratch,
            wire,
            server,
            client,
            _lab: lab,
        };
        if plan.has_sshfs {
            let state = grounds.scratch.0.join("sshd");
            grounds.sshd = Some(Sshd::start(&grounds.server, grounds.address(), &state)?);
        }
        grounds.serving = Some(grounds.serve()?);
        Ok(grounds)
    }

    fn address(&self) -> Ipv4Addr {
        match &self.wire {
            Wire::Link(link) => link.address_a(),
            Wire::Patch(patch) => patch.address_a,
        }
    }

    /// The server's directory.
    pub(super) fn export(&self) -> PathBuf {
        self.scratch.0.join("export")
    }

    /// A server that listens.
    fn serve(&self) -> Result<Serving, LabError> {
        let mut command = self.homes.at_server(self.server.command(&self.wirefs));
        command.arg("serve").arg(self.export());
        command.args(["--listen", &format!("tls://{}:{PORT}", self.address())]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(self.homes.server_log()?);
        let mut process = command.spawn().map_err(|error| LabError::io("run wirefs serve", error))?;
        let failed = |process: &mut Child, stderr: String| {
            process.kill().ok();
            process.wait().ok();
            LabError::CommandFailed { command: "wirefs serve".to_owned(), stderr }
        };
        let Some(said) = process.stdout.take() else {
            return Err(failed(&mut process, "its output cannot be read".to_owned()));
        };
        let (mut said, mut line) = (BufReader::new(said), String::new());
        // It says where it listens once it does.
        match said.read_line(&mut line) {
            Ok(1..) => Ok(Serving { process, _said: said }),
            Ok(0) => Err(failed(&mut process, "it ended without listening".to_owned())),
            Err(error) => Err(failed(&mut process, error.to_string())),
        }
    }

    /// The process of the server.
    pub(super) fn server_process(&self) -> Option<i32> {
        self.serving.as_ref().map(|serving| Pid::from_child(&serving.process).as_raw_nonzero().get())
    }

    /// Tells the server to end in order, as [`await_crash`](Self::await_crash) does not expect it.
    pub(super) fn end(process: Option<i32>) {
        if let Some(process) = process.and_then(Pid::from_raw) {
            // A stopped one hears it when it goes on.
            kill_process(process, Signal::TERM).ok();
            kill_process(process, Signal::CONT).ok();
        }
    }

    /// Waits until the server is killed, and starts it again at once: when it listened again.
    pub(super) fn await_crash(&mut self) -> Result<Duration, LabError> {
        let Some(mut serving) = self.serving.take() else {
            return Err(wrong("there is no server to wait for".to_owned()));
        };
        let ended = serving.process.wait().map_err(|error| LabError::io("wait for wirefs serve", error))?;
        self.serving = Some(self.serve()?);
        match ended.signal() == Some(Signal::KILL.as_raw()) {
            true => Ok(now()),
            false => Err(wrong(format!("wirefs serve ended by itself: {ended}"))),
        }
    }

    /// Mounts the directory as this peer does.
    pub(super) fn mount(&self, peer: Peer) -> Result<Mount, LabError> {
        let at = self.scratch.0.join("mount");
        match (peer, &self.sshd) {
            (Peer::Local, _) => Ok(Mount::local(&self.export())),
            (Peer::Sshfs, Some(sshd)) => {
                let unmount = unmount_command(&self.client, bench::Peer::Sshfs, &self.wirefs, &at);
                let command = sshd.mount_command(&self.client, &self.export(), &at);
                Mount::by(command, &at, unmount, None)
            }
            (Peer::Sshfs, None) => Err(LabError::missing("sshfs", "sshfs")),
            (_, _) => {
                let unmount = unmount_command(&self.client, bench::Peer::Wirefs, &self.wirefs, &at);
                let mut command = self.homes.at_client(self.client.command(&self.wirefs));
                // What is called cold is to be cold, and a machine that is busy for long is slow and no failure.
                command.args(["mount", "--no-cache", "--hard"]).args(peer.options());
                command.arg(format!("tls://{}:{PORT}/", self.address())).arg(&at);
                Mount::by(command, &at, self.homes.at_client(unmount), None)
            }
        }
    }

    /// Bytes that the client has sent to the server.
    pub(super) fn sent_bytes(&self) -> Result<u64, LabError> {
        match &self.wire {
            Wire::Link(link) => Ok(link.counters().b_to_a.offered_bytes),
            Wire::Patch(patch) => Ok(self.client.sent(&patch.device)?.bytes),
        }
    }
}

pub(super) fn wrong(problem: String) -> LabError {
    LabError::Probe { what: "what was published", problem }
}

/// Fails when a program is missing.
pub(super) fn check_programs(plan: &Plan) -> Result<(), LabError> {
    if plan.has_sshfs {
        for (name, package) in
            [("sshfs", "sshfs"), ("sshd", "openssh-server"), ("ssh-keygen", "openssh-client")]
        {
            program::find(name, package)?;
        }
    }
    program::find("fusermount3", "fuse3")?;
    is_there(&plan.wirefs)
}

fn is_there(wirefs: &Path) -> Result<(), LabError> {
    match wirefs.is_file() {
        true => Ok(()),
        false => Err(LabError::MissingProgram {
            program: wirefs.display().to_string(),
            remedy: "build it: cargo build --release -p wirefs".to_owned(),
        }),
    }
}
