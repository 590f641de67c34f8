//! A change that may have been carried out already: it had begun when the process of the server ended.
//!
//! Most changes are the same when they are done twice, and are just done again. For the others it is decided by looking:
//!
//! | change | it was done when | then |
//! |---|---|---|
//! | create, make a directory, a link to a text, a node | the name was absent, and now means an object of this kind | the object is taken for the one that was to be made |
//! | append | behind what the file's size was is (the beginning of) the data | the data is written there |
//! | remove | the name means nothing, or another object than before | it is answered |
//! | rename | the new name means the object, and the old one does not | it is answered |
//! | link | the new name means the object | it is answered |
//! | set an extended attribute that must not be there | it is there, with this value | it is set |
//! | remove an extended attribute | it is not there | it is answered |
//!
//! Whoever else changes the same names between the end of the process and the change that is sent again can be mistaken for
//! it.

use crate::notes::{Begun, Found};
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
use wirefs_op::{Change, Errno, FileId, Kind, Reply, Request, Stat};

/// To Txattr: the attribute must not be there.
const XATTR_CREATE: u32 = 1;

/// A number for a change's kind and names, by which it is told from others.
///
/// # Source
/// FNV-1a, 64 bits.
pub fn about(request: &Request) -> u64 {
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
    // No name has a zero byte, so two names do not look like two others.
    let bytes = [&[request.code()], names[0], &[0], names[1]];
    let digest = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.into_iter().flatten().fold(0xcbf2_9ce4_8422_2325, digest)
}

/// Does what [`Tree::serve`] does, for a change that had begun before and may be done.
pub fn serve(
    tree: &dyn Tree,
    session: SessionKey,
    request: Request,
    begun: &Begun,
    replies: &mut dyn Replies,
) {
    let looks = Looks { tree, session };
    match looks.decide(&request, &begun.found) {
        Decision::Again => tree.serve(session, request, replies),
        Decision::Instead(request) => tree.serve(session, request, replies),
        Decision::Made(request, dir) => tree.serve(session, request, &mut AsNew { replies, dir }),
        // Who stays away gets no reply, as with any other.
        Decision::Done(reply) => match replies.send(reply) {
            Ok(()) | Err(Stopped) => {}
        },
    }
}

/// What is to be done with a change.
enum Decision {
    /// It was not done, or is the same when it is done twice.
    Again,
    /// It was done in part or whole; this does the rest and is the same when it is done twice.
    Instead(Request),
    /// The same, and the object counts as new; this is the directory that it is in.
    Made(Request, Option<Stat>),
    /// It was done.
    Done(Reply),
}

/// Looks at the tree on behalf of a session.
struct Looks<'a> {
    tree: &'a dyn Tree,
    session: SessionKey,
}

