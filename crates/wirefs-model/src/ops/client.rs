//! A client of one tree: converts random requests to protocol requests and tracks the open files.

use crate::operation::{SLOTS, Slot};
use crate::ops::collected_replies::CollectedReplies;
use crate::ops::reply_outcome::ReplyOutcome;
use crate::ops::request::{IdChoice, NameChoice, RandomRequest, TargetChoice};
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
/// An fd and an inode id that no tree uses this early.
const UNKNOWN_FD: Fd = Fd(16_000);
const UNKNOWN_ID: FileId = FileId { fs: 0, ino: u64::MAX, generation: 3 };
/// The maximum number of requests per listing.
const LISTING_STEPS_MAX: usize = 1000;

/// The maximum number of touches per request.
const TOUCHES_MAX: usize = 4;

/// An open file of the client.
#[derive(Clone, Debug)]
struct OpenClientFile {
    fd: Fd,
    id: FileId,
    path: TreePath,
}

pub(super) struct TreeClient<'a> {
    tree: &'a dyn Tree,
    root: Stat,
    slots: [Option<OpenClientFile>; SLOTS],
    /// The file that the last request opened, with its slot.
    opening: Option<(Slot, OpenClientFile)>,
    /// The slot that the last request closed.
    closing: Option<Slot>,
    /// Whether each request is parked a few times before it may proceed.
    is_parking: bool,
    /// ObjectSnapshot touched since the last [`take_touched`](Self::take_touched).
    touched: RefCell<Vec<Touched>>,
    /// ObjectSnapshot whose change was not yet allowed, although a reply arrived.
    proceeded_while_parked: RefCell<Vec<Touched>>,
    /// Whether a reply had attributes without a grant.
    has_ungranted: Cell<bool>,
    /// Whether the last request that may change something succeeded.
    has_succeeded: bool,
}

impl<'a> TreeClient<'a> {
    pub(super) fn attach(tree: &'a dyn Tree) -> Result<TreeClient<'a>, Errno> {
        let attached = tree.attach(SESSION, &TreePath::root())?;
        Ok(TreeClient {
            tree,
            root: attached.root,
            slots: Default::default(),
            opening: None,
            closing: None,
            is_parking: false,
            touched: RefCell::default(),
            proceeded_while_parked: RefCell::default(),
            has_ungranted: Cell::new(false),
            has_succeeded: false,
        })
    }

    /// Parks each request a few times from now on.
    pub(super) fn parking(self) -> TreeClient<'a> {
        TreeClient { is_parking: true, ..self }
    }

    pub(super) fn take_touched(&self) -> Vec<Touched> {
        self.touched.take()
    }

    pub(super) fn take_proceeded_while_parked(&self) -> Vec<Touched> {
        self.proceeded_while_parked.take()
    }

    pub(super) fn take_ungranted(&self) -> bool {
        self.has_ungranted.take()
    }

    /// Returns whether the last request succeeded.
    pub(super) fn has_succeeded(&self) -> bool {
        self.has_succeeded
    }

    pub(super) fn end_session(&self) {
        self.tree.end(SESSION);
    }

    pub(super) fn session(&self) -> SessionKey {
        SESSION
    }

    /// Returns the root's attributes at the attach.
    pub(super) fn root(&self) -> Stat {
        self.root
    }

    pub(super) fn send(&self, request: Request) -> Vec<Reply> {
        for accepted_touches in 0..if self.is_parking { TOUCHES_MAX } else { 0 } {
            let mut attempt = CollectedReplies::parking_after(accepted_touches);
            self.tree.serve(SESSION, request.clone(), &mut attempt);
            // A parked request sends no reply. Changes of objects that the request created need no announcement.
            if attempt.refused.is_empty() || !attempt.replies.is_empty() {
                return self.record(attempt);
            }
        }
        let mut attempt = CollectedReplies::default();
        self.tree.serve(SESSION, request, &mut attempt);
        self.record(attempt)
    }

    fn record(&self, attempt: CollectedReplies) -> Vec<Reply> {
        self.touched.borrow_mut().extend(attempt.touched);
        self.proceeded_while_parked.borrow_mut().extend(attempt.refused);
        if attempt.replies.iter().any(has_ungranted_stat) {
            self.has_ungranted.set(true);
        }
        attempt.replies
    }

