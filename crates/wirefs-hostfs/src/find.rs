//! Tfind: the listings of a directory and of those below it, in one stream.
//!
//! A directory is told of before what is below it, and that before its next sibling; siblings in the order of their
//! names, in which clients hand out what is listed. That is how whoever walks a tree asks (`find`, `grep -r`, `git`): so
//! what it asks next was told last, and where a bound ends the stream, what was told is where the walk begins. A stream
//! by levels would have to tell all of the tree's upper levels before the first file deep in it.
//!
//! ```text
//!   helpers:  claim the next directory -> open it beneath the root -> entries, attributes, contents --+
//!                 ^                                                                                   | read ahead, bounded
//!                 +--------------------------- its children line up behind it <-----------------------+
//!   caller:   the next in line (reads it if nobody has) -> promise -> pack -> send
//! ```

mod ahead;
mod contents;
mod crew;
mod packing;
mod reading;

use crate::failure::Failure;
use crate::open_files::Access;
use crate::promise::Noticed;
use crate::session::Session;
use ahead::{Ahead, Children, Next};
pub(crate) use crew::Crew;
use packing::{Fit, Packing};
use reading::{Directory, Found, Part, Reader, Reading, Rest};
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

/// A message goes when it is so old, full or not: a link that is idle meanwhile would have carried it.
const MESSAGE_AGE_MAX: Duration = Duration::from_millis(5);
/// The first one goes earlier.
const FIRST_AGE_MAX: Duration = Duration::from_millis(1);
/// A stream that has nothing to send looks as often whether it is wanted still.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// Contents above this many bytes never come along: two of them fill a message.
const INLINE_BYTES_MAX: usize = 64 * 1024;
/// Entries of one directory that are read before they are handed on.
const PART_ENTRIES_MAX: usize = 1024;
/// Contents that are read before they are handed on, in bytes; the last may exceed it.
const PART_CONTENTS_BYTES_MAX: usize = 256 * 1024;
/// Bytes that the directories among those entries take, each with its path; the last may exceed it.
const PART_CHILDREN_BYTES_MAX: usize = 256 * 1024;
/// Directories that are read ahead of what is told.
const AHEAD_DIRECTORIES_MAX: usize = 64;
/// Bytes that what was read ahead takes, at most; each helper may exceed it by one part.
const AHEAD_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Bytes that the directories take which are still to be read. Where there are more, the stream ends with MORE.
const LINE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Threads that read ahead for one stream.
const HELPERS_MAX: usize = 4;
/// So many directories must wait before a thread is worth its while.
const WAITING_FOR_HELP: usize = 4;
/// A helper's stack, in bytes.
const STACK_BYTES: usize = 256 * 1024;

const _: () = assert!(INLINE_BYTES_MAX + PATH_BYTES_MAX + 4096 <= DATA_BYTES_MAX, "contents fit a message");
const _: () = assert!(LINE_BYTES_MAX > 2 * PATH_BYTES_MAX, "each directory can wait in line");

/// Why a stream needs no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    /// Go on.
    All,
    /// A bound ended it.
    Over,
}

impl Session {
    /// Answers with the listings of a directory and of those below it.
    pub(crate) fn find(&self, request: &Tfind, replies: &mut dyn Replies) -> Result<(), Failure> {
        let target = self.locate(&request.target)?;
        if target.kind != Kind::Directory {
            return Err(Errno::NotDirectory.into());
        }
        let dir = target.open(Access::READ)?;
        let top = Directory { path: TreePath::root(), id: target.id, level: 0 };
        let ahead = Ahead::new(request.entries.into());
        let mut stream = Stream {
            session: self,
            request,
            ahead: &ahead,
            reader: Reader::new(self, request),
            packing: Packing::new(request),
            replies,
        };
        let started = Instant::now();
        let is_enough = &mut || started.elapsed() >= FIRST_AGE_MAX;
        let reading = stream.reader.begin(dir, &top, is_enough).ok_or(Errno::Io)?;
        if let (true, Rest::Broken(failure)) = (reading.part.entries.is_empty(), &reading.rest) {
            return Err(*failure);
        }
        ahead.count(&reading.part);
        std::thread::scope(|scope| {
            let _end = End(&ahead);
            stream.tell_all(scope, top, reading)
        })
    }
}

/// Ends the work of the helpers, whatever ended the stream.
struct End<'a>(&'a Ahead);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// One stream, as its caller makes it.
struct Stream<'a> {
    session: &'a Session,
    request: &'a Tfind,
    ahead: &'a Ahead,
    reader: Reader<'a>,
    packing: Packing,
    replies: &'a mut dyn Replies,
}

