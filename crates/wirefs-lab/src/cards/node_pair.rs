//! Two hosts with two cards, and their nodes.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use super::{Over, Plan, Sample};
use crate::error::LabError;
use crate::homes::Homes;
use crate::lab::{Host, Lab, Patch};
use crate::program;
use crate::random::Random;

/// The file that is read, and one that tells that the nodes know each other.
const LARGE: &str = "large";
const SMALL: &str = "small";
/// The longest that nodes take to know each other.
const MEET_MAX: Duration = Duration::from_secs(60);
/// Between two looks whether they do.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// A program reads so much at once, in bytes.
const READ_BYTES: usize = 128 << 10;

/// The order of fields is the order in which they go.
pub(super) struct Pair {
    homes: Homes,
    wirefs: PathBuf,
    patches: [Patch; 2],
    server: Host,
    client: Host,
    content: Vec<u8>,
    _lab: Lab,
    scratch: Scratch,
}

/// The directory of everything, gone at the end.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed shows up there.
        fs::remove_dir_all(&self.0).ok();
    }
}

/// Nodes that are told to leave at the end.
struct Nodes<'a>(&'a Pair);

impl Drop for Nodes<'_> {
    fn drop(&mut self) {
        for is_server in [false, true] {
            // It may have ended.
            self.0.wirefs(is_server).args(["node", "down"]).output().ok();
        }
    }
}

impl Pair {
    /// Makes the hosts and the files.
    pub(super) fn new(plan: &Plan) -> Result<Pair, LabError> {
        program::find("fusermount3", "fuse3")?;
        let scratch = Scratch(plan.scratch.clone());
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
        let homes = Homes::new(&client, &plan.wirefs, &scratch.0.join("wirefs"))?;
        let wirefs = plan.wirefs.clone();
        Ok(Pair { homes, wirefs, patches, server, client, content, _lab: lab, scratch })
    }

    fn wirefs(&self, is_server: bool) -> Command {
        match is_server {
            true => self.homes.at_server(self.server.command(&self.wirefs)),
            false => self.homes.at_client(self.client.command(&self.wirefs)),
        }
    }

    /// Starts nodes, reads the file, and ends them.
    pub(super) fn read(&self, over: Over) -> Result<Sample, LabError> {
        let nodes = self.start(over)?;
        let net = self.scratch.0.join("net-client/server");
        self.meet(&net.join(SMALL))?;
        let (before, begun) = (self.came()?, Instant::now());
        let cut_at = if over == Over::BothOneCut { self.content.len() / 4 } else { usize::MAX };
        let cut = self.compare(&net.join(LARGE), cut_at)?;
        let (span, after) = (begun.elapsed(), self.came()?);
        drop(nodes);
        if cut {
            self.set_second_card("up")?;
        }
        let [first, second] = [0, 1].map(|card| after[card] - before[card]);
        Ok(Sample { over, span, came: [first, second] })
    }

    fn start(&self, over: Over) -> Result<Nodes<'_>, LabError> {
        let nodes = Nodes(self);
        let share = self.scratch.0.join("share");
        for (is_server, name) in [(true, "server"), (false, "client")] {
            let mut command = self.wirefs(is_server);
            command.args(["node", "up", "--via", "tls", "--name", name, "--at"]);
            command.arg(self.scratch.0.join(format!("net-{name}")));
            if is_server {
                command.arg("--share").arg(&share);
            }
            let cards = if over == Over::One { 1 } else { 2 };
            for patch in self.patches.iter().take(cards) {
                command.args(["--nic", &patch.device]);
            }
            program::run(&mut command, "wirefs", "")?;
        }
        Ok(nodes)
    }

    /// Waits until the nodes know each other.
    fn meet(&self, small: &Path) -> Result<(), LabError> {
        let end = Instant::now() + MEET_MAX;
        while let Err(error) = fs::read(small) {
            if Instant::now() > end {
                return Err(LabError::io(format!("read {}", small.display()), error));
            }
            thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    /// Reads the file and compares it; tells whether it has come to where the second card is cut.
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
                return Err(LabError::Probe { what: "the file that was read", problem });
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

    /// What the server has sent over each card.
    fn came(&self) -> Result<[u64; 2], LabError> {
        let [first, second] = &self.patches;
        Ok([self.server.sent(&first.device)?.bytes, self.server.sent(&second.device)?.bytes])
    }
}
