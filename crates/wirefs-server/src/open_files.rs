//! The open files of a session, by the fds that its client knows, for trees whose files are open at another server.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wirefs_op::limits::FDS_MAX;
use wirefs_op::message::target::{Fd, NOFD};

/// The table of open files.
#[derive(Debug)]
pub struct OpenFiles<T> {
    table: Mutex<Table<T>>,
    files_max: usize,
}

#[derive(Debug)]
struct Table<T> {
    files: BTreeMap<Fd, Arc<T>>,
    last: u16,
}

impl<T> Default for OpenFiles<T> {
    fn default() -> Self {
        OpenFiles::new(FDS_MAX)
    }
}

impl<T> OpenFiles<T> {
    /// Creates a table for at most `files_max` files, and never more than [`FDS_MAX`].
    pub fn new(files_max: usize) -> OpenFiles<T> {
        let table = Mutex::new(Table { files: BTreeMap::new(), last: 0 });
        OpenFiles { table, files_max: files_max.min(FDS_MAX) }
    }

    fn table(&self) -> MutexGuard<'_, Table<T>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a file open. Returns [`NOFD`] if the table is full: the client then names the file by its path.
    pub fn keep(&self, file: Arc<T>) -> Fd {
        let mut table = self.table();
        if table.files.len() >= self.files_max {
            return NOFD;
        }
        loop {
            table.last = if table.last >= NOFD.0 - 1 { 0 } else { table.last + 1 };
            let fd = Fd(table.last);
            if let Entry::Vacant(free) = table.files.entry(fd) {
                free.insert(file);
                return fd;
            }
        }
    }

    /// Returns the file of an fd.
    pub fn find(&self, fd: Fd) -> Option<Arc<T>> {
        self.table().files.get(&fd).cloned()
    }

    /// Closes an fd. The file is dropped after the table is unlocked.
    pub fn close(&self, fd: Fd) {
        let closed = self.table().files.remove(&fd);
        drop(closed);
    }
}
