//! Repetition of changes that a former process of the server began and may have completed.
//!
//! Most changes are idempotent and are executed again. For the others the state of the tree decides:
//!
//! | change | completed if | then |
//! |---|---|---|
//! | create a file, directory, symlink or node | the name was absent, and now refers to an object of this kind | this object is taken for the created one |
//! | append | the data, or the beginning of it, follows at the prior size of the file | the data is written there |
//! | remove | the name is absent, or refers to another object than before | it is answered |
//! | rename | the new name refers to the object, and the old one does not | it is answered |
//! | link | the new name refers to the object | it is answered |
//! | set an extended attribute that must not exist | it exists with this value | it is set |
//! | remove an extended attribute | it does not exist | it is answered |
//!
//! A change of the same names by another program, between the crash and the repetition, can be mistaken for the
//! change.

use crate::saved_ledger::{PriorState, StartedChange};
use crate::tree::{Parked, Replies, SessionKey, Stopped, Touched, Tree};
use bytes::Bytes;
use wirefs_op::limits::TARGET_BYTES_MAX;
use wirefs_op::message::get::{GetMode, Rget, Tget};
use wirefs_op::message::link::{Rlink, Tlink};
use wirefs_op::message::put::{PutMode, Rput, Tput};
use wirefs_op::message::remove::{Rremove, Tremove};
use wirefs_op::message::rename::{EXCHANGE, Rrename, Trename};
use wirefs_op::message::target::{NOFD, Place, Target};
use wirefs_op::message::xattr::{Rxattr, Txattr, XattrAction};
use wirefs_op::wire::Data;
use wirefs_op::{Change, Errno, FileId, Kind, Reply, Request, Stat, fnv1a};

/// Flag of Txattr: the attribute must not exist.
const XATTR_CREATE: u32 = 1;

/// A hash of a change's kind and paths, by which a repeated change is recognized.
pub fn fingerprint(request: &Request) -> u64 {
    let names: [&[u8]; 2] = match request.change() {
        Some(Change::Put(put)) => [put.target.path.as_bytes(), b""],
        Some(Change::Remove(remove)) => [remove.place.path.as_bytes(), b""],
        Some(Change::Rename(rename)) => [rename.from.path.as_bytes(), rename.to.path.as_bytes()],
        Some(Change::Link(link)) => [link.target.path.as_bytes(), link.to.path.as_bytes()],
        Some(Change::Xattr(xattr)) => [xattr.target.path.as_bytes(), xattr.name.as_bytes()],
        Some(Change::Lock(lock)) => [lock.target.path.as_bytes(), b""],
        Some(Change::Allocate(allocate)) => [allocate.target.path.as_bytes(), b""],
        Some(Change::Copy(copy)) => [copy.from.path.as_bytes(), copy.to.path.as_bytes()],
        None => [b"", b""],
    };
    // Paths contain no zero byte, so it separates the two paths unambiguously.
    fnv1a(&[&[request.code()], names[0], &[0], names[1]])
}

/// Executes a change, as [`Tree::serve`], that a former process began and may have completed.
pub fn serve(
    tree: &dyn Tree,
    session: SessionKey,
    request: Request,
    started: &StartedChange,
    replies: &mut dyn Replies,
) {
    let reader = TreeReader { tree, session };
    match reader.decide(&request, &started.prior) {
        Decision::Execute => tree.serve(session, request, replies),
        Decision::ExecuteInstead(request) => tree.serve(session, request, replies),
        Decision::ExecuteAsNew(request, dir) => {
            tree.serve(session, request, &mut AsNewReplies { replies, dir })
        }
        // A client that is gone gets no reply, as for any other request.
        Decision::Done(reply) => match replies.send(reply) {
            Ok(()) | Err(Stopped) => {}
        },
    }
}

/// The way to complete a change.
enum Decision {
    /// The change was not made, or is idempotent: execute it.
    Execute,
    /// The change was made in part or completely: execute this idempotent rest instead.
    ExecuteInstead(Request),
    /// The same for an object that counts as newly created; the attributes are those of its directory.
    ExecuteAsNew(Request, Option<Stat>),
    /// The change was made: send this reply.
    Done(Reply),
}

/// Reads the tree on behalf of a session.
struct TreeReader<'a> {
    tree: &'a dyn Tree,
    session: SessionKey,
}

