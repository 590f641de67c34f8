//! Requests on one object other than Tget and Tput.

use super::BlockTree;
use super::command::PREFIX;
use super::commit::Purpose;
use super::locate::{Object, RequestContext, Trees};
use super::serve::{Failure, ReplySink};
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

/// POSIX ACLs are not supported. The kernel reads these attributes for permission checks and treats any error
/// other than `NoData` as a failure.
const ACL_PREFIX: &[u8] = b"system.posix_acl_";

/// Returns the inode number of an object of the live tree; fails for an object of a checkpoint.
pub(super) fn present(id: FileId) -> Result<Ino, Errno> {
    if id.fs == 0 { Ok(Ino(id.ino)) } else { Err(Errno::ReadOnly) }
}

/// Fails unless an object can be opened as a file.
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

/// Fails unless an object can be opened for reading. A directory passes; copying it fails later, as in Linux.
fn readable(object: Object) -> Result<Object, Halt> {
    if object.kind == Kind::Directory { Ok(object) } else { openable(object) }
}

impl BlockTree {
    pub(super) fn xattr(
        &self,
        session: u64,
        request: &Txattr,
        replies: &mut dyn ReplySink,
    ) -> Result<Rxattr, Failure> {
        let context = self.context(session, request.target.fd)?;
        let name = request.name.as_bytes();
        let read = |value: Bytes| Rxattr { stat: None, value: Data(value) };
        match request.action {
            XattrAction::Read if name.starts_with(PREFIX) => Ok(read(self.read_attribute(context, request)?)),
            XattrAction::Set if name.starts_with(PREFIX) => self.run_command(context, request, replies),
            XattrAction::Read => {
                let (value, _) = self.read_tree(|trees| {
                    let object = trees.locate(context, &request.target)?;
                    trees.xattr(object, name)
                })?;
                Ok(read(value))
            }
            XattrAction::List => {
                let (names, _) = self.read_tree(|trees| {
                    let object = trees.locate(context, &request.target)?;
                    trees.xattr_names(object)
                })?;
                Ok(read(names))
            }
            XattrAction::Set | XattrAction::Remove => self.change_xattr(context, request, replies),
        }
    }

    fn change_xattr(
        &self,
        context: RequestContext,
        request: &Txattr,
        replies: &mut dyn ReplySink,
    ) -> Result<Rxattr, Failure> {
        let name = request.name.as_bytes();
        let op = |change: &mut Change<'_>| {
            let ino = present(Trees::of(change).locate(context, &request.target)?.id)?;
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
        self.change(Purpose::Fill, &mut |affected| replies.announce(affected), op, |reply| reply)
    }

    pub(super) fn statfs(&self, session: u64, request: &Tstatfs) -> Result<Rstatfs, Errno> {
        let context = self.context(session, request.target.fd)?;
        self.read_tree(|trees| trees.locate(context, &request.target))?;
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
        replies: &mut dyn ReplySink,
    ) -> Result<Rallocate, Failure> {
        let context = self.context(session, request.target.fd)?;
        let op = |change: &mut Change<'_>| {
            let object = openable(Trees::of(change).locate(context, &request.target)?)?;
            let ino = present(object.id)?;
            let progress = change.allocate(ino, request.mode, request.offset, request.length)?;
            Ok((progress, change.view.stat(ino)?))
        };
        loop {
            let (progress, stat) =
                self.change(Purpose::Fill, &mut |affected| replies.announce(affected), op, |done| done)?;
            if progress == Progress::Done {
                return Ok(Rallocate { stat: Some(stat) });
            }
        }
    }

    pub(super) fn copy(
        &self,
        session: u64,
        request: &Tcopy,
        replies: &mut dyn ReplySink,
    ) -> Result<Rcopy, Failure> {
        let (from_seat, to_seat) =
            (self.context(session, request.from.fd)?, self.context(session, request.to.fd)?);
        let ((mut range, is_same_tree), _) = self.read_tree(|trees| {
            let from = trees.locate(from_seat, &request.from).and_then(readable);
            let to = trees.locate(to_seat, &request.to).and_then(openable);
            let (from, to) = both(from, to)?;
            trees.copy_range(from, to, request)
        })?;
        if !is_same_tree {
            // The client falls back to read and write.
            return Err(Errno::CrossDevice.into());
        }
        let wanted = range.count;
        loop {
            let op = |change: &mut Change<'_>| {
                let (copied, progress) = change.copy(&range)?;
                Ok((copied, progress, change.view.stat(Ino(range.to.ino))?))
            };
            let (copied, progress, stat) =
                self.change(Purpose::Fill, &mut |affected| replies.announce(affected), op, |done| done)?;
            range.from_offset += copied;
            range.to_offset += copied;
            range.count -= copied;
            if progress == Progress::Done || range.count == 0 {
                return Ok(Rcopy { count: wanted - range.count, stat: Some(stat) });
            }
        }
    }

    pub(super) fn seek(&self, session: u64, request: &Tseek) -> Result<Rseek, Errno> {
        let context = self.context(session, request.target.fd)?;
        let mut at = request.offset;
        loop {
            let (found, _) = self.read_tree(|trees| {
                let Object { id, .. } = openable(trees.locate(context, &request.target)?)?;
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
                Hole::NotBefore(offset) => at = offset,
            }
        }
    }

    pub(super) fn sync(
        &self,
        session: u64,
        request: &Tcommit,
        replies: &mut dyn ReplySink,
    ) -> Result<Rcommit, Errno> {
        let context = self.context(session, request.target.fd)?;
        self.read_tree(|trees| trees.locate(context, &request.target))?;
        // Later changes of the session need not wait for the sync.
        replies.allow_next_change();
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

    /// Returns the names of all attributes, each terminated by NUL.
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

    /// Returns the range to copy, cut at the end of the source, and whether both files belong to the live
    /// tree.
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

/// The checkpoint directory has no such attributes.
fn no_data(_: Halt) -> Halt {
    Halt::Failed(Errno::NoData)
}
