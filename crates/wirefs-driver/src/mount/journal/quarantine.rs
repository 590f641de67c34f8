//! What a server refused, kept: a list for people, and what was to be written beside it.
//!
//! ```text
//!  DIR/changes.txt     one paragraph for each change
//!  DIR/42.data         what change 42 was to write
//! ```

use super::place::{make_private, settle};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use wirefs_journal::{Record, change};
use wirefs_op::Request;

const LIST: &str = "changes.txt";
/// What the paragraph of a change begins with.
const CHANGE: &str = "change ";
/// A list longer than this is counted no further, in bytes.
const COUNTED_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Changes that are kept in one directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Where.
    pub dir: PathBuf,
    /// How many.
    pub changes: u64,
}

/// The directory of one session.
pub(super) struct Quarantine {
    dir: PathBuf,
    source: Vec<u8>,
    list: Option<File>,
    count: u64,
}

impl Quarantine {
    /// The directory is made with the first change.
    pub(super) fn new(dir: PathBuf, source: Vec<u8>) -> Quarantine {
        Quarantine { dir, source, list: None, count: 0 }
    }

    /// How many were kept.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Keeps a change.
    ///
    /// # Errors
    /// It cannot be written: then it may not be dropped from the journal.
    pub(super) fn keep(&mut self, record: &Record, why: &str) -> io::Result<()> {
        let mut text = format!("{CHANGE}{}: ", record.number);
        match Request::decode(record.body.clone()) {
            Ok((_, request)) => {
                let described = change::describe(&request);
                text.push_str(&format!("{}\n  path  ", described.what));
                text.push_str(&String::from_utf8_lossy(&described.path));
                if !described.data.is_empty() {
                    let name = format!("{}.data", record.number);
                    self.data(&name, &described.data)?;
                    text.push_str(&format!("\n  data  {name}"));
                }
            }
            Err(error) => {
                let name = format!("{}.data", record.number);
                self.data(&name, &record.body)?;
                text.push_str(&format!("it cannot be read ({error})\n  bytes {name}"));
            }
        }
        text.push_str(&format!("\n  why   {why}\n"));
        self.list()?.write_all(text.as_bytes())?;
        self.count += 1;
        Ok(())
    }

    fn data(&mut self, name: &str, data: &[u8]) -> io::Result<()> {
        make_private(&self.dir)?;
        let mut file = create(&self.dir.join(name))?;
        file.write_all(data)?;
        file.sync_data()
    }

    fn list(&mut self) -> io::Result<&mut File> {
        if self.list.is_none() {
            make_private(&self.dir)?;
            let path = self.dir.join(LIST);
            let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
            if file.metadata()?.len() == 0 {
                writeln!(file, "of {}", String::from_utf8_lossy(&self.source))?;
            }
            self.list = Some(file);
        }
        self.list.as_mut().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Waits until the disk has all of it.
    pub(super) fn settle(&mut self) -> io::Result<()> {
        let Some(list) = &self.list else { return Ok(()) };
        list.sync_all()?;
        settle(&self.dir)
    }
}

fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)
}

/// Counts the changes that are kept in a directory and those below it.
pub fn kept_in(dir: &Path) -> Vec<Kept> {
    let mut found = Vec::new();
    let changes = count(&dir.join(LIST));
    if changes > 0 {
        found.push(Kept { dir: dir.to_path_buf(), changes });
    }
    for below in super::place::directories(dir) {
        found.extend(kept_in(&below));
    }
    found
}

fn count(list: &Path) -> u64 {
    use std::io::Read;
    let mut text = Vec::new();
    // What cannot be read is not counted; most often nothing is kept.
    let read = File::open(list).and_then(|file| file.take(COUNTED_BYTES_MAX).read_to_end(&mut text));
    if read.is_err() {
        return 0;
    }
    text.split(|&byte| byte == b'\n').filter(|line| line.starts_with(CHANGE.as_bytes())).count() as u64
}