impl Looks<'_> {
    fn decide(&self, request: &Request, found: &Found) -> Decision {
        let decision = match request.change() {
            Some(Change::Put(put)) => self.put(put, found),
            Some(Change::Remove(remove)) => self.removed(remove, found).map(Decision::Done),
            Some(Change::Rename(rename)) => self.renamed(rename, found).map(Decision::Done),
            Some(Change::Link(link)) => self.linked(link, found).map(Decision::Done),
            Some(Change::Xattr(xattr)) => self.xattr(xattr),
            Some(Change::Lock(_) | Change::Allocate(_) | Change::Copy(_)) | None => None,
        };
        decision.unwrap_or(Decision::Again)
    }

    fn put(&self, put: &Tput, found: &Found) -> Option<Decision> {
        if put.mode.has(PutMode::NAMELESS) {
            // What has no name is gone with the process that made it.
            None
        } else if put.mode.has(PutMode::CREATE) && found.at.is_none() {
            self.created(put)
        } else if put.mode.has(PutMode::APPEND) && put.mode.has(PutMode::DATA) {
            let target = Target { fd: NOFD, ..put.target.clone() };
            let there = self.behind(&target, found.size, put)?;
            there.then(|| Decision::Instead(Request::Put(at_offset(put, found.size))))
        } else if put.mode.has(PutMode::REMOVE) {
            let place = Place { path: put.target.path.clone(), dir: None };
            let is_there = self.has_name(&place, found.at)?;
            (!is_there).then(|| Decision::Done(Reply::Put(removed_by_put(put))))
        } else {
            None
        }
    }

    /// What was to be made is there, where nothing was before.
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
                if appends && self.behind(&target, 0, put)? { at_offset(&finished, 0) } else { finished }
            }
            Kind::Symlink => {
                let text = self.read(&target, 0, TARGET_BYTES_MAX).ok()?;
                if text != put.data.0 {
                    return None;
                }
                self.kept_as_made(put, &stat, without)
            }
            Kind::Directory | Kind::Fifo | Kind::Socket | Kind::CharDevice | Kind::BlockDevice => {
                self.kept_as_made(put, &stat, without)
            }
        };
        Some(Decision::Made(Request::Put(finished), Some(dir)))
    }

    /// What remains to be done with an object that was made whole or not at all.
    fn kept_as_made(&self, put: &Tput, stat: &Stat, without: impl Fn(PutMode) -> PutMode) -> Tput {
        let made = PutMode::CREATE.and(PutMode::EXCLUSIVE).and(PutMode::DATA);
        Tput {
            target: Target { id: Some(stat.id), ..Target::at(put.target.path.clone()) },
            mode: without(made),
            create: None,
            data: Data(Bytes::new()),
            ..put.clone()
        }
    }

    /// Whether the file goes on behind this size with the data, or ends within it.
    fn behind(&self, target: &Target, size: u64, put: &Tput) -> Option<bool> {
        let stat = self.stat(target).ok()?;
        if stat.size <= size {
            return Some(false);
        }
        let there = self.read(target, size, put.data.0.len()).ok()?;
        Some(!there.is_empty() && put.data.0.starts_with(&there))
    }

    fn removed(&self, remove: &Tremove, found: &Found) -> Option<Reply> {
        let dir = self.directory(&remove.place)?;
        let is_there = self.has_name(&remove.place, found.at)?;
        (!is_there).then_some(Reply::Remove(Rremove { dir: Some(dir) }))
    }

    fn renamed(&self, rename: &Trename, found: &Found) -> Option<Reply> {
        let moved = found.of?;
        let [from_dir, to_dir] = [self.directory(&rename.from)?, self.directory(&rename.to)?];
        let is_exchanged = rename.flags & EXCHANGE == 0 || self.has_name(&rename.from, found.at)?;
        if self.has_name(&rename.from, Some(moved))? || !is_exchanged {
            return None;
        }
        let stat = self.named(&rename.to, moved)?;
        Some(Reply::Rename(Rrename { stat: Some(stat), from_dir: Some(from_dir), to_dir: Some(to_dir) }))
    }

    fn linked(&self, link: &Tlink, found: &Found) -> Option<Reply> {
        let dir = self.directory(&link.to)?;
        let stat = self.named(&link.to, found.of?)?;
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
                Some(Decision::Instead(Request::Xattr(Txattr { flags, ..xattr.clone() })))
            }
            (XattrAction::Remove, Err(Errno::NoData)) => {
                let stat = Some(self.stat(&target).ok()?);
                Some(Decision::Done(Reply::Xattr(Rxattr { stat, value: Data(Bytes::new()) })))
            }
            (XattrAction::Set | XattrAction::Remove | XattrAction::Read | XattrAction::List, _) => None,
        }
    }

    /// The directory of a place, if it is the one that the client means.
    fn directory(&self, place: &Place) -> Option<Stat> {
        let (path, _) = place.path.split_last()?;
        self.stat(&Target { id: place.dir, ..Target::at(path) }).ok()
    }

    /// Whether the name means this object. `None`: it cannot be told.
    fn has_name(&self, place: &Place, id: Option<FileId>) -> Option<bool> {
        match self.stat(&Target::at(place.path.clone())) {
            Ok(stat) => Some(Some(stat.id) == id),
            Err(Errno::NotFound) => Some(id.is_none()),
            Err(_) => None,
        }
    }

    /// The attributes of what has this name, if it is this object.
    fn named(&self, place: &Place, id: FileId) -> Option<Stat> {
        self.stat(&Target::at(place.path.clone())).ok().filter(|stat| stat.id == id)
    }

    fn stat(&self, target: &Target) -> Result<Stat, Errno> {
        let got = self.get(target, GetMode::STAT, 0, 0)?;
        got.stat.ok_or(Errno::Io)
    }

    fn read(&self, target: &Target, offset: u64, count: usize) -> Result<Bytes, Errno> {
        // INVARIANT: a message's data is far below 4 GiB.
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
        let mut first = First(None);
        self.tree.serve(self.session, request, &mut first);
        match first.0 {
            Some(Reply::Error(error)) => Err(error.errno),
            Some(reply) => Ok(reply),
            None => Err(Errno::Io),
        }
    }
}

/// The same data, where an append has put it.
fn at_offset(put: &Tput, offset: u64) -> Tput {
    Tput { mode: PutMode(put.mode.0 & !PutMode::APPEND.0), offset, ..put.clone() }
}

/// The object is gone with its name.
fn removed_by_put(put: &Tput) -> Rput {
    let written = if put.mode.has(PutMode::DATA) { put.data.0.len() } else { 0 };
    let count = u32::try_from(written).unwrap_or(u32::MAX);
    Rput { fd: NOFD, count, offset: put.offset, before: 0, stat: None, dir: None }
}

/// Keeps the first reply.
struct First(Option<Reply>);

impl Replies for First {
    fn send(&mut self, reply: Reply) -> Result<(), Stopped> {
        self.0.get_or_insert(reply);
        Ok(())
    }

    fn is_stopped(&self) -> bool {
        false
    }

    fn wait(&mut self) {}
}

/// The replies to a change that finds what it has made itself before.
struct AsNew<'a> {
    replies: &'a mut dyn Replies,
    /// The directory that it was made in.
    dir: Option<Stat>,
}

impl Replies for AsNew<'_> {
    fn send(&mut self, reply: Reply) -> Result<(), Stopped> {
        self.replies.send(match reply {
            Reply::Put(put) => Reply::Put(Rput { before: 0, dir: put.dir.or(self.dir), ..put }),
            other => other,
        })
    }

    fn is_stopped(&self) -> bool {
        self.replies.is_stopped()
    }

    fn pass_turn(&mut self) {
        self.replies.pass_turn();
    }

    fn touch(&mut self, touched: &[Touched]) -> Result<(), Parked> {
        self.replies.touch(touched)
    }

    fn begins(&mut self, find: &mut dyn FnMut() -> Option<Found>) {
        self.replies.begins(find);
    }

    fn grant(&mut self, stats: &mut dyn Iterator<Item = &mut Stat>) {
        self.replies.grant(stats);
    }

    fn grant_place(&mut self, dir: FileId) -> bool {
        self.replies.grant_place(dir)
    }

    fn changed(&mut self, touched: &Touched, before: Option<u64>, after: Option<u64>) {
        self.replies.changed(touched, before, after);
    }

    fn wait(&mut self) {
        self.replies.wait();
    }
}
