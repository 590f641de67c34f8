//! What servers refused, as it is found on this machine: counted, looked at, taken out, dropped.

use super::place::directories;
use super::quarantine::{CHANGE, DATA};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The file of a change is not longer than this, in bytes: four lines with a path and a name or two.
const FILE_BYTES_MAX: u64 = 64 * 1024;

/// Changes that are kept in one directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Where.
    pub dir: PathBuf,
    /// How many.
    pub changes: u64,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptChange {
    /// Its name among all: the session's directory and its number.
    pub id: String,
    /// Its number.
    pub number: u64,
    /// What was mounted, as the user wrote it.
    pub source: String,
    /// What it was, as in `write 4096 bytes at 0`.
    pub what: String,
    /// Below the mount, on one line: bytes that cannot be shown are escaped.
    pub path: String,
    /// Why it is here.
    pub why: String,
    /// The bytes that it was to write; 0: none.
    pub bytes: u64,
    file: PathBuf,
}

/// Counts the changes that are kept in a directory and those below it.
pub fn kept_in(dir: &Path) -> Vec<Kept> {
    let mut found = Vec::new();
    let changes = numbers(dir).len() as u64;
    if changes > 0 {
        found.push(Kept { dir: dir.to_path_buf(), changes });
    }
    for below in directories(dir) {
        found.extend(kept_in(&below));
    }
    found
}

/// The changes that are kept in a directory and those below it, those of a session in their order.
pub fn kept_changes(dir: &Path) -> Vec<KeptChange> {
    let here = numbers(dir).into_iter().filter_map(|number| KeptChange::read(dir, number));
    let below = directories(dir).into_iter().flat_map(|below| kept_changes(&below));
    here.chain(below).collect()
}

/// The numbers of the changes in one directory. What cannot be listed has none; most often it is not there.
fn numbers(dir: &Path) -> Vec<u64> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    let changes = entries.filter(|path| path.extension().is_some_and(|extension| extension == CHANGE));
    let number = |path: PathBuf| path.file_stem()?.to_str()?.parse().ok();
    let mut numbers: Vec<u64> = changes.filter_map(number).collect();
    numbers.sort_unstable();
    numbers
}

impl KeptChange {
    /// `None`: somebody drops it just now.
    fn read(dir: &Path, number: u64) -> Option<KeptChange> {
        let file = dir.join(format!("{number}.{CHANGE}"));
        let mut bytes = Vec::new();
        File::open(&file).ok()?.take(FILE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
        // It may be cut in the midst of a letter, and must not be out of reach for that.
        let text = String::from_utf8_lossy(&bytes);
        let value = |word: &str| {
            let mut values = text.lines().filter_map(|line| line.split_once(' '));
            let found = values.find(|(name, _)| *name == word);
            found.map(|(_, value)| value.to_owned()).unwrap_or_default()
        };
        let bytes = std::fs::metadata(file.with_extension(DATA)).map_or(0, |found| found.len());
        let session = dir.file_name()?.to_str()?;
        Some(KeptChange {
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

    /// Where the bytes that it was to write begin in the file; `None`: it was to write none, or at the end of the file, wherever that
    /// was.
    pub fn offset(&self) -> Option<u64> {
        let place = self.what.split(", ").find_map(|part| part.strip_prefix("write "))?;
        place.split_once(" bytes at ")?.1.parse().ok()
    }

    /// The directory of the session that it is of.
    pub fn session(&self) -> &str {
        self.id.rsplit_once('-').map_or(&self.id, |(session, _)| session)
    }

    /// Writes the bytes that it was to write to an open file, where they belong.
    ///
    /// # Errors
    /// It was to write none, or the system refuses.
    pub fn put(&self, to: &mut File) -> io::Result<u64> {
        let mut from = File::open(self.file.with_extension(DATA))?;
        match self.offset() {
            Some(offset) => to.seek(SeekFrom::Start(offset))?,
            None => to.seek(SeekFrom::End(0))?,
        };
        io::copy(&mut from, to)
    }

    /// Writes the bytes that it was to write to a file that is not there yet, and tells how many they are. The change stays.
    ///
    /// # Errors
    /// It was to write none, the file is there, or the system refuses.
    pub fn take(&self, to: &Path) -> io::Result<u64> {
        let mut from = File::open(self.file.with_extension(DATA))?;
        let mut to = OpenOptions::new().write(true).create_new(true).mode(0o600).open(to)?;
        let bytes = io::copy(&mut from, &mut to)?;
        to.sync_all()?;
        Ok(bytes)
    }

    /// Lets it go, with its bytes.
    ///
    /// # Errors
    /// The system refuses.
    pub fn discard(&self) -> io::Result<()> {
        // First what nobody would find without the other.
        match std::fs::remove_file(self.file.with_extension(DATA)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        std::fs::remove_file(&self.file)?;
        // The session's directory and the source's go with the last change; others may be there.
        let mut dir = self.file.parent();
        for _ in 0..2 {
            dir = dir.filter(|dir| std::fs::remove_dir(dir).is_ok()).and_then(Path::parent);
        }
        Ok(())
    }
}
