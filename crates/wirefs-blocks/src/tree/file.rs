//! The requests on one object that are neither Tget nor Tput.

use super::BlockTree;
use super::command::PREFIX;
use super::commit::Purpose;
use super::locate::{Object, Seat, Trees};
use super::serve::{Answers, Failure};
use crate::change::{Change, CopyRange, Progress, check_end, check_file, check_name};
use crate::halt::{Halt, both};
use crate::key::Ino;
use crate::limits::COPY_BYTES_MAX;
use crate::view::Hole;
use bytes::Bytes;
use wirefs_op::limits::{NAME_BYTES_MAX, XATTR_BYTES_MAX};
use wirefs_op::message::allocate::{Rallocate, Tallocate};
use wirefs_op::message::commit::{Rcommit, Tcommit};
use wirefs_op::message::copy::{Rcopy, Tcopy};
use wirefs_op::message::seek::{Rseek, Tseek};
use wirefs_op::message::statfs::{Rstatfs, Tstatfs};
use wirefs_op::message::xattr::{Rxattr, Txattr, XattrAction};
use wirefs_op::wire::Data;
use wirefs_op::{Errno, FileId, FsStat, Kind};

/// Access lists. There are none; but a kernel that was told that there may be some asks for them when it checks permissions,
/// and takes any other answer than that there is none for a failure.
const ACL_PREFIX: &[u8] = b"system.posix_acl_";

/// An object of the present tree, as one that may be changed.
pub(super) fn present(id: FileId) -> Result<Ino, Errno> {
    if id.fs == 0 { Ok(Ino(id.ino)) } else { Err(Errno::ReadOnly) }
}

/// An object, if it is one that can be opened as a file.
fn openable(object: Object) -> Result<Object, Halt> {
    match object.kind {
        Kind::File => Ok(object),
        Kind::Directory => Err(Halt::Failed(Errno::IsDirectory)),
        Kind::Symlink => Err(Halt::Failed(Errno::Loop)),
        Kind::Fifo | Kind::Socket | Kind::CharDevice | Kind::BlockDevice => {
            Err(Halt::Failed(Errno::NoSuchDevice))
        }
    }
}

/// An object, if it is one that can be opened for reading: a directory too, so that it cannot be copied shows last.
fn readable(object: Object) -> Result<Object, Halt> {
    if object.kind == Kind::Directory { Ok(object) } else { openable(object) }
}

impl BlockTree {
    pub(super) fn xattr(
        &self,
        session: u64,
        request: &Txattr,
        answers: &mut dyn Answers,
    ) -> Result<Rxattr, Failure> {
        let seat = self.seat(session, request.target.fd)?;
        let name = request.name.as_bytes();
        let read = |value: Bytes| Rxattr { stat: None, value: Data(value) };
        match request.action {
            XattrAction::Read if name.starts_with(PREFIX) => Ok(read(self.told(seat, request)?)),
            XattrAction::Set if name.starts_with(PREFIX) => self.obey(seat, request, answers),
            XattrAction::Read => {
                let (value, _) = self.look(|trees| {
                    let object = trees.locate(seat, &request.target)?;
                    trees.xattr(object, name)
                })?;
                Ok(read(value))
            }
            XattrAction::List => {
                let (names, _) = self.look(|trees| {
                    let object = trees.locate(seat, &request.target)?;
                    trees.xattr_names(object)
                })?;
                Ok(read(names))
            }
            XattrAction::Set | XattrAction::Remove => self.change_xattr(seat, request, answers),
        }
    }

