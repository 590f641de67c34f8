//! A client of one tree: turns an ask into requests, and knows which files are open.

use crate::operation::{SLOTS, Slot};
use crate::ops::collected::Collected;
use crate::ops::request::{Ask, Ident, Name, Which};
use crate::ops::told::Told;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use wirefs_op::limits::DATA_BYTES_MAX;
use wirefs_op::listing::entries;
use wirefs_op::message::allocate::Tallocate;
use wirefs_op::message::commit::Tcommit;
use wirefs_op::message::copy::Tcopy;
use wirefs_op::message::get::{GetMode, GotMode, Rget, Tget};
use wirefs_op::message::link::Tlink;
use wirefs_op::message::put::{PutMode, Tput};
use wirefs_op::message::remove::Tremove;
use wirefs_op::message::rename::Trename;
use wirefs_op::message::seek::Tseek;
use wirefs_op::message::statfs::Tstatfs;
use wirefs_op::message::target::{Fd, NOFD, Place, Target};
use wirefs_op::message::xattr::Txattr;
use wirefs_op::wire::{Data, Text};
use wirefs_op::{DirEntry, Errno, FileId, Kind, Reply, Request, Stat, TreePath};
use wirefs_server::{SessionKey, Touched, Tree};

const SESSION: SessionKey = SessionKey(1);
/// No tree gives this number out so early, nor has such an inode.
const FORGOTTEN: Fd = Fd(16_000);
const NOBODY: FileId = FileId { fs: 0, ino: u64::MAX, generation: 3 };
/// How often a listing is gone on with, at most.
const LISTING_STEPS_MAX: usize = 1000;

/// No request touches something more often.
const TOUCHES_MAX: usize = 4;

/// A file that the client holds open.
#[derive(Clone, Debug)]
struct Opened {
    fd: Fd,
    id: FileId,
    path: TreePath,
}

pub(super) struct Client<'a> {
    tree: &'a dyn Tree,
    root: Stat,
    slots: [Option<Opened>; SLOTS],
    /// What the last request opened, and for which slot.
    opening: Option<(Slot, Opened)>,
    /// What the last request closed.
    closing: Option<Slot>,
    /// Each request is put aside a few times before it passes.
    parks: bool,
    /// What was touched since somebody looked.
    touched: RefCell<Vec<Touched>>,
    /// What was not to be changed yet, and a reply came all the same.
    defied: RefCell<Vec<Touched>>,
    /// Attributes were told that were not granted.
    has_ungranted: Cell<bool>,
    /// The last request that may change something did not fail.
    has_succeeded: bool,
}

impl<'a> Client<'a> {
    pub(super) fn attach(tree: &'a dyn Tree) -> Result<Client<'a>, Errno> {
        let attached = tree.attach(SESSION, &TreePath::root())?;
        Ok(Client {
            tree,
            root: attached.root,
            slots: Default::default(),
            opening: None,
            closing: None,
            parks: false,
            touched: RefCell::default(),
            defied: RefCell::default(),
            has_ungranted: Cell::new(false),
            has_succeeded: false,
        })
    }

    /// Has each request put aside a few times from now on.
    pub(super) fn parking(self) -> Client<'a> {
        Client { parks: true, ..self }
    }

    pub(super) fn take_touched(&self) -> Vec<Touched> {
        self.touched.take()
    }

    pub(super) fn take_defied(&self) -> Vec<Touched> {
        self.defied.take()
    }

    pub(super) fn take_ungranted(&self) -> bool {
        self.has_ungranted.take()
    }

    /// Whether the last thing performed did not fail.
    pub(super) fn has_succeeded(&self) -> bool {
        self.has_succeeded
    }

    pub(super) fn leave(&self) {
        self.tree.end(SESSION);
    }

    pub(super) fn session(&self) -> SessionKey {
        SESSION
    }

    /// The root's attributes when it was attached.
    pub(super) fn root(&self) -> Stat {
        self.root
    }

    pub(super) fn ask(&self, request: Request) -> Vec<Reply> {
        for passing in 0..if self.parks { TOUCHES_MAX } else { 0 } {
            let mut attempt = Collected::parking_after(passing);
            self.tree.serve(SESSION, request.clone(), &mut attempt);
            // What is put aside has told nothing; what a request made itself nobody has to hear of first.
            if attempt.refused.is_empty() || !attempt.replies.is_empty() {
                return self.take_in(attempt);
            }
        }
        let mut attempt = Collected::default();
        self.tree.serve(SESSION, request, &mut attempt);
        self.take_in(attempt)
    }

