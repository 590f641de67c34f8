//! A server and a client with two cards each, and all that a file is fetched by.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use super::nfs::{self, Nfs};
use super::timing::{Fetch, fetch};
use super::{Peer, Plan, SIZES};
use wirefs_lab::LabError;
use wirefs_lab::LinkHandle;
use wirefs_lab::LinkProfile;
use wirefs_lab::bench;
use wirefs_lab::bench::mount::{Mount, unmount_command};
use wirefs_lab::homes::Homes;
use wirefs_lab::random::Random;
use wirefs_lab::sshd::Sshd;
use wirefs_lab::{Host, Lab};
use wirefs_lab::{port, program};

const PORT: u16 = 6_440;

/// The order of fields is the order in which they go.
pub(super) struct Site {
    sshd: Option<Sshd>,
    nfs: Option<Nfs>,
    _serving: Serving,
    homes: Homes,
    wirefs: PathBuf,
    scratch: Scratch,
    files: Vec<Vec<u8>>,
    pub(super) links: [LinkHandle; 2],
    pub(super) server: Host,
    pub(super) client: Host,
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

/// A server that is told to end, and waited for.
struct Serving(Child);

impl Drop for Serving {
    fn drop(&mut self) {
        // It may have ended.
        kill_process(Pid::from_child(&self.0), Signal::TERM).ok();
        self.0.wait().ok();
    }
}

impl Site {
    /// Makes the hosts, the files and the servers.
    pub(super) fn new(plan: &Plan) -> Result<Site, LabError> {
        check_programs(plan)?;
        let failed = |error| LabError::io(format!("make {}", plan.scratch.display()), error);
        for place in ["export", "mount"] {
            fs::create_dir_all(plan.scratch.join(place)).map_err(failed)?;
        }
        let scratch = Scratch(plan.scratch.clone());
        let files: Vec<Vec<u8>> = SIZES.iter().map(|(_, bytes)| content(*bytes)).collect();
        for ((name, _), bytes) in SIZES.iter().zip(&files) {
            fs::write(export(&scratch.0).join(name), bytes).map_err(failed)?;
        }
        let lab = Lab::new("fetch")?;
        let (server, client) = (lab.host("server")?, lab.host("client")?);
        let profile = LinkProfile::rtt(plan.rtt).with(|lane| lane.rate_bits = Some(plan.rate_bits));
        let links = [lab.link(&server, &client, profile.clone())?, lab.link(&server, &client, profile)?];
        let homes = Homes::new(&client, &plan.wirefs, &scratch.0.join("wirefs"))?;
        let [first, _] = &links;
        let sshd = match plan.peers.contains(&Peer::Sshfs) {
            true => Some(Sshd::start(&server, first.address_a(), &scratch.0.join("sshd"))?),
            false => None,
        };
        let nfs = match plan.peers.contains(&Peer::Nfs) {
            true => {
                fs::write(export(&scratch.0).join(nfs::EMPTY), "").map_err(failed)?;
                let at = (first.address_a(), export(&scratch.0), scratch.0.join("nfs"));
                Some(Nfs::start(&server, at.0, &at.1, &at.2)?)
            }
            false => None,
        };
        let serving = serve(plan, &homes, &server, &links)?;
        Ok(Site {
            sshd,
            nfs,
            _serving: serving,
            homes,
            wirefs: plan.wirefs.clone(),
            scratch,
            files,
            links,
            server,
            client,
            _lab: lab,
        })
    }

    /// Mounts, fetches the file of this size, and unmounts.
    pub(super) fn fetch(&self, peer: Peer, size: usize) -> Result<Fetch, LabError> {
        let ((name, _), expected) = match (SIZES.get(size), self.files.get(size)) {
            (Some(named), Some(expected)) => (named, expected),
            _ => return Ok(Fetch::default()),
        };
        if let (Peer::Nfs, Some(nfs)) = (peer, &self.nfs) {
            return nfs.fetch(&self.client, name, expected);
        }
        let mount = self.mount(peer)?;
        fetch(&mount.path().join(name), expected)
    }

