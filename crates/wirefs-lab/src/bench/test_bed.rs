//! Two hosts, the wire between them, and the servers that peers need.

mod wirefs;

use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use super::Plan;
use super::measure::{Ended, Task, run_to_limit};
use super::mount::{Mount, unmount_command};
use super::peer::Peer;
use super::samples::{Outcome, Sample};
use crate::emulator::LinkHandle;
use crate::error::LabError;
use crate::lab::{Host, Lab, Patch};
use crate::probe::{self, TcpRun};
use crate::profile::LinkProfile;
use crate::sshd::Sshd;
use crate::workload::{Bulk, Step};
use wirefs::Wirefs;

/// A wire without frames for this long, beside one and a half round trips, is quiet.
const QUIET_MIN: Duration = Duration::from_millis(20);
/// A wire that is never quiet is measured all the same.
const SETTLE_MAX: Duration = Duration::from_secs(3);

/// The wire between the hosts.
enum Wire {
    Link(LinkHandle),
    Patch(Patch),
}

/// Two hosts for one round-trip time. The order of fields is the order in which they go.
pub(super) struct Scene<'a> {
    sshd: Option<Sshd>,
    wirefs: Option<Wirefs>,
    plan: &'a Plan,
    rtt: Duration,
    wire: Wire,
    server: Host,
    client: Host,
    _lab: Lab,
}

impl<'a> Scene<'a> {
    /// Makes the hosts and starts what the plan's peers need.
    pub(super) fn new(plan: &'a Plan, rtt: Duration) -> Result<Scene<'a>, LabError> {
        let lab = Lab::new("bench")?;
        let (server, client) = (lab.host("server")?, lab.host("client")?);
        if let Some(most) = plan.buffer_bytes {
            server.limit_tcp_buffers(most)?;
            client.limit_tcp_buffers(most)?;
        }
        let profile = plan.profile.clone().with(|lane| lane.delay = rtt / 2);
        let wire = if profile == LinkProfile::default() {
            Wire::Patch(lab.patch(&server, &client)?)
        } else {
            Wire::Link(lab.link(&server, &client, profile)?)
        };
        let mut scene = Scene { sshd: None, wirefs: None, plan, rtt, wire, server, client, _lab: lab };
        let state = plan.scratch.join(format!("state-{}", rtt.as_micros()));
        if plan.peers.contains(&Peer::Sshfs) {
            scene.sshd = Some(Sshd::start(&scene.server, scene.addresses().0, &state.join("sshd"))?);
        }
        if plan.peers.iter().any(|peer| peer.is_wirefs()) {
            scene.wirefs = Some(Wirefs::new(&scene, &state.join("wirefs"))?);
        }
        Ok(scene)
    }

    /// The round-trip time.
    pub(super) fn rtt(&self) -> Duration {
        self.rtt
    }

    fn addresses(&self) -> (Ipv4Addr, Ipv4Addr) {
        match &self.wire {
            Wire::Link(link) => (link.address_a(), link.address_b()),
            Wire::Patch(patch) => (patch.address_a, patch.address_b),
        }
    }

    /// Mounts the server's directory `export` on the client, as this peer does.
    pub(super) fn mount(&self, peer: Peer, export: &Path) -> Result<Mount, LabError> {
        let at = self.plan.scratch.join("mount");
        fs::create_dir_all(&at).map_err(|error| LabError::io(format!("make {}", at.display()), error))?;
        let unmount = unmount_command(&self.client, peer, &self.plan.wirefs, &at);
        match (peer, &self.sshd, &self.wirefs) {
            (Peer::Sshfs, Some(sshd), _) => {
                Mount::by(sshd.mount_command(&self.client, export, &at), &at, unmount, None)
            }
            (Peer::Wirefs | Peer::Waiting | Peer::One, _, Some(wirefs)) => {
                let serving = wirefs.serve(self, export)?;
                let mut command = wirefs.mount_command(self, &at);
                command.args((peer == Peer::Waiting).then_some("--no-journal"));
                command.args((peer == Peer::One).then_some(["-o", "connections=1"]).into_iter().flatten());
                Mount::by(command, &at, wirefs.at_home(unmount), Some(serving))
            }
            (Peer::Local | Peer::Bare | Peer::Sshfs | Peer::Wirefs | Peer::Waiting | Peer::One, _, _) => {
                Ok(Mount::local(export))
            }
        }
    }

    /// Waits until the wire is quiet, so that the end of one connection is not counted as work of the next.
    pub(super) fn settle(&self) -> Result<(), LabError> {
        let quiet = self.rtt + self.rtt / 2 + QUIET_MIN;
        let end = Instant::now() + SETTLE_MAX;
        let mut before = None;
        while Instant::now() < end {
            let sent = self.sent()?;
            if before == Some(sent) {
                break;
            }
            before = Some(sent);
            thread::sleep(quiet);
        }
        Ok(())
    }

    /// Lists a directory, so that the mount has seen it.
    pub(super) fn list(&self, path: &Path) {
        // A mount that cannot be listed fails in the measured step, which tells why.
        fs::read_dir(path).map(Iterator::count).ok();
    }

    /// Does a step on the client and measures it.
    pub(super) fn measure(&self, task: &Task<'_>) -> Result<Outcome, LabError> {
        let mut command = self.client.command(&self.plan.wirefs_lab);
        command.arg("work").args([task.workload.name, task.step.name]);
        command.arg(&task.place.tree).arg(&task.place.local);
        command.args(["--bulk", &task.place.scale.bulk_bytes.to_string()]);
        command.args(self.plan.short.then_some("--short"));
        let before = self.sent()?;
        let ended = run_to_limit(command, task.limit, &self.plan.stop)?;
        let after = self.sent()?;
        Ok(match ended {
            Ended::Done(elapsed) => Outcome::Done(Sample {
                elapsed,
                frames: after.0.saturating_sub(before.0),
                bytes: after.1.saturating_sub(before.1),
            }),
            Ended::Early(outcome) => outcome,
        })
    }

    /// Transfers as many bytes as the step does, over a bare TCP connection.
    pub(super) fn transfer(&self, step: &Step, bytes: u64) -> Result<Outcome, LabError> {
        let (server_address, client_address) = self.addresses();
        let before = self.sent()?;
        let transferred: Option<Result<TcpRun, LabError>> = step.bulk.map(|bulk| match bulk {
            Bulk::Down | Bulk::Tree => probe::tcp_transfer(&self.server, &self.client, client_address, bytes),
            Bulk::Up => probe::tcp_transfer(&self.client, &self.server, server_address, bytes),
        });
        let after = self.sent()?;
        Ok(match transferred {
            Some(Ok(run)) => Outcome::Done(Sample {
                elapsed: run.span,
                frames: after.0 - before.0,
                bytes: after.1 - before.1,
            }),
            Some(Err(error)) => Outcome::Failed(error.to_string()),
            None => Outcome::Failed("it is no bulk transfer".to_owned()),
        })
    }

    /// Frames and bytes that both hosts have sent.
    fn sent(&self) -> Result<(u64, u64), LabError> {
        match &self.wire {
            Wire::Link(link) => {
                let counters = link.counters();
                Ok((counters.offered_frames(), counters.offered_bytes()))
            }
            Wire::Patch(patch) => {
                let (a, b) = (self.server.sent(&patch.device)?, self.client.sent(&patch.device)?);
                Ok((a.frames + b.frames, a.bytes + b.bytes))
            }
        }
    }
}
