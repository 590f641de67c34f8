//! A tree, and the only client that changes it.

mod change;
mod disk;

use bytes::Bytes;
pub(super) use change::Change;
use change::changes_names;
use std::collections::{BTreeMap, BTreeSet};
use wirefs_journal::{ChangeOutcome, ObjectStat, Record};
use wirefs_model::ModelTree;
use wirefs_op::listing::entries;
use wirefs_op::message::get::{GetMode, Rget, Tget};
use wirefs_op::message::link::Tlink;
use wirefs_op::message::put::{Create, PutMode, Rput, Tput};
use wirefs_op::message::remove::Tremove;
use wirefs_op::message::rename::Trename;
use wirefs_op::message::target::{NOFD, Place, Target};
use wirefs_op::message::version::BootId;
use wirefs_op::message::xattr::{Txattr, XattrAction};
use wirefs_op::wire::{Data, Text};
use wirefs_op::{Cred, Errno, FileId, Kind, NOTAG, Reply, Request, SetStat, TreePath};
use wirefs_server::{Replies, SessionKey, Stopped, Tree};
use wirefs_virtual::Dice;

const ATTRIBUTE: &[u8] = b"user.n";
const SESSION: SessionKey = SessionKey(1);

/// An object at a path: kind, permissions, links, contents, the attribute, and the first path of the same object.
type Seen = (Kind, u32, u32, Bytes, Bytes, String);

pub(super) struct World {
    tree: ModelTree,
    dice: Dice,
    /// The objects from before the first change.
    begun: Vec<&'static str>,
    root: FileId,
    /// The objects that changes of the journal created, and those that were created again.
    made: BTreeMap<FileId, u64>,
    again: BTreeMap<u64, FileId>,
    /// The ledger.
    sent: BTreeSet<u64>,
    /// Random changes are of few names, and of files.
    is_crowded: bool,
    /// Names that changes have removed.
    removed: BTreeSet<String>,
    /// Files that were synced behind the changes below these numbers.
    pub(super) synced: BTreeMap<FileId, u64>,
}

struct One(Vec<Reply>);

impl Replies for One {
    fn send(&mut self, reply: Reply) -> Result<(), Stopped> {
        self.0.push(reply);
        Ok(())
    }
    fn is_stopped(&self) -> bool {
        false
    }
    fn wait(&mut self) {}
}

fn path(text: &str) -> TreePath {
    TreePath::from_bytes(Bytes::copy_from_slice(text.as_bytes())).unwrap()
}

fn put(target: Target, mode: PutMode) -> Tput {
    Tput { target, mode, create: None, set: SetStat::default(), offset: 0, data: Data(Bytes::new()) }
}

fn attributes(target: Target, set: SetStat) -> Tput {
    Tput { set, ..put(target, PutMode::STAT) }
}

impl World {
    /// Returns a durable tree of a directory and two files.
    pub(super) fn new(seed: u64) -> World {
        World::with(seed, &["mkdir old", "create old/a", "write old/a", "create k"])
    }

    /// Returns the same tree with a second name for both files.
    pub(super) fn with_twins(seed: u64) -> World {
        let links = ["link old/a c", "link k old/k"];
        World::with(seed, &[&["mkdir old", "create old/a", "write old/a", "create k"], &links[..]].concat())
    }

    /// A directory of few names, each of many files in turn.
    pub(super) fn crowded(seed: u64) -> World {
        World { is_crowded: true, ..World::new(seed) }
    }