    fn change_xattr(
        &self,
        seat: Seat,
        request: &Txattr,
        answers: &mut dyn Answers,
    ) -> Result<Rxattr, Failure> {
        let name = request.name.as_bytes();
        let op = |change: &mut Change<'_>| {
            let ino = present(Trees::of(change).locate(seat, &request.target)?.id)?;
            match request.action {
                XattrAction::Set if request.value.0.len() > XATTR_BYTES_MAX => {
                    return Err(Halt::Failed(Errno::TooBig));
                }
                XattrAction::Set => change.set_xattr(ino, name, &request.value.0, request.flags)?,
                XattrAction::Remove => change.remove_xattr(ino, name)?,
                XattrAction::Read | XattrAction::List => {}
            }
            Ok(Rxattr { stat: Some(change.view.stat(ino)?), value: Data(Bytes::new()) })
        };
        self.change(Purpose::Fill, &mut |touched| answers.touch(touched), op, |reply| reply)
    }

    pub(super) fn statfs(&self, session: u64, request: &Tstatfs) -> Result<Rstatfs, Errno> {
        let seat = self.seat(session, request.target.fd)?;
        self.look(|trees| trees.locate(seat, &request.target))?;
        let room = self.store.room();
        Ok(Rstatfs {
            figures: FsStat {
                block_bytes: u32::try_from(self.geometry.payload_bytes()).unwrap_or(u32::MAX),
                blocks: room.blocks,
                blocks_free: room.blocks_free,
                blocks_available: room.blocks_available(),
                // Each block may hold a head.
                files: room.blocks,
                files_free: room.blocks_free,
                name_bytes_max: NAME_BYTES_MAX as u32,
            },
        })
    }

    pub(super) fn allocate(
        &self,
        session: u64,
        request: &Tallocate,
        answers: &mut dyn Answers,
    ) -> Result<Rallocate, Failure> {
        let seat = self.seat(session, request.target.fd)?;
        let op = |change: &mut Change<'_>| {
            let object = openable(Trees::of(change).locate(seat, &request.target)?)?;
            let ino = present(object.id)?;
            let progress = change.allocate(ino, request.mode, request.offset, request.length)?;
            Ok((progress, change.view.stat(ino)?))
        };
        loop {
            let (progress, stat) =
                self.change(Purpose::Fill, &mut |touched| answers.touch(touched), op, |done| done)?;
            if progress == Progress::Done {
                return Ok(Rallocate { stat: Some(stat) });
            }
        }
    }

    pub(super) fn copy(
        &self,
        session: u64,
        request: &Tcopy,
        answers: &mut dyn Answers,
    ) -> Result<Rcopy, Failure> {
        let (from_seat, to_seat) = (self.seat(session, request.from.fd)?, self.seat(session, request.to.fd)?);
        let ((mut range, is_same_tree), _) = self.look(|trees| {
            let from = trees.locate(from_seat, &request.from).and_then(readable);
            let to = trees.locate(to_seat, &request.to).and_then(openable);
            let (from, to) = both(from, to)?;
            trees.copy_range(from, to, request)
        })?;
        if !is_same_tree {
            // Whoever asks reads and writes instead.
            return Err(Errno::CrossDevice.into());
        }
        let wanted = range.count;
        loop {
            let op = |change: &mut Change<'_>| {
                let (copied, progress) = change.copy(&range)?;
                Ok((copied, progress, change.view.stat(Ino(range.to.ino))?))
            };
            let (copied, progress, stat) =
                self.change(Purpose::Fill, &mut |touched| answers.touch(touched), op, |done| done)?;
            range.from_offset += copied;
            range.to_offset += copied;
            range.count -= copied;
            if progress == Progress::Done || range.count == 0 {
                return Ok(Rcopy { count: wanted - range.count, stat: Some(stat) });
            }
        }
    }

    pub(super) fn seek(&self, session: u64, request: &Tseek) -> Result<Rseek, Errno> {
        let seat = self.seat(session, request.target.fd)?;
        let mut at = request.offset;
        loop {
            let (found, _) = self.look(|trees| {
                let Object { id, .. } = openable(trees.locate(seat, &request.target)?)?;
                let view = trees.view(id.fs)?;
                let head = view.head(Ino(id.ino))?;
                if request.hole {
                    view.next_hole(Ino(id.ino), &head, at)
                } else {
                    view.next_data(Ino(id.ino), &head, at).map(Hole::At)
                }
            })?;
            match found {
                Hole::At(offset) => return Ok(Rseek { offset }),
                Hole::Behind(offset) => at = offset,
            }
        }
    }

    pub(super) fn sync(
        &self,
        session: u64,
        request: &Tcommit,
        answers: &mut dyn Answers,
    ) -> Result<Rcommit, Errno> {
        let seat = self.seat(session, request.target.fd)?;
        self.look(|trees| trees.locate(seat, &request.target))?;
        // What was sent before is done; what comes after need not wait for the store.
        answers.pass_turn();
        self.store.sync().map_err(|_| Errno::Io)?;
        Ok(Rcommit { boot: self.options.boot })
    }
}

impl Trees<'_> {
    fn xattr(&self, object: Object, name: &[u8]) -> Result<Bytes, Halt> {
        if name.starts_with(ACL_PREFIX) {
            return Err(Halt::Failed(Errno::NoData));
        }
        check_name(object.kind, name, Errno::NoData)?;
        let view = self.view(object.id.fs).map_err(no_data)?;
        let (_, xattr) = view.find_xattr(Ino(object.id.ino), name)?.ok_or(Errno::NoData)?;
        view.value(&xattr.value)
    }

    /// The names of an object's attributes, each ended by NUL.
    fn xattr_names(&self, object: Object) -> Result<Bytes, Halt> {
        let Ok(view) = self.view(object.id.fs) else { return Ok(Bytes::new()) };
        if view.head(Ino(object.id.ino))?.xattrs == 0 {
            return Ok(Bytes::new());
        }
        let ended =
            view.xattrs(Ino(object.id.ino))?.into_iter().map(|xattr| [&xattr.name[..], b"\0"].concat());
        let names = ended.collect::<Vec<_>>().concat();
        if names.len() > XATTR_BYTES_MAX { Err(Halt::Failed(Errno::TooBig)) } else { Ok(Bytes::from(names)) }
    }

    /// What is to be copied, as far as the source has it; and whether both files are of the present tree.
    fn copy_range(&self, from: Object, to: Object, request: &Tcopy) -> Result<(CopyRange, bool), Halt> {
        present(to.id)?;
        check_file(from.kind)?;
        let head = self.view(from.id.fs)?.head(Ino(from.id.ino))?;
        let count = request.length.min(head.size.saturating_sub(request.from_offset));
        check_end(request.to_offset, count)?;
        let from_end = request.from_offset.saturating_add(count);
        let is_overlapping = request.to_offset + count > request.from_offset && request.to_offset < from_end;
        if from.id == to.id && is_overlapping {
            return Err(Halt::Failed(Errno::Invalid));
        }
        let range = CopyRange {
            from: from.id,
            from_offset: request.from_offset,
            to: to.id,
            to_offset: request.to_offset,
            count: count.min(COPY_BYTES_MAX),
        };
        Ok((range, from.id.fs == 0))
    }
}

/// The directory of checkpoints has no attributes of this kind.
fn no_data(_: Halt) -> Halt {
    Halt::Failed(Errno::NoData)
}
