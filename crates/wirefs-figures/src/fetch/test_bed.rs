//! A server and a client with two network cards each, and the servers of all peers.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use super::nfs::{self, Nfs};
use super::timing::{FetchTimes, fetch};
use super::{FetchPeer, FetchPlan, SIZES};
use wirefs_lab::LabError;
use wirefs_lab::LinkHandle;
use wirefs_lab::LinkProfile;
use wirefs_lab::bench;
use wirefs_lab::bench::mount::{BenchMount, unmount_command};
use wirefs_lab::homes::WirefsHomes;
use wirefs_lab::random::Random;
use wirefs_lab::sshd::Sshd;
use wirefs_lab::{Host, Lab};
use wirefs_lab::{port, program};

const PORT: u16 = 6_440;

/// The fields are dropped in this order.
pub(super) struct FetchTestBed {
    sshd: Option<Sshd>,
    nfs: Option<Nfs>,
    _server_process: FetchServer,
    homes: WirefsHomes,
    wirefs: PathBuf,
    scratch: ScratchDirectory,
    files: Vec<Vec<u8>>,
    pub(super) links: [LinkHandle; 2],
    pub(super) server: Host,
    pub(super) client: Host,
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

/// A `wirefs serve` process, ended with SIGTERM on drop.
struct FetchServer(Child);

impl Drop for FetchServer {
    fn drop(&mut self) {
        // The process may have exited already.
        kill_process(Pid::from_child(&self.0), Signal::TERM).ok();
        self.0.wait().ok();
    }
}

impl FetchTestBed {
    /// Creates the hosts, the files and the servers.
    pub(super) fn new(plan: &FetchPlan) -> Result<FetchTestBed, LabError> {
        check_programs(plan)?;
        let failed = |error| LabError::io(format!("make {}", plan.scratch.display()), error);
        for place in ["export", "mount"] {
            fs::create_dir_all(plan.scratch.join(place)).map_err(failed)?;
        }
        let scratch = ScratchDirectory(plan.scratch.clone());
        let files: Vec<Vec<u8>> = SIZES.iter().map(|(_, bytes)| content(*bytes)).collect();
        for ((name, _), bytes) in SIZES.iter().zip(&files) {
            fs::write(export(&scratch.0).join(name), bytes).map_err(failed)?;
        }
        let lab = Lab::new("fetch")?;
        let (server, client) = (lab.host("server")?, lab.host("client")?);
        let profile = LinkProfile::rtt(plan.rtt).with(|lane| lane.rate_bits = Some(plan.rate_bits));
        let links = [lab.link(&server, &client, profile.clone())?, lab.link(&server, &client, profile)?];
        let homes = WirefsHomes::new(&client, &plan.wirefs, &scratch.0.join("wirefs"))?;
        let [first, _] = &links;
        let sshd = match plan.peers.contains(&FetchPeer::Sshfs) {
            true => Some(Sshd::start(&server, first.address_a(), &scratch.0.join("sshd"))?),
            false => None,
        };
        let nfs = match plan.peers.contains(&FetchPeer::Nfs) {
            true => {
                fs::write(export(&scratch.0).join(nfs::EMPTY_FILE), "").map_err(failed)?;
                let at = (first.address_a(), export(&scratch.0), scratch.0.join("nfs"));
                Some(Nfs::start(&server, at.0, &at.1, &at.2)?)
            }
            false => None,
        };
        let server_process = serve(plan, &homes, &server, &links)?;
        Ok(FetchTestBed {
            sshd,
            nfs,
            _server_process: server_process,
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
    pub(super) fn fetch(&self, peer: FetchPeer, size: usize) -> Result<FetchTimes, LabError> {
        let ((name, _), expected) = match (SIZES.get(size), self.files.get(size)) {
            (Some(named), Some(expected)) => (named, expected),
            _ => return Ok(FetchTimes::default()),
        };
        if let (FetchPeer::Nfs, Some(nfs)) = (peer, &self.nfs) {
            return nfs.fetch(&self.client, name, expected);
        }
        let mount = self.mount(peer)?;
        fetch(&mount.path().join(name), expected)
    }

    fn mount(&self, peer: FetchPeer) -> Result<BenchMount, LabError> {
        let at = self.scratch.0.join("mount");
        let source = match (peer, &self.sshd) {
            (FetchPeer::Sshfs, Some(sshd)) => {
                let unmount = unmount_command(&self.client, bench::BenchPeer::Sshfs, &self.wirefs, &at);
                let command = sshd.mount_command(&self.client, &export(&self.scratch.0), &at);
                return BenchMount::by(command, &at, unmount, None);
            }
            (FetchPeer::Nfs | FetchPeer::Sshfs | FetchPeer::Tls, _) => {
                let [first, _] = &self.links;
                format!("tls://{}:{PORT}/", first.address_a())
            }
            (FetchPeer::Ether, _) => self.ether_source(1)?,
            (FetchPeer::EtherTwoCards, _) => self.ether_source(2)?,
        };
        let unmount = unmount_command(&self.client, bench::BenchPeer::Wirefs, &self.wirefs, &at);
        let mut command = self.homes.with_client_home(self.client.command(&self.wirefs));
        // Without a disk cache, so that each fetch is cold.
        command.args(["mount", "--no-cache", &source]).arg(&at);
        BenchMount::by(command, &at, self.homes.with_client_home(unmount), None)
    }

    /// Returns the server's Ethernet address over its first `cards` cards.
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
fn serve(
    plan: &FetchPlan,
    homes: &WirefsHomes,
    server: &Host,
    links: &[LinkHandle; 2],
) -> Result<FetchServer, LabError> {
    let [first, _] = links;
    let cards: Vec<&str> = links.iter().map(|link| link.devices()[0]).collect();
    let mut command = homes.with_server_home(server.command(&plan.wirefs));
    command.arg("serve").arg(export(&plan.scratch));
    command.args(["--listen", &format!("ether://{}", cards.join(","))]);
    command.args(["--listen", &format!("tls://{}:{PORT}", first.address_a())]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(homes.server_log()?);
    let server_process =
        FetchServer(command.spawn().map_err(|error| LabError::io("run wirefs serve", error))?);
    port::wait_for(server, (first.address_a(), PORT), "wirefs serve")?;
    Ok(server_process)
}

fn export(scratch: &Path) -> PathBuf {
    scratch.join("export")
}

/// Returns the hardware address of a host's device.
fn hardware_of(host: &Host, device: &str) -> Result<String, LabError> {
    let mut ip = std::process::Command::new("ip");
    ip.args(["-n", host.name(), "-brief", "link", "show", "dev", device]);
    let output = program::run(&mut ip, "iproute2", "")?;
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let address = stdout.split_whitespace().find(|word| word.len() == 17 && word.matches(':').count() == 5);
    address.map(str::to_owned).ok_or_else(|| LabError::Probe {
        measurement: "the address of a card",
        problem: format!("`ip` says `{}`", stdout.trim()),
    })
}

fn check_programs(plan: &FetchPlan) -> Result<(), LabError> {
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

/// Returns incompressible contents of this length.
fn content(bytes: usize) -> Vec<u8> {
    let mut random = Random::new(bytes as u64);
    (0..bytes).map(|_| random.below(256) as u8).collect()
}
