//! Tput: creates, opens, changes attributes and writes in one request.

use super::BlockTree;
use super::commit::Purpose;
use super::file::present;
use super::locate::{Object, RequestContext, Trees, changeable};
use super::serve::{Failure, ReplySink};
use super::session::{Name, unlink_if_still};
use crate::affected::AffectedObject;
use crate::change::{Change, New};
use crate::halt::Halt;
use crate::key::Ino;
use wirefs_op::message::put::{PutMode, Rput, Tput};
use wirefs_op::message::target::{NOFD, Place};
use wirefs_op::{Errno, FileId, Kind, Stat};

/// The name prefix of magic files: creating one creates a checkpoint, removing it restores that checkpoint.
///
/// # Source
/// PingFS, "Checkpointed filesystem".
pub(super) const MAGIC_PREFIX: &[u8] = b"__checkpoint_";

/// The object that a Tput modifies.
struct Subject {
    object: Object,
    is_new: bool,
    /// The parent directory of a Tput with CREATE.
    dir: Option<Ino>,
    /// The name to remove on close.
    name: Option<Name>,
}

/// The result of a Tput.
struct PutOutcome {
    subject: Subject,
    before: u64,
    count: u32,
    offset: u64,
    stat: Stat,
    dir: Option<Stat>,
}

/// The remaining work after the commit.
struct PutResult {
    reply: Rput,
    id: FileId,
    /// The name to remove now, because no fd was left for remove-on-close.
    removal: Option<Name>,
}

impl BlockTree {
    pub(super) fn put(
        &self,
        session: u64,
        request: &Tput,
        replies: &mut dyn ReplySink,
    ) -> Result<Rput, Failure> {
        let fd = request.target.fd;
        let context = self.context(session, fd)?;
        let pending = self.removal_on_close(session, fd);
        let op = |change: &mut Change<'_>| perform(change, context, request, pending.as_ref());
        let finish =
            |done: Result<PutOutcome, Errno>| done.map(|done| self.finish_put(session, request, done));
        let announce = &mut |affected: &[AffectedObject]| replies.announce(affected);
        let PutResult { reply, id, removal } = self.change(purpose_of(request), announce, op, finish)??;
        if let Some(name) = removal {
            self.remove_if_still(&name, id);
        }
        if reply.fd == NOFD {
            self.close(session, fd, id);
        }
        if request.mode.has(PutMode::SYNC) {
            replies.allow_next_change();
            self.store.sync().map_err(|_| Errno::Io)?;
        }
        Ok(reply)
    }

    /// Opens the object if requested, before another change can remove it.
    fn finish_put(&self, session: u64, request: &Tput, done: PutOutcome) -> PutResult {
        let PutOutcome { subject, before, count, offset, stat, dir } = done;
        let object = subject.object;
        let fd = if stays_open(request, object) {
            self.open_object(session, object, request.target.fd, &self.volume()).unwrap_or(NOFD)
        } else {
            NOFD
        };
        let removal = subject.name.filter(|name| !self.remove_on_close(session, fd, name));
        let reply = Rput { fd, count, offset, before, stat: Some(stat), dir };
        PutResult { reply, id: object.id, removal }
    }
}

/// A Tput that neither creates nor writes may use reserved space, so truncation works in a full store.
fn purpose_of(request: &Tput) -> Purpose {
    let fills = request.mode.has(PutMode::CREATE) || request.mode.has(PutMode::DATA);
    if fills { Purpose::Fill } else { Purpose::Clear }
}

/// Returns whether the object stays open.
fn stays_open(request: &Tput, object: Object) -> bool {
    matches!(object.kind, Kind::File | Kind::Directory) && request.mode.has(PutMode::MORE)
}

/// Performs all parts of a Tput. After an error, earlier parts stay done, as with separate system calls.
fn perform(
    change: &mut Change<'_>,
    context: RequestContext,
    request: &Tput,
    pending: Option<&Name>,
) -> Result<Result<PutOutcome, Errno>, Halt> {
    let mut subject = if request.mode.has(PutMode::CREATE) {
        created(change, context, request)?
    } else {
        existing(change, context, request)?
    };
    let object = subject.object;
    check_openable(request, object)?;
    if object.id.fs != 0 {
        return opened_only(change, request, subject).map(Ok);
    }
    let ino = Ino(object.id.ino);
    let before = if subject.is_new { 0 } else { change.view.version_of(&change.view.head(ino)?) };
    match apply(change, request, &subject) {
        Ok((count, offset)) => {
            let stat = change.view.stat(ino)?;
            if !stays_open(request, object) {
                // If this request closes the file, or no fd is available, the name is removed now.
                let closed = pending.filter(|_| context.open_file == Some(object.id));
                for name in subject.name.take().iter().chain(closed) {
                    unlink_if_still(change, name, object.id)?;
                }
            }
            let dir = subject.dir.map(|dir| change.view.stat(dir)).transpose()?;
            Ok(Ok(PutOutcome { subject, before, count, offset, stat, dir }))
        }
        Err(Halt::Failed(errno)) => Ok(Err(errno)),
        Err(halt) => Err(halt),
    }
}

