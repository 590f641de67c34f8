//! The time of each call of one fetch.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::time::{Duration, Instant};

use wirefs_lab::LabError;

/// Bytes of each read: the block size of the source.
pub(super) const BLOCK_BYTES: usize = 1 << 10;

/// The time of the calls of one fetch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FetchTimes {
    /// `open`.
    pub open: Duration,
    /// All `read` calls, of 1 KiB each.
    pub read: Duration,
    /// The number of `read` calls.
    pub reads: u32,
    /// `close`.
    pub close: Duration,
}

impl FetchTimes {
    /// Returns the sum.
    pub fn total(&self) -> Duration {
        self.open + self.read + self.close
    }
}

/// Fetches a file and compares its contents with `expected`.
pub(super) fn fetch(path: &Path, expected: &[u8]) -> Result<FetchTimes, LabError> {
    let failed = |error| LabError::io(format!("fetch {}", path.display()), error);
    let mut bytes = vec![0; expected.len() + BLOCK_BYTES];
    let begun = Instant::now();
    let mut file = File::open(path).map_err(failed)?;
    let open = begun.elapsed();
    let begun = Instant::now();
    let (mut filled, mut reads) = (0, 0);
    while let Some(block) = bytes.get_mut(filled..filled + BLOCK_BYTES) {
        let count = file.read(block).map_err(failed)?;
        reads += 1;
        filled += count;
        if count == 0 {
            break;
        }
    }
    let read = begun.elapsed();
    let begun = Instant::now();
    drop(file);
    let close = begun.elapsed();
    if bytes.get(..filled) != Some(expected) {
        let problem =
            format!("{filled} bytes came that are not the {} of {}", expected.len(), path.display());
        return Err(LabError::Probe { measurement: "a fetch", problem });
    }
    Ok(FetchTimes { open, read, reads, close })
}
