//! Tfind: the listings of a directory and of its subdirectories in one stream.
//!
//! A directory is sent before its subdirectories, and these before its next sibling; siblings are sorted by name,
//! as in the client's listings. Programs that walk a tree (`find`, `grep -r`, `git`) read in this order. So the
//! stream has the next needed directory early, and a limit cuts off the directories that are needed last. A stream
//! by levels would have to send all upper levels before the first deep file.
//!
//! ```text
//!   helpers:  claim the next directory -> open it beneath the root -> entries, attributes, contents --+
//!                 ^                                                                                   | read-ahead, bounded
//!                 +--------------------------- enqueue its children behind it <-----------------------+
//!   caller:   take the next in the queue (read it if no helper has) -> grant leases -> pack -> send
//! ```

mod contents;
mod helper_limit;
mod packing;
mod read_ahead;
mod reading;

use crate::detection::Coverage;
use crate::failure::Failure;
use crate::open_files::Access;
use crate::session::Session;
pub(crate) use helper_limit::HelperLimit;
use packing::{Fit, Packing};
use read_ahead::{Children, Next, ReadAhead};
use reading::{Directory, FoundEntry, Part, Reader, Reading, Remainder};
use rustix::fd::AsFd;
use std::iter::once;
use std::thread::Scope;
use std::time::{Duration, Instant};
use wirefs_op::find_listing::FindDirectory;
use wirefs_op::limits::{DATA_BYTES_MAX, PATH_BYTES_MAX};
use wirefs_op::message::find::{FindMode, Rfind, Tfind};
use wirefs_op::wire::Data;
use wirefs_op::{Errno, Kind, Reply, TreePath};
use wirefs_server::Replies;

/// A message is sent at this age, full or not, so that the network is not idle.
const MESSAGE_AGE_MAX: Duration = Duration::from_millis(5);
/// The first message is sent earlier.
const FIRST_AGE_MAX: Duration = Duration::from_millis(1);
/// The interval at which a stream without data checks whether it is still wanted.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(10);
/// The largest contents that are included: two of them fill a message.
const INLINE_BYTES_MAX: usize = 64 * 1024;
/// Entries of one directory that are read before they are handed on.
const PART_ENTRIES_MAX: usize = 1024;
/// Bytes of contents that are read before they are handed on; the last may exceed it.
const PART_CONTENTS_BYTES_MAX: usize = 256 * 1024;
/// Bytes of the subdirectories among those entries, with their paths; the last may exceed it.
const PART_CHILDREN_BYTES_MAX: usize = 256 * 1024;
/// Directories that are read ahead.
const READ_AHEAD_DIRECTORIES_MAX: usize = 64;
/// Bytes of all data that was read ahead; each helper may exceed it by one part.
const READ_AHEAD_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Bytes of the queued directories. Beyond them the stream ends with MORE.
const QUEUE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Helper threads of one stream.
const HELPERS_MAX: usize = 4;
/// Directories that must wait in the queue before a helper is started.
const WAITING_MIN: usize = 4;
/// Stack size of a helper in bytes.
const STACK_BYTES: usize = 256 * 1024;

const _: () = assert!(INLINE_BYTES_MAX + PATH_BYTES_MAX + 4096 <= DATA_BYTES_MAX, "contents fit a message");
const _: () = assert!(QUEUE_BYTES_MAX > 2 * PATH_BYTES_MAX, "each directory can wait in line");

/// Whether a stream continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StreamState {
    /// It continues.
    All,
    /// A limit ended it.
    Over,
}