    fn mount(&self, peer: Peer) -> Result<Mount, LabError> {
        let at = self.scratch.0.join("mount");
        let source = match (peer, &self.sshd) {
            (Peer::Sshfs, Some(sshd)) => {
                let unmount = unmount_command(&self.client, bench::Peer::Sshfs, &self.wirefs, &at);
                let command = sshd.mount_command(&self.client, &export(&self.scratch.0), &at);
                return Mount::by(command, &at, unmount, None);
            }
            (Peer::Nfs | Peer::Sshfs | Peer::Tls, _) => {
                let [first, _] = &self.links;
                format!("tls://{}:{PORT}/", first.address_a())
            }
            (Peer::Ether, _) => self.ether_source(1)?,
            (Peer::EtherBoth, _) => self.ether_source(2)?,
        };
        let unmount = unmount_command(&self.client, bench::Peer::Wirefs, &self.wirefs, &at);
        let mut command = self.homes.at_client(self.client.command(&self.wirefs));
        // What is called cold is to be cold.
        command.args(["mount", "--no-cache", &source]).arg(&at);
        Mount::by(command, &at, self.homes.at_client(unmount), None)
    }

    /// The server's address over its first cards.
    fn ether_source(&self, cards: usize) -> Result<String, LabError> {
        let (mut addresses, mut names) = (Vec::new(), Vec::new());
        for link in self.links.iter().take(cards) {
            let [theirs, ours] = link.devices();
            addresses.push(hardware_of(&self.server, theirs)?);
            names.push(ours.to_owned());
        }
        Ok(format!("ether://{}@{}/", addresses.join(","), names.join(",")))
    }
}

/// Serves over TLS on the first card and over Ethernet on both.
fn serve(plan: &Plan, homes: &Homes, server: &Host, links: &[LinkHandle; 2]) -> Result<Serving, LabError> {
    let [first, _] = links;
    let cards: Vec<&str> = links.iter().map(|link| link.devices()[0]).collect();
    let mut command = homes.at_server(server.command(&plan.wirefs));
    command.arg("serve").arg(export(&plan.scratch));
    command.args(["--listen", &format!("ether://{}", cards.join(","))]);
    command.args(["--listen", &format!("tls://{}:{PORT}", first.address_a())]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(homes.server_log()?);
    let serving = Serving(command.spawn().map_err(|error| LabError::io("run wirefs serve", error))?);
    port::wait_for(server, (first.address_a(), PORT), "wirefs serve")?;
    Ok(serving)
}

fn export(scratch: &Path) -> PathBuf {
    scratch.join("export")
}

/// The hardware address of a host's device.
fn hardware_of(host: &Host, device: &str) -> Result<String, LabError> {
    let mut ip = std::process::Command::new("ip");
    ip.args(["-n", host.name(), "-brief", "link", "show", "dev", device]);
    let output = program::run(&mut ip, "iproute2", "")?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let address = said.split_whitespace().find(|word| word.len() == 17 && word.matches(':').count() == 5);
    address.map(str::to_owned).ok_or_else(|| LabError::Probe {
        what: "the address of a card",
        problem: format!("`ip` says `{}`", said.trim()),
    })
}

fn check_programs(plan: &Plan) -> Result<(), LabError> {
    for (name, package) in plan.peers.iter().flat_map(|peer| peer.programs()) {
        program::find(name, package)?;
    }
    program::find("fusermount3", "fuse3")?;
    match plan.wirefs.is_file() {
        true => Ok(()),
        false => Err(LabError::MissingProgram {
            program: plan.wirefs.display().to_string(),
            remedy: "build it: cargo build --release -p wirefs".to_owned(),
        }),
    }
}

/// So many bytes, none of which can be guessed or packed.
fn content(bytes: usize) -> Vec<u8> {
    let mut random = Random::new(bytes as u64);
    (0..bytes).map(|_| random.below(256) as u8).collect()
}
