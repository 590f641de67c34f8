//! One fetch, and what each of its calls took.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::time::{Duration, Instant};

use wirefs_lab::LabError;

/// Bytes of each read: the source's block.
pub(super) const BLOCK_BYTES: usize = 1 << 10;

/// What the calls of one fetch took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fetch {
    /// `open`.
    pub open: Duration,
    /// All calls of `read`, of 1 KiB each.
    pub read: Duration,
    /// How many these were.
    pub reads: u32,
    /// `close`.
    pub close: Duration,
}

impl Fetch {
    /// All of it.
    pub fn total(&self) -> Duration {
        self.open + self.read + self.close
    }
}

/// Fetches a file, and holds its bytes against what they are to be.
pub(super) fn fetch(path: &Path, expected: &[u8]) -> Result<Fetch, LabError> {
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
        return Err(LabError::Probe { what: "a fetch", problem });
    }
    Ok(Fetch { open, read, reads, close })
}