    fn take_in(&self, attempt: Collected) -> Vec<Reply> {
        self.touched.borrow_mut().extend(attempt.touched);
        self.defied.borrow_mut().extend(attempt.refused);
        if attempt.replies.iter().any(tells_ungranted) {
            self.has_ungranted.set(true);
        }
        attempt.replies
    }

    /// The attributes of what is at this path.
    pub(super) fn look_at(&self, path: &TreePath) -> Option<Stat> {
        self.look(Target::at(path.clone()))
    }

    /// The names in this directory and what they mean.
    pub(super) fn names_in(&self, path: &TreePath) -> BTreeMap<Vec<u8>, FileId> {
        let whole = Tget {
            target: Target::at(path.clone()),
            mode: GetMode::DATA,
            nmsgs: 0,
            offset: 0,
            count: u32::MAX,
        };
        let pieces = self.ask(Request::Get(whole)).into_iter().filter_map(|reply| match reply {
            Reply::Get(got) => entries(got.data.0).ok(),
            _ => None,
        });
        pieces.flatten().map(|entry| (entry.name, entry.stat.id)).collect()
    }

    /// The attributes of all that is open, by slot.
    pub(super) fn look_at_open(&self) -> Vec<(Slot, Stat)> {
        let slots = self.slots.iter().enumerate();
        let opened = slots.filter_map(|(slot, opened)| Some((slot, opened.as_ref()?)));
        let look = |opened: &Opened| {
            self.look(Target { path: opened.path.clone(), fd: opened.fd, id: Some(opened.id) })
        };
        opened.filter_map(|(slot, opened)| Some((slot, look(opened)?))).collect()
    }

    /// The attributes of what a target means. What is open stays open.
    fn look(&self, target: Target) -> Option<Stat> {
        let is_open = self.slots.iter().flatten().any(|opened| opened.fd == target.fd);
        let mode = GetMode::STAT.and_if(is_open, GetMode::MORE);
        let get = Tget { target, mode, nmsgs: 0, offset: 0, count: 0 };
        match self.ask(Request::Get(get)).pop() {
            Some(Reply::Get(got)) => got.stat,
            _ => None,
        }
    }

    fn id(&self, path: &TreePath, ident: Ident) -> Option<FileId> {
        match ident {
            Ident::Whatever => None,
            Ident::Right => self.look(Target::at(path.clone())).map(|stat| stat.id),
            Ident::Wrong => Some(NOBODY),
        }
    }

    /// The target as it travels; `None` for an empty slot.
    pub(super) fn target(&self, which: &Which) -> Option<Target> {
        let opened = |slot: &Slot| self.slots.get(*slot).and_then(Option::as_ref);
        match which {
            Which::At(path, ident) => {
                Some(Target { path: path.clone(), fd: NOFD, id: self.id(path, *ident) })
            }
            Which::Open(slot) => opened(slot).map(|opened| Target {
                path: opened.path.clone(),
                fd: opened.fd,
                id: Some(opened.id),
            }),
            Which::Forgotten(slot) => opened(slot).map(|opened| Target {
                path: opened.path.clone(),
                fd: FORGOTTEN,
                id: Some(opened.id),
            }),
        }
    }

    fn place(&self, Name(path, ident): &Name) -> Place {
        let dir = path.split_last().and_then(|(dir, _)| self.id(&dir, *ident));
        Place { path: path.clone(), dir }
    }

    /// Does it, and tells what came of it.
    pub(super) fn perform(&mut self, ask: &Ask) -> Told {
        let told = self.tell(ask);
        self.has_succeeded = !told.has_failed();
        told
    }

    fn tell(&mut self, ask: &Ask) -> Told {
        self.opening = None;
        self.closing = None;
        match ask {
            Ask::Get { which, mode, nmsgs, offset, count, keep } => {
                let Some(mut target) = self.target(which) else { return Told::LeftOut };
                if mode.has(GetMode::ENTRY) {
                    self.mean_directory(which, &mut target);
                }
                let get = Tget { target, mode: *mode, nmsgs: *nmsgs, offset: *offset, count: *count };
                self.note_closing(which, mode.has(GetMode::MORE));
                self.get(get, *keep)
            }
            Ask::Put { which, mode, .. } => {
                let Some(request) = self.put(ask) else { return Told::LeftOut };
                let path = request.target.path.clone();
                self.note_closing(which, mode.has(PutMode::MORE));
                let replies = self.ask(Request::Put(request));
                if let (Some(Reply::Put(put)), Ask::Put { keep, .. }) = (replies.first(), ask) {
                    self.note_opening(*keep, put.fd, put.stat, path);
                }
                Told::by(replies)
            }
            other => match self.request(other) {
                Some(request) => Told::by(self.ask(request)),
                None => Told::LeftOut,
            },
        }
    }