/// Opens an object of a checkpoint for reading.
fn opened_only(change: &Change<'_>, request: &Tput, subject: Subject) -> Result<PutOutcome, Halt> {
    let changes = [
        PutMode::DATA,
        PutMode::STAT,
        PutMode::CREATE,
        PutMode::REMOVE,
        PutMode::WRITE,
        PutMode::KILL_PRIVILEGES,
    ];
    if changes.into_iter().any(|mode| request.mode.has(mode)) {
        return Err(Halt::Failed(Errno::ReadOnly));
    }
    let stat = Trees::of(change).stat(subject.object.id)?;
    let before = stat.version;
    Ok(PutOutcome { subject, before, count: 0, offset: request.offset, stat, dir: None })
}

fn existing(change: &Change<'_>, context: RequestContext, request: &Tput) -> Result<Subject, Halt> {
    let trees = Trees::of(change);
    let object = trees.locate(context, &request.target)?;
    let name = if request.mode.has(PutMode::REMOVE) {
        let place = Place { path: request.target.path.clone(), dir: None };
        let (dir, name) = trees.entry(context, &place)?;
        Some(Name { dir: changeable(dir, name)?, name: name.to_vec() })
    } else {
        None
    };
    Ok(Subject { object, is_new: false, dir: None, name })
}

fn created(change: &mut Change<'_>, context: RequestContext, request: &Tput) -> Result<Subject, Halt> {
    let create = request.create.as_ref().ok_or(Errno::Invalid)?;
    let new = New {
        kind: create.kind,
        mode: create.mode & 0o7777 & !create.cred.umask,
        uid: create.cred.uid,
        gid: create.cred.gid,
        rdev: create.rdev,
        target: request.data.0.clone(),
    };
    let trees = Trees::of(change);
    if request.mode.has(PutMode::NAMELESS) {
        if create.kind != Kind::File {
            return Err(Halt::Failed(Errno::Invalid));
        }
        let dir = present(trees.directory(context, &request.target.path, request.target.id)?)?;
        let ino = change.create_nameless(dir, &new)?;
        let object = made(change, ino)?;
        return Ok(Subject { object, is_new: true, dir: Some(dir), name: None });
    }
    if request.target.path.is_root() {
        return Err(Halt::Failed(Errno::Exists));
    }
    let place = Place { path: request.target.path.clone(), dir: request.target.id };
    let (dir, name) = trees.entry(context, &place)?;
    let dir = changeable(dir, name).map_err(|errno| match errno {
        // The checkpoint directory exists already.
        Errno::NotPermitted if trees.has_checkpoints() => Errno::Exists,
        other => other,
    })?;
    let is_welcome = create.kind == Kind::File && !request.mode.has(PutMode::EXCLUSIVE);
    let found = if is_welcome { change.view.find(dir, name)?.map(|(_, entry)| entry) } else { None };
    let named = request.mode.has(PutMode::REMOVE).then(|| Name { dir, name: name.to_vec() });
    if let Some(entry) = found {
        if entry.kind != Kind::File {
            return Err(Halt::Failed(Errno::Exists));
        }
        let id = FileId { fs: 0, ino: entry.ino.0, generation: entry.generation };
        let object = Object { id, kind: Kind::File };
        return Ok(Subject { object, is_new: false, dir: Some(dir), name: named });
    }
    let ino = change.create(dir, name, &new)?;
    if let Some(checkpoint) = name.strip_prefix(MAGIC_PREFIX)
        && create.kind == Kind::File
        && !checkpoint.is_empty()
    {
        change.create_checkpoint(checkpoint)?;
    }
    let object = made(change, ino)?;
    Ok(Subject { object, is_new: true, dir: Some(dir), name: named })
}

/// Returns an object that this change created.
fn made(change: &Change<'_>, ino: Ino) -> Result<Object, Halt> {
    let head = change.view.head(ino)?;
    let id = FileId { fs: 0, ino: ino.0, generation: head.generation };
    Ok(Object { id, kind: head.kind })
}

/// Fails unless the object can be written or resized as requested.
fn check_openable(request: &Tput, object: Object) -> Result<(), Errno> {
    let truncates = request.mode.has(PutMode::STAT) && request.set.size.is_some();
    let is_target = object.kind == Kind::Symlink && request.mode.has(PutMode::CREATE) && !truncates;
    let writes = request.mode.has(PutMode::DATA) && !is_target || truncates;
    match object.kind {
        Kind::File => Ok(()),
        Kind::Directory if writes => Err(Errno::IsDirectory),
        Kind::Symlink | Kind::Fifo | Kind::Socket | Kind::CharDevice | Kind::BlockDevice if writes => {
            Err(Errno::Invalid)
        }
        Kind::Directory
        | Kind::Symlink
        | Kind::Fifo
        | Kind::Socket
        | Kind::CharDevice
        | Kind::BlockDevice => Ok(()),
    }
}

/// Sets attributes and writes. Returns the number of bytes written, and the offset.
fn apply(change: &mut Change<'_>, request: &Tput, subject: &Subject) -> Result<(u32, u64), Halt> {
    let (mode, object, ino) = (request.mode, subject.object, Ino(subject.object.id.ino));
    if mode.has(PutMode::KILL_PRIVILEGES) && object.kind == Kind::File && !subject.is_new {
        change.kill_privileges(ino)?;
    }
    if mode.has(PutMode::STAT) {
        change.set(ino, &request.set)?;
    }
    if !mode.has(PutMode::DATA) || object.kind != Kind::File {
        return Ok((0, request.offset));
    }
    let offset = if mode.has(PutMode::APPEND) { change.view.head(ino)?.size } else { request.offset };
    change.write(ino, offset, &request.data.0)?;
    Ok((request.data.0.len() as u32, offset))
}
