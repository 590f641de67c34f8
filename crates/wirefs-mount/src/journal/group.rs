//! Group commit: most written data is synced before anyone waits, and one caller syncs the rest for all waiting ones.
//!
//! [`GroupCommit`] decides what to do next. A thread that nobody waits for syncs full segments, starts the write-out of
//! the current one, and removes unneeded ones up to their last descriptor: the file system may take long to free a
//! file. A caller that waits while no sync is in progress leads the next one; the others wait for it.

use super::disk::{Disk, is_full};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::ops::Deref;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
pub(crate) use wirefs_journal::Point;
use wirefs_journal::{DiskJob, GroupCommit, Header, SyncRole};

#[derive(Default)]
struct State {
    durable: GroupCommit,
    /// Segments with work left.
    files: BTreeMap<u64, Arc<File>>,
    /// The disk's error.
    failure: Option<(io::ErrorKind, String)>,
    /// The thread executes a job.
    is_busy: bool,
    is_stopped: bool,
    /// The thread has ended: callers that wait for a removal do it themselves.
    has_ended: bool,
    waits: u64,
}

impl State {
    /// Closes segments without work left.
    fn close(&mut self) {
        let durable = &self.durable;
        self.files.retain(|number, _| durable.needs_file(*number));
    }

    fn check(&self) -> io::Result<()> {
        match &self.failure {
            // Keeps the kind, because a full disk differs from a broken one.
            Some((kind, why)) => Err(io::Error::new(*kind, format!("the disk has failed: {why}"))),
            None => Ok(()),
        }
    }
}

/// The state shared by callers and the thread.
pub(super) struct Group {
    disk: Box<dyn Disk>,
    state: Mutex<State>,
    /// Signaled when a job is done.
    progress: Condvar,
    /// Signaled when there may be a job for the thread.
    work: Condvar,
}

impl Group {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn progress<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.progress.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// Creates a segment, and returns its header's checksum as well. If the disk is full, waits for the removal of
    /// unneeded segments.
    ///
    /// # Errors
    /// The disk refuses, or is full; no partial segment remains.
    pub(super) fn make(&self, header: &Header) -> io::Result<(File, u32)> {
        // Checked first, because the removal may end just after the failure.
        let has_unneeded = self.lock().durable.has_removals();
        match self.disk.make(header) {
            Err(error) if is_full(error.kind()) && has_unneeded => {
                self.tidy();
                self.disk.make(header)
            }
            made => made,
        }
    }

    /// Notes a new segment.
    ///
    /// # Errors
    /// The disk has failed.
    pub(super) fn opened(&self, number: u64, file: &Arc<File>) -> io::Result<()> {
        let mut state = self.lock();
        state.durable.created(number);
        state.files.insert(number, Arc::clone(file));
        state.close();
        self.work.notify_one();
        state.check()
    }

    /// Returns whether changes must wait for the disk.
    pub(super) fn is_behind(&self) -> bool {
        self.lock().durable.is_backlogged()
    }

    /// Waits while the disk is behind.
    pub(super) fn keep_pace(&self) {
        let mut state = self.lock();
        while state.durable.is_backlogged() && !state.is_stopped {
            state = self.progress(state);
        }
    }

    /// Notes bytes written to the last segment.
    ///
    /// # Errors
    /// The disk has failed.
    pub(super) fn wrote(&self, bytes: u64) -> io::Result<()> {
        let mut state = self.lock();
        state.durable.wrote(bytes);
        self.hurry(&state);
        state.check()
    }

    /// Notes that segments below a number are not needed.
    pub(super) fn forget(&self, below: u64) {
        let mut state = self.lock();
        state.durable.forget(below);
        // Callers need not wait for unneeded segments.
        self.progress.notify_all();
        self.hurry(&state);
    }

    fn hurry(&self, state: &State) {
        if !state.is_busy && (state.is_stopped || state.durable.has_background_job()) {
            self.work.notify_one();
        }
    }

    /// Returns the disk's failure, if any.
    ///
    /// # Errors
    /// The disk has failed.
    pub(super) fn check(&self) -> io::Result<()> {
        self.lock().check()
    }

    /// Gives up all written data, before the caller removes all segments. Closes all descriptors, except one that a job
    /// uses. A disk that failed for lack of space is used again.
    pub(super) fn give_up(&self) {
        let mut state = self.lock();
        state.durable.discard_all();
        state.files.clear();
        if state.failure.take_if(|(kind, _)| is_full(*kind)).is_some() {
            state.durable.reset_failure();
        }
        self.progress.notify_all();
    }

    /// Removes a segment at once, after everything was given up.
    ///
    /// # Errors
    /// The disk refuses.
    pub(super) fn remove(&self, number: u64) -> io::Result<()> {
        self.disk.remove(number)
    }

    /// Waits until all unneeded segments are removed.
    pub(super) fn tidy(&self) {
        let mut state = self.lock();
        while state.durable.has_removals() && !state.is_stopped {
            state = self.progress(state);
        }
    }

