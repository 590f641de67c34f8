//! Replica of the evaluation of the PODOS File System: time to fetch a file, by file size, background load and number
//! of network cards.
//!
//! For each load, run and size, every peer mounts again and fetches one file. Each run starts with another peer, so
//! that load on the machine affects all peers alike.
//!
//! ```text
//! server ══ one or two cards of the same rate, each with background load ══ client
//! ```

mod load;
mod nfs;
mod report;
mod test_bed;
mod timing;

pub use report::to_section;
pub use timing::FetchTimes;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use load::BackgroundLoad;
use test_bed::FetchTestBed;
use wirefs_lab::LabError;

/// The file sizes of the source: their labels, and bytes.
pub const SIZES: [(&str, usize); 5] =
    [("10 K", 10 << 10), ("50 K", 50 << 10), ("100 K", 100 << 10), ("500 K", 500 << 10), ("1 M", 1 << 20)];
/// The background loads of the source, in percent of each card's rate.
pub const LOADS: [u64; 5] = [0, 5, 10, 15, 20];
/// The maximum number of runs.
pub const RUNS_MAX: usize = 100;

/// A file system and transport that is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchPeer {
    /// NFSv4 in user space, over one card; only its reads are measured.
    Nfs,
    /// sshfs with its defaults (one connection), over one card.
    Sshfs,
    /// wirefs over TLS, over one card.
    Tls,
    /// wirefs over Ethernet packets, over one card.
    Ether,
    /// wirefs over Ethernet packets, over both cards.
    EtherTwoCards,
}

impl FetchPeer {
    /// All peers, in the order of reports.
    pub const ALL: [FetchPeer; 5] =
        [FetchPeer::Nfs, FetchPeer::Sshfs, FetchPeer::Tls, FetchPeer::Ether, FetchPeer::EtherTwoCards];

    /// Returns the programs that the peer needs besides wirefs, with their Debian packages.
    pub fn programs(self) -> &'static [(&'static str, &'static str)] {
        match self {
            FetchPeer::Nfs => &nfs::PROGRAMS,
            FetchPeer::Sshfs => {
                &[("sshfs", "sshfs"), ("sshd", "openssh-server"), ("ssh-keygen", "openssh-client")]
            }
            FetchPeer::Tls | FetchPeer::Ether | FetchPeer::EtherTwoCards => &[],
        }
    }

    /// Returns the command that installs these programs on Debian.
    pub fn install_command(self) -> String {
        let packages: Vec<&str> = self.programs().iter().map(|(_, packages)| *packages).collect();
        format!("apt-get install {}", packages.join(" "))
    }

    /// Returns the name for reports.
    pub fn name(self) -> &'static str {
        match self {
            FetchPeer::Nfs => "NFSv4, reads alone",
            FetchPeer::Sshfs => "sshfs",
            FetchPeer::Tls => "wirefs, tls",
            FetchPeer::Ether => "wirefs, ether",
            FetchPeer::EtherTwoCards => "wirefs, ether, two cards",
        }
    }
}

/// The parameters of one measurement.
#[derive(Clone, Debug)]
pub struct FetchPlan {
    /// The rate of each card, in bits per second.
    pub rate_bits: u64,
    /// The round-trip time.
    pub rtt: Duration,
    /// The number of runs.
    pub runs: usize,
    /// The background loads, in percent of the rate.
    pub loads: Vec<u64>,
    /// How many of [`SIZES`] are measured, smallest first.
    pub sizes: usize,
    /// The compared peers.
    pub peers: Vec<FetchPeer>,
    /// The peers that are left out because their programs are not installed.
    pub missing: Vec<FetchPeer>,
    /// The `wirefs` program.
    pub wirefs: PathBuf,
    /// A directory for files and mount points; must not exist yet.
    pub scratch: PathBuf,
    /// Set by a signal: the measurement then fails with [`LabError::Interrupted`] and cleans up.
    pub stop: Arc<AtomicBool>,
}

/// One measured fetch.
#[derive(Clone, Copy, Debug)]
pub struct FetchSample {
    /// The background load, in percent of the rate.
    pub load: u64,
    /// The index in [`SIZES`].
    pub size: usize,
    /// The peer.
    pub peer: FetchPeer,
    /// The time per call.
    pub fetch: FetchTimes,
}

impl FetchPlan {
    /// Measures everything; calls `progress` with a line after each load.
    ///
    /// # Errors
    /// Fails with the first error of setup or of a fetch, and if a fetched byte is wrong.
    pub fn run(&self, progress: &mut dyn FnMut(&str)) -> Result<Vec<FetchSample>, LabError> {
        let test_bed = FetchTestBed::new(self)?;
        let mut samples = Vec::new();
        for &load in &self.loads {
            let _load = BackgroundLoad::start(&test_bed, self.rate_bits, load)?;
            for run in 0..self.runs {
                for size in 0..self.sizes.min(SIZES.len()) {
                    for offset in 0..self.peers.len() {
                        if self.stop.load(Ordering::Relaxed) {
                            return Err(LabError::Interrupted);
                        }
                        let at = (offset + run) % self.peers.len();
                        let Some(&peer) = self.peers.get(at) else { continue };
                        let fetch = test_bed.fetch(peer, size)?;
                        samples.push(FetchSample { load, size, peer, fetch });
                    }
                }
            }
            progress(&format!("{load} % load: {} fetches", samples.len()));
        }
        Ok(samples)
    }
}