    /// Returns the attributes of the object at a path.
    pub(super) fn stat_of(&self, path: &TreePath) -> Option<Stat> {
        self.stat_target(Target::at(path.clone()))
    }

    /// Returns the names in a directory with their inode ids.
    pub(super) fn names_in(&self, path: &TreePath) -> BTreeMap<Vec<u8>, FileId> {
        let whole = Tget {
            target: Target::at(path.clone()),
            mode: GetMode::DATA,
            nmsgs: 0,
            offset: 0,
            count: u32::MAX,
        };
        let pieces = self.send(Request::Get(whole)).into_iter().filter_map(|reply| match reply {
            Reply::Get(got) => entries(got.data.0).ok(),
            _ => None,
        });
        pieces.flatten().map(|entry| (entry.name, entry.stat.id)).collect()
    }

    /// Returns the attributes of all open files, by slot.
    pub(super) fn open_file_stats(&self) -> Vec<(Slot, Stat)> {
        let slots = self.slots.iter().enumerate();
        let opened = slots.filter_map(|(slot, opened)| Some((slot, opened.as_ref()?)));
        let stat_target = |opened: &OpenClientFile| {
            self.stat_target(Target { path: opened.path.clone(), fd: opened.fd, id: Some(opened.id) })
        };
        opened.filter_map(|(slot, opened)| Some((slot, stat_target(opened)?))).collect()
    }

    /// Returns the attributes of a target. An open file stays open.
    fn stat_target(&self, target: Target) -> Option<Stat> {
        let is_open = self.slots.iter().flatten().any(|opened| opened.fd == target.fd);
        let mode = GetMode::STAT.and_if(is_open, GetMode::MORE);
        let get = Tget { target, mode, nmsgs: 0, offset: 0, count: 0 };
        match self.send(Request::Get(get)).pop() {
            Some(Reply::Get(got)) => got.stat,
            _ => None,
        }
    }

    fn id(&self, path: &TreePath, ident: IdChoice) -> Option<FileId> {
        match ident {
            IdChoice::Unspecified => None,
            IdChoice::Correct => self.stat_target(Target::at(path.clone())).map(|stat| stat.id),
            IdChoice::Wrong => Some(UNKNOWN_ID),
        }
    }

    /// Returns the protocol target; `None` for an empty slot.
    pub(super) fn target(&self, which: &TargetChoice) -> Option<Target> {
        let opened = |slot: &Slot| self.slots.get(*slot).and_then(Option::as_ref);
        match which {
            TargetChoice::At(path, ident) => {
                Some(Target { path: path.clone(), fd: NOFD, id: self.id(path, *ident) })
            }
            TargetChoice::Open(slot) => opened(slot).map(|opened| Target {
                path: opened.path.clone(),
                fd: opened.fd,
                id: Some(opened.id),
            }),
            TargetChoice::UnknownFd(slot) => opened(slot).map(|opened| Target {
                path: opened.path.clone(),
                fd: UNKNOWN_FD,
                id: Some(opened.id),
            }),
        }
    }

    fn place(&self, NameChoice(path, ident): &NameChoice) -> Place {
        let dir = path.split_last().and_then(|(dir, _)| self.id(&dir, *ident));
        Place { path: path.clone(), dir }
    }

    /// Executes a request and returns its outcome.
    pub(super) fn perform(&mut self, random: &RandomRequest) -> ReplyOutcome {
        let actual = self.execute(random);
        self.has_succeeded = !actual.has_failed();
        actual
    }

