//! Bringing what was written to the disk: one caller does it for all who wait.
//!
//! Who comes while nobody syncs leads; who comes while somebody does waits for the next one, which one of them leads.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// A point in what was written: all before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::mount) struct Point(u64);

#[derive(Default)]
struct State {
    written: Point,
    synced: Point,
    is_syncing: bool,
    /// What was written to and not synced since.
    dirty: Vec<Arc<File>>,
    /// A file was made, whose name is not on disk yet.
    is_dir_dirty: bool,
    has_failed: bool,
    syncs: u64,
}

/// The group.
pub(super) struct Group {
    dir: PathBuf,
    state: Mutex<State>,
    synced: Condvar,
}

impl Group {
    pub(super) fn new(dir: PathBuf) -> Group {
        Group { dir, state: Mutex::default(), synced: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A segment was made.
    pub(super) fn opened(&self, file: &Arc<File>) {
        self.lock().is_dir_dirty = true;
        self.wrote(file);
    }

    /// A segment was written to.
    pub(super) fn wrote(&self, file: &Arc<File>) {
        let mut state = self.lock();
        state.written.0 += 1;
        if !state.dirty.last().is_some_and(|last| Arc::ptr_eq(last, file)) {
            state.dirty.push(Arc::clone(file));
        }
    }

    /// Nothing of what was written is needed any more.
    pub(super) fn let_go(&self) {
        let mut state = self.lock();
        (state.synced, state.is_dir_dirty) = (state.written, false);
        state.dirty.clear();
    }

    /// What was written so far.
    pub(super) fn written(&self) -> Point {
        self.lock().written
    }

    /// How often the disk was waited for.
    pub(super) fn syncs(&self) -> u64 {
        self.lock().syncs
    }

    /// Waits until the disk has what was written up to a point.
    ///
    /// # Errors
    /// The disk failed, now or before: what it has is not known any more, and never will be.
    pub(super) fn sync_to(&self, point: Point) -> io::Result<()> {
        let mut state = self.lock();
        loop {
            if state.has_failed {
                return Err(io::Error::other("the disk has failed before"));
            }
            if state.synced >= point {
                return Ok(());
            }
            if !state.is_syncing {
                break;
            }
            state = self.synced.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.is_syncing = true;
        let goal = state.written;
        let files = std::mem::take(&mut state.dirty);
        let has_new = std::mem::take(&mut state.is_dir_dirty);
        drop(state);
        let done = self.sync(&files, has_new);
        let mut state = self.lock();
        state.is_syncing = false;
        state.syncs += 1;
        match &done {
            // It may have been let go of meanwhile.
            Ok(()) => state.synced = state.synced.max(goal),
            Err(_) => state.has_failed = true,
        }
        drop(state);
        self.synced.notify_all();
        done
    }

    fn sync(&self, files: &[Arc<File>], has_new: bool) -> io::Result<()> {
        for file in files {
            // The system call's file descriptor is ours while it lasts, also when the segment was removed.
            file.sync_data()?;
        }
        if has_new { File::open(&self.dir)?.sync_all() } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests;
