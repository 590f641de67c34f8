//! Tremove, Trename, Tlink.

use super::BlockTree;
use super::commit::Purpose;
use super::locate::{Trees, changeable, root_of};
use super::put::MAGIC_PREFIX;
use super::serve::{Failure, ReplySink};
use crate::change::{Change, check_flags};
use crate::halt::{Halt, both};
use crate::key::{Ino, Key};
use crate::map::Map;
use crate::view::View;
use wirefs_op::message::link::{Rlink, Tlink};
use wirefs_op::message::remove::{Rremove, Tremove};
use wirefs_op::message::rename::{Rrename, Trename};
use wirefs_op::message::target::NOFD;
use wirefs_op::{Errno, FileId, Kind};

impl BlockTree {
    pub(super) fn remove(
        &self,
        session: u64,
        request: &Tremove,
        replies: &mut dyn ReplySink,
    ) -> Result<Rremove, Failure> {
        let context = self.context(session, NOFD)?;
        let op = |change: &mut Change<'_>| {
            let (dir, name) = Trees::of(change).entry(context, &request.place)?;
            let dir = changeable(dir, name)?;
            if let Some(checkpoint) = name.strip_prefix(MAGIC_PREFIX)
                && !request.directory
                && Trees::of(change).volume.checkpoint_named(checkpoint).is_some()
                && change.lookup(dir, name)?.kind == Kind::File
            {
                return revert(change, dir, checkpoint);
            }
            if request.directory {
                change.rmdir(dir, name)?;
            } else {
                change.unlink(dir, name)?;
            }
            Ok(Rremove { dir: Some(change.view.stat(dir)?) })
        };
        self.change(Purpose::Clear, &mut |affected| replies.announce(affected), op, |reply| reply)
    }

    pub(super) fn rename(
        &self,
        session: u64,
        request: &Trename,
        replies: &mut dyn ReplySink,
    ) -> Result<Rrename, Failure> {
        check_flags(request.flags)?;
        let context = self.context(session, NOFD)?;
        let op = |change: &mut Change<'_>| {
            let trees = Trees::of(change);
            let places = both(trees.entry(context, &request.from), trees.entry(context, &request.to));
            let ((from_dir, from_name), (to_dir, to_name)) = places?;
            if from_dir.fs != to_dir.fs {
                return Err(Halt::Failed(Errno::CrossDevice));
            }
            let from = (changeable(from_dir, from_name)?, from_name);
            let to = (changeable(to_dir, to_name)?, to_name);
            change.rename(from, to, request.flags)?;
            let moved = change.lookup(to.0, to.1)?;
            Ok(Rrename {
                stat: Some(change.view.stat(moved.ino)?),
                from_dir: Some(change.view.stat(from.0)?),
                to_dir: Some(change.view.stat(to.0)?),
            })
        };
        self.change(Purpose::Fill, &mut |affected| replies.announce(affected), op, |reply| reply)
    }

    pub(super) fn link(
        &self,
        session: u64,
        request: &Tlink,
        replies: &mut dyn ReplySink,
    ) -> Result<Rlink, Failure> {
        let context = self.context(session, request.target.fd)?;
        let op = |change: &mut Change<'_>| {
            let trees = Trees::of(change);
            let (object, (dir, name)) =
                both(trees.locate(context, &request.target), trees.entry(context, &request.to))?;
            let id: FileId = object.id;
            if id.fs != dir.fs {
                return Err(Halt::Failed(Errno::CrossDevice));
            }
            let dir = changeable(dir, name)?;
            change.link(Ino(id.ino), dir, name)?;
            let stat = change.view.stat(Ino(id.ino))?;
            Ok(Rlink { stat: Some(stat), dir: Some(change.view.stat(dir)?) })
        };
        self.change(Purpose::Fill, &mut |affected| replies.announce(affected), op, |reply| reply)
    }
}

/// Restores and drops a checkpoint. The directory of the removed file may not exist in the restored tree.
fn revert(change: &mut Change<'_>, dir: Ino, name: &[u8]) -> Result<Rremove, Halt> {
    let trees = Trees::of(change);
    let checkpoint = trees.volume.checkpoint_named(name).ok_or(Errno::NotFound)?;
    let view = View::new(
        Map { block_set: trees.block_set, root: Some(checkpoint.files) },
        trees.geometry,
        trees.boot,
        root_of(0).fs,
    );
    let was_there = view.get(Key::head(dir))?.is_some();
    let stat = if was_there { Some(view.stat(dir)?) } else { None };
    change.revert(name)?;
    Ok(Rremove { dir: stat })
}
