//! Tget: walk, open, attributes and data in one request.

use super::commit::Purpose;
use super::listing::Listed;
use super::locate::{Object, Seat, Trees};
use super::pieces::Pieces;
use super::serve::{Answers, Failure};
use super::session::{Name, unlink_if_still};
use super::{BlockTree, Changes};
use crate::change::Change;
use crate::halt::Halt;
use crate::key::Ino;
use crate::limits::WINDOW_BYTES_MAX;
use crate::volume::Volume;
use bytes::Bytes;
use std::sync::Arc;
use wirefs_op::limits::DATA_BYTES_MAX;
use wirefs_op::message::get::{GetMode, Tget};
use wirefs_op::message::target::{Fd, NOFD, Place};
use wirefs_op::{Errno, FileId, Kind, Stat};

/// The directory that was looked in, where a name is asked for, and what was found.
type Sighting = (Option<FileId>, Option<Found>);

/// What was found at first: the object, its attributes, and the beginning of its data.
struct Found {
    object: Object,
    stat: Stat,
    data: Beginning,
}

/// The data of an object, as far as the first look goes.
enum Beginning {
    /// None is asked for, or the object has none.
    None,
    /// More than the one message that was asked for.
    TooLong,
    /// A part of a file, or a link's target.
    Bytes { data: Bytes, ends: bool },
    /// A part of a listing.
    Listing(Listed),
}

impl Beginning {
    /// Whether a file's bytes are to be read that are not here, where so many are wanted.
    fn goes_on(&self, wanted: usize) -> bool {
        matches!(self, Beginning::Bytes { data, ends: false } if data.len() < wanted)
    }
}

impl BlockTree {
    pub(super) fn get(&self, session: u64, request: &Tget, answers: &mut dyn Answers) -> Result<(), Failure> {
        let mut pieces = Pieces::new(request, answers);
        if !request.mode.has(GetMode::MORE)
            && let Some(removal) = self.removal_on_close(session, fd_of(request))
        {
            return self.get_last(session, request, &removal, pieces);
        }
        let ((place, found), volume) = self.sight(None, session, request, pieces.bytes_left())?;
        if let Some(dir) = place {
            pieces.grant_place(dir);
        }
        let Some(Found { object, stat, data }) = found else { return Ok(pieces.end_absent()?) };
        let opens = matches!(object.kind, Kind::File | Kind::Directory);
        if !request.mode.has(GetMode::MORE) {
            // Closing may remove the last name of what is still to be read.
            let is_held = data.goes_on(pieces.bytes_left()) && self.hold(object.id, &volume);
            self.close(session, fd_of(request), object.id);
            let answered = self.answer(request, object, stat, data, pieces);
            if is_held {
                self.release(object.id);
            }
            return answered;
        }
        if opens {
            pieces.fd = match self.keep(session, object, fd_of(request), &volume) {
                Some(fd) => fd,
                // The tree has changed in between: the answer is to be about what is kept open.
                None => return self.get_again(session, request, pieces),
            };
        }
        self.answer(request, object, stat, data, pieces)
    }

    /// Closes a file whose name goes with that, then tells how it is.
    fn get_last(
        &self,
        session: u64,
        request: &Tget,
        removal: &Name,
        mut pieces: Pieces<'_>,
    ) -> Result<(), Failure> {
        let fd = fd_of(request);
        let seat = self.seat(session, fd)?;
        let (object, volume) = self.look(|trees| trees.locate(seat, &request.target))?;
        let is_held = self.hold(object.id, &volume);
        if seat.kept == Some(object.id) {
            let op = |change: &mut Change<'_>| unlink_if_still(change, removal, object.id);
            let removed = self.change(Purpose::Clear, &mut |touched| pieces.touch(touched), op, |()| ());
            // Others must hear of it first: the file stays open until the request is made again.
            if removed == Err(Failure::Parked) {
                if is_held {
                    self.release(object.id);
                }
                return removed;
            }
            self.close(session, fd, object.id);
        }
        let answered = self
            .look(|trees| trees.found(object, request, pieces.bytes_left()))
            .map_err(Failure::Errno)
            .and_then(|(Found { object, stat, data }, _)| self.answer(request, object, stat, data, pieces));
        if is_held {
            self.release(object.id);
        }
        answered
    }

    /// Looks once more, this time with no change beside it.
    fn get_again(&self, session: u64, request: &Tget, mut pieces: Pieces<'_>) -> Result<(), Failure> {
        let changes = self.changes();
        let ((place, found), volume) = self.sight(Some(&changes), session, request, pieces.bytes_left())?;
        if let Some(dir) = place {
            pieces.grant_place(dir);
        }
        let Some(Found { object, stat, data }) = found else { return Ok(pieces.end_absent()?) };
        let opens = matches!(object.kind, Kind::File | Kind::Directory);
        pieces.fd = if opens {
            self.keep(session, object, fd_of(request), &volume).ok_or(Errno::Stale)?
        } else {
            NOFD
        };
        drop(changes);
        self.answer(request, object, stat, data, pieces)
    }

