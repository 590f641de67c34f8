//! The quarantine of changes that a server rejected: two files for each change.
//!
//! ```text
//!  DIR/42.data     the data of change 42
//!  DIR/42.change   its description and the reason: a word and a value on each line
//! ```
//! The second file exists only when complete. To quarantine a change twice stores it once.

use super::place::make_private;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use wirefs_journal::change::{self, shown};
use wirefs_journal::{Record, change::Description};
use wirefs_op::Request;

/// The file name extension of a change.
pub(super) const CHANGE: &str = "change";
/// The file name extension of its data.
pub(super) const DATA: &str = "data";

/// The quarantine of one session.
pub(super) struct Quarantine {
    dir: PathBuf,
    source: Vec<u8>,
    count: u64,
    unsynced: Unsynced,
    /// Another thread syncs earlier changes.
    is_syncing: bool,
}

/// Quarantined changes that the disk may not have.
#[derive(Default)]
pub(super) struct Unsynced {
    numbers: Vec<u64>,
    /// There are more than are synced one by one.
    is_more: bool,
}

/// The maximum number of changes that are synced one by one; for more, the whole file system is synced.
const UNSYNCED_MAX: usize = 64;

impl Quarantine {
    /// Uses a directory, which is created with the first change.
    pub(super) fn new(dir: PathBuf, source: Vec<u8>) -> Quarantine {
        Quarantine { dir, source, count: 0, unsynced: Unsynced::default(), is_syncing: false }
    }

    /// Returns the number of quarantined changes.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Quarantines a change. It survives this process, and after [`Quarantine::settle`] also the machine.
    ///
    /// # Errors
    /// It cannot be written, and must stay in the journal.
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
        self.unsynced.push(record.number);
        let is_new = match self.write(record.number, &data, &text) {
            // Another process has just removed the empty directory.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.write(record.number, &data, &text)?
            }
            written => written?,
        };
        self.count += u64::from(is_new);
        Ok(())
    }

    /// Writes the files, and returns whether the change is new.
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

    /// Returns whether the disk has all changes.
    pub(super) fn is_settled(&self) -> bool {
        self.unsynced.numbers.is_empty() && !self.is_syncing
    }

    /// Takes the unsynced changes for [`sync_files`], whose result goes to [`Quarantine::synced`].
    pub(super) fn take_unsynced(&mut self) -> Unsynced {
        self.is_syncing = true;
        std::mem::take(&mut self.unsynced)
    }

    /// Notes the result of a sync.
    pub(super) fn synced(&mut self, unsynced: Unsynced, is_there: bool) {
        self.is_syncing = false;
        if !is_there {
            self.unsynced.is_more |= unsynced.is_more;
            unsynced.numbers.into_iter().for_each(|number| self.unsynced.push(number));
        }
    }

    /// Waits until the disk has all changes.
    ///
    /// # Errors
    /// The disk has failed.
    pub(super) fn settle(&mut self) -> io::Result<()> {
        let unsynced = self.take_unsynced();
        let brought = sync_files(&self.dir, &unsynced);
        self.synced(unsynced, brought.is_ok());
        brought
    }
}

impl Unsynced {
    fn push(&mut self, number: u64) {
        if self.numbers.len() < UNSYNCED_MAX {
            self.numbers.push(number);
        } else {
            self.is_more = true;
        }
    }
}

/// Syncs changes, except those that the user has discarded.
///
/// # Errors
/// The disk has failed.
///
/// # Cost
/// One sync per file; for many changes one for the whole file system.
pub(super) fn sync_files(dir: &Path, unsynced: &Unsynced) -> io::Result<()> {
    if unsynced.is_more {
        return present(File::open(dir))?.map_or(Ok(()), |dir| Ok(rustix::fs::syncfs(dir)?));
    }
    let files =
        unsynced.numbers.iter().flat_map(|number| [DATA, CHANGE].map(|kind| file(dir, *number, kind)));
    // The directories of the source and of all sources may be new as well.
    let directories = dir.ancestors().take(3).map(Path::to_path_buf).filter(|_| !unsynced.numbers.is_empty());
    for path in files.chain(directories) {
        if let Some(file) = present(File::open(path))? {
            file.sync_all()?;
        }
    }
    Ok(())
}

/// Ignores a file that was discarded.
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