    /// Returns the end of the written data.
    pub(super) fn written(&self) -> Point {
        self.lock().durable.written()
    }

    /// Returns how often a caller had to wait for the disk.
    pub(super) fn waits(&self) -> u64 {
        self.lock().waits
    }

    /// Waits until written data is durable up to a point.
    ///
    /// # Errors
    /// The disk has failed, now or before: its state is unknown from then on.
    pub(super) fn sync_to(&self, point: Point) -> io::Result<()> {
        let mut state = self.lock();
        let mut waits = 1;
        loop {
            let turn = state.durable.role(point);
            if matches!(turn, SyncRole::Wait | SyncRole::Lead(_)) {
                state.waits += std::mem::take(&mut waits);
            }
            state = match turn {
                SyncRole::Durable => return Ok(()),
                SyncRole::Failed => return state.check().and(Err(io::ErrorKind::Other.into())),
                SyncRole::Wait if state.has_ended => match state.durable.next_removal_job() {
                    Some(job) => self.carry_out(state, &job),
                    None => self.progress(state),
                },
                SyncRole::Wait => self.progress(state),
                SyncRole::Lead(job) => self.carry_out(state, &job),
            }
        }
    }

    /// Executes a job, without the lock.
    fn carry_out<'a>(&'a self, mut state: MutexGuard<'a, State>, job: &DiskJob) -> MutexGuard<'a, State> {
        let file = match job {
            DiskJob::SyncNames(_) => None,
            DiskJob::SyncSegment(number) | DiskJob::WriteOut(number, _) => state.files.get(number).cloned(),
            // The last descriptor.
            DiskJob::Remove(number) => state.files.remove(number),
        };
        drop(state);
        let done = match (job, &file) {
            (DiskJob::SyncNames(_), _) => self.disk.sync_names(),
            (DiskJob::SyncSegment(_), Some(file)) => self.disk.sync(file),
            (DiskJob::WriteOut(_, bytes), Some(file)) => {
                // Nothing depends on it, and the next sync of this file reports its errors.
                let _begun = self.disk.begin(file, bytes.clone());
                Ok(())
            }
            (DiskJob::Remove(number), _) => self.disk.remove(*number),
            // INVARIANT: a segment to sync is open. Otherwise its data must not count as durable.
            (DiskJob::SyncSegment(_) | DiskJob::WriteOut(..), None) => Err(io::ErrorKind::NotFound.into()),
        };
        // Closing the last descriptor may take long, and nobody waits for it.
        let last = file.filter(|_| matches!(job, DiskJob::Remove(_)));
        let mut state = self.lock();
        match done {
            Ok(()) => state.durable.done(job),
            Err(error) => {
                state.durable.failed(job);
                state.failure.get_or_insert_with(|| (error.kind(), error.to_string()));
            }
        }
        state.close();
        self.progress.notify_all();
        self.hurry(&state);
        if last.is_some() {
            drop((state, last));
            state = self.lock();
        }
        state
    }

    /// The body of the thread. After a stop it still removes unneeded segments.
    fn work(&self) {
        let mut state = self.lock();
        loop {
            let job = if state.is_stopped {
                state.durable.next_removal_job()
            } else {
                state.durable.next_background_job()
            };
            match job {
                Some(job) => {
                    state.is_busy = true;
                    state = self.carry_out(state, &job);
                    state.is_busy = false;
                    self.progress.notify_all();
                }
                // A segment that a caller syncs now is removed after that.
                None if state.is_stopped && !(state.durable.has_removals() && state.durable.is_syncing()) => {
                    state.has_ended = true;
                    self.progress.notify_all();
                    return;
                }
                None => state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
}

/// A group and its thread, which ends when this is dropped.
pub(super) struct GroupThread {
    group: Arc<Group>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl GroupThread {
    /// Starts the thread.
    ///
    /// # Errors
    /// No thread can be started.
    pub(super) fn start(disk: impl Disk + 'static) -> io::Result<GroupThread> {
        let (state, progress, work) = (Mutex::default(), Condvar::new(), Condvar::new());
        let group = Arc::new(Group { disk: Box::new(disk), state, progress, work });
        let for_thread = Arc::clone(&group);
        let thread =
            std::thread::Builder::new().name("wirefs-disk".into()).spawn(move || for_thread.work())?;
        Ok(GroupThread { group, thread: Mutex::new(Some(thread)) })
    }

    /// Ends the thread, after the removal of unneeded segments. Callers sync unsynced data themselves.
    pub(super) fn stop(&self) {
        self.lock().is_stopped = true;
        self.work.notify_all();
        self.progress.notify_all();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // A panic was printed, and callers do not depend on the thread.
            let _ended = thread.join();
        }
    }
}

impl Deref for GroupThread {
    type Target = Group;

    fn deref(&self) -> &Group {
        &self.group
    }
}

impl Drop for GroupThread {
    fn drop(&mut self) {
        self.stop();
    }
}

#[cfg(test)]
pub(super) mod tests;
