//! From the kernel's events to ids.

use super::queue::Queue;
use super::{Directories, Watched};
use crate::attributes;
use crate::watch::batch::{Batch, Telling};
use crate::watch::events::{self, Report};
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
    /// The server itself may have taken the last name of the watched object.
    Mine(i32),
}

impl Seen {
    /// What would tell of this too, and of more.
    fn as_name(&self) -> Option<Seen> {
        match self {
            Seen::Child(number, name) => Some(Seen::Name(*number, name.clone())),
            Seen::Itself(_) | Seen::Name(..) | Seen::Over(_) | Seen::Mine(_) => None,
        }
    }
}

/// Reads the queue.
pub(crate) struct News {
    source: Arc<Directories>,
    buffer: Vec<MaybeUninit<u8>>,
    bytes: Vec<u8>,
    /// This process; events of any of its threads carry its number.
    own: i32,
    /// A removed directory is not told of to its own watch while it is held, and this watcher holds it; so one that
    /// was removed somewhere is looked for among all.
    sweep: Spaced,
}

impl News {
    pub(crate) fn new(source: Arc<Directories>) -> News {
        let own = rustix::process::getpid().as_raw_pid();
        let (unread, bytes) = match source.queue.leaves_out_own() {
            true => (0, READ_BYTES),
            false => (READ_BYTES, 0),
        };
        let buffer = vec![MaybeUninit::uninit(); unread];
        News { source, buffer, bytes: vec![0; bytes], own, sweep: Spaced::by(SWEEP_GAP) }
    }

    /// Reads what is queued. The second value: events were lost.
    fn read(&mut self) -> Result<(Batch<Seen>, bool, Rest), Errno> {
        let source = Arc::clone(&self.source);
        match &source.queue {
            Queue::Marks(queue) => self.read_marks(queue.as_fd()),
            Queue::Inotify(queue) => self.read_inotify(queue.as_fd()),
        }
    }

    fn read_marks(&mut self, queue: BorrowedFd<'_>) -> Result<(Batch<Seen>, bool, Rest), Errno> {
        let mut batch = Batch::new();
        let mut is_lost = false;
        while batch.len() < BATCH_MAX {
            let length = match rustix::io::read(queue, &mut *self.bytes) {
                Ok(length) => length,
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => return Ok((batch, is_lost, Rest::Pause)),
                Err(error) => return Err(error),
            };
            let (source, sweep) = (&self.source, &mut self.sweep);
            events::reports(self.bytes.get(..length).unwrap_or_default(), self.own, |report| match report {
                None => is_lost = true,
                Some(Report { object: None, place: None, is_own: false, .. }) => is_lost = true,
                Some(report) => {
                    // One that a directory was moved onto has no event of its own.
                    if report.mask & libc::FAN_ONDIR != 0 && report.mask & libc::FAN_MOVED_TO != 0 {
                        sweep.want();
                    }
                    source.marked(report).into_iter().flatten().for_each(|seen| insert(&mut batch, seen));
                }
            });
        }
        Ok((batch, is_lost, Rest::GoOn))
    }

    fn read_inotify(&mut self, queue: BorrowedFd<'_>) -> Result<(Batch<Seen>, bool, Rest), Errno> {
        let mut batch = Batch::new();
        let mut is_lost = false;
        let mut reader = Reader::new(queue, &mut self.buffer);
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
                    insert(&mut batch, seen(&event));
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok((batch, is_lost, Rest::Pause)),
                Err(error) => return Err(error),
            }
        }
    }
}

/// What was just made is mostly written and closed as well.
fn insert(batch: &mut Batch<Seen>, seen: Seen) {
    if !seen.as_name().is_some_and(|name| batch.contains(&name)) {
        batch.insert(seen);
    }
}

impl Directories {
    /// What an event is about, as far as that is watched.
    fn marked(&self, report: Report) -> [Option<Seen>; 2] {
        let (changes_names, changes_object) = (report.changes_names(), report.changes_object());
        let table = self.table();
        let object = report.object.and_then(|object| table.handles.get(&object).copied());
        if report.is_own {
            // What has no name left is let go of, whoever took it.
            return [object.filter(|_| changes_object).map(Seen::Mine), None];
        }
        let place =
            report.place.and_then(|(dir, name)| Some((*table.handles.get(&dir)?, CString::new(name).ok()?)));
        let named = match place {
            Some((dir, name)) if changes_names => Some(Seen::Name(dir, name)),
            Some((dir, name)) if object.is_none() => Some(Seen::Child(dir, name)),
            Some(_) | None => None,
        };
        [object.filter(|_| changes_object).map(Seen::Itself), named]
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
            Seen::Mine(number) => {
                if self.watched(number).is_some_and(|watched| watched.version().is_none()) {
                    drop(self.source.forget(number));
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

    /// By the version own changes are recognised, where they are told of.
    fn told(&self, version: Option<u64>) -> Option<u64> {
        version.filter(|_| !self.source.leaves_out_own())
    }

    /// Tells of a watched object; one that has no name left is watched no more, so that it can be freed.
    fn tell_itself(&mut self, number: i32, watched: &Watched) {
        let version = watched.version();
        if version.is_none() {
            drop(self.source.forget(number));
        }
        self.telling.object(watched.id, self.told(version));
    }

    fn tell_name(&mut self, number: i32, dir: &Watched, name: CString) {
        let version = match self.source.leaves_out_own() {
            true => None,
            false => *self.versions.entry(number).or_insert_with(|| dir.version()),
        };
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
        self.telling.object(id, self.told(Some(attributes::version(&statx))));
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