    fn put(&self, ask: &Ask) -> Option<Tput> {
        let Ask::Put { which, mode, create, set, offset, data, .. } = ask else { return None };
        let mut target = self.target(which)?;
        if create.is_some() && !mode.has(PutMode::NAMELESS) {
            self.mean_directory(which, &mut target);
        }
        let data = Data(data.bytes());
        Some(Tput { target, mode: *mode, create: create.clone(), set: *set, offset: *offset, data })
    }

    /// With CREATE and ENTRY the id is the directory's.
    fn mean_directory(&self, which: &Which, target: &mut Target) {
        if let Which::At(path, ident) = which {
            target.id = path.split_last().and_then(|(dir, _)| self.id(&dir, *ident));
        }
    }

    fn request(&self, ask: &Ask) -> Option<Request> {
        Some(match ask {
            Ask::Get { .. } | Ask::Put { .. } => return None,
            Ask::Remove { name, directory } => {
                Request::Remove(Tremove { place: self.place(name), directory: *directory })
            }
            Ask::Rename { from, to, flags } => {
                Request::Rename(Trename { from: self.place(from), to: self.place(to), flags: *flags })
            }
            Ask::Link { which, to } => {
                Request::Link(Tlink { target: self.target(which)?, to: self.place(to) })
            }
            Ask::Xattr { which, action, name, flags, value } => Request::Xattr(Txattr {
                target: self.target(which)?,
                action: *action,
                name: Text::new(name.as_bytes()),
                flags: *flags,
                kill_sgid: false,
                value: Data(value.bytes().into()),
            }),
            Ask::Allocate { which, mode, offset, length } => Request::Allocate(Tallocate {
                target: self.target(which)?,
                mode: *mode,
                offset: *offset,
                length: *length,
            }),
            Ask::Copy { from, from_offset, to, to_offset, length } => Request::Copy(Tcopy {
                from: self.target(from)?,
                from_offset: *from_offset,
                to: self.target(to)?,
                to_offset: *to_offset,
                length: *length,
            }),
            Ask::Seek { which, offset, hole } => {
                Request::Seek(Tseek { target: self.target(which)?, offset: *offset, hole: *hole })
            }
            Ask::Commit { which, scope } => {
                Request::Commit(Tcommit { target: self.target(which)?, scope: *scope })
            }
            Ask::Statfs { which } => Request::Statfs(Tstatfs { target: self.target(which)? }),
        })
    }

    fn get(&mut self, get: Tget, keep: Slot) -> Told {
        let path = get.target.path.clone();
        let is_entry = get.mode.has(GetMode::ENTRY);
        let stat = self.look(if is_entry { Target::at(path.clone()) } else { get.target.clone() });
        if get.mode.has(GetMode::DATA) && stat.is_some_and(|stat| stat.kind == Kind::Directory) {
            return self.list(get);
        }
        let replies = self.ask(Request::Get(get.clone()));
        if let Some(Reply::Get(got)) = replies.first() {
            self.note_opening(keep, got.fd, stat, path);
        }
        match breach(&get, &replies) {
            Some(breach) => Told::Nonsense(breach),
            None => Told::by(replies),
        }
    }

    /// Lists a whole directory with requests like this one.
    fn list(&self, get: Tget) -> Told {
        let mut listed: Vec<DirEntry> = Vec::new();
        let mode = GetMode::DATA.and_if(get.mode.has(GetMode::ENTRY), GetMode::ENTRY);
        let mut get = Tget { mode, offset: 0, target: Target { fd: NOFD, ..get.target }, ..get };
        for _ in 0..LISTING_STEPS_MAX {
            let replies = self.ask(Request::Get(get.clone()));
            if let Some(breach) = breach(&get, &replies) {
                return Told::Nonsense(breach);
            }
            let mut goes_on = false;
            for reply in replies {
                let Reply::Get(Rget { mode, data, .. }) = reply else { return Told::by(vec![reply]) };
                match entries(data.0) {
                    Ok(entries) => listed.extend(entries),
                    Err(malformed) => return Told::Nonsense(malformed.to_string()),
                }
                goes_on = mode.has(GotMode::MORE);
            }
            match listed.last() {
                Some(last) if goes_on => get.offset = last.next,
                Some(_) | None => return Told::by_listing(&listed),
            }
        }
        Told::Nonsense("a listing without an end".into())
    }

