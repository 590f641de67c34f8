//! Two hosts, the network between them, and the servers of the peers.

mod wirefs;

use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use super::BenchPlan;
use super::measure::{StepEnd, StepTask, run_to_limit};
use super::mount::{BenchMount, unmount_command};
use super::peer::BenchPeer;
use super::samples::{BenchSample, StepOutcome};
use crate::emulator::LinkHandle;
use crate::error::LabError;
use crate::lab::{Host, Lab, Patch};
use crate::probe::{self, TcpRun};
use crate::profile::LinkProfile;
use crate::sshd::Sshd;
use crate::workload::{BareTransfer, WorkloadStep};
use wirefs::WirefsPeer;

/// The network is idle after this time plus one and a half round trips without frames.
const QUIET_MIN: Duration = Duration::from_millis(20);
/// The maximum wait for an idle network.
const SETTLE_MAX: Duration = Duration::from_secs(3);

/// The network between the hosts.
enum BenchNetwork {
    Link(LinkHandle),
    Patch(Patch),
}

/// Two hosts for one round-trip time. The fields are dropped in this order.
pub(super) struct BenchTestBed<'a> {
    sshd: Option<Sshd>,
    wirefs: Option<WirefsPeer>,
    plan: &'a BenchPlan,
    rtt: Duration,
    network: BenchNetwork,
    server: Host,
    client: Host,
    _lab: Lab,
}