impl Session {
    /// Sends the listings of a directory and of its subdirectories.
    pub(crate) fn find(&self, request: &Tfind, replies: &mut dyn Replies) -> Result<(), Failure> {
        let target = self.locate(&request.target)?;
        if target.kind != Kind::Directory {
            return Err(Errno::NotDirectory.into());
        }
        let dir = target.open(Access::READ)?;
        let top = Directory { path: TreePath::root(), id: target.id, level: 0 };
        let read_ahead = ReadAhead::new(request.entries.into());
        let mut stream = Stream {
            session: self,
            request,
            read_ahead: &read_ahead,
            reader: Reader::new(self, request),
            packing: Packing::new(request),
            replies,
        };
        let started = Instant::now();
        let is_enough = &mut || started.elapsed() >= FIRST_AGE_MAX;
        let reading = stream.reader.begin(dir, &top, is_enough).ok_or(Errno::Io)?;
        if let (true, Remainder::Broken(failure)) = (reading.part.entries.is_empty(), &reading.rest) {
            return Err(*failure);
        }
        read_ahead.count(&reading.part);
        std::thread::scope(|scope| {
            let _end = End(&read_ahead);
            stream.send_all(scope, top, reading)
        })
    }
}

/// Ends the helpers when the stream ends for any reason.
struct End<'a>(&'a ReadAhead);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// One stream, in the request's thread.
struct Stream<'a> {
    session: &'a Session,
    request: &'a Tfind,
    read_ahead: &'a ReadAhead,
    reader: Reader<'a>,
    packing: Packing,
    replies: &'a mut dyn Replies,
}

