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
    fresh: Fresh,
    /// Somebody is bringing others to the disk.
    is_bringing: bool,
}

/// Changes that were kept and that the disk may not have.
#[derive(Default)]
pub(super) struct Fresh {
    numbers: Vec<u64>,
    /// More than are brought to the disk one by one.
    is_more: bool,
}

/// Changes that are brought to the disk one by one, at most: for more of them, all of its file system is.
const FRESH_MAX: usize = 64;

impl Quarantine {
    /// The directory is made with the first change.
    pub(super) fn new(dir: PathBuf, source: Vec<u8>) -> Quarantine {
        Quarantine { dir, source, count: 0, fresh: Fresh::default(), is_bringing: false }
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
        self.fresh.push(record.number);
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
            create(&file(&self.dir, number, DATA))?.write_all(data)?;
        }
        let whole = file(&self.dir, number, CHANGE);
        let is_new = !whole.exists();
        let half = whole.with_extension("new");
        create(&half)?.write_all(text.as_bytes())?;
        std::fs::rename(half, whole)?;
        Ok(is_new)
    }

    /// Whether the disk has all of it.
    pub(super) fn is_settled(&self) -> bool {
        self.fresh.numbers.is_empty() && !self.is_bringing
    }

    /// Takes what the disk may not have, for [`bring`]. What came of that is told to [`Quarantine::brought`].
    pub(super) fn take_fresh(&mut self) -> Fresh {
        self.is_bringing = true;
        std::mem::take(&mut self.fresh)
    }

    /// The disk has it, or may still not.
    pub(super) fn brought(&mut self, fresh: Fresh, is_there: bool) {
        self.is_bringing = false;
        if !is_there {
            self.fresh.is_more |= fresh.is_more;
            fresh.numbers.into_iter().for_each(|number| self.fresh.push(number));
        }
    }

    /// Waits until the disk has all of it.
    ///
    /// # Errors
    /// It never will.
    pub(super) fn settle(&mut self) -> io::Result<()> {
        let fresh = self.take_fresh();
        let brought = bring(&self.dir, &fresh);
        self.brought(fresh, brought.is_ok());
        brought
    }
}

impl Fresh {
    fn push(&mut self, number: u64) {
        if self.numbers.len() < FRESH_MAX {
            self.numbers.push(number);
        } else {
            self.is_more = true;
        }
    }
}

/// Waits until the disk has these changes, but for those that their user has dropped.
///
/// # Errors
/// It never will.
///
/// # Cost
/// A wait for each file; for many changes one, for all that the disk's file system has not written.
pub(super) fn bring(dir: &Path, fresh: &Fresh) -> io::Result<()> {
    if fresh.is_more {
        return present(File::open(dir))?.map_or(Ok(()), |dir| Ok(rustix::fs::syncfs(dir)?));
    }
    let files = fresh.numbers.iter().flat_map(|number| [DATA, CHANGE].map(|kind| file(dir, *number, kind)));
    // The directory of the source and that of all sources may be new as well.
    let directories = dir.ancestors().take(3).map(Path::to_path_buf).filter(|_| !fresh.numbers.is_empty());
    for path in files.chain(directories) {
        if let Some(file) = present(File::open(path))? {
            file.sync_all()?;
        }
    }
    Ok(())
}

/// `None`: whoever wanted it no more has dropped it.
fn present(opened: io::Result<File>) -> io::Result<Option<File>> {
    match opened {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        opened => opened.map(Some),
    }
}

fn file(dir: &Path, number: u64, extension: &str) -> PathBuf {
    dir.join(format!("{number}.{extension}"))
}

fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)
}