    fn note_opening(&mut self, keep: Slot, fd: Fd, stat: Option<Stat>, path: TreePath) {
        if let (Some(stat), true) = (stat, fd != NOFD) {
            self.opening = Some((keep, Opened { fd, id: stat.id, path }));
        }
    }

    fn note_closing(&mut self, which: &Which, keeps: bool) {
        match which {
            Which::Open(slot) if !keeps => self.closing = Some(*slot),
            Which::Open(_) | Which::At(_, _) | Which::Forgotten(_) => {}
        }
    }

    /// Takes over what the last request opened and closed. What the slot held before is closed.
    pub(super) fn settle(&mut self) {
        if let Some(closed) = self.closing.take().and_then(|slot| self.slots.get(slot)?.clone()) {
            self.forget(closed.fd);
        }
        let Some((slot, opened)) = self.opening.take() else { return };
        let before = self.slots.get(slot).cloned().flatten();
        if let Some(before) = before.filter(|before| before.fd != opened.fd) {
            self.forget(before.fd);
            let target = Target { path: before.path, fd: before.fd, id: Some(before.id) };
            self.ask(Request::Get(Tget { target, mode: GetMode::NONE, nmsgs: 0, offset: 0, count: 0 }));
        }
        if let Some(place) = self.slots.get_mut(slot) {
            *place = Some(opened);
        }
    }

    /// For each slot, the first slot with the same fd.
    pub(super) fn sharing(&self) -> [Option<Slot>; SLOTS] {
        let fds = self.slots.each_ref().map(|place| place.as_ref().map(|opened| opened.fd));
        fds.map(|fd| fd.and_then(|fd| fds.iter().position(|other| *other == Some(fd))))
    }

    /// Empties all slots with this fd, which is closed: the number may be given out again, for the same object even.
    fn forget(&mut self, fd: Fd) {
        for place in &mut self.slots {
            if place.as_ref().is_some_and(|opened| opened.fd == fd) {
                *place = None;
            }
        }
    }
}

/// Whether a reply tells attributes that may not be believed.
fn tells_ungranted(reply: &Reply) -> bool {
    let stats = match reply {
        Reply::Get(got) => [got.stat, None, None],
        Reply::Put(put) => [put.stat, put.dir, None],
        Reply::Remove(remove) => [remove.dir, None, None],
        Reply::Rename(rename) => [rename.stat, rename.from_dir, rename.to_dir],
        Reply::Link(link) => [link.stat, link.dir, None],
        Reply::Xattr(xattr) => [xattr.stat, None, None],
        Reply::Allocate(allocate) => [allocate.stat, None, None],
        Reply::Copy(copy) => [copy.stat, None, None],
        _ => [None, None, None],
    };
    stats.into_iter().flatten().any(|stat| !stat.leased)
}

/// What the replies to a Tget do against the protocol, if anything.
fn breach(get: &Tget, replies: &[Reply]) -> Option<String> {
    let pieces: Vec<&Rget> = replies
        .iter()
        .filter_map(|reply| if let Reply::Get(got) = reply { Some(got) } else { None })
        .collect();
    let lasts = pieces.iter().filter(|piece| piece.mode.has(GotMode::LAST)).count();
    let ends = pieces.last().is_none_or(|piece| piece.mode.has(GotMode::LAST));
    let bytes: usize = pieces.iter().map(|piece| piece.data.0.len()).sum();
    let largest = pieces.iter().map(|piece| piece.data.0.len()).max().unwrap_or(0);
    let stats = pieces.iter().skip(1).filter(|piece| piece.stat.is_some()).count();
    let rules = [
        (lasts <= 1 && ends, "LAST stands elsewhere than in the last reply"),
        (get.nmsgs == 0 || pieces.len() <= usize::from(get.nmsgs), "more replies than asked for"),
        (bytes <= get.count as usize, "more data than asked for"),
        (largest <= DATA_BYTES_MAX, "more data than a message holds"),
        (stats == 0, "attributes in a later reply"),
    ];
    rules.into_iter().find(|(kept, _)| !kept).map(|(_, rule)| rule.to_string())
}
