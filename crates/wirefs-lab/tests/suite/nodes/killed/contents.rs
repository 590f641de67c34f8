//! Files whose every byte follows from the node, the file and the version; who reads one can judge it without asking.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use wirefs_lab::random::Random;

use super::NODES;

/// Files that each node shares.
pub(super) const FILES: usize = 6;
/// The largest of them, in bytes.
const BYTES_MAX: u64 = 192 << 10;
/// Between two new versions of some file.
const PAUSE: Duration = Duration::from_millis(25);

/// Which versions there are: of each file one that was begun, and one that is there.
pub(super) struct Versions {
    begun: [[AtomicU64; FILES]; NODES],
    there: [[AtomicU64; FILES]; NODES],
}

impl Versions {
    pub(super) fn new() -> Versions {
        Versions { begun: Default::default(), there: Default::default() }
    }

    /// Who looks at a file now sees this version of it, or a later one.
    pub(super) fn least(&self, node: usize, file: usize) -> u64 {
        self.there[node][file].load(Ordering::SeqCst)
    }

    /// Nobody saw a later one than this.
    pub(super) fn most(&self, node: usize, file: usize) -> u64 {
        self.begun[node][file].load(Ordering::SeqCst)
    }

    /// Puts the next version of a file in the place of the last one.
    pub(super) fn put_next(&self, share: &Path, node: usize, file: usize) {
        let version = self.most(node, file) + 1;
        self.begun[node][file].store(version, Ordering::SeqCst);
        fs::write(share.join("next"), bytes(node, file, version)).unwrap();
        fs::rename(share.join("next"), share.join(name(file))).unwrap();
        self.there[node][file].store(version, Ordering::SeqCst);
    }

    /// Goes on with new versions of files, whether their nodes live or not.
    pub(super) fn go_on(&self, shares: &[std::path::PathBuf], seed: u64, stop: &AtomicBool) {
        let mut random = Random::new(seed);
        while !stop.load(Ordering::Relaxed) {
            let (node, file) = (random.below(NODES as u64) as usize, random.below(FILES as u64) as usize);
            self.put_next(&shares[node], node, file);
            std::thread::sleep(PAUSE);
        }
    }
}

/// What a file is called.
pub(super) fn name(file: usize) -> String {
    format!("file-{file}")
}

/// All bytes of a version.
pub(super) fn bytes(node: usize, file: usize, version: u64) -> Vec<u8> {
    let mut random = Random::new((node as u64) << 56 | (file as u64) << 48 | version);
    // Small ones are as frequent as large ones.
    let shift = random.below(12);
    let size = random.below(BYTES_MAX >> shift) as usize;
    let mut bytes = format!("{node} {file} {version} {size}\n").into_bytes();
    while bytes.len() < size {
        bytes.extend_from_slice(&random.next_u64().to_le_bytes());
    }
    bytes
}

/// The version that these bytes are, each of them.
pub(super) fn version_of(node: usize, file: usize, read: &[u8]) -> Option<u64> {
    let line = read.split(|&byte| byte == b'\n').next()?;
    let version = std::str::from_utf8(line).ok()?.split(' ').nth(2)?.parse().ok()?;
    (bytes(node, file, version) == read).then_some(version)
}
