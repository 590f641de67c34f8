//! Trees of files with seeded contents.

use std::fs::{File, FileTimes};
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::Scale;
use super::disk::{CHUNK_BYTES, ErrorContext as _, make_directory};
use crate::error::LabError;
use crate::random::Random;

const SEED: u64 = 0x5EED;
/// Bytes of noise that a large file repeats, each time with a new stamp.
const NOISE_BYTES: usize = 64 << 10;
/// The modification time of all files, in seconds since 1970: old, so that no program treats them as just changed.
const MODIFIED_SECS: u64 = 1_000_000_000;
const WORDS: [&str; 16] = [
    "field", "vector", "return", "mount", "struct", "index", "value", "table", "while", "buffer", "length",
    "static", "export", "packet", "signal", "branch",
];
/// A word that is in exactly one file of a tree.
pub(super) const NEEDLE: &str = "xylophone";

/// Creates [`Scale::files`] text files of 1 to 4 KiB in [`Scale::directories`] directories `d00/file00.txt`.
pub(super) fn make_sources(root: &Path, scale: &Scale) -> Result<(), LabError> {
    let mut random = Random::new(SEED);
    for directory in 0..scale.directories {
        make_directory(&root.join(format!("d{directory:02}")))?;
    }
    for number in 0..scale.files {
        let directory = number % scale.directories.max(1);
        let path = root.join(format!("d{directory:02}/file{:02}.txt", number / scale.directories.max(1)));
        let mut text = text(&mut random, 1_024, 4_096);
        if number == scale.files / 2 {
            text.push_str(NEEDLE);
            text.push('\n');
        }
        write_old(&path, text.as_bytes())?;
    }
    Ok(())
}

/// Creates `count` files of `bytes` each, `file000`, in `directory`.
pub(super) fn make_files(directory: &Path, count: usize, bytes: usize) -> Result<(), LabError> {
    let mut random = Random::new(SEED);
    for number in 0..count {
        let contents = noise(&mut random, bytes);
        write_old(&directory.join(format!("file{number:03}")), &contents)?;
    }
    Ok(())
}

/// Writes a new large file in chunks of 1 MiB, then fsync. All chunks differ and cannot be compressed, yet they are
/// cheap to make, so that the measured time is that of the writes.
pub(super) fn make_large(path: &Path, bytes: u64) -> Result<(), LabError> {
    let mut chunk = noise(&mut Random::new(SEED), NOISE_BYTES).repeat(CHUNK_BYTES / NOISE_BYTES);
    let mut write = || {
        let mut file = File::create_new(path)?;
        let mut left = bytes;
        while left > 0 {
            for (piece, place) in (0u64..).zip(chunk.chunks_mut(NOISE_BYTES)) {
                place.iter_mut().zip((left + piece).to_le_bytes()).for_each(|(byte, stamp)| *byte = stamp);
            }
            let count = left.min(CHUNK_BYTES as u64);
            file.write_all(chunk.get(..count as usize).unwrap_or(&chunk))?;
            left -= count;
        }
        file.sync_all()
    };
    write().context("write", path)
}

/// Writes a file with an old modification time.
pub(super) fn write_old(path: &Path, contents: &[u8]) -> Result<(), LabError> {
    let modified = SystemTime::UNIX_EPOCH + Duration::from_secs(MODIFIED_SECS);
    let write = || {
        let mut file = File::create_new(path)?;
        file.write_all(contents)?;
        file.set_times(FileTimes::new().set_modified(modified).set_accessed(modified))
    };
    write().context("write", path)
}

/// Returns incompressible bytes.
pub(super) fn noise(random: &mut Random, bytes: usize) -> Vec<u8> {
    let mut contents = Vec::with_capacity(bytes + 8);
    while contents.len() < bytes {
        contents.extend(random.next_u64().to_le_bytes());
    }
    contents.truncate(bytes);
    contents
}

fn text(random: &mut Random, bytes_min: u64, bytes_max: u64) -> String {
    let length = (bytes_min + random.below(bytes_max - bytes_min)) as usize;
    let mut text = String::with_capacity(length + 80);
    while text.len() < length {
        for _ in 0..8 {
            let word = WORDS.get(random.below(WORDS.len() as u64) as usize);
            text.push_str(word.copied().unwrap_or_default());
            text.push(' ');
        }
        text.push('\n');
    }
    text
}
