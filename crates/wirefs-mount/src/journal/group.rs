//! Bringing what was written to the disk: most of it before anybody waits, the rest by one caller for all who wait.
//!
//! What is to be done next, by whom, [`GroupCommit`] says. A thread of its own, which nobody waits for, syncs segments that are full, has the disk
//! begin with the one that is written to, and removes those that nobody needs, down to their last descriptor: to free what a file had takes
//! as long as to write it, where it is in memory. Who waits while nobody syncs leads; the others wait for the next one.

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
    /// Segments that there is something to be done with.
    files: BTreeMap<u64, Arc<File>>,
    /// What the disk said when it failed.
    failure: Option<(io::ErrorKind, String)>,
    /// Whether the thread does something just now.
    is_busy: bool,
    is_stopped: bool,
    /// The thread has ended: whoever waits for something to be removed removes it.
    has_ended: bool,
    waits: u64,
}

impl State {
    /// Drops the descriptors of segments that are there and need nothing any more.
    fn close(&mut self) {
        let durable = &self.durable;
        self.files.retain(|number, _| durable.needs_file(*number));
    }

    fn check(&self) -> io::Result<()> {
        match &self.failure {
            // A full disk is told from a broken one.
            Some((kind, why)) => Err(io::Error::new(*kind, format!("the disk has failed: {why}"))),
            None => Ok(()),
        }
    }
}

/// What the callers and the thread have in common.
pub(super) struct Group {
    disk: Box<dyn Disk>,
    state: Mutex<State>,
    /// Something was done.
    progress: Condvar,
    /// There may be something to do early.
    work: Condvar,
}

impl Group {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn progress<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.progress.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a segment, and hands back the sum of its header as well. Where there is no room but what segments have that nobody needs, it
    /// waits until these are gone.
    ///
    /// # Errors
    /// The system refuses, or there is no room: nothing is left there then.
    pub(super) fn make(&self, header: &Header) -> io::Result<(File, u32)> {
        // Asked for first: it may be gone just when there was no room.
        let has_unneeded = self.lock().durable.has_removals();
        match self.disk.make(header) {
            Err(error) if is_full(error.kind()) && has_unneeded => {
                self.tidy();
                self.disk.make(header)
            }
            made => made,
        }
    }

    /// A segment was made.
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

    /// Whether whoever changes something waits for the disk first.
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

    /// So many bytes were written to the last segment.
    ///
    /// # Errors
    /// The disk has failed.
    pub(super) fn wrote(&self, bytes: u64) -> io::Result<()> {
        let mut state = self.lock();
        state.durable.wrote(bytes);
        self.hurry(&state);
        state.check()
    }

    /// Segments below a number are not needed any more.
    pub(super) fn forget(&self, below: u64) {
        let mut state = self.lock();
        state.durable.forget(below);
        // What nobody needs need not be waited for.
        self.progress.notify_all();
        self.hurry(&state);
    }

    fn hurry(&self, state: &State) {
        if !state.is_busy && (state.is_stopped || state.durable.has_background_job()) {
            self.work.notify_one();
        }
    }

    /// Whether the disk has failed, whoever noticed.
    ///
    /// # Errors
    /// It has, as this says.
    pub(super) fn check(&self) -> io::Result<()> {
        self.lock().check()
    }

    /// Nothing of what was written is needed any more, and the caller removes all segments. No descriptor of them is left, but where the disk
    /// does something with one just now. A disk that failed for lack of room is believed again.
    pub(super) fn let_go(&self) {
        let mut state = self.lock();
        state.durable.discard_all();
        state.files.clear();
        if state.failure.take_if(|(kind, _)| is_full(*kind)).is_some() {
            state.durable.reset_failure();
        }
        self.progress.notify_all();
    }

    /// Removes a segment at once, for whoever has let go of all.
    ///
    /// # Errors
    /// The system refuses.
    pub(super) fn remove(&self, number: u64) -> io::Result<()> {
        self.disk.remove(number)
    }

    /// Waits until no segment is there that nobody needs.
    pub(super) fn tidy(&self) {
        let mut state = self.lock();
        while state.durable.has_removals() && !state.is_stopped {
            state = self.progress(state);
        }
    }

    /// What was written so far.
    pub(super) fn written(&self) -> Point {
        self.lock().durable.written()
    }

    /// How often somebody had to wait until the disk had something.
    pub(super) fn waits(&self) -> u64 {
        self.lock().waits
    }

    /// Waits until the disk has what was written up to a point.
    ///
    /// # Errors
    /// The disk failed, now or before, whoever noticed: what it has is not known any more, and never will be.
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

    /// Does a job, without the lock.
    fn carry_out<'a>(&'a self, mut state: MutexGuard<'a, State>, job: &DiskJob) -> MutexGuard<'a, State> {
        let file = match job {
            DiskJob::SyncNames(_) => None,
            DiskJob::SyncSegment(number) | DiskJob::WriteOut(number, _) => state.files.get(number).cloned(),
            // The last one there is.
            DiskJob::Remove(number) => state.files.remove(number),
        };
        drop(state);
        let done = match (job, &file) {
            (DiskJob::SyncNames(_), _) => self.disk.sync_names(),
            (DiskJob::SyncSegment(_), Some(file)) => self.disk.sync(file),
            (DiskJob::WriteOut(_, bytes), Some(file)) => {
                // Nobody relies on it, and what is wrong the next sync of this file says.
                let _begun = self.disk.begin(file, bytes.clone());
                Ok(())
            }
            (DiskJob::Remove(number), _) => self.disk.remove(*number),
            // INVARIANT: what is to be synced is open. Nobody may rely on it otherwise.
            (DiskJob::SyncSegment(_) | DiskJob::WriteOut(..), None) => Err(io::ErrorKind::NotFound.into()),
        };
        // What goes with the last descriptor takes its time, and nobody waits for it.
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

    /// The thread's life. When it is stopped it still removes what is not needed.
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
                // What somebody syncs just now is removed after that.
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

/// A group and its thread, which ends with this.
pub(super) struct Syncing {
    group: Arc<Group>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Syncing {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system has none for us.
    pub(super) fn start(disk: impl Disk + 'static) -> io::Result<Syncing> {
        let (state, progress, work) = (Mutex::default(), Condvar::new(), Condvar::new());
        let group = Arc::new(Group { disk: Box::new(disk), state, progress, work });
        let for_thread = Arc::clone(&group);
        let thread =
            std::thread::Builder::new().name("wirefs-disk".into()).spawn(move || for_thread.work())?;
        Ok(Syncing { group, thread: Mutex::new(Some(thread)) })
    }

    /// Ends the thread. What nobody needs is removed; what was not synced, whoever waits for it syncs.
    pub(super) fn stop(&self) {
        self.lock().is_stopped = true;
        self.work.notify_all();
        self.progress.notify_all();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // A panic there was told, and takes nothing away from whoever waits.
            let _ended = thread.join();
        }
    }
}

impl Deref for Syncing {
    type Target = Group;

    fn deref(&self) -> &Group {
        &self.group
    }
}

impl Drop for Syncing {
    fn drop(&mut self) {
        self.stop();
    }
}

#[cfg(test)]
pub(super) mod tests;
