//! Quarantined changes on this machine: listed, extracted, discarded.

use super::place::directories;
use super::quarantine::{CHANGE, DATA};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The maximum size of the file of a change, in bytes: four lines with a path and a name or two.
const FILE_BYTES_MAX: u64 = 64 * 1024;

/// The quarantined changes in one directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuarantineCount {
    /// The directory.
    pub dir: PathBuf,
    /// Their number.
    pub changes: u64,
}

/// A quarantined change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuarantinedChange {
    /// Its unique id: the session's directory and the change number.
    pub id: String,
    /// Its change number.
    pub number: u64,
    /// The mounted source, as the user wrote it.
    pub source: String,
    /// Its description, as in `write 4096 bytes at 0`.
    pub what: String,
    /// The path below the mount, on one line with unprintable bytes escaped.
    pub path: String,
    /// The reason why it is quarantined.
    pub why: String,
    /// The size of the data that it was to write; 0: none.
    pub bytes: u64,
    file: PathBuf,
}

/// Counts the quarantined changes in a directory and below it.
pub fn count_quarantined(dir: &Path) -> Vec<QuarantineCount> {
    let mut found = Vec::new();
    let changes = numbers(dir).len() as u64;
    if changes > 0 {
        found.push(QuarantineCount { dir: dir.to_path_buf(), changes });
    }
    for below in directories(dir) {
        found.extend(count_quarantined(&below));
    }
    found
}

/// Returns the quarantined changes in a directory and below it, those of a session in order.
pub fn quarantined_changes(dir: &Path) -> Vec<QuarantinedChange> {
    let here = numbers(dir).into_iter().filter_map(|number| QuarantinedChange::read(dir, number));
    let below = directories(dir).into_iter().flat_map(|below| quarantined_changes(&below));
    here.chain(below).collect()
}

/// Returns the numbers of the changes in one directory, which usually does not exist.
fn numbers(dir: &Path) -> Vec<u64> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    let changes = entries.filter(|path| path.extension().is_some_and(|extension| extension == CHANGE));
    let number = |path: PathBuf| path.file_stem()?.to_str()?.parse().ok();
    let mut numbers: Vec<u64> = changes.filter_map(number).collect();
    numbers.sort_unstable();
    numbers
}

impl QuarantinedChange {
    /// Reads a change; `None` if it is being discarded.
    fn read(dir: &Path, number: u64) -> Option<QuarantinedChange> {
        let file = dir.join(format!("{number}.{CHANGE}"));
        let mut bytes = Vec::new();
        File::open(&file).ok()?.take(FILE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
        // The file may be cut within a character, and must be readable all the same.
        let text = String::from_utf8_lossy(&bytes);
        let value = |word: &str| {
            let mut values = text.lines().filter_map(|line| line.split_once(' '));
            let found = values.find(|(name, _)| *name == word);
            found.map(|(_, value)| value.to_owned()).unwrap_or_default()
        };
        let bytes = std::fs::metadata(file.with_extension(DATA)).map_or(0, |found| found.len());
        let session = dir.file_name()?.to_str()?;
        Some(QuarantinedChange {
            id: format!("{session}-{number}"),
            number,
            source: value("source"),
            what: value("what"),
            path: value("path"),
            why: value("why"),
            bytes,
            file,
        })
    }

    /// Returns the offset of its data in the file; `None` if it has no data, or appended it.
    pub fn offset(&self) -> Option<u64> {
        let place = self.what.split(", ").find_map(|part| part.strip_prefix("write "))?;
        place.split_once(" bytes at ")?.1.parse().ok()
    }

    /// Returns the directory of its session.
    pub fn session(&self) -> &str {
        self.id.rsplit_once('-').map_or(&self.id, |(session, _)| session)
    }

    /// Writes its data to an open file, at its offset.
    ///
    /// # Errors
    /// It has no data, or the system refuses.
    pub fn put(&self, to: &mut File) -> io::Result<u64> {
        let mut from = File::open(self.file.with_extension(DATA))?;
        match self.offset() {
            Some(offset) => to.seek(SeekFrom::Start(offset))?,
            None => to.seek(SeekFrom::End(0))?,
        };
        io::copy(&mut from, to)
    }

    /// Writes its data to a new file, and returns its size. The change stays in the quarantine.
    ///
    /// # Errors
    /// It has no data, the file exists, or the system refuses.
    pub fn take(&self, to: &Path) -> io::Result<u64> {
        let mut from = File::open(self.file.with_extension(DATA))?;
        let mut to = OpenOptions::new().write(true).create_new(true).mode(0o600).open(to)?;
        let bytes = io::copy(&mut from, &mut to)?;
        to.sync_all()?;
        Ok(bytes)
    }

    /// Discards it, with its data.
    ///
    /// # Errors
    /// The system refuses.
    pub fn discard(&self) -> io::Result<()> {
        // The data first: it could not be found without the other file.
        match std::fs::remove_file(self.file.with_extension(DATA)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        std::fs::remove_file(&self.file)?;
        // The directories of the session and the source are removed with their last change.
        let mut dir = self.file.parent();
        for _ in 0..2 {
            dir = dir.filter(|dir| std::fs::remove_dir(dir).is_ok()).and_then(Path::parent);
        }
        Ok(())
    }
}