    fn with(seed: u64, texts: &[&'static str]) -> World {
        let tree = ModelTree::new(BootId(1));
        let root = tree.attach(SESSION, &TreePath::root()).unwrap().root.id;
        let (made, again, sent) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
        let (begun, synced, removed) = (texts.to_vec(), BTreeMap::new(), BTreeSet::new());
        let mut world = World {
            tree,
            dice: Dice::new(0),
            begun,
            root,
            made,
            again,
            sent,
            is_crowded: false,
            removed,
            synced,
        };
        for text in texts {
            let request = world.request(text).unwrap();
            world.ask(request).unwrap();
        }
        world.dice = Dice::new(seed);
        world
    }

    pub(super) fn root(&self) -> FileId {
        self.root
    }

    pub(super) fn below(&mut self, bound: usize) -> usize {
        self.dice.below(bound as u64 + 1) as usize
    }

    fn ask(&self, request: Request) -> Result<Reply, Errno> {
        let mut replies = One(Vec::new());
        self.tree.serve(SESSION, request, &mut replies);
        match replies.0.into_iter().next() {
            Some(Reply::Error(error)) => Err(error.errno),
            reply => Ok(reply.expect("a reply")),
        }
    }

    fn get(&self, path: &TreePath, mode: GetMode) -> Result<Rget, Errno> {
        let get = Tget { target: Target::at(path.clone()), mode, nmsgs: 1, offset: 0, count: 1 << 16 };
        match self.ask(Request::Get(get))? {
            Reply::Get(got) => Ok(got),
            other => panic!("{other:?}"),
        }
    }

    fn id(&self, path: &TreePath) -> Option<FileId> {
        Some(self.get(path, GetMode::STAT).ok()?.stat?.id)
    }

    fn target(&self, text: &str) -> Option<Target> {
        Some(Target { path: path(text), fd: NOFD, id: Some(self.id(&path(text))?) })
    }

    fn place(&self, text: &str) -> Option<Place> {
        let dir = path(text).split_last()?.0;
        Some(Place { path: path(text), dir: Some(self.id(&dir)?) })
    }

    /// Makes a change from its description; `None` if the client knows that it would fail.
    fn request(&mut self, text: &str) -> Option<Request> {
        let words: Vec<&str> = text.split(' ').collect();
        let (what, name) = (words[0], words[1]);
        let bytes = Bytes::from(format!("{:x}", self.dice.below(1 << 40)));
        let create = |kind, place: Place, data: Bytes| {
            let create = Create { kind, mode: 0o644, rdev: 0, cred: Cred::default() };
            let target = Target { path: place.path, fd: NOFD, id: place.dir };
            let mode = PutMode::CREATE.and(PutMode::EXCLUSIVE);
            let mode = mode.and_if(!data.is_empty() && kind == Kind::File, PutMode::DATA);
            Request::Put(Tput { create: Some(create), data: Data(data), ..put(target, mode) })
        };
        Some(match what {
            "mkdir" => create(Kind::Directory, self.place(name)?, Bytes::new()),
            "create" => create(Kind::File, self.place(name)?, Bytes::new()),
            // `open` without `O_EXCL`, of a name that a change has removed.
            "open"
                if name.contains('/') || self.id(&path(name)).is_some() || !self.removed.contains(name) =>
            {
                return None;
            }
            "open" => match create(Kind::File, self.place(name)?, Bytes::new()) {
                Request::Put(put) => Request::Put(Tput { mode: put.mode.without(PutMode::EXCLUSIVE), ..put }),
                other => other,
            },
            "spill" => create(Kind::File, self.place(name)?, bytes),
            "symlink" => create(Kind::Symlink, self.place(name)?, bytes),
            "write" => {
                let offset = self.dice.below(20);
                Request::Put(Tput { offset, data: Data(bytes), ..put(self.target(name)?, PutMode::DATA) })
            }
            "append" => {
                let mode = PutMode::DATA.and(PutMode::APPEND);
                Request::Put(Tput { data: Data(bytes), ..put(self.target(name)?, mode) })
            }
            "cut" => {
                let size = words.get(2).and_then(|size| size.parse().ok());
                let size = size.or_else(|| Some(self.dice.below(20)));
                Request::Put(attributes(self.target(name)?, SetStat { size, ..SetStat::default() }))
            }
            "chmod" => {
                let mode = Some(0o600 + self.dice.below(0o100) as u32);
                Request::Put(attributes(self.target(name)?, SetStat { mode, ..SetStat::default() }))
            }
            "attribute" => Request::Xattr(Txattr {
                target: self.target(name)?,
                action: XattrAction::Set,
                flags: 0,
                name: Text::new(ATTRIBUTE),
                kill_sgid: false,
                value: Data(bytes),
            }),
            "remove" => {
                let kind = self.get(&path(name), GetMode::STAT).ok()?.stat?.kind;
                let directory = kind == Kind::Directory;
                Request::Remove(Tremove { place: self.place(name)?, directory })
            }
            // The kernel itself ignores a rename between two names of one file.
            "rename" if self.id(&path(name)).is_some_and(|id| self.id(&path(words[2])) == Some(id)) => {
                return None;
            }
            "rename" => Request::Rename(Trename {
                from: self.place(name)?,
                to: self.place(words[2])?,
                flags: words.get(3).map_or(0, |flags| flags.parse().unwrap()),
            }),
            "link" => Request::Link(Tlink { target: self.target(name)?, to: self.place(words[2])? }),
            other => panic!("{other}"),
        })
    }

    /// Makes these changes, with replies.
    pub(super) fn changes(&mut self, texts: &[&str]) -> Vec<Change> {
        let numbered = texts.iter().zip(1..);
        numbered.filter_map(|(text, number)| self.one(text, number, true, false)).collect()
    }

    /// Makes random changes, the last of them without replies.
    pub(super) fn change(&mut self, count: u64) -> Vec<Change> {
        const NAMES: [&str; 6] = ["a", "b", "old", "new", "c", "e"];
        const WHAT: [&str; 18] = [
            "mkdir",
            "mkdir",
            "open",
            "create",
            "create",
            "spill",
            "symlink",
            "write",
            "write",
            "append",
            "cut",
            "chmod",
            "attribute",
            "remove",
            "rename",
            "rename",
            "link",
            "link",
        ];
        let answered = if self.is_crowded { 0 } else { self.dice.below(count + 1) };
        let (names, what) = if self.is_crowded { (&NAMES[..2], &WHAT[2..]) } else { (&NAMES[..], &WHAT[..]) };
        let mut changes = Vec::new();
        for number in 1..=count {
            let mut name = || {
                let depth = if self.is_crowded { 1 } else { 1 + self.dice.below(3) };
                let one = |_| names[self.dice.below(names.len() as u64) as usize];
                (0..depth).map(one).collect::<Vec<_>>().join("/")
            };
            let (from, to) = (name(), name());
            let what = what[self.dice.below(what.len() as u64) as usize];
            let flags = if self.dice.below(8) == 0 { " 2" } else { "" };
            let by_number = self.dice.below(2) == 0;
            changes.extend(self.one(
                &format!("{what} {from} {to}{flags}"),
                number,
                number < answered,
                by_number,
            ));
        }
        changes
    }

    fn one(&mut self, text: &str, number: u64, is_answered: bool, by_number: bool) -> Option<Change> {
        let asked = self.request(text)?;
        let mut noted = asked.clone();
        for id in noted.ids_mut().into_iter().flatten().filter(|_| by_number || !is_answered) {
            *id = self.made.get(id).map_or(*id, |number| FileId::provisional(*number));
        }
        if changes_names(&asked) {
            // The replayed tree may have used fewer inode numbers.
            (0..6).for_each(|_| {
                self.idle();
            });
        }
        let record = Record { number, body: noted.encode(NOTAG).to_body() };
        let reply = self.ask(asked.clone());
        let is_done = reply.is_ok();
        if let (true, Request::Remove(_), Some(name)) = (is_done, &asked, text.split(' ').nth(1)) {
            self.removed.insert(name.to_owned());
        }
        // A client that does not wait for the reply has predicted success.
        let is_journaled = is_done || is_answered;
        let mut made = None;
        let mut outcome = ChangeOutcome { is_answered, is_rejected: !is_done, ..ChangeOutcome::default() };
        if let (Ok(Reply::Put(Rput { stat: Some(stat), offset, .. })), Request::Put(put)) = (&reply, &asked) {
            if put.mode.has(PutMode::CREATE) {
                self.made.insert(stat.id, number);
                made = Some(stat.id);
                outcome.made = made.filter(|_| is_answered);
            }
            // An exclusive client knows the offset.
            outcome.offset = Some(*offset).filter(|_| put.mode.has(PutMode::APPEND));
        }
        Some(Change { text: text.to_owned(), record, outcome, asked, is_done, made, is_journaled })
    }

    /// Returns the value of the only extended attribute, if it is set.
    fn attribute(&self, path: &TreePath) -> Bytes {
        let (target, name, value) = (Target::at(path.clone()), Text::new(ATTRIBUTE), Data(Bytes::new()));
        let read = Txattr { target, action: XattrAction::Read, name, flags: 0, kill_sgid: false, value };
        match self.ask(Request::Xattr(read)) {
            Ok(Reply::Xattr(got)) => got.value.0,
            _ => Bytes::new(),
        }
    }

    fn walk(&self) -> Vec<(TreePath, FileId, Kind)> {
        let (mut left, mut found) = (vec![TreePath::root()], Vec::new());
        while let Some(dir) = left.pop() {
            for entry in entries(self.get(&dir, GetMode::DATA).unwrap().data.0).unwrap() {
                let path = dir.join(&entry.name).unwrap();
                found.push((path.clone(), entry.stat.id, entry.stat.kind));
                left.extend(Some(path).filter(|_| entry.stat.kind == Kind::Directory));
            }
        }
        found.sort();
        found
    }

    pub(super) fn contents(&self) -> BTreeMap<String, Seen> {
        let mut first = BTreeMap::new();
        let seen = |(path, id, kind): (TreePath, FileId, Kind)| {
            let shown = format!("{path:?}");
            let first = first.entry(id).or_insert_with(|| shown.clone()).clone();
            let stat = self.get(&path, GetMode::STAT).unwrap().stat.unwrap();
            let has_data = kind != Kind::Directory;
            let data = if has_data { self.get(&path, GetMode::DATA).unwrap().data.0 } else { Bytes::new() };
            (shown, (kind, stat.mode, stat.nlink, data, self.attribute(&path), first))
        };
        self.walk().into_iter().map(seen).collect()
    }

    /// Returns the objects at these paths.
    pub(super) fn found(&self, paths: BTreeSet<TreePath>) -> BTreeMap<TreePath, ObjectStat> {
        let found = |path: &TreePath| {
            let stat = self.get(path, GetMode::STAT).ok()?.stat?;
            Some(ObjectStat { id: stat.id, changed: 0, modified: 0, size: stat.size })
        };
        paths.into_iter().filter_map(|path| Some((path.clone(), found(&path)?))).collect()
    }

    /// Returns the paths of these objects, as a search of the whole tree finds them.
    pub(super) fn paths_of(&self, ids: &BTreeSet<FileId>) -> BTreeSet<TreePath> {
        self.walk().into_iter().filter(|(_, id, _)| ids.contains(id)).map(|(path, ..)| path).collect()
    }

    pub(super) fn id_of(&self, text: &str) -> FileId {
        self.id(&path(text)).unwrap()
    }

    /// Returns the object that a replayed change created.
    pub(super) fn made_as(&self, number: u64) -> Option<FileId> {
        self.again.get(&number).copied()
    }

    /// Applies a replayed request once.
    pub(super) fn send(&mut self, number: u64, mut request: Request) -> Result<(), Errno> {
        if !self.sent.insert(number) {
            return Ok(());
        }
        for id in request.ids_mut().into_iter().flatten() {
            if let Some(made) = id.provisional_number() {
                *id = *self.again.get(&made).ok_or(Errno::Stale)?;
            }
        }
        if let Reply::Put(Rput { stat: Some(stat), .. }) = self.ask(request)? {
            self.again.insert(number, stat.id);
        }
        Ok(())
    }
}
