//! Tget: walk, open, attributes and data in one request.

use super::commit::Purpose;
use super::listing::Listed;
use super::locate::{Object, RequestContext, Trees};
use super::reply_writer::ReplyWriter;
use super::serve::{Failure, ReplySink};
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

/// The directory, if the request names an entry in it, and the object found.
type LookupResult = (Option<FileId>, Option<FoundObject>);

/// An object with its attributes and the first part of its data.
struct FoundObject {
    object: Object,
    stat: Stat,
    data: InitialData,
}

/// The first part of the data of an object.
enum InitialData {
    /// No data was requested, or the object has none.
    None,
    /// More data than the single reply that was requested.
    TooLong,
    /// Bytes of a file, or the target of a symbolic link.
    Bytes { data: Bytes, ends: bool },
    /// Entries of a directory.
    Listing(Listed),
}

impl InitialData {
    /// Returns whether more file data must be read to satisfy `wanted` bytes.
    fn goes_on(&self, wanted: usize) -> bool {
        matches!(self, InitialData::Bytes { data, ends: false } if data.len() < wanted)
    }
}

impl BlockTree {
    pub(super) fn get(
        &self,
        session: u64,
        request: &Tget,
        replies: &mut dyn ReplySink,
    ) -> Result<(), Failure> {
        let mut writer = ReplyWriter::new(request, replies);
        if !request.mode.has(GetMode::MORE)
            && let Some(removal) = self.removal_on_close(session, fd_of(request))
        {
            return self.get_and_remove(session, request, &removal, writer);
        }
        let ((place, found), volume) = self.look_up(None, session, request, writer.bytes_left())?;
        if let Some(dir) = place {
            writer.grant_names(dir);
        }
        let Some(FoundObject { object, stat, data }) = found else { return Ok(writer.end_absent()?) };
        let opens = matches!(object.kind, Kind::File | Kind::Directory);
        if !request.mode.has(GetMode::MORE) {
            // The file stays open until its data is sent, since closing the fd may remove its last name.
            let is_held = data.goes_on(writer.bytes_left()) && self.hold(object.id, &volume);
            self.close(session, fd_of(request), object.id);
            let answered = self.answer(request, object, stat, data, writer);
            if is_held {
                self.release(object.id);
            }
            return answered;
        }
        if opens {
            writer.fd = match self.open_object(session, object, fd_of(request), &volume) {
                Some(fd) => fd,
                // The tree changed since the lookup; attributes and fd must agree.
                None => return self.get_exclusive(session, request, writer),
            };
        }
        self.answer(request, object, stat, data, writer)
    }

    /// Closes an fd with remove-on-close, then returns the attributes.
    fn get_and_remove(
        &self,
        session: u64,
        request: &Tget,
        removal: &Name,
        mut writer: ReplyWriter<'_>,
    ) -> Result<(), Failure> {
        let fd = fd_of(request);
        let context = self.context(session, fd)?;
        let (object, volume) = self.read_tree(|trees| trees.locate(context, &request.target))?;
        let is_held = self.hold(object.id, &volume);
        if context.open_file == Some(object.id) {
            let op = |change: &mut Change<'_>| unlink_if_still(change, removal, object.id);
            let removed = self.change(Purpose::Clear, &mut |affected| writer.announce(affected), op, |()| ());
            // Leases must be recalled first: the file stays open until the request is repeated.
            if removed == Err(Failure::Postponed) {
                if is_held {
                    self.release(object.id);
                }
                return removed;
            }
            self.close(session, fd, object.id);
        }
        let answered = self
            .read_tree(|trees| trees.found(object, request, writer.bytes_left()))
            .map_err(Failure::Errno)
            .and_then(|(FoundObject { object, stat, data }, _)| {
                self.answer(request, object, stat, data, writer)
            });
        if is_held {
            self.release(object.id);
        }
        answered
    }

    /// Repeats the lookup while changes are blocked.
    fn get_exclusive(
        &self,
        session: u64,
        request: &Tget,
        mut writer: ReplyWriter<'_>,
    ) -> Result<(), Failure> {
        let changes = self.changes();
        let ((place, found), volume) = self.look_up(Some(&changes), session, request, writer.bytes_left())?;
        if let Some(dir) = place {
            writer.grant_names(dir);
        }
        let Some(FoundObject { object, stat, data }) = found else { return Ok(writer.end_absent()?) };
        let opens = matches!(object.kind, Kind::File | Kind::Directory);
        writer.fd = if opens {
            self.open_object(session, object, fd_of(request), &volume).ok_or(Errno::Stale)?
        } else {
            NOFD
        };
        drop(changes);
        self.answer(request, object, stat, data, writer)
    }

