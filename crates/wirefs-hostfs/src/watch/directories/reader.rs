//! The conversion of the kernel's events to ids.

use super::queue::Queue;
use super::{Directories, Watched};
use crate::attributes;
use crate::watch::batch::{Batch, RoundReport};
use crate::watch::events::{self, Report};
use crate::watch::rate_limit::RateLimit;
use crate::watch::rounds::{self, BATCH_MAX, QueueState, READ_BYTES};
use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::inotify::{Event, ReadFlags, Reader};
use rustix::io::Errno;
use std::collections::HashMap;
use std::ffi::CString;
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Watched objects are searched for removed directories at most once in this time.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);

/// The subject of an event, by the number of the watch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Seen {
    /// The watched object itself.
    Itself(i32),
    /// The object with this name in the watched directory; the name still refers to it.
    Child(i32, CString),
    /// The meaning of this name in the watched directory.
    Name(i32, CString),
    /// The kernel ended the watch.
    WatchEnded(i32),
    /// The server itself may have removed the last name of the watched object.
    OwnChange(i32),
}

impl Seen {
    /// The event that would report the same object and more.
    fn as_name(&self) -> Option<Seen> {
        match self {
            Seen::Child(number, name) => Some(Seen::Name(*number, name.clone())),
            Seen::Itself(_) | Seen::Name(..) | Seen::WatchEnded(_) | Seen::OwnChange(_) => None,
        }
    }
}

/// Reads the queue.
pub(crate) struct DirectoryReader {
    source: Arc<Directories>,
    buffer: Vec<MaybeUninit<u8>>,
    bytes: Vec<u8>,
    /// The id of this process, which events of all its threads carry.
    own: i32,
    /// While a removed directory is open, its own watch has no event, and this watcher keeps it open. So after the
    /// removal of any directory all watched ones are checked.
    sweep: RateLimit,
}

impl DirectoryReader {
    pub(crate) fn new(source: Arc<Directories>) -> DirectoryReader {
        let own = rustix::process::getpid().as_raw_pid();
        let (unread, bytes) = match source.queue.excludes_own() {
            true => (0, READ_BYTES),
            false => (READ_BYTES, 0),
        };
        let buffer = vec![MaybeUninit::uninit(); unread];
        DirectoryReader {
            source,
            buffer,
            bytes: vec![0; bytes],
            own,
            sweep: RateLimit::every(SWEEP_INTERVAL),
        }
    }

    /// Reads queued events. The second value: events were lost.
    fn read(&mut self) -> Result<(Batch<Seen>, bool, QueueState), Errno> {
        let source = Arc::clone(&self.source);
        match &source.queue {
            Queue::Marks(queue) => self.read_marks(queue.as_fd()),
            Queue::Inotify(queue) => self.read_inotify(queue.as_fd()),
        }
    }

    fn read_marks(&mut self, queue: BorrowedFd<'_>) -> Result<(Batch<Seen>, bool, QueueState), Errno> {
        let mut batch = Batch::new();
        let mut is_lost = false;
        while batch.len() < BATCH_MAX {
            let length = match rustix::io::read(queue, &mut *self.bytes) {
                Ok(length) => length,
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => return Ok((batch, is_lost, QueueState::Empty)),
                Err(error) => return Err(error),
            };
            let (source, sweep) = (&self.source, &mut self.sweep);
            events::reports(self.bytes.get(..length).unwrap_or_default(), self.own, |report| match report {
                None => is_lost = true,
                Some(Report { object: None, place: None, is_own: false, .. }) => is_lost = true,
                Some(report) => {
                    // A directory that was replaced by a rename has no event of its own.
                    if report.mask & libc::FAN_ONDIR != 0 && report.mask & libc::FAN_MOVED_TO != 0 {
                        sweep.want();
                    }
                    source.marked(report).into_iter().flatten().for_each(|seen| insert(&mut batch, seen));
                }
            });
        }
        Ok((batch, is_lost, QueueState::NotEmpty))
    }

    fn read_inotify(&mut self, queue: BorrowedFd<'_>) -> Result<(Batch<Seen>, bool, QueueState), Errno> {
        let mut batch = Batch::new();
        let mut is_lost = false;
        let mut reader = Reader::new(queue, &mut self.buffer);
        loop {
            // Only between two reads, so that no event stays in the buffer.
            if batch.len() >= BATCH_MAX && reader.is_buffer_empty() {
                return Ok((batch, is_lost, QueueState::NotEmpty));
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
                Err(Errno::AGAIN) => return Ok((batch, is_lost, QueueState::Empty)),
                Err(error) => return Err(error),
            }
        }
    }
}

/// A new file is usually written and closed as well, which needs no second report.
fn insert(batch: &mut Batch<Seen>, seen: Seen) {
    if !seen.as_name().is_some_and(|name| batch.contains(&name)) {
        batch.insert(seen);
    }
}

