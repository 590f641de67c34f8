//! The time of the calls on one file, by its size, and on the files of one directory.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::time::Duration;

use super::batch::{content, now};
use super::test_bed::{PublishedTestBed, measurement_error};
use super::{FILE_PIECES, FILES, PublishedPeer};
use wirefs_lab::LabError;

/// Bytes of each read and write.
const BLOCK_BYTES: usize = 64 << 10;
/// The name of the file that is written.
const NEW: &str = "new";

/// The time of the calls on one file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallTimes {
    /// The first `open` on a new mount.
    pub open_cold: Duration,
    /// All reads after the first `open`.
    pub read_cold: Duration,
    /// The second `open`.
    pub open_warm: Duration,
    /// All reads after the second `open`.
    pub read_warm: Duration,
    /// All writes of a new file of the same size.
    pub write: Duration,
    /// The `close` after the writes.
    pub close: Duration,
}

/// The calls on a file of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessSample {
    /// The round-trip time.
    pub rtt: Duration,
    /// The peer.
    pub peer: PublishedPeer,
    /// The size in KiB.
    pub pieces: usize,
    /// The time of the calls.
    pub calls: CallTimes,
}

/// A visit of all files of a directory, none of which was read before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectoryVisit {
    /// The round-trip time.
    pub rtt: Duration,
    /// The peer.
    pub peer: PublishedPeer,
    /// The sum of all `open` calls.
    pub opens: Duration,
    /// The sum of all calls.
    pub total: Duration,
}

/// Returns the name of the file of this size.
fn name_of(pieces: usize) -> String {
    format!("{pieces}k")
}

impl PublishedTestBed {
    /// Creates the files that are read.
    pub(super) fn prepare(&self, sizes: &[usize]) -> Result<(), LabError> {
        let failed = |error| LabError::io("make files", error);
        for &pieces in sizes {
            fs::write(self.export().join(name_of(pieces)), content(pieces)).map_err(failed)?;
        }
        let directory = self.export().join("directory");
        fs::create_dir(&directory).map_err(failed)?;
        (0..FILES)
            .try_for_each(|nth| fs::write(directory.join(nth.to_string()), content(FILE_PIECES)))
            .map_err(failed)
    }

    /// Opens, reads and closes a file twice, and writes a file of the same size.
    pub(super) fn access(
        &self,
        rtt: Duration,
        peer: PublishedPeer,
        pieces: usize,
    ) -> Result<AccessSample, LabError> {
        let expected = content(pieces);
        let mount = self.mount(peer)?;
        let path = mount.path().join(name_of(pieces));
        let (open_cold, read_cold) = read(&path, &expected)?;
        let (open_warm, read_warm) = read(&path, &expected)?;
        let (write, close) = write(&mount.path().join(NEW), &expected)?;
        drop(mount);
        let received = self.export().join(NEW);
        let bytes = fs::read(&received).map_err(|error| LabError::io("read the received file", error))?;
        if bytes != expected {
            return Err(measurement_error(format!(
                "{} received bytes differ from those written",
                bytes.len()
            )));
        }
        fs::remove_file(&received).map_err(|error| LabError::io("remove the received file", error))?;
        let calls = CallTimes { open_cold, read_cold, open_warm, read_warm, write, close };
        Ok(AccessSample { rtt, peer, pieces, calls })
    }

    /// Opens, reads and closes all files of the directory one after the other, in the order of a listing.
    pub(super) fn visit(&self, rtt: Duration, peer: PublishedPeer) -> Result<DirectoryVisit, LabError> {
        let expected = content(FILE_PIECES);
        let mount = self.mount(peer)?;
        let directory = mount.path().join("directory");
        let failed = |error| LabError::io("list a directory", error);
        let listed = fs::read_dir(&directory).map_err(failed)?;
        let names: Result<Vec<_>, _> = listed.map(|entry| entry.map(|entry| entry.file_name())).collect();
        let names = names.map_err(failed)?;
        if names.len() != FILES {
            return Err(measurement_error(format!("{} names are in a directory of {FILES}", names.len())));
        }
        let (mut opens, begun) = (Duration::ZERO, now());
        for name in names {
            opens += read(&directory.join(name), &expected)?.0;
        }
        Ok(DirectoryVisit { rtt, peer, opens, total: now().saturating_sub(begun) })
    }
}

/// Opens and reads a file and compares its contents; returns the time of `open` and of the reads.
fn read(path: &Path, expected: &[u8]) -> Result<(Duration, Duration), LabError> {
    let failed = |error| LabError::io(format!("read {}", path.display()), error);
    let mut bytes = vec![0; expected.len() + BLOCK_BYTES];
    let begun = now();
    let mut file = File::open(path).map_err(failed)?;
    let opened = now();
    let mut filled = 0;
    while let Some(block) = bytes.get_mut(filled..filled + BLOCK_BYTES) {
        match file.read(block).map_err(failed)? {
            0 => break,
            count => filled += count,
        }
    }
    let done = now();
    if bytes.get(..filled) != Some(expected) {
        return Err(measurement_error(format!(
            "{filled} bytes came that are not those of {}",
            path.display()
        )));
    }
    Ok((opened.saturating_sub(begun), done.saturating_sub(opened)))
}

/// Creates and writes a file; returns the time of the writes and of `close`.
fn write(path: &Path, bytes: &[u8]) -> Result<(Duration, Duration), LabError> {
    let failed = |error| LabError::io(format!("write {}", path.display()), error);
    let mut file = File::create(path).map_err(failed)?;
    let begun = now();
    bytes.chunks(BLOCK_BYTES).try_for_each(|block| file.write_all(block)).map_err(failed)?;
    let written = now();
    drop(file);
    Ok((written.saturating_sub(begun), now().saturating_sub(written)))
}
