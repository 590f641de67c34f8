//! The conversion of fanotify events to ids.

use super::handle_cache::HandleCache;
use super::ignored::Busy;
use super::{Filesystem, HandleLookup};
use crate::watch::batch::{Batch, RoundReport};
use crate::watch::events::{self, Handle, Seen};
use crate::watch::rounds::{self, BATCH_MAX, QueueState, READ_BYTES};
use rustix::fd::{AsFd, BorrowedFd};
use rustix::io::Errno;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use wirefs_op::FileId;

/// The queue is read again after this time, even during a report. It receives all events of the file system, also
/// those outside the export, and a program can fill it in some 10 ms. A lookup of an object that is being removed
/// may take as long.
const READ_INTERVAL: Duration = Duration::from_millis(1);
/// Events that are read during reports at most: some 10 MiB, with long names 30. Beyond that the kernel's queue
/// fills.
const PENDING_MAX: usize = 8 * BATCH_MAX;

/// Reads the queue.
pub(crate) struct FilesystemReader {
    source: Arc<Filesystem>,
    buffer: Vec<u8>,
    /// Events that were read and will be reported in the next round.
    pending: Batch<Seen>,
    handle_cache: HandleCache,
    /// The number of marks for which the handle cache is valid.
    marks: u64,
    busy: Busy,
    /// Files that became busy in the last round, with their handles.
    now_busy: Vec<(Handle, FileId)>,
    /// The id of this process, which events of all its threads carry.
    own: i32,
}

impl FilesystemReader {
    pub(crate) fn new(source: Arc<Filesystem>) -> FilesystemReader {
        let own = rustix::process::getpid().as_raw_pid();
        let buffer = vec![0; READ_BYTES];
        FilesystemReader {
            source,
            buffer,
            pending: Batch::new(),
            handle_cache: HandleCache::default(),
            marks: 0,
            busy: Busy::default(),
            now_busy: Vec::new(),
            own,
        }
    }

    /// Reads queued events until there are `most`.
    fn read_queue(&mut self, most: usize) -> Result<QueueState, Errno> {
        while self.pending.len() < most {
            let length = match rustix::io::read(&self.source.queue, &mut *self.buffer) {
                Ok(length) => length,
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => return Ok(QueueState::Empty),
                Err(error) => return Err(error),
            };
            let events = self.buffer.get(..length).unwrap_or_default();
            events::each(events, self.own, |seen| self.pending.insert(seen));
        }
        Ok(QueueState::NotEmpty)
    }

    /// The object with this handle; `None`: it is gone.
    ///
    /// # Errors
    /// The lookup failed.
    fn find(&mut self, handle: Handle) -> Result<Option<FileId>, ()> {
        if let Some(id) = self.handle_cache.find(&handle) {
            return Ok(Some(id));
        }
        match self.source.find(&handle) {
            HandleLookup::Id(id) => {
                self.handle_cache.insert(handle, id);
                Ok(Some(id))
            }
            HandleLookup::Gone => Ok(None),
            HandleLookup::Unknown => Err(()),
        }
    }

    /// Reports an event. An object that is gone needs no report: its removal has an event by name.
    fn report_event(&mut self, seen: Seen, report: &mut RoundReport<'_>) -> Result<(), ()> {
        match seen {
            Seen::Object(handle) => {
                if let Some(id) = self.find(handle.clone())? {
                    report.object(id, None);
                    if self.busy.count(id) {
                        self.now_busy.push((handle, id));
                    }
                }
            }
            Seen::Name(dir, name) => {
                if let Some(dir) = self.find(dir)? {
                    report.name(dir, name, None);
                }
            }
            Seen::Lost => return Err(()),
        }
        Ok(())
    }
}

impl rounds::EventReader for FilesystemReader {
    fn queue(&self) -> BorrowedFd<'_> {
        self.source.queue.as_fd()
    }

    /// Pending events are not in the kernel's queue any more.
    fn deadline(&self, now: Instant) -> Option<Instant> {
        (self.pending.len() > 0).then_some(now)
    }

    fn round(&mut self, report: &mut RoundReport<'_>) -> Result<QueueState, Errno> {
        let mut state = self.read_queue(BATCH_MAX)?;
        let batch = std::mem::replace(&mut self.pending, Batch::new());
        // Read after the events: the events of a new mark come after the increment.
        let marks = self.source.marks.load(Ordering::SeqCst);
        if std::mem::replace(&mut self.marks, marks) != marks {
            self.handle_cache.clear();
        }
        self.busy.begin();
        for (handle, id) in std::mem::take(&mut self.now_busy) {
            if self.source.ignore(&handle, id) {
                report.object(id, None);
            }
        }
        let mut is_lost = batch.contains(&Seen::Lost);
        let mut read_at = Instant::now();
        for seen in batch.into_keys() {
            if read_at.elapsed() >= READ_INTERVAL {
                state = self.read_queue(PENDING_MAX)?;
                is_lost |= self.pending.contains(&Seen::Lost);
                read_at = Instant::now();
            }
            if is_lost || self.report_event(seen, report).is_err() {
                // Reported at once: it covers all events that were read.
                self.pending = Batch::new();
                report.lost();
                return Ok(QueueState::Empty);
            }
        }
        Ok(if self.pending.len() > 0 { QueueState::NotEmpty } else { state })
    }
}