    fn sight(
        &self,
        turn: Option<&Changes>,
        session: u64,
        request: &Tget,
        bytes_max: usize,
    ) -> Result<(Sighting, Arc<Volume>), Errno> {
        let seat = self.seat(session, fd_of(request))?;
        self.look_in(turn, |trees| {
            let (place, object) = trees.subject(seat, request)?;
            let found = object.map(|object| trees.found(object, request, bytes_max));
            Ok((place, found.transpose()?))
        })
    }

    fn answer(
        &self,
        request: &Tget,
        object: Object,
        stat: Stat,
        data: Beginning,
        mut pieces: Pieces<'_>,
    ) -> Result<(), Failure> {
        pieces.stat = request.mode.has(GetMode::STAT).then_some(stat);
        match data {
            Beginning::None => Ok(pieces.end_without_data()?),
            Beginning::TooLong => Ok(pieces.end_without_whole()?),
            Beginning::Bytes { data, ends } => self.stream(request, object.id, data, ends, pieces),
            Beginning::Listing(listed) => self.stream_listing(object.id, listed, pieces),
        }
    }

    /// Sends bytes, window after window.
    fn stream(
        &self,
        request: &Tget,
        id: FileId,
        data: Bytes,
        ends: bool,
        mut pieces: Pieces<'_>,
    ) -> Result<(), Failure> {
        let mut offset = request.offset.saturating_add(data.len() as u64);
        let (mut data, mut ends) = (data, ends);
        while !pieces.send(data, ends)? {
            let wanted = pieces.bytes_left();
            ((data, ends), _) = self.look(|trees| trees.window(id, offset, wanted))?;
            offset = offset.saturating_add(data.len() as u64);
        }
        Ok(())
    }

    fn stream_listing(&self, dir: FileId, first: Listed, mut pieces: Pieces<'_>) -> Result<(), Failure> {
        if first.entries.is_empty() && !first.ends {
            return Err(Errno::Invalid.into());
        }
        let mut listed = first;
        loop {
            let after = listed.next;
            if pieces.send_listing(listed)? {
                return Ok(());
            }
            let room = pieces.bytes_left();
            (listed, _) = self.look(|trees| trees.list(dir, after, room))?;
            if listed.entries.is_empty() && !listed.ends {
                return Ok(pieces.end_listing()?);
            }
        }
    }
}

/// The fd that a request names; where it names an entry, none serves.
fn fd_of(request: &Tget) -> Fd {
    if request.mode.has(GetMode::ENTRY) { NOFD } else { request.target.fd }
}

impl Trees<'_> {
    /// The object that is asked for. Where a name in a directory is: the directory, and nothing if there is no such name.
    fn subject(&self, seat: Seat, request: &Tget) -> Result<(Option<FileId>, Option<Object>), Halt> {
        if !request.mode.has(GetMode::ENTRY) {
            return Ok((None, Some(self.locate(seat, &request.target)?)));
        }
        let place = Place { path: request.target.path.clone(), dir: request.target.id };
        let (dir, name) = self.entry(seat, &place)?;
        match self.step(dir, name) {
            Ok(object) => Ok((Some(dir), Some(object))),
            Err(Halt::Failed(Errno::NotFound)) => Ok((Some(dir), None)),
            Err(halt) => Err(halt),
        }
    }

    fn found(&self, object: Object, request: &Tget, bytes_max: usize) -> Result<Found, Halt> {
        let stat = self.stat(object.id)?;
        let whole = request.mode.has(GetMode::WHOLE);
        let data = match object.kind {
            _ if !request.mode.has(GetMode::DATA) => Beginning::None,
            Kind::File => {
                let left = stat.size.saturating_sub(request.offset);
                if whole && left > bytes_max.min(DATA_BYTES_MAX) as u64 {
                    Beginning::TooLong
                } else {
                    let (data, ends) = self.window(object.id, request.offset, bytes_max)?;
                    Beginning::Bytes { data, ends }
                }
            }
            Kind::Directory => match self.list(object.id, request.offset, bytes_max)? {
                listed if whole && !listed.ends => Beginning::TooLong,
                listed => Beginning::Listing(listed),
            },
            Kind::Symlink if stat.size > bytes_max as u64 => {
                if !whole {
                    // Half a target leads elsewhere.
                    return Err(Halt::Failed(Errno::Range));
                }
                Beginning::TooLong
            }
            Kind::Symlink => {
                let (data, ends) = self.window(object.id, 0, bytes_max)?;
                Beginning::Bytes { data, ends }
            }
            // Opened, a pipe or device would do things.
            Kind::Fifo | Kind::Socket | Kind::CharDevice | Kind::BlockDevice => Beginning::None,
        };
        Ok(Found { object, stat, data })
    }

    /// Bytes of a file from `offset` on, at most `wanted` and a window's; and whether the file ends with them.
    pub(super) fn window(&self, id: FileId, offset: u64, wanted: usize) -> Result<(Bytes, bool), Halt> {
        let view = self.view(id.fs)?;
        let head = view.head(Ino(id.ino))?;
        if head.generation != id.generation {
            return Err(Halt::Failed(Errno::Stale));
        }
        let data = view.read(Ino(id.ino), &head, offset, wanted.min(WINDOW_BYTES_MAX) as u64)?;
        let ends = offset.saturating_add(data.len() as u64) >= head.size;
        Ok((data, ends))
    }
}