impl<'a> BenchTestBed<'a> {
    /// Creates the hosts and starts the servers of the plan's peers.
    pub(super) fn new(plan: &'a BenchPlan, rtt: Duration) -> Result<BenchTestBed<'a>, LabError> {
        let lab = Lab::new("bench")?;
        let (server, client) = (lab.host("server")?, lab.host("client")?);
        if let Some(buffer_bytes) = plan.buffer_bytes {
            server.limit_tcp_buffers(buffer_bytes)?;
            client.limit_tcp_buffers(buffer_bytes)?;
        }
        let profile = plan.profile.clone().with(|lane| lane.delay = rtt / 2);
        let network = if profile == LinkProfile::default() {
            BenchNetwork::Patch(lab.patch(&server, &client)?)
        } else {
            BenchNetwork::Link(lab.link(&server, &client, profile)?)
        };
        let mut test_bed =
            BenchTestBed { sshd: None, wirefs: None, plan, rtt, network, server, client, _lab: lab };
        let state = plan.scratch.join(format!("state-{}", rtt.as_micros()));
        if plan.peers.iter().any(|peer| peer.needs_sshd()) {
            test_bed.sshd = Some(Sshd::start(&test_bed.server, test_bed.addresses().0, &state.join("sshd"))?);
        }
        if plan.peers.iter().any(|peer| peer.is_wirefs()) {
            test_bed.wirefs = Some(WirefsPeer::new(&test_bed, &state.join("wirefs"))?);
        }
        Ok(test_bed)
    }

    /// Returns the round-trip time.
    pub(super) fn rtt(&self) -> Duration {
        self.rtt
    }

    fn addresses(&self) -> (Ipv4Addr, Ipv4Addr) {
        match &self.network {
            BenchNetwork::Link(link) => (link.address_a(), link.address_b()),
            BenchNetwork::Patch(patch) => (patch.address_a, patch.address_b),
        }
    }

    /// Mounts the exported directory on the client with this peer.
    pub(super) fn mount(&self, peer: BenchPeer, export: &Path) -> Result<BenchMount, LabError> {
        let at = self.plan.scratch.join("mount");
        fs::create_dir_all(&at).map_err(|error| LabError::io(format!("make {}", at.display()), error))?;
        let unmount = unmount_command(&self.client, peer, &self.plan.wirefs, &at);
        match (peer, &self.sshd, &self.wirefs) {
            (BenchPeer::Sshfs, Some(sshd), _) => {
                BenchMount::by(sshd.mount_command(&self.client, export, &at), &at, unmount, None)
            }
            (BenchPeer::Sftp, Some(sshd), Some(wirefs)) => {
                let mut command = wirefs.at_home(self.client.command(&self.plan.wirefs));
                command.arg("mount").args(sshd.sftp_source(export)).arg(&at);
                BenchMount::by(command, &at, wirefs.at_home(unmount), None)
            }
            (BenchPeer::Wirefs | BenchPeer::NoJournal | BenchPeer::OneConnection, _, Some(wirefs)) => {
                let server_process = wirefs.serve(self, export)?;
                let mut command = wirefs.mount_command(self, &at);
                command.args((peer == BenchPeer::NoJournal).then_some("--no-journal"));
                command.args(
                    (peer == BenchPeer::OneConnection)
                        .then_some(["-o", "connections=1"])
                        .into_iter()
                        .flatten(),
                );
                BenchMount::by(command, &at, wirefs.at_home(unmount), Some(server_process))
            }
            (
                BenchPeer::Local
                | BenchPeer::Bare
                | BenchPeer::Sshfs
                | BenchPeer::Wirefs
                | BenchPeer::NoJournal
                | BenchPeer::OneConnection
                | BenchPeer::Sftp,
                _,
                _,
            ) => Ok(BenchMount::local(export)),
        }
    }

    /// Waits until the network is idle, so that closing a connection is not counted in the next step.
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

    /// Lists a directory, so that the mount has it in its cache.
    pub(super) fn list(&self, path: &Path) {
        // A failing mount shows its error in the measured step.
        fs::read_dir(path).map(Iterator::count).ok();
    }

    /// Runs a step on the client and measures it.
    pub(super) fn measure(&self, task: &StepTask<'_>) -> Result<StepOutcome, LabError> {
        let mut command = self.client.command(&self.plan.wirefs_lab);
        command.arg("work").args([task.workload.name, task.step.name]);
        command.arg(&task.place.tree).arg(&task.place.local);
        command.args(["--bulk", &task.place.scale.bulk_bytes.to_string()]);
        command.args(self.plan.short.then_some("--short"));
        let before = self.sent()?;
        let ended = run_to_limit(command, task.limit, &self.plan.stop)?;
        let after = self.sent()?;
        Ok(match ended {
            StepEnd::Done(elapsed) => StepOutcome::Done(BenchSample {
                elapsed,
                frames: after.0.saturating_sub(before.0),
                bytes: after.1.saturating_sub(before.1),
            }),
            StepEnd::Early(outcome) => outcome,
        })
    }

    /// Transfers `bytes` over a bare TCP connection, in the direction of the step.
    pub(super) fn transfer(&self, step: &WorkloadStep, bytes: u64) -> Result<StepOutcome, LabError> {
        let (server_address, client_address) = self.addresses();
        let before = self.sent()?;
        let transferred: Option<Result<TcpRun, LabError>> = step.bulk.map(|bulk| match bulk {
            BareTransfer::Down | BareTransfer::Tree => {
                probe::tcp_transfer(&self.server, &self.client, client_address, bytes)
            }
            BareTransfer::Up => probe::tcp_transfer(&self.client, &self.server, server_address, bytes),
        });
        let after = self.sent()?;
        Ok(match transferred {
            Some(Ok(run)) => StepOutcome::Done(BenchSample {
                elapsed: run.span,
                frames: after.0 - before.0,
                bytes: after.1 - before.1,
            }),
            Some(Err(error)) => StepOutcome::Failed(error.to_string()),
            None => StepOutcome::Failed("the step is not a transfer".to_owned()),
        })
    }

    /// Returns frames and bytes that both hosts have sent.
    fn sent(&self) -> Result<(u64, u64), LabError> {
        match &self.network {
            BenchNetwork::Link(link) => {
                let counters = link.counters();
                Ok((counters.offered_frames(), counters.offered_bytes()))
            }
            BenchNetwork::Patch(patch) => {
                let (a, b) = (self.server.sent(&patch.device)?, self.client.sent(&patch.device)?);
                Ok((a.frames + b.frames, a.bytes + b.bytes))
            }
        }
    }
}
