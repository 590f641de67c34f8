//! What the calls on one file take, by its size, and on the files of one directory.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::time::Duration;

use super::batch::{content, now};
use super::grounds::{Grounds, wrong};
use super::{FILE_PIECES, FILES, Peer};
use wirefs_lab::LabError;

/// Bytes of each read and write.
const BLOCK_BYTES: usize = 64 << 10;
/// The file that is made.
const NEW: &str = "new";

/// What the calls on one file took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// The first `open` on a mount made anew.
    pub open_cold: Duration,
    /// All reads after it.
    pub read_cold: Duration,
    /// The second `open`.
    pub open_warm: Duration,
    /// All reads after that.
    pub read_warm: Duration,
    /// All writes of another file as large, which was just made.
    pub write: Duration,
    /// The `close` after them.
    pub close: Duration,
}

/// The calls on a file of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The round-trip time.
    pub rtt: Duration,
    /// By what.
    pub peer: Peer,
    /// How large, in KiB.
    pub pieces: usize,
    /// How long.
    pub calls: Calls,
}

/// A visit to all files of one directory that nobody has read before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Visit {
    /// The round-trip time.
    pub rtt: Duration,
    /// By what.
    pub peer: Peer,
    /// All calls of `open`.
    pub opens: Duration,
    /// All calls.
    pub whole: Duration,
}

/// The name of the file of this size.
fn name_of(pieces: usize) -> String {
    format!("{pieces}k")
}

impl Grounds {
    /// Makes the files that are read.
    pub(super) fn prepare(&self, sizes: &[usize]) -> Result<(), LabError> {
        let failed = |error| LabError::io("make files", error);
        for &pieces in sizes {
            fs::write(self.export().join(name_of(pieces)), content(pieces)).map_err(failed)?;
        }
        let shelf = self.export().join("shelf");
        fs::create_dir(&shelf).map_err(failed)?;
        (0..FILES)
            .try_for_each(|nth| fs::write(shelf.join(nth.to_string()), content(FILE_PIECES)))
            .map_err(failed)
    }

    /// Opens, reads and closes a file twice, and writes one as large.
    pub(super) fn access(&self, rtt: Duration, peer: Peer, pieces: usize) -> Result<Access, LabError> {
        let expected = content(pieces);
        let mount = self.mount(peer)?;
        let path = mount.path().join(name_of(pieces));
        let (open_cold, read_cold) = read(&path, &expected)?;
        let (open_warm, read_warm) = read(&path, &expected)?;
        let (write, close) = write(&mount.path().join(NEW), &expected)?;
        drop(mount);
        let arrived = self.export().join(NEW);
        let bytes = fs::read(&arrived).map_err(|error| LabError::io("read what arrived", error))?;
        if bytes != expected {
            return Err(wrong(format!("{} bytes arrived that are not those written", bytes.len())));
        }
        fs::remove_file(&arrived).map_err(|error| LabError::io("remove what arrived", error))?;
        let calls = Calls { open_cold, read_cold, open_warm, read_warm, write, close };
        Ok(Access { rtt, peer, pieces, calls })
    }

    /// Opens, reads and closes all files of the directory, one after the other, in the order of a listing.
    pub(super) fn visit(&self, rtt: Duration, peer: Peer) -> Result<Visit, LabError> {
        let expected = content(FILE_PIECES);
        let mount = self.mount(peer)?;
        let shelf = mount.path().join("shelf");
        let failed = |error| LabError::io("list a directory", error);
        let listed = fs::read_dir(&shelf).map_err(failed)?;
        let names: Result<Vec<_>, _> = listed.map(|entry| entry.map(|entry| entry.file_name())).collect();
        let names = names.map_err(failed)?;
        if names.len() != FILES {
            return Err(wrong(format!("{} names are in a directory of {FILES}", names.len())));
        }
        let (mut opens, begun) = (Duration::ZERO, now());
        for name in names {
            opens += read(&shelf.join(name), &expected)?.0;
        }
        Ok(Visit { rtt, peer, opens, whole: now().saturating_sub(begun) })
    }
}

/// Opens and reads a file, and holds its bytes against what they are to be; what `open` and the reads took.
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
        return Err(wrong(format!("{filled} bytes came that are not those of {}", path.display())));
    }
    Ok((opened.saturating_sub(begun), done.saturating_sub(opened)))
}

/// Makes a file; what the writes and `close` took.
fn write(path: &Path, bytes: &[u8]) -> Result<(Duration, Duration), LabError> {
    let failed = |error| LabError::io(format!("write {}", path.display()), error);
    let mut file = File::create(path).map_err(failed)?;
    let begun = now();
    bytes.chunks(BLOCK_BYTES).try_for_each(|block| file.write_all(block)).map_err(failed)?;
    let written = now();
    drop(file);
    Ok((written.saturating_sub(begun), now().saturating_sub(written)))
}
