//! The table of the PODOS File System, measured again: how long it takes to fetch a file, by its size, beside what else goes over the
//! cards, and over one card or two.
//!
//! For each load, each run and each size every peer mounts anew and fetches one file, in another order each run, so that a change of
//! the machine's mood meets all of them alike.
//!
//! ```text
//! server ══ one or two cards of the same rate, each with its load ══ client
//! ```

mod load;
mod nfs;
mod report;
mod site;
mod timing;

pub use report::to_section;
pub use timing::Fetch;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use load::Load;
use site::Site;
use wirefs_lab::LabError;

/// The sizes of files, as the source has them: what they are called, and bytes.
pub const SIZES: [(&str, usize); 5] =
    [("10 K", 10 << 10), ("50 K", 50 << 10), ("100 K", 100 << 10), ("500 K", 500 << 10), ("1 M", 1 << 20)];
/// What else goes over each card, in hundredths of its rate, as the source has it.
pub const LOADS: [u64; 5] = [0, 5, 10, 15, 20];
/// The most runs of one measurement.
pub const RUNS_MAX: usize = 100;

/// By what a file is fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// NFSv4 in user space, over one card: the reads alone.
    Nfs,
    /// sshfs with its defaults, which has one connection, over one card.
    Sshfs,
    /// wirefs over TLS, over one card.
    Tls,
    /// wirefs over Ethernet packets, over one card.
    Ether,
    /// The same over both cards.
    EtherBoth,
}

impl Peer {
    /// All of them, in the order of reports.
    pub const ALL: [Peer; 5] = [Peer::Nfs, Peer::Sshfs, Peer::Tls, Peer::Ether, Peer::EtherBoth];

    /// The programs that it needs beside wirefs, and the Debian packages that they are in.
    pub fn programs(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Peer::Nfs => &nfs::PROGRAMS,
            Peer::Sshfs => {
                &[("sshfs", "sshfs"), ("sshd", "openssh-server"), ("ssh-keygen", "openssh-client")]
            }
            Peer::Tls | Peer::Ether | Peer::EtherBoth => &[],
        }
    }

    /// What installs these on Debian.
    pub fn remedy(self) -> String {
        let packages: Vec<&str> = self.programs().iter().map(|(_, packages)| *packages).collect();
        format!("apt-get install {}", packages.join(" "))
    }

    /// The words for it.
    pub fn name(self) -> &'static str {
        match self {
            Peer::Nfs => "NFSv4, reads alone",
            Peer::Sshfs => "sshfs",
            Peer::Tls => "wirefs, tls",
            Peer::Ether => "wirefs, ether",
            Peer::EtherBoth => "wirefs, ether, two cards",
        }
    }
}

/// What to measure.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The rate of each card, in bits a second.
    pub rate_bits: u64,
    /// The round-trip time.
    pub rtt: Duration,
    /// How often.
    pub runs: usize,
    /// The loads, in hundredths of the rate.
    pub loads: Vec<u64>,
    /// How many of [`SIZES`], from the smallest on.
    pub sizes: usize,
    /// By what.
    pub peers: Vec<Peer>,
    /// What is left out, since its programs are not here.
    pub absent: Vec<Peer>,
    /// The `wirefs` program.
    pub wirefs: PathBuf,
    /// A directory, not there yet, for files and mount points.
    pub scratch: PathBuf,
    /// Set from outside, it ends the measurement soon and in order.
    pub stop: Arc<AtomicBool>,
}

/// One fetch.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// What else went over the cards, in hundredths of their rate.
    pub load: u64,
    /// Which of [`SIZES`].
    pub size: usize,
    /// By what.
    pub peer: Peer,
    /// How long it took.
    pub fetch: Fetch,
}

impl Plan {
    /// Measures everything; `tell` hears a line as each load is done.
    ///
    /// # Errors
    /// The first thing that cannot be set up or fetched, and a byte that is wrong.
    pub fn run(&self, tell: &mut dyn FnMut(&str)) -> Result<Vec<Sample>, LabError> {
        let site = Site::new(self)?;
        let mut samples = Vec::new();
        for &load in &self.loads {
            let _load = Load::start(&site, self.rate_bits, load)?;
            for run in 0..self.runs {
                for size in 0..self.sizes.min(SIZES.len()) {
                    for turn in 0..self.peers.len() {
                        if self.stop.load(Ordering::Relaxed) {
                            return Err(LabError::Interrupted);
                        }
                        let at = (turn + run) % self.peers.len();
                        let Some(&peer) = self.peers.get(at) else { continue };
                        let fetch = site.fetch(peer, size)?;
                        samples.push(Sample { load, size, peer, fetch });
                    }
                }
            }
            tell(&format!("{load} % load: {} fetches", samples.len()));
        }
        Ok(samples)
    }
}