    fn execute(&mut self, random: &RandomRequest) -> ReplyOutcome {
        self.opening = None;
        self.closing = None;
        match random {
            RandomRequest::Get { which, mode, nmsgs, offset, count, keep } => {
                let Some(mut target) = self.target(which) else { return ReplyOutcome::Skipped };
                if mode.has(GetMode::ENTRY) {
                    self.set_directory_id(which, &mut target);
                }
                let get = Tget { target, mode: *mode, nmsgs: *nmsgs, offset: *offset, count: *count };
                self.note_closing(which, mode.has(GetMode::MORE));
                self.get(get, *keep)
            }
            RandomRequest::Put { which, mode, .. } => {
                let Some(request) = self.put(random) else { return ReplyOutcome::Skipped };
                let path = request.target.path.clone();
                self.note_closing(which, mode.has(PutMode::MORE));
                let replies = self.send(Request::Put(request));
                if let (Some(Reply::Put(put)), RandomRequest::Put { keep, .. }) = (replies.first(), random) {
                    self.note_opening(*keep, put.fd, put.stat, path);
                }
                ReplyOutcome::from_replies(replies)
            }
            other => match self.request(other) {
                Some(request) => ReplyOutcome::from_replies(self.send(request)),
                None => ReplyOutcome::Skipped,
            },
        }
    }

    fn put(&self, random: &RandomRequest) -> Option<Tput> {
        let RandomRequest::Put { which, mode, create, set, offset, data, .. } = random else { return None };
        let mut target = self.target(which)?;
        if create.is_some() && !mode.has(PutMode::NAMELESS) {
            self.set_directory_id(which, &mut target);
        }
        let data = Data(data.bytes());
        Some(Tput { target, mode: *mode, create: create.clone(), set: *set, offset: *offset, data })
    }

    /// With CREATE and ENTRY the target's id is that of the directory.
    fn set_directory_id(&self, which: &TargetChoice, target: &mut Target) {
        if let TargetChoice::At(path, ident) = which {
            target.id = path.split_last().and_then(|(dir, _)| self.id(&dir, *ident));
        }
    }

    fn request(&self, random: &RandomRequest) -> Option<Request> {
        Some(match random {
            RandomRequest::Get { .. } | RandomRequest::Put { .. } => return None,
            RandomRequest::Remove { name, directory } => {
                Request::Remove(Tremove { place: self.place(name), directory: *directory })
            }
            RandomRequest::Rename { from, to, flags } => {
                Request::Rename(Trename { from: self.place(from), to: self.place(to), flags: *flags })
            }
            RandomRequest::Link { which, to } => {
                Request::Link(Tlink { target: self.target(which)?, to: self.place(to) })
            }
            RandomRequest::Xattr { which, action, name, flags, value } => Request::Xattr(Txattr {
                target: self.target(which)?,
                action: *action,
                name: Text::new(name.as_bytes()),
                flags: *flags,
                kill_sgid: false,
                value: Data(value.bytes().into()),
            }),
            RandomRequest::Allocate { which, mode, offset, length } => Request::Allocate(Tallocate {
                target: self.target(which)?,
                mode: *mode,
                offset: *offset,
                length: *length,
            }),
            RandomRequest::Copy { from, from_offset, to, to_offset, length } => Request::Copy(Tcopy {
                from: self.target(from)?,
                from_offset: *from_offset,
                to: self.target(to)?,
                to_offset: *to_offset,
                length: *length,
            }),
            RandomRequest::Seek { which, offset, hole } => {
                Request::Seek(Tseek { target: self.target(which)?, offset: *offset, hole: *hole })
            }
            RandomRequest::Commit { which, scope } => {
                Request::Commit(Tcommit { target: self.target(which)?, scope: *scope })
            }
            RandomRequest::Statfs { which } => Request::Statfs(Tstatfs { target: self.target(which)? }),
        })
    }

    fn get(&mut self, get: Tget, keep: Slot) -> ReplyOutcome {
        let path = get.target.path.clone();
        let is_entry = get.mode.has(GetMode::ENTRY);
        let stat = self.stat_target(if is_entry { Target::at(path.clone()) } else { get.target.clone() });
        if get.mode.has(GetMode::DATA) && stat.is_some_and(|stat| stat.kind == Kind::Directory) {
            return self.list(get);
        }
        let replies = self.send(Request::Get(get.clone()));
        if let Some(Reply::Get(got)) = replies.first() {
            self.note_opening(keep, got.fd, stat, path);
        }
        match find_protocol_violation(&get, &replies) {
            Some(protocol_violation) => ReplyOutcome::ProtocolError(protocol_violation),
            None => ReplyOutcome::from_replies(replies),
        }
    }

