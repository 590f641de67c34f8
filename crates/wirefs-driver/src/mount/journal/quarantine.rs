//! What a server refused, kept: two files for each change.
//!
//! ```text
//!  DIR/42.data     what change 42 was to write
//!  DIR/42.change   what it was, and why it was refused: a word and a value on each line
//! ```
//! The second is there only once it is whole. Who keeps a change again keeps it once.

use super::place::make_private;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use wirefs_journal::change::{self, shown};
use wirefs_journal::{Record, change::Description};
use wirefs_op::Request;

/// What the file of a change ends with.
pub(super) const CHANGE: &str = "change";
/// What the file of its data ends with.
pub(super) const DATA: &str = "data";

/// The directory of one session.
pub(super) struct Quarantine {
    dir: PathBuf,
    source: Vec<u8>,
    count: u64,
    is_settled: bool,
}

impl Quarantine {
    /// The directory is made with the first change.
    pub(super) fn new(dir: PathBuf, source: Vec<u8>) -> Quarantine {
        Quarantine { dir, source, count: 0, is_settled: true }
    }

    /// How many were kept.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Keeps a change. It outlives this process; the machine, once it is settled.
    ///
    /// # Errors
    /// It cannot be written: then it may not be dropped from the journal.
    pub(super) fn keep(&mut self, record: &Record, why: &str) -> io::Result<()> {
        let Description { what, path, data } = match Request::decode(record.body.clone()) {
            Ok((_, request)) => change::describe(&request),
            Err(error) => Description {
                what: format!("it cannot be read ({error})"),
                path: Vec::new(),
                data: record.body.clone(),
            },
        };
        let (source, path, why) = (shown(&self.source), shown(&path), shown(why.as_bytes()));
        let text = format!("source {source}\nwhat {what}\npath {path}\nwhy {why}\n");
        self.is_settled = false;
        let is_new = match self.write(record.number, &data, &text) {
            // Who has dropped the last of the others has taken the directory away just now.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.write(record.number, &data, &text)?
            }
            written => written?,
        };
        self.count += u64::from(is_new);
        Ok(())
    }

    /// Tells whether the change was not there before.
    fn write(&self, number: u64, data: &[u8], text: &str) -> io::Result<bool> {
        make_private(&self.dir)?;
        if !data.is_empty() {
            create(&self.file(number, DATA))?.write_all(data)?;
        }
        let whole = self.file(number, CHANGE);
        let is_new = !whole.exists();
        let half = whole.with_extension("new");
        create(&half)?.write_all(text.as_bytes())?;
        std::fs::rename(half, whole)?;
        Ok(is_new)
    }

    fn file(&self, number: u64, extension: &str) -> PathBuf {
        self.dir.join(format!("{number}.{extension}"))
    }

    /// Waits until the disk has all of it.
    ///
    /// # Cost
    /// All that the disk's file system has not written: rare, and one wait for however many changes.
    pub(super) fn settle(&mut self) -> io::Result<()> {
        if !self.is_settled {
            match File::open(&self.dir) {
                Ok(dir) => rustix::fs::syncfs(dir)?,
                // All of it was dropped by whoever wanted it no more.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
            self.is_settled = true;
        }
        Ok(())
    }
}

fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)
}
