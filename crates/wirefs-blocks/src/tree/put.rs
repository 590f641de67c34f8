//! Tput: creates, opens, changes attributes and writes in one request.

use super::BlockTree;
use super::commit::Purpose;
use super::file::present;
use super::locate::{Object, Seat, Trees, changeable};
use super::serve::{Answers, Failure};
use super::session::{Name, unlink_if_still};
use crate::change::{Change, New};
use crate::halt::Halt;
use crate::key::Ino;
use crate::touch::Touch;
use wirefs_op::message::put::{PutMode, Rput, Tput};
use wirefs_op::message::target::{NOFD, Place};
use wirefs_op::{Errno, FileId, Kind, Stat};

/// A file whose name begins so is a checkpoint: making it keeps the tree as it is, removing it goes back there.
///
/// # Source
/// PingFS, "Checkpointed filesystem".
pub(super) const MAGIC_PREFIX: &[u8] = b"__checkpoint_";

/// The object that a Tput works on.
struct Subject {
    object: Object,
    is_new: bool,
    /// The directory that it was looked for in, with CREATE.
    dir: Option<Ino>,
    /// Its name, where one is to be removed.
    name: Option<Name>,
}

/// What a Tput did to its object.
struct Done {
    subject: Subject,
    before: u64,
    count: u32,
    offset: u64,
    stat: Stat,
    dir: Option<Stat>,
}

/// What is left to do when the change is over.
struct Settled {
    reply: Rput,
    id: FileId,
    /// The name that would have gone with the fd, had there been one left.
    removal: Option<Name>,
}

impl BlockTree {
    pub(super) fn put(
        &self,
        session: u64,
        request: &Tput,
        answers: &mut dyn Answers,
    ) -> Result<Rput, Failure> {
        let fd = request.target.fd;
        let seat = self.seat(session, fd)?;
        let pending = self.removal_on_close(session, fd);
        let op = |change: &mut Change<'_>| perform(change, seat, request, pending.as_ref());
        let settle = |done: Result<Done, Errno>| done.map(|done| self.settle(session, request, done));
        let touch = &mut |touched: &[Touch]| answers.touch(touched);
        let Settled { reply, id, removal } = self.change(purpose_of(request), touch, op, settle)??;
        if let Some(name) = removal {
            self.remove_if_still(&name, id);
        }
        if reply.fd == NOFD {
            self.close(session, fd, id);
        }
        if request.mode.has(PutMode::SYNC) {
            answers.pass_turn();
            self.store.sync().map_err(|_| Errno::Io)?;
        }
        Ok(reply)
    }

    /// Keeps the file open where that is asked, before any other change can take it away.
    fn settle(&self, session: u64, request: &Tput, done: Done) -> Settled {
        let Done { subject, before, count, offset, stat, dir } = done;
        let object = subject.object;
        let fd = if keeps(request, object) {
            self.keep(session, object, request.target.fd, &self.volume()).unwrap_or(NOFD)
        } else {
            NOFD
        };
        let removal = subject.name.filter(|name| !self.remove_on_close(session, fd, name));
        let reply = Rput { fd, count, offset, before, stat: Some(stat), dir };
        Settled { reply, id: object.id, removal }
    }
}

/// What neither creates nor writes takes no more room: a file is made shorter so where the store is full.
fn purpose_of(request: &Tput) -> Purpose {
    let fills = request.mode.has(PutMode::CREATE) || request.mode.has(PutMode::DATA);
    if fills { Purpose::Fill } else { Purpose::Clear }
}

/// Whether the object is to stay open.
fn keeps(request: &Tput, object: Object) -> bool {
    matches!(object.kind, Kind::File | Kind::Directory) && request.mode.has(PutMode::MORE)
}

/// Does all that a Tput asks of the tree. An error behind the creation leaves what was done before it, as single system
/// calls would.
fn perform(
    change: &mut Change<'_>,
    seat: Seat,
    request: &Tput,
    pending: Option<&Name>,
) -> Result<Result<Done, Errno>, Halt> {
    let mut subject = if request.mode.has(PutMode::CREATE) {
        created(change, seat, request)?
    } else {
        existing(change, seat, request)?
    };
    let object = subject.object;
    check_openable(request, object)?;
    if object.id.fs != 0 {
        return opened_only(change, request, subject).map(Ok);
    }
    let ino = Ino(object.id.ino);
    let before = if subject.is_new { 0 } else { change.view.head(ino)?.version };
    match apply(change, request, &subject) {
        Ok((count, offset)) => {
            let stat = change.view.stat(ino)?;
            if !keeps(request, object) {
                // What is closed by this request, or cannot be kept open, loses its name now.
                let closed = pending.filter(|_| seat.kept == Some(object.id));
                for name in subject.name.take().iter().chain(closed) {
                    unlink_if_still(change, name, object.id)?;
                }
            }
            let dir = subject.dir.map(|dir| change.view.stat(dir)).transpose()?;
            Ok(Ok(Done { subject, before, count, offset, stat, dir }))
        }
        Err(Halt::Failed(errno)) => Ok(Err(errno)),
        Err(halt) => Err(halt),
    }
}

/// An object of a checkpoint can be opened for reading.
fn opened_only(change: &Change<'_>, request: &Tput, subject: Subject) -> Result<Done, Halt> {
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
    Ok(Done { subject, before, count: 0, offset: request.offset, stat, dir: None })
}

fn existing(change: &Change<'_>, seat: Seat, request: &Tput) -> Result<Subject, Halt> {
    let trees = Trees::of(change);
    let object = trees.locate(seat, &request.target)?;
    let name = if request.mode.has(PutMode::REMOVE) {
        let place = Place { path: request.target.path.clone(), dir: None };
        let (dir, name) = trees.entry(seat, &place)?;
        Some(Name { dir: changeable(dir, name)?, name: name.to_vec() })
    } else {
        None
    };
    Ok(Subject { object, is_new: false, dir: None, name })
}

fn created(change: &mut Change<'_>, seat: Seat, request: &Tput) -> Result<Subject, Halt> {
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
        let dir = present(trees.directory(seat, &request.target.path, request.target.id)?)?;
        let ino = change.create_nameless(dir, &new)?;
        let object = made(change, ino)?;
        return Ok(Subject { object, is_new: true, dir: Some(dir), name: None });
    }
    if request.target.path.is_root() {
        return Err(Halt::Failed(Errno::Exists));
    }
    let place = Place { path: request.target.path.clone(), dir: request.target.id };
    let (dir, name) = trees.entry(seat, &place)?;
    let dir = changeable(dir, name).map_err(|errno| match errno {
        // The directory of checkpoints is there already.
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
        change.keep_checkpoint(checkpoint)?;
    }
    let object = made(change, ino)?;
    Ok(Subject { object, is_new: true, dir: Some(dir), name: named })
}

/// An object that this change has made.
fn made(change: &Change<'_>, ino: Ino) -> Result<Object, Halt> {
    let head = change.view.head(ino)?;
    let id = FileId { fs: 0, ino: ino.0, generation: head.generation };
    Ok(Object { id, kind: head.kind })
}

/// Checks that what is to be written or resized can be.
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

/// Changes attributes and writes; answers how many bytes, and where.
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