    /// Lists a whole directory, with as many requests as needed.
    fn list(&self, get: Tget) -> ReplyOutcome {
        let mut listed: Vec<DirEntry> = Vec::new();
        let mode = GetMode::DATA.and_if(get.mode.has(GetMode::ENTRY), GetMode::ENTRY);
        let mut get = Tget { mode, offset: 0, target: Target { fd: NOFD, ..get.target }, ..get };
        for _ in 0..LISTING_STEPS_MAX {
            let replies = self.send(Request::Get(get.clone()));
            if let Some(protocol_violation) = find_protocol_violation(&get, &replies) {
                return ReplyOutcome::ProtocolError(protocol_violation);
            }
            let mut has_more = false;
            for reply in replies {
                let Reply::Get(Rget { mode, data, .. }) = reply else {
                    return ReplyOutcome::from_replies(vec![reply]);
                };
                match entries(data.0) {
                    Ok(entries) => listed.extend(entries),
                    Err(malformed) => return ReplyOutcome::ProtocolError(malformed.to_string()),
                }
                has_more = mode.has(GotMode::MORE);
            }
            match listed.last() {
                Some(last) if has_more => get.offset = last.next,
                Some(_) | None => return ReplyOutcome::from_listing(&listed),
            }
        }
        ReplyOutcome::ProtocolError("a listing without an end".into())
    }

    fn note_opening(&mut self, keep: Slot, fd: Fd, stat: Option<Stat>, path: TreePath) {
        if let (Some(stat), true) = (stat, fd != NOFD) {
            self.opening = Some((keep, OpenClientFile { fd, id: stat.id, path }));
        }
    }

    fn note_closing(&mut self, which: &TargetChoice, keeps: bool) {
        match which {
            TargetChoice::Open(slot) if !keeps => self.closing = Some(*slot),
            TargetChoice::Open(_) | TargetChoice::At(_, _) | TargetChoice::UnknownFd(_) => {}
        }
    }

    /// Applies the opens and closes of the last request. Closes the former file of the slot.
    pub(super) fn settle(&mut self) {
        if let Some(closed) = self.closing.take().and_then(|slot| self.slots.get(slot)?.clone()) {
            self.clear_slots(closed.fd);
        }
        let Some((slot, opened)) = self.opening.take() else { return };
        let before = self.slots.get(slot).cloned().flatten();
        if let Some(before) = before.filter(|before| before.fd != opened.fd) {
            self.clear_slots(before.fd);
            let target = Target { path: before.path, fd: before.fd, id: Some(before.id) };
            self.send(Request::Get(Tget { target, mode: GetMode::NONE, nmsgs: 0, offset: 0, count: 0 }));
        }
        if let Some(place) = self.slots.get_mut(slot) {
            *place = Some(opened);
        }
    }

    /// Returns for each slot the first slot with the same fd.
    pub(super) fn sharing(&self) -> [Option<Slot>; SLOTS] {
        let fds = self.slots.each_ref().map(|place| place.as_ref().map(|opened| opened.fd));
        fds.map(|fd| fd.and_then(|fd| fds.iter().position(|other| *other == Some(fd))))
    }

    /// Empties all slots with this closed fd: the tree may reuse the number, even for the same object.
    fn clear_slots(&mut self, fd: Fd) {
        for place in &mut self.slots {
            if place.as_ref().is_some_and(|opened| opened.fd == fd) {
                *place = None;
            }
        }
    }
}

/// Returns whether a reply has attributes without a grant.
fn has_ungranted_stat(reply: &Reply) -> bool {
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

/// Returns the protocol violation of the replies to a Tget, if any.
fn find_protocol_violation(get: &Tget, replies: &[Reply]) -> Option<String> {
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
        (get.nmsgs == 0 || pieces.len() <= usize::from(get.nmsgs), "more replies than requested"),
        (bytes <= get.count as usize, "more data than requested"),
        (largest <= DATA_BYTES_MAX, "more data than a message holds"),
        (stats == 0, "attributes in a later reply"),
    ];
    rules.into_iter().find(|(is_satisfied, _)| !is_satisfied).map(|(_, rule)| rule.to_string())
}
