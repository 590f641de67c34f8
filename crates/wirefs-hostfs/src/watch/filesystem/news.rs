//! From fanotify's events to ids.

use super::known::Known;
use super::{Filesystem, Found};
use crate::watch::batch::{Batch, Telling};
use crate::watch::events::{self, Handle, Seen};
use crate::watch::rounds::{self, BATCH_MAX, READ_BYTES, Rest};
use rustix::fd::{AsFd, BorrowedFd};
use rustix::io::Errno;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;
use wirefs_op::FileId;

/// Reads the queue.
pub(crate) struct News {
    source: Arc<Filesystem>,
    buffer: Vec<u8>,
    known: Known,
    /// The marks of which `known` is.
    marks: u64,
    /// This process; events of any of its threads carry its number.
    own: i32,
}

impl News {
    pub(crate) fn new(source: Arc<Filesystem>) -> News {
        let own = rustix::process::getpid().as_raw_pid();
        News { source, buffer: vec![0; READ_BYTES], known: Known::default(), marks: 0, own }
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
                if let Some(id) = self.find(handle)? {
                    telling.object(id, None);
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

    fn deadline(&self, _now: Instant) -> Option<Instant> {
        None
    }

    fn round(&mut self, telling: &mut Telling<'_>) -> Result<Rest, Errno> {
        let mut batch = Batch::new();
        let mut rest = Rest::GoOn;
        while batch.len() < BATCH_MAX {
            let length = match rustix::io::read(&self.source.queue, &mut *self.buffer) {
                Ok(length) => length,
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => {
                    rest = Rest::Pause;
                    break;
                }
                Err(error) => return Err(error),
            };
            events::each(self.buffer.get(..length).unwrap_or_default(), self.own, |seen| batch.insert(seen));
        }
        // Asked after reading: what was read of a new mark comes with its being counted.
        let marks = self.source.marks.load(Ordering::SeqCst);
        if std::mem::replace(&mut self.marks, marks) != marks {
            self.known.clear();
        }
        let mut is_lost = false;
        for seen in batch.into_keys() {
            is_lost |= self.tell(seen, telling).is_err();
        }
        if is_lost {
            telling.lost();
        }
        Ok(rest)
    }
}