    fn look_up(
        &self,
        held: Option<&Changes>,
        session: u64,
        request: &Tget,
        bytes_max: usize,
    ) -> Result<(LookupResult, Arc<Volume>), Errno> {
        let context = self.context(session, fd_of(request))?;
        self.read_tree_in(held, |trees| {
            let (place, object) = trees.subject(context, request)?;
            let found = object.map(|object| trees.found(object, request, bytes_max));
            Ok((place, found.transpose()?))
        })
    }

    fn answer(
        &self,
        request: &Tget,
        object: Object,
        stat: Stat,
        data: InitialData,
        mut writer: ReplyWriter<'_>,
    ) -> Result<(), Failure> {
        writer.stat = request.mode.has(GetMode::STAT).then_some(stat);
        match data {
            InitialData::None => Ok(writer.end_without_data()?),
            InitialData::TooLong => Ok(writer.end_without_whole()?),
            InitialData::Bytes { data, ends } => self.stream(request, object.id, data, ends, writer),
            InitialData::Listing(listed) => self.stream_listing(object.id, listed, writer),
        }
    }

    /// Sends file data in windows.
    fn stream(
        &self,
        request: &Tget,
        id: FileId,
        data: Bytes,
        ends: bool,
        mut writer: ReplyWriter<'_>,
    ) -> Result<(), Failure> {
        let mut offset = request.offset.saturating_add(data.len() as u64);
        let (mut data, mut ends) = (data, ends);
        while !writer.send(data, ends)? {
            let wanted = writer.bytes_left();
            ((data, ends), _) = self.read_tree(|trees| trees.window(id, offset, wanted))?;
            offset = offset.saturating_add(data.len() as u64);
        }
        Ok(())
    }

    fn stream_listing(&self, dir: FileId, first: Listed, mut writer: ReplyWriter<'_>) -> Result<(), Failure> {
        if first.entries.is_empty() && !first.ends {
            return Err(Errno::Invalid.into());
        }
        let mut listed = first;
        loop {
            let after = listed.next;
            if writer.send_listing(listed)? {
                return Ok(());
            }
            let room = writer.bytes_left();
            (listed, _) = self.read_tree(|trees| trees.list(dir, after, room))?;
            if listed.entries.is_empty() && !listed.ends {
                return Ok(writer.end_listing()?);
            }
        }
    }
}

/// Returns the fd of a request; an entry lookup uses none.
fn fd_of(request: &Tget) -> Fd {
    if request.mode.has(GetMode::ENTRY) { NOFD } else { request.target.fd }
}

impl Trees<'_> {
    /// Returns the requested object. For an entry lookup, also the directory, and `None` if there is no such
    /// name.
    fn subject(
        &self,
        context: RequestContext,
        request: &Tget,
    ) -> Result<(Option<FileId>, Option<Object>), Halt> {
        if !request.mode.has(GetMode::ENTRY) {
            return Ok((None, Some(self.locate(context, &request.target)?)));
        }
        let place = Place { path: request.target.path.clone(), dir: request.target.id };
        let (dir, name) = self.entry(context, &place)?;
        match self.step(dir, name) {
            Ok(object) => Ok((Some(dir), Some(object))),
            Err(Halt::Failed(Errno::NotFound)) => Ok((Some(dir), None)),
            Err(halt) => Err(halt),
        }
    }

    fn found(&self, object: Object, request: &Tget, bytes_max: usize) -> Result<FoundObject, Halt> {
        let stat = self.stat(object.id)?;
        let whole = request.mode.has(GetMode::WHOLE);
        let data = match object.kind {
            _ if !request.mode.has(GetMode::DATA) => InitialData::None,
            Kind::File => {
                let left = stat.size.saturating_sub(request.offset);
                if whole && left > bytes_max.min(DATA_BYTES_MAX) as u64 {
                    InitialData::TooLong
                } else {
                    let (data, ends) = self.window(object.id, request.offset, bytes_max)?;
                    InitialData::Bytes { data, ends }
                }
            }
            Kind::Directory => match self.list(object.id, request.offset, bytes_max)? {
                listed if whole && !listed.ends => InitialData::TooLong,
                listed => InitialData::Listing(listed),
            },
            Kind::Symlink if stat.size > bytes_max as u64 => {
                if !whole {
                    // A truncated link target would be wrong.
                    return Err(Halt::Failed(Errno::Range));
                }
                InitialData::TooLong
            }
            Kind::Symlink => {
                let (data, ends) = self.window(object.id, 0, bytes_max)?;
                InitialData::Bytes { data, ends }
            }
            // Opening a pipe or device has side effects.
            Kind::Fifo | Kind::Socket | Kind::CharDevice | Kind::BlockDevice => InitialData::None,
        };
        Ok(FoundObject { object, stat, data })
    }

    /// Returns at most `wanted` bytes (and at most a window) from `offset`, and whether they reach the end of
    /// the file.
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
