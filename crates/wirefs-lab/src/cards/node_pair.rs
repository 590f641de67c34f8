//! Two hosts with two network cards, and their nodes.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use super::{CardUse, CardsPlan, CardsSample};
use crate::error::LabError;
use crate::homes::WirefsHomes;
use crate::lab::{Host, Lab, Patch};
use crate::program;
use crate::random::Random;

/// The measured file, and a small one that is readable as soon as the nodes know each other.
const LARGE: &str = "large";
const SMALL: &str = "small";
/// The maximum time until the nodes know each other.
const START_MAX: Duration = Duration::from_secs(60);
/// The polling interval for that.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Bytes of each `read` call.
const READ_BYTES: usize = 128 << 10;

/// The fields are dropped in this order.
pub(super) struct NodePair {
    homes: WirefsHomes,
    wirefs: PathBuf,
    patches: [Patch; 2],
    server: Host,
    client: Host,
    content: Vec<u8>,
    _lab: Lab,
    scratch: ScratchDirectory,
}

/// The directory for all files, removed on drop.
struct ScratchDirectory(PathBuf);

impl Drop for ScratchDirectory {
    fn drop(&mut self) {
        // A directory that cannot be removed stays visible in the temporary directory.
        fs::remove_dir_all(&self.0).ok();
    }
}

/// Running nodes, stopped with `wirefs node down` on drop.
struct RunningNodes<'a>(&'a NodePair);

impl Drop for RunningNodes<'_> {
    fn drop(&mut self) {
        for is_server in [false, true] {
            // The node may have ended already.
            self.0.wirefs(is_server).args(["node", "down"]).output().ok();
        }
    }
}

impl NodePair {
    /// Creates the hosts and the files.
    pub(super) fn new(plan: &CardsPlan) -> Result<NodePair, LabError> {
        program::find("fusermount3", "fuse3")?;
        let scratch = ScratchDirectory(plan.scratch.clone());
        let failed = |error| LabError::io(format!("make {}", plan.scratch.display()), error);
        for place in ["share", "net-server", "net-client"] {
            fs::create_dir_all(plan.scratch.join(place)).map_err(failed)?;
        }
        let mut random = Random::new(plan.bytes as u64);
        let content: Vec<u8> = (0..plan.bytes).map(|_| random.below(256) as u8).collect();
        fs::write(scratch.0.join("share").join(LARGE), &content).map_err(failed)?;
        fs::write(scratch.0.join("share").join(SMALL), SMALL).map_err(failed)?;
        let lab = Lab::new("cards")?;
        let (server, client) = (lab.host("server")?, lab.host("client")?);
        let patches = [lab.patch(&server, &client)?, lab.patch(&server, &client)?];
        for (patch, rate_bits) in patches.iter().zip(plan.rates_bits) {
            let mut tc = Command::new("tc");
            tc.args(["-n", server.name(), "qdisc", "replace", "dev", &patch.device, "root", "tbf", "rate"]);
            tc.args([&rate_bits.to_string(), "burst", "64kb", "limit", "512kb"]);
            program::run(&mut tc, "iproute2", "")?;
        }
        let homes = WirefsHomes::new(&client, &plan.wirefs, &scratch.0.join("wirefs"))?;
        let wirefs = plan.wirefs.clone();
        Ok(NodePair { homes, wirefs, patches, server, client, content, _lab: lab, scratch })
    }

    fn wirefs(&self, is_server: bool) -> Command {
        match is_server {
            true => self.homes.with_server_home(self.server.command(&self.wirefs)),
            false => self.homes.with_client_home(self.client.command(&self.wirefs)),
        }
    }

    /// Starts nodes, reads the file, and stops the nodes.
    pub(super) fn read(&self, card_use: CardUse) -> Result<CardsSample, LabError> {
        let nodes = self.start(card_use)?;
        let net = self.scratch.0.join("net-client/server");
        self.wait_for_peer(&net.join(SMALL))?;
        let (before, begun) = (self.received_bytes()?, Instant::now());
        let cut_at = if card_use == CardUse::BothOneCut { self.content.len() / 4 } else { usize::MAX };
        let cut = self.compare(&net.join(LARGE), cut_at)?;
        let (elapsed, after) = (begun.elapsed(), self.received_bytes()?);
        drop(nodes);
        if cut {
            self.set_second_card("up")?;
        }
        let [first, second] = [0, 1].map(|card| after[card] - before[card]);
        Ok(CardsSample { card_use, elapsed, received_bytes: [first, second] })
    }

    fn start(&self, card_use: CardUse) -> Result<RunningNodes<'_>, LabError> {
        let nodes = RunningNodes(self);
        let share = self.scratch.0.join("share");
        for (is_server, name) in [(true, "server"), (false, "client")] {
            let mut command = self.wirefs(is_server);
            command.args(["node", "up", "--open", "--via", "tls", "--name", name, "--at"]);
            command.arg(self.scratch.0.join(format!("net-{name}")));
            if is_server {
                command.arg("--share").arg(&share);
            }
            let cards = if card_use == CardUse::One { 1 } else { 2 };
            for patch in self.patches.iter().take(cards) {
                command.args(["--nic", &patch.device]);
            }
            program::run(&mut command, "wirefs", "")?;
        }
        Ok(nodes)
    }

    /// Waits until the nodes know each other.
    fn wait_for_peer(&self, small: &Path) -> Result<(), LabError> {
        let end = Instant::now() + START_MAX;
        while let Err(error) = fs::read(small) {
            if Instant::now() > end {
                return Err(LabError::io(format!("read {}", small.display()), error));
            }
            thread::sleep(POLL_INTERVAL);
        }
        Ok(())
    }

    /// Reads the file and compares it; returns whether the second card was cut at `cut_at`.
    fn compare(&self, path: &Path, cut_at: usize) -> Result<bool, LabError> {
        let failed = |error| LabError::io(format!("read {}", path.display()), error);
        let mut file = File::open(path).map_err(failed)?;
        let (mut buffer, mut at, mut is_cut) = (vec![0; READ_BYTES], 0, false);
        loop {
            if at >= cut_at && !is_cut {
                self.set_second_card("down")?;
                is_cut = true;
            }
            let count = file.read(&mut buffer).map_err(failed)?;
            if count == 0 && at == self.content.len() {
                return Ok(is_cut);
            }
            let expected = self.content.get(at..at + count).filter(|_| count > 0);
            if expected.is_none() || expected != buffer.get(..count) {
                let problem = format!("it is not what was written, from byte {at} on");
                return Err(LabError::Probe { measurement: "the file that was read", problem });
            }
            at += count;
        }
    }

    fn set_second_card(&self, state: &str) -> Result<(), LabError> {
        let [_, second] = &self.patches;
        let mut ip = Command::new("ip");
        ip.args(["-n", self.server.name(), "link", "set", &second.device, state]);
        program::run(&mut ip, "iproute2", "").map(drop)
    }

    /// Returns the bytes that the server has sent over each card.
    fn received_bytes(&self) -> Result<[u64; 2], LabError> {
        let [first, second] = &self.patches;
        Ok([self.server.sent(&first.device)?.bytes, self.server.sent(&second.device)?.bytes])
    }
}
