//! From fanotify's events to ids.

use super::ignored::Busy;
use super::known::Known;
use super::{Filesystem, Found};
use crate::watch::batch::{Batch, Telling};
use crate::watch::events::{self, Handle, Seen};
use crate::watch::rounds::{self, BATCH_MAX, READ_BYTES, Rest};
use rustix::fd::{AsFd, BorrowedFd};
use rustix::io::Errno;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use wirefs_op::FileId;

/// After so long the queue is read again, though a round is still told: everything on the file system comes here, beside the export too,
/// and a program can fill it in some 10 ms. To look for an object that is just being removed may take as long.
const UNREAD_MAX: Duration = Duration::from_millis(1);
/// Things that are read while others are told, at most: some 10 MiB, with long names 30. Then the queue fills.
const GATHERED_MAX: usize = 8 * BATCH_MAX;

/// Reads the queue.
pub(crate) struct News {
    source: Arc<Filesystem>,
    buffer: Vec<u8>,
    /// What was read, and is told in the next round.
    gathered: Batch<Seen>,
    known: Known,
    /// The marks of which `known` is.
    marks: u64,
    busy: Busy,
    /// Files that became busy in the last round, with their handles.
    now_busy: Vec<(Handle, FileId)>,
    /// This process; events of any of its threads carry its number.
    own: i32,
}

impl News {
    pub(crate) fn new(source: Arc<Filesystem>) -> News {
        let own = rustix::process::getpid().as_raw_pid();
        let buffer = vec![0; READ_BYTES];
        News {
            source,
            buffer,
            gathered: Batch::new(),
            known: Known::default(),
            marks: 0,
            busy: Busy::default(),
            now_busy: Vec::new(),
            own,
        }
    }

    /// Reads what is queued, as far as there is room for it.
    fn gather(&mut self, most: usize) -> Result<Rest, Errno> {
        while self.gathered.len() < most {
            let length = match rustix::io::read(&self.source.queue, &mut *self.buffer) {
                Ok(length) => length,
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => return Ok(Rest::Pause),
                Err(error) => return Err(error),
            };
            let events = self.buffer.get(..length).unwrap_or_default();
            events::each(events, self.own, |seen| self.gathered.insert(seen));
        }
        Ok(Rest::GoOn)
    }

    /// The object behind a handle; `None`: it is gone. The error says that this cannot be known.
    fn find(&mut self, handle: Handle) -> Result<Option<FileId>, ()> {
        if let Some(id) = self.known.find(&handle) {
            return Ok(Some(id));
        }
        match self.source.find(&handle) {
            Found::Id(id) => {
                self.known.insert(handle, id);
                Ok(Some(id))
            }
            Found::Gone => Ok(None),
            Found::Unknown => Err(()),
        }
    }

    /// What is gone is told by the name that it had: its removal has an event of its own.
    fn tell(&mut self, seen: Seen, telling: &mut Telling<'_>) -> Result<(), ()> {
        match seen {
            Seen::Object(handle) => {
                if let Some(id) = self.find(handle.clone())? {
                    telling.object(id, None);
                    if self.busy.count(id) {
                        self.now_busy.push((handle, id));
                    }
                }
            }
            Seen::Name(dir, name) => {
                if let Some(dir) = self.find(dir)? {
                    telling.name(dir, name, None);
                }
            }
            Seen::Lost => return Err(()),
        }
        Ok(())
    }
}

impl rounds::News for News {
    fn queue(&self) -> BorrowedFd<'_> {
        self.source.queue.as_fd()
    }

    /// What was gathered is not in the queue any more.
    fn deadline(&self, now: Instant) -> Option<Instant> {
        (self.gathered.len() > 0).then_some(now)
    }

    fn round(&mut self, telling: &mut Telling<'_>) -> Result<Rest, Errno> {
        let mut rest = self.gather(BATCH_MAX)?;
        let batch = std::mem::replace(&mut self.gathered, Batch::new());
        // Asked after reading: what was read of a new mark comes with its being counted.
        let marks = self.source.marks.load(Ordering::SeqCst);
        if std::mem::replace(&mut self.marks, marks) != marks {
            self.known.clear();
        }
        self.busy.begin();
        for (handle, id) in std::mem::take(&mut self.now_busy) {
            if self.source.ignore(&handle, id) {
                telling.object(id, None);
            }
        }
        let mut is_lost = batch.contains(&Seen::Lost);
        let mut read_at = Instant::now();
        for seen in batch.into_keys() {
            if read_at.elapsed() >= UNREAD_MAX {
                rest = self.gather(GATHERED_MAX)?;
                is_lost |= self.gathered.contains(&Seen::Lost);
                read_at = Instant::now();
            }
            if is_lost || self.tell(seen, telling).is_err() {
                // Said at once: it is more than all that was read so far.
                self.gathered = Batch::new();
                telling.lost();
                return Ok(Rest::Pause);
            }
        }
        Ok(if self.gathered.len() > 0 { Rest::GoOn } else { rest })
    }
}
