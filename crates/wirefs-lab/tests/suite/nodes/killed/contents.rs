//! Files whose bytes are a function of node, file and version, so that a reader can verify them without communication.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use wirefs_lab::random::Random;

use super::NODES;

/// The number of files in each share.
pub(super) const FILES: usize = 6;
/// The maximum size, in bytes.
const BYTES_MAX: u64 = 192 << 10;
/// The pause between two new versions.
const PAUSE: Duration = Duration::from_millis(25);

/// The versions of each file: the newest whose write has started, and the newest that is in place.
pub(super) struct Versions {
    begun: [[AtomicU64; FILES]; NODES],
    in_place: [[AtomicU64; FILES]; NODES],
}

impl Versions {
    pub(super) fn new() -> Versions {
        Versions { begun: Default::default(), in_place: Default::default() }
    }

    /// Returns the oldest version that a read which starts now may return.
    pub(super) fn oldest_allowed(&self, node: usize, file: usize) -> u64 {
        self.in_place[node][file].load(Ordering::SeqCst)
    }

    /// Returns the newest version that any read so far may have returned.
    pub(super) fn newest_started(&self, node: usize, file: usize) -> u64 {
        self.begun[node][file].load(Ordering::SeqCst)
    }

    /// Replaces a file by its next version.
    pub(super) fn replace(&self, share: &Path, node: usize, file: usize) {
        let version = self.newest_started(node, file) + 1;
        self.begun[node][file].store(version, Ordering::SeqCst);
        fs::write(share.join("next"), bytes(node, file, version)).unwrap();
        fs::rename(share.join("next"), share.join(name(file))).unwrap();
        self.in_place[node][file].store(version, Ordering::SeqCst);
    }

    /// Writes new versions of random files until stopped, regardless of the state of their nodes.
    pub(super) fn write_versions(&self, shares: &[std::path::PathBuf], seed: u64, stop: &AtomicBool) {
        let mut random = Random::new(seed);
        while !stop.load(Ordering::Relaxed) {
            let (node, file) = (random.below(NODES as u64) as usize, random.below(FILES as u64) as usize);
            self.replace(&shares[node], node, file);
            std::thread::sleep(PAUSE);
        }
    }
}

/// Returns the name of a file.
pub(super) fn name(file: usize) -> String {
    format!("file-{file}")
}

/// Returns the contents of a version.
pub(super) fn bytes(node: usize, file: usize, version: u64) -> Vec<u8> {
    let mut random = Random::new((node as u64) << 56 | (file as u64) << 48 | version);
    // Small files are as frequent as large ones.
    let shift = random.below(12);
    let size = random.below(BYTES_MAX >> shift) as usize;
    let mut bytes = format!("{node} {file} {version} {size}\n").into_bytes();
    while bytes.len() < size {
        bytes.extend_from_slice(&random.next_u64().to_le_bytes());
    }
    bytes
}

/// Returns the version of these bytes, if every byte matches.
pub(super) fn version_of(node: usize, file: usize, read: &[u8]) -> Option<u64> {
    let line = read.split(|&byte| byte == b'\n').next()?;
    let version = std::str::from_utf8(line).ok()?.split(' ').nth(2)?.parse().ok()?;
    (bytes(node, file, version) == read).then_some(version)
}