impl Directories {
    /// The subjects of an event, as far as they are watched.
    fn marked(&self, report: Report) -> [Option<Seen>; 2] {
        let (changes_names, changes_object) = (report.changes_names(), report.changes_object());
        let table = self.table();
        let object = report.object.and_then(|object| table.handles.get(&object).copied());
        if report.is_own {
            // The watch of an object without a name is ended, even if the server removed the name.
            return [object.filter(|_| changes_object).map(Seen::OwnChange), None];
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

/// The reports of one round.
struct Round<'a, 'b> {
    source: &'a Directories,
    report: &'a mut RoundReport<'b>,
    /// The versions of directories. One read per round is enough, because it follows all events of the round.
    versions: HashMap<i32, Option<u64>>,
}

impl Round<'_, '_> {
    fn report(&mut self, seen: Seen) {
        match seen {
            Seen::Itself(number) => {
                if let Some(watched) = self.watched(number) {
                    self.report_object(number, &watched);
                }
            }
            Seen::Child(number, name) => {
                if let Some(dir) = self.watched(number)
                    && !self.report_child(number, &dir, &name)
                {
                    // The object has moved meanwhile, and its id is unknown.
                    self.report_name(number, &dir, name);
                }
            }
            Seen::Name(number, name) => {
                if let Some(dir) = self.watched(number) {
                    // The object with this name now may have other names, or may have moved here, so it has changed
                    // as well.
                    self.report_child(number, &dir, &name);
                    self.report_name(number, &dir, name);
                }
            }
            Seen::OwnChange(number) => {
                if self.watched(number).is_some_and(|watched| watched.version(self.source.home).is_none()) {
                    drop(self.source.end_watch(number));
                }
            }
            Seen::WatchEnded(number) => {
                let watched = self.source.table().remove(number);
                if let Some(watched) = watched {
                    self.report.object(watched.id, None);
                }
            }
        }
    }

    fn watched(&self, number: i32) -> Option<Watched> {
        self.source.watched(number)
    }

    /// The version for a report, if own changes must be recognized.
    fn reported_version(&self, version: Option<u64>) -> Option<u64> {
        version.filter(|_| !self.source.excludes_own())
    }

    /// Reports a watched object. If it has no name left, its watch is ended, so that it can be freed.
    fn report_object(&mut self, number: i32, watched: &Watched) {
        let version = watched.version(self.source.home);
        if version.is_none() {
            drop(self.source.end_watch(number));
        }
        self.report.object(watched.id, self.reported_version(version));
    }

    fn report_name(&mut self, number: i32, dir: &Watched, name: CString) {
        let version = match self.source.excludes_own() {
            true => None,
            false => *self.versions.entry(number).or_insert_with(|| dir.version(self.source.home)),
        };
        self.report.name(dir.id, name.into_bytes(), version);
    }

    /// Reports the object with this name. Returns false if there is none.
    fn report_child(&mut self, number: i32, dir: &Watched, name: &CString) -> bool {
        let Ok(statx) = attributes::statx(dir.fd.as_fd(), name) else {
            return false;
        };
        let id = attributes::file_id(&statx, self.source.home);
        // Before the report, which may cause a verification.
        self.source.recent().insert(id, number, name);
        self.report.object(id, self.reported_version(Some(attributes::version(&statx, self.source.home))));
        true
    }

    /// Reports the watched objects that have no name left.
    fn sweep(&mut self) {
        let all: Vec<_> = {
            let table = self.source.table();
            table.by_number.iter().map(|(number, watched)| (*number, watched.clone())).collect()
        };
        for (number, watched) in all {
            if watched.version(self.source.home).is_none() {
                self.report_object(number, &watched);
            }
        }
    }
}

impl rounds::EventReader for DirectoryReader {
    fn queue(&self) -> BorrowedFd<'_> {
        self.source.queue.as_fd()
    }

    fn deadline(&self, now: Instant) -> Option<Instant> {
        self.sweep.deadline(now)
    }

    fn round(&mut self, report: &mut RoundReport<'_>) -> Result<QueueState, Errno> {
        let (batch, is_lost, state) = self.read()?;
        if is_lost {
            // A lost event may be the removal of a directory.
            self.sweep.want();
            report.lost();
        }
        let is_sweeping = self.sweep.take(Instant::now());
        let mut round = Round { source: &self.source, report, versions: HashMap::new() };
        for seen in batch.into_keys() {
            round.report(seen);
        }
        if is_sweeping {
            round.sweep();
        }
        Ok(state)
    }
}

fn seen(event: &Event<'_>) -> Seen {
    let number = event.wd();
    let names = ReadFlags::CREATE | ReadFlags::DELETE | ReadFlags::MOVED_FROM | ReadFlags::MOVED_TO;
    match event.file_name() {
        None if event.events().contains(ReadFlags::IGNORED) => Seen::WatchEnded(number),
        None => Seen::Itself(number),
        Some(name) if event.events().intersects(names) => Seen::Name(number, name.to_owned()),
        Some(name) => Seen::Child(number, name.to_owned()),
    }
}

/// A rename may replace an empty directory.
fn may_have_removed_directory(event: &Event<'_>) -> bool {
    event.events().contains(ReadFlags::ISDIR)
        && event.events().intersects(ReadFlags::DELETE | ReadFlags::MOVED_TO)
}