impl TreeReader<'_> {
    fn decide(&self, request: &Request, prior: &PriorState) -> Decision {
        let decision = match request.change() {
            Some(Change::Put(put)) => self.put(put, prior),
            Some(Change::Remove(remove)) => self.removed(remove, prior).map(Decision::Done),
            Some(Change::Rename(rename)) => self.renamed(rename, prior).map(Decision::Done),
            Some(Change::Link(link)) => self.linked(link, prior).map(Decision::Done),
            Some(Change::Xattr(xattr)) => self.xattr(xattr),
            Some(Change::Lock(_) | Change::Allocate(_) | Change::Copy(_)) | None => None,
        };
        decision.unwrap_or(Decision::Execute)
    }

    fn put(&self, put: &Tput, prior: &PriorState) -> Option<Decision> {
        if put.mode.has(PutMode::NAMELESS) {
            // A file without a name ended with the former process.
            None
        } else if put.mode.has(PutMode::CREATE) && prior.named.is_none() {
            self.created(put)
        } else if put.mode.has(PutMode::APPEND) && put.mode.has(PutMode::DATA) {
            let target = Target { fd: NOFD, ..put.target.clone() };
            let there = self.has_appended(&target, prior.size, put)?;
            there.then(|| Decision::ExecuteInstead(Request::Put(at_offset(put, prior.size))))
        } else if put.mode.has(PutMode::REMOVE) {
            let place = Place { path: put.target.path.clone(), dir: None };
            let is_there = self.has_name(&place, prior.named)?;
            (!is_there).then(|| Decision::Done(Reply::Put(removed_by_put(put))))
        } else {
            None
        }
    }

    /// Completes a creation, if the object now exists under the name that was absent before.
    fn created(&self, put: &Tput) -> Option<Decision> {
        let create = put.create.as_ref()?;
        let place = Place { path: put.target.path.clone(), dir: put.target.id };
        let dir = self.directory(&place)?;
        let target = Target::at(place.path);
        let stat = self.stat(&target).ok()?;
        if stat.kind != create.kind {
            return None;
        }
        let without = |bits: PutMode| PutMode(put.mode.0 & !bits.0);
        let finished = match create.kind {
            Kind::File => {
                let finished = Tput { mode: without(PutMode::EXCLUSIVE), ..put.clone() };
                let appends = put.mode.has(PutMode::APPEND) && put.mode.has(PutMode::DATA);
                if appends && self.has_appended(&target, 0, put)? {
                    at_offset(&finished, 0)
                } else {
                    finished
                }
            }
            Kind::Symlink => {
                let text = self.read(&target, 0, TARGET_BYTES_MAX).ok()?;
                if text != put.data.0 {
                    return None;
                }
                self.remaining_change(put, &stat, without)
            }
            Kind::Directory | Kind::Fifo | Kind::Socket | Kind::CharDevice | Kind::BlockDevice => {
                self.remaining_change(put, &stat, without)
            }
        };
        Some(Decision::ExecuteAsNew(Request::Put(finished), Some(dir)))
    }

    /// The part of a creation that may be missing although the object exists.
    fn remaining_change(&self, put: &Tput, stat: &Stat, without: impl Fn(PutMode) -> PutMode) -> Tput {
        let made = PutMode::CREATE.and(PutMode::EXCLUSIVE).and(PutMode::DATA);
        Tput {
            target: Target { id: Some(stat.id), ..Target::at(put.target.path.clone()) },
            mode: without(made),
            create: None,
            data: Data(Bytes::new()),
            ..put.clone()
        }
    }

    /// Whether the file has the appended data, or the beginning of it, at the offset `size`. `None` if that cannot be
    /// read.
    fn has_appended(&self, target: &Target, size: u64, put: &Tput) -> Option<bool> {
        let stat = self.stat(target).ok()?;
        if stat.size <= size {
            return Some(false);
        }
        let there = self.read(target, size, put.data.0.len()).ok()?;
        Some(!there.is_empty() && put.data.0.starts_with(&there))
    }

    fn removed(&self, remove: &Tremove, prior: &PriorState) -> Option<Reply> {
        let dir = self.directory(&remove.place)?;
        let is_there = self.has_name(&remove.place, prior.named)?;
        (!is_there).then_some(Reply::Remove(Rremove { dir: Some(dir) }))
    }

    fn renamed(&self, rename: &Trename, prior: &PriorState) -> Option<Reply> {
        let moved = prior.object?;
        let [from_dir, to_dir] = [self.directory(&rename.from)?, self.directory(&rename.to)?];
        let is_exchanged = rename.flags & EXCHANGE == 0 || self.has_name(&rename.from, prior.named)?;
        if self.has_name(&rename.from, Some(moved))? || !is_exchanged {
            return None;
        }
        let stat = self.stat_if(&rename.to, moved)?;
        Some(Reply::Rename(Rrename { stat: Some(stat), from_dir: Some(from_dir), to_dir: Some(to_dir) }))
    }

    fn linked(&self, link: &Tlink, prior: &PriorState) -> Option<Reply> {
        let dir = self.directory(&link.to)?;
        let stat = self.stat_if(&link.to, prior.object?)?;
        Some(Reply::Link(Rlink { stat: Some(stat), dir: Some(dir) }))
    }

    fn xattr(&self, xattr: &Txattr) -> Option<Decision> {
        let target = Target { fd: NOFD, ..xattr.target.clone() };
        let read = Txattr {
            target: target.clone(),
            action: XattrAction::Read,
            value: Data(Bytes::new()),
            ..xattr.clone()
        };
        let there = self.ask(Request::Xattr(read));
        match (xattr.action, there) {
            (XattrAction::Set, Ok(Reply::Xattr(there))) if there.value == xattr.value => {
                let flags = xattr.flags & !XATTR_CREATE;
                Some(Decision::ExecuteInstead(Request::Xattr(Txattr { flags, ..xattr.clone() })))
            }
            (XattrAction::Remove, Err(Errno::NoData)) => {
                let stat = Some(self.stat(&target).ok()?);
                Some(Decision::Done(Reply::Xattr(Rxattr { stat, value: Data(Bytes::new()) })))
            }
            (XattrAction::Set | XattrAction::Remove | XattrAction::Read | XattrAction::List, _) => None,
        }
    }

    /// The directory of a place, if it has the expected id.
    fn directory(&self, place: &Place) -> Option<Stat> {
        let (path, _) = place.path.split_last()?;
        self.stat(&Target { id: place.dir, ..Target::at(path) }).ok()
    }

    /// Whether the name refers to this object. `None`: unknown.
    fn has_name(&self, place: &Place, id: Option<FileId>) -> Option<bool> {
        match self.stat(&Target::at(place.path.clone())) {
            Ok(stat) => Some(Some(stat.id) == id),
            Err(Errno::NotFound) => Some(id.is_none()),
            Err(_) => None,
        }
    }

    /// The attributes of the object with this name, if it has this id.
    fn stat_if(&self, place: &Place, id: FileId) -> Option<Stat> {
        self.stat(&Target::at(place.path.clone())).ok().filter(|stat| stat.id == id)
    }

    fn stat(&self, target: &Target) -> Result<Stat, Errno> {
        let got = self.get(target, GetMode::STAT, 0, 0)?;
        got.stat.ok_or(Errno::Io)
    }

    fn read(&self, target: &Target, offset: u64, count: usize) -> Result<Bytes, Errno> {
        // INVARIANT: the data of a message is far below 4 GiB.
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        Ok(self.get(target, GetMode::DATA, offset, count)?.data.0)
    }

    fn get(&self, target: &Target, mode: GetMode, offset: u64, count: u32) -> Result<Rget, Errno> {
        let get = Tget { target: target.clone(), mode, nmsgs: 1, offset, count };
        match self.ask(Request::Get(get))? {
            Reply::Get(got) => Ok(got),
            _ => Err(Errno::Io),
        }
    }

    fn ask(&self, request: Request) -> Result<Reply, Errno> {
        let mut first = FirstReply(None);
        self.tree.serve(self.session, request, &mut first);
        match first.0 {
            Some(Reply::Error(error)) => Err(error.errno),
            Some(reply) => Ok(reply),
            None => Err(Errno::Io),
        }
    }
}