impl<'a> Stream<'a> {
    fn send_all<'scope>(
        &mut self,
        scope: &'scope Scope<'scope, '_>,
        top: Directory,
        reading: Reading,
    ) -> Result<(), Failure>
    where
        'a: 'scope,
    {
        let mut state = self.send_directory(top, reading)?;
        let mut helpers = 0;
        while state == StreamState::All {
            if helpers < HELPERS_MAX && self.read_ahead.waiting() >= WAITING_MIN {
                // After a failure no further helper is tried.
                helpers = if self.add_helper(scope) { helpers + 1 } else { HELPERS_MAX };
            }
            let until = self.packing.due().unwrap_or_else(|| Instant::now() + STOP_CHECK_INTERVAL);
            state = match self.read_ahead.next(until) {
                Next::Nothing => break,
                Next::Unreadable => StreamState::All,
                Next::Late => {
                    self.send_if_due()?;
                    StreamState::All
                }
                Next::Read(directory, reading) => self.send_directory(directory, *reading)?,
                Next::Unread(directory) => {
                    let is_enough = &mut || Instant::now() >= until;
                    match self.reader.open(&directory, is_enough) {
                        Some(reading) => {
                            self.read_ahead.count(&reading.part);
                            self.send_directory(directory, reading)?
                        }
                        None => StreamState::All,
                    }
                }
            };
            if self.replies.is_stopped() {
                return Err(Failure::Stopped);
            }
        }
        let is_ended = state == StreamState::Over || self.read_ahead.is_cut();
        self.send(FindMode::LAST.and_if(is_ended, FindMode::MORE))
    }

    /// Starts another helper, if the limits allow it.
    fn add_helper<'scope>(&self, scope: &'scope Scope<'scope, '_>) -> bool
    where
        'a: 'scope,
    {
        let (session, request, shared) = (self.session, self.request, self.read_ahead);
        let Some(helper) = session.export.helper_limit.take() else {
            return false;
        };
        let read_ahead = move || {
            let _helper = helper;
            let mut reader = Reader::new(session, request);
            while let Some(claim) = shared.claim() {
                let started = Instant::now();
                let is_slow = || claim.is_awaited() && started.elapsed() >= MESSAGE_AGE_MAX;
                let is_enough = &mut || shared.is_over() || is_slow();
                let reading = reader.open(&claim.directory, is_enough);
                claim.settle(reading);
            }
        };
        let builder = std::thread::Builder::new().name("wirefs-find".into()).stack_size(STACK_BYTES);
        builder.spawn_scoped(scope, read_ahead).is_ok()
    }

    /// Sends one directory, of which at least the beginning was read.
    fn send_directory(&mut self, directory: Directory, reading: Reading) -> Result<StreamState, Failure> {
        let Reading { stat, is_covered, mut part, mut rest, dir } = reading;
        let coverage = if is_covered { Coverage::All } else { Coverage::Nothing };
        let mut record = FindDirectory { path: directory.path.clone(), stat, begins: true, ends: false };
        if self.begin(&mut record, coverage)? == StreamState::Over {
            return Ok(StreamState::Over);
        }
        record.begins = false;
        let of_entries = self.session.entry_coverage(directory.id, record.stat.leased);
        let mut children = Children::default();
        loop {
            children.take(&mut part);
            let mut stats = part.entries.iter_mut().map(|found| &mut found.stat);
            match &dir {
                Some(dir) => {
                    let dir = (dir.as_fd(), directory.id);
                    self.session.lease_entries(dir, of_entries, self.replies, &mut stats);
                }
                None => self.session.lease(of_entries, self.replies, &mut stats),
            }
            for found in &part.entries {
                if self.add(found, &mut record, coverage)? == StreamState::Over {
                    return Ok(StreamState::Over);
                }
            }
            (part, rest) = match rest {
                Remainder::Broken(_) => break,
                Remainder::Ended if self.end(&mut record, coverage)? == StreamState::Over => {
                    return Ok(StreamState::Over);
                }
                Remainder::Ended => break,
                Remainder::More(listing) => self.read_more(listing, &directory)?,
            };
        }
        self.read_ahead.enqueue_children(children);
        self.send_if_due()?;
        Ok(StreamState::All)
    }

    fn read_more(
        &mut self,
        listing: Box<reading::Listing>,
        directory: &Directory,
    ) -> Result<(Part, Remainder), Failure> {
        self.send_if_due()?;
        if self.replies.is_stopped() {
            return Err(Failure::Stopped);
        }
        let until = self.packing.due().unwrap_or_else(|| Instant::now() + MESSAGE_AGE_MAX);
        let read = self.reader.continue_listing(listing, directory, &mut || Instant::now() >= until);
        self.read_ahead.count(&read.0);
        Ok(read)
    }

    /// Adds the record of a directory, with a new lease in each message.
    fn begin(&mut self, record: &mut FindDirectory, coverage: Coverage) -> Result<StreamState, Failure> {
        record.stat.leased = false;
        self.session.lease(coverage, self.replies, &mut once(&mut record.stat));
        let mut fit = self.packing.directory(record, Instant::now());
        if fit == Fit::Full {
            self.send(FindMode::NONE)?;
            fit = self.packing.directory(record, Instant::now());
        }
        Ok(if fit == Fit::Packed { StreamState::All } else { StreamState::Over })
    }

    fn add(
        &mut self,
        found: &FoundEntry,
        record: &mut FindDirectory,
        coverage: Coverage,
    ) -> Result<StreamState, Failure> {
        let is_fresh = self.packing.is_empty();
        let mut fit = if is_fresh { Fit::Full } else { self.packing.entry(found) };
        if fit == Fit::Full {
            if !is_fresh {
                self.send(FindMode::NONE)?;
            }
            if self.begin(record, coverage)? == StreamState::Over {
                return Ok(StreamState::Over);
            }
            fit = self.packing.entry(found);
        }
        Ok(if fit == Fit::Packed { StreamState::All } else { StreamState::Over })
    }

    /// Marks the directory as complete, in the message with its last entries or in the next one.
    fn end(&mut self, record: &mut FindDirectory, coverage: Coverage) -> Result<StreamState, Failure> {
        if self.packing.is_empty() && self.begin(record, coverage)? == StreamState::Over {
            return Ok(StreamState::Over);
        }
        self.packing.end_directory();
        Ok(StreamState::All)
    }

    fn send_if_due(&mut self) -> Result<(), Failure> {
        match self.packing.due() {
            Some(due) if due <= Instant::now() => self.send(FindMode::NONE),
            Some(_) | None => Ok(()),
        }
    }

    fn send(&mut self, mode: FindMode) -> Result<(), Failure> {
        let data = Data(self.packing.take());
        Ok(self.replies.send(Reply::Find(Rfind { mode, data }))?)
    }
}

#[cfg(test)]
mod tests;
