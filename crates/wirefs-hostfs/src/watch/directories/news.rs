//! From inotify's events to ids.

use super::{Directories, Watched};
use crate::attributes;
use crate::watch::batch::{Batch, Telling};
use crate::watch::rounds::{self, BATCH_MAX, READ_BYTES, Rest};
use crate::watch::spaced::Spaced;
use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::inotify::{Event, ReadFlags, Reader};
use rustix::io::Errno;
use std::collections::HashMap;
use std::ffi::CString;
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Removed directories are looked for at most once in this time.
const SWEEP_GAP: Duration = Duration::from_secs(1);

/// What events are about, by the number of their watch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Seen {
    /// The watched object itself.
    Itself(i32),
    /// What has this name in the watched directory; the name still means the same.
    Child(i32, CString),
    /// What this name means in the watched directory.
    Name(i32, CString),
    /// The kernel ended the watch.
    Over(i32),
}

impl Seen {
    /// What would tell of this too, and of more.
    fn as_name(&self) -> Option<Seen> {
        match self {
            Seen::Child(number, name) => Some(Seen::Name(*number, name.clone())),
            Seen::Itself(_) | Seen::Name(..) | Seen::Over(_) => None,
        }
    }
}

/// Reads the queue.
pub(crate) struct News {
    source: Arc<Directories>,
    buffer: Vec<MaybeUninit<u8>>,
    /// A removed directory is not told of to its own watch while it is held, and this watcher holds it; so one that
    /// was removed somewhere is looked for among all.
    sweep: Spaced,
}

impl News {
    pub(crate) fn new(source: Arc<Directories>) -> News {
        News { source, buffer: vec![MaybeUninit::uninit(); READ_BYTES], sweep: Spaced::by(SWEEP_GAP) }
    }

    /// Reads what is queued. The second value: events were lost.
    fn read(&mut self) -> Result<(Batch<Seen>, bool, Rest), Errno> {
        let mut batch = Batch::new();
        let mut is_lost = false;
        let mut reader = Reader::new(&self.source.queue, &mut self.buffer);
        loop {
            // Only between two reads, so that nothing stays behind in the buffer.
            if batch.len() >= BATCH_MAX && reader.is_buffer_empty() {
                return Ok((batch, is_lost, Rest::GoOn));
            }
            match reader.next() {
                Ok(event) => {
                    is_lost |= event.events().contains(ReadFlags::QUEUE_OVERFLOW);
                    if may_have_removed_directory(&event) {
                        self.sweep.want();
                    }
                    let seen = seen(&event);
                    // What was just made is mostly written and closed as well.
                    if !seen.as_name().is_some_and(|name| batch.contains(&name)) {
                        batch.insert(seen);
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok((batch, is_lost, Rest::Pause)),
                Err(error) => return Err(error),
            }
        }
    }
}

/// One round's telling.
struct Round<'a, 'b> {
    source: &'a Directories,
    telling: &'a mut Telling<'b>,
    /// Of directories, read in this round: after all of its events, so once is enough.
    versions: HashMap<i32, Option<u64>>,
}

impl Round<'_, '_> {
    fn tell(&mut self, seen: Seen) {
        match seen {
            Seen::Itself(number) => {
                if let Some(watched) = self.watched(number) {
                    self.tell_itself(number, &watched);
                }
            }
            Seen::Child(number, name) => {
                if let Some(dir) = self.watched(number)
                    && !self.tell_child(number, &dir, &name)
                {
                    // What changed is at another place by now, and which object it was cannot be told.
                    self.tell_name(number, &dir, name);
                }
            }
            Seen::Name(number, name) => {
                if let Some(dir) = self.watched(number) {
                    // What is there now may have other names, or have been elsewhere until now: it changed as well.
                    self.tell_child(number, &dir, &name);
                    self.tell_name(number, &dir, name);
                }
            }
            Seen::Over(number) => {
                let watched = self.source.table().remove(number);
                if let Some(watched) = watched {
                    self.telling.object(watched.id, None);
                }
            }
        }
    }

    fn watched(&self, number: i32) -> Option<Watched> {
        self.source.watched(number)
    }

    /// Tells of a watched object; one that has no name left is watched no more, so that it can be freed.
    fn tell_itself(&mut self, number: i32, watched: &Watched) {
        let version = watched.version();
        if version.is_none() {
            drop(self.source.forget(number));
        }
        self.telling.object(watched.id, version);
    }

    fn tell_name(&mut self, number: i32, dir: &Watched, name: CString) {
        let version = *self.versions.entry(number).or_insert_with(|| dir.version());
        self.telling.name(dir.id, name.into_bytes(), version);
    }

    /// Tells of the object of this name; `false`: there is none.
    fn tell_child(&mut self, number: i32, dir: &Watched, name: &CString) -> bool {
        let Ok(statx) = attributes::statx(dir.fd.as_fd(), name) else {
            return false;
        };
        let id = attributes::file_id(&statx, self.source.home);
        // Before it is told, since it may be asked about from then on.
        self.source.told().insert(id, number, name);
        self.telling.object(id, Some(attributes::version(&statx)));
        true
    }

    /// Finds the watched objects that have no name left.
    fn sweep(&mut self) {
        let all: Vec<_> = {
            let table = self.source.table();
            table.by_number.iter().map(|(number, watched)| (*number, watched.clone())).collect()
        };
        for (number, watched) in all {
            if watched.version().is_none() {
                self.tell_itself(number, &watched);
            }
        }
    }
}

impl rounds::News for News {
    fn queue(&self) -> BorrowedFd<'_> {
        self.source.queue.as_fd()
    }

    fn deadline(&self, now: Instant) -> Option<Instant> {
        self.sweep.deadline(now)
    }

    fn round(&mut self, telling: &mut Telling<'_>) -> Result<Rest, Errno> {
        let (batch, is_lost, rest) = self.read()?;
        if is_lost {
            // The removal of a directory may be among what was lost.
            self.sweep.want();
            telling.lost();
        }
        let is_sweeping = self.sweep.take(Instant::now());
        let mut round = Round { source: &self.source, telling, versions: HashMap::new() };
        for seen in batch.into_keys() {
            round.tell(seen);
        }
        if is_sweeping {
            round.sweep();
        }
        Ok(rest)
    }
}

fn seen(event: &Event<'_>) -> Seen {
    let number = event.wd();
    let names = ReadFlags::CREATE | ReadFlags::DELETE | ReadFlags::MOVED_FROM | ReadFlags::MOVED_TO;
    match event.file_name() {
        None if event.events().contains(ReadFlags::IGNORED) => Seen::Over(number),
        None => Seen::Itself(number),
        Some(name) if event.events().intersects(names) => Seen::Name(number, name.to_owned()),
        Some(name) => Seen::Child(number, name.to_owned()),
    }
}

/// Also a move may: onto an empty directory.
fn may_have_removed_directory(event: &Event<'_>) -> bool {
    event.events().contains(ReadFlags::ISDIR)
        && event.events().intersects(ReadFlags::DELETE | ReadFlags::MOVED_TO)
}