impl<'a> Stream<'a> {
    fn tell_all<'scope>(
        &mut self,
        scope: &'scope Scope<'scope, '_>,
        top: Directory,
        reading: Reading,
    ) -> Result<(), Failure>
    where
        'a: 'scope,
    {
        let mut told = self.tell(top, reading)?;
        let mut helpers = 0;
        while told == Told::All {
            if helpers < HELPERS_MAX && self.ahead.waiting() >= WAITING_FOR_HELP {
                // With one that cannot be had the next is not tried.
                helpers = if self.add_helper(scope) { helpers + 1 } else { HELPERS_MAX };
            }
            let until = self.packing.due().unwrap_or_else(|| Instant::now() + LOOK_EVERY);
            told = match self.ahead.next(until) {
                Next::Nothing => break,
                Next::Unreadable => Told::All,
                Next::Late => {
                    self.send_if_due()?;
                    Told::All
                }
                Next::Read(directory, reading) => self.tell(directory, *reading)?,
                Next::Unread(directory) => {
                    let is_enough = &mut || Instant::now() >= until;
                    match self.reader.open(&directory, is_enough) {
                        Some(reading) => {
                            self.ahead.count(&reading.part);
                            self.tell(directory, reading)?
                        }
                        None => Told::All,
                    }
                }
            };
            if self.replies.is_stopped() {
                return Err(Failure::Stopped);
            }
        }
        let is_ended = told == Told::Over || self.ahead.is_cut();
        self.send(FindMode::LAST.and_if(is_ended, FindMode::MORE))
    }

    /// Starts one more thread that reads ahead, if there is room for it.
    fn add_helper<'scope>(&self, scope: &'scope Scope<'scope, '_>) -> bool
    where
        'a: 'scope,
    {
        let (session, request, ahead) = (self.session, self.request, self.ahead);
        let Some(helper) = session.export.crew.take() else {
            return false;
        };
        let read_ahead = move || {
            let _helper = helper;
            let mut reader = Reader::new(session, request);
            while let Some(claim) = ahead.claim() {
                let started = Instant::now();
                let is_slow = || claim.is_awaited() && started.elapsed() >= MESSAGE_AGE_MAX;
                let is_enough = &mut || ahead.is_over() || is_slow();
                let reading = reader.open(&claim.directory, is_enough);
                claim.settle(reading);
            }
        };
        let builder = std::thread::Builder::new().name("wirefs-find".into()).stack_size(STACK_BYTES);
        builder.spawn_scoped(scope, read_ahead).is_ok()
    }

    /// Tells of one directory, of which at least the beginning was read.
    fn tell(&mut self, directory: Directory, reading: Reading) -> Result<Told, Failure> {
        let Reading { stat, is_noticed, mut part, mut rest, dir } = reading;
        let noticed = if is_noticed { Noticed::All } else { Noticed::Nothing };
        let mut record = FindDirectory { path: directory.path.clone(), stat, begins: true, ends: false };
        if self.begin(&mut record, noticed)? == Told::Over {
            return Ok(Told::Over);
        }
        record.begins = false;
        let of_entries = self.session.noticed_entries(directory.id, record.stat.leased);
        let mut children = Children::default();
        loop {
            children.take(&mut part);
            let mut stats = part.entries.iter_mut().map(|found| &mut found.stat);
            match &dir {
                Some(dir) => {
                    let dir = (dir.as_fd(), directory.id);
                    self.session.promise_entries(dir, of_entries, self.replies, &mut stats);
                }
                None => self.session.promise(of_entries, self.replies, &mut stats),
            }
            for found in &part.entries {
                if self.add(found, &mut record, noticed)? == Told::Over {
                    return Ok(Told::Over);
                }
            }
            (part, rest) = match rest {
                Rest::Broken(_) => break,
                Rest::Ended if self.end(&mut record, noticed)? == Told::Over => return Ok(Told::Over),
                Rest::Ended => break,
                Rest::More(listing) => self.read_on(listing, &directory)?,
            };
        }
        self.ahead.follow(children);
        self.send_if_due()?;
        Ok(Told::All)
    }

    fn read_on(
        &mut self,
        listing: Box<reading::Listing>,
        directory: &Directory,
    ) -> Result<(Part, Rest), Failure> {
        self.send_if_due()?;
        if self.replies.is_stopped() {
            return Err(Failure::Stopped);
        }
        let until = self.packing.due().unwrap_or_else(|| Instant::now() + MESSAGE_AGE_MAX);
        let read = self.reader.go_on(listing, directory, &mut || Instant::now() >= until);
        self.ahead.count(&read.0);
        Ok(read)
    }

    /// Adds a directory's record, promised anew in each message.
    fn begin(&mut self, record: &mut FindDirectory, noticed: Noticed) -> Result<Told, Failure> {
        record.stat.leased = false;
        self.session.promise(noticed, self.replies, &mut once(&mut record.stat));
        let mut fit = self.packing.directory(record, Instant::now());
        if fit == Fit::Full {
            self.send(FindMode::NONE)?;
            fit = self.packing.directory(record, Instant::now());
        }
        Ok(if fit == Fit::Packed { Told::All } else { Told::Over })
    }

    fn add(&mut self, found: &Found, record: &mut FindDirectory, noticed: Noticed) -> Result<Told, Failure> {
        let is_fresh = self.packing.is_empty();
        let mut fit = if is_fresh { Fit::Full } else { self.packing.entry(found) };
        if fit == Fit::Full {
            if !is_fresh {
                self.send(FindMode::NONE)?;
            }
            if self.begin(record, noticed)? == Told::Over {
                return Ok(Told::Over);
            }
            fit = self.packing.entry(found);
        }
        Ok(if fit == Fit::Packed { Told::All } else { Told::Over })
    }

    /// Says that the directory is complete, in the message that its last entries are in or in the next one.
    fn end(&mut self, record: &mut FindDirectory, noticed: Noticed) -> Result<Told, Failure> {
        if self.packing.is_empty() && self.begin(record, noticed)? == Told::Over {
            return Ok(Told::Over);
        }
        self.packing.end_directory();
        Ok(Told::All)
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