/// The same write, at the offset where the append put the data.
fn at_offset(put: &Tput, offset: u64) -> Tput {
    Tput { mode: PutMode(put.mode.0 & !PutMode::APPEND.0), offset, ..put.clone() }
}

/// The reply to a REMOVE whose object is gone.
fn removed_by_put(put: &Tput) -> Rput {
    let written = if put.mode.has(PutMode::DATA) { put.data.0.len() } else { 0 };
    let count = u32::try_from(written).unwrap_or(u32::MAX);
    Rput { fd: NOFD, count, offset: put.offset, before: 0, stat: None, dir: None }
}

/// Keeps the first reply.
struct FirstReply(Option<Reply>);

impl Replies for FirstReply {
    fn send(&mut self, reply: Reply) -> Result<(), Stopped> {
        self.0.get_or_insert(reply);
        Ok(())
    }

    fn is_stopped(&self) -> bool {
        false
    }

    fn wait(&mut self) {}
}

/// Replies to a repeated creation, which finds the object that its first execution created.
struct AsNewReplies<'a> {
    replies: &'a mut dyn Replies,
    /// The directory of the object.
    dir: Option<Stat>,
}

impl Replies for AsNewReplies<'_> {
    fn send(&mut self, reply: Reply) -> Result<(), Stopped> {
        self.replies.send(match reply {
            Reply::Put(put) => Reply::Put(Rput { before: 0, dir: put.dir.or(self.dir), ..put }),
            other => other,
        })
    }

    fn is_stopped(&self) -> bool {
        self.replies.is_stopped()
    }

    fn release_slot(&mut self) {
        self.replies.release_slot();
    }

    fn touch(&mut self, touched: &[Touched]) -> Result<(), Parked> {
        self.replies.touch(touched)
    }

    fn record_prior_state(&mut self, find: &mut dyn FnMut() -> Option<PriorState>) {
        self.replies.record_prior_state(find);
    }

    fn grant(&mut self, stats: &mut dyn Iterator<Item = &mut Stat>) {
        self.replies.grant(stats);
    }

    fn grant_names(&mut self, dir: FileId) -> bool {
        self.replies.grant_names(dir)
    }

    fn changed(&mut self, touched: &Touched, before: Option<u64>, after: Option<u64>) {
        self.replies.changed(touched, before, after);
    }

    fn wait(&mut self) {
        self.replies.wait();
    }
}
