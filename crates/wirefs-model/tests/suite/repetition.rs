//! Repetition of changes that were in progress when the server process ended: on the model and on a host directory.

use crate::scratch::Scratch;
use bytes::Bytes;
use std::path::Path;
use wirefs_hostfs::{HostOptions, HostTree};
use wirefs_model::ModelTree;
use wirefs_op::message::get::{GetMode, Tget};
use wirefs_op::message::link::Tlink;
use wirefs_op::message::put::{Create, PutMode, Tput};
use wirefs_op::message::remove::Tremove;
use wirefs_op::message::rename::{EXCHANGE, Trename};
use wirefs_op::message::target::{NOFD, Place, Target};
use wirefs_op::message::version::BootId;
use wirefs_op::message::xattr::{Txattr, XattrAction};
use wirefs_op::wire::{Data, Text};
use wirefs_op::{Cred, Errno, FileId, Kind, Reply, Request, SetStat, Stat, TreePath};
use wirefs_server::{PriorState, Replies, SessionKey, StartedChange, Stopped, Tree, repeat};

const SESSION: SessionKey = SessionKey(1);

/// The result of a request.
#[derive(Default)]
struct RequestResult {
    reply: Option<Reply>,
    found: Option<PriorState>,
}

impl Replies for RequestResult {
    fn send(&mut self, reply: Reply) -> Result<(), Stopped> {
        self.reply.get_or_insert(reply);
        Ok(())
    }

    fn is_stopped(&self) -> bool {
        false
    }

    fn record_prior_state(&mut self, find: &mut dyn FnMut() -> Option<PriorState>) {
        self.found = find();
    }

    fn wait(&mut self) {}
}

/// A tree, with helpers to change it.
struct TestTree(Box<dyn Tree>);

impl TestTree {
    fn run(&self, request: &Request) -> RequestResult {
        let mut result = RequestResult::default();
        self.0.serve(SESSION, request.clone(), &mut result);
        result
    }

    /// Executes a request; panics if it fails.
    fn execute(&self, request: &Request) -> Reply {
        match self.run(request).reply.unwrap() {
            Reply::Error(error) => panic!("{request:?}: {error:?}"),
            reply => reply,
        }
    }

    /// Executes a request for the first time; returns the state before it.
    fn run_first(&self, request: &Request) -> PriorState {
        let result = self.run(request);
        assert!(!matches!(result.reply, Some(Reply::Error(_))), "{request:?}: {:?}", result.reply);
        result.found.unwrap_or_else(|| panic!("{request:?} is idempotent"))
    }

    /// Repeats a request.
    fn repeat_request(&self, request: &Request, found: PriorState) -> Result<Reply, Errno> {
        let begun = StartedChange { fingerprint: repeat::fingerprint(request), prior: found };
        let mut result = RequestResult::default();
        repeat::serve(&*self.0, SESSION, request.clone(), &begun, &mut result);
        match result.reply.unwrap() {
            Reply::Error(error) => Err(error.errno),
            reply => Ok(reply),
        }
    }

    fn stat(&self, name: &str) -> Option<Stat> {
        match self.run(&get(name, GetMode::STAT)).reply.unwrap() {
            Reply::Get(got) => got.stat,
            _ => None,
        }
    }

    fn id(&self, name: &str) -> Option<FileId> {
        self.stat(name).map(|stat| stat.id)
    }

    fn text(&self, name: &str) -> String {
        let Reply::Get(got) = self.execute(&get(name, GetMode::DATA)) else { panic!("no Rget") };
        String::from_utf8(got.data.0.to_vec()).unwrap()
    }
}

/// Runs `body` on an empty tree of each kind.
fn on_each_tree(body: impl Fn(&TestTree)) {
    let scratch = Scratch::within(Path::new("/dev/shm"));
    let host = HostTree::open(scratch.path(), HostOptions::all_rights()).unwrap();
    let trees: [Box<dyn Tree>; 2] = [Box::new(ModelTree::new(BootId(1))), Box::new(host)];
    for tree in trees {
        tree.attach(SESSION, &TreePath::root()).unwrap();
        body(&TestTree(tree));
    }
}

fn path(name: &str) -> TreePath {
    TreePath::from_bytes(Bytes::copy_from_slice(name.as_bytes())).unwrap()
}

fn place(name: &str) -> Place {
    Place { path: path(name), dir: None }
}

fn get(name: &str, mode: GetMode) -> Request {
    Request::Get(Tget { target: Target::at(path(name)), mode, nmsgs: 1, offset: 0, count: 1000 })
}

fn put(name: &str, mode: PutMode, data: &str) -> Tput {
    Tput {
        target: Target::at(path(name)),
        mode,
        create: None,
        set: SetStat::default(),
        offset: 0,
        data: Data(Bytes::copy_from_slice(data.as_bytes())),
    }
}

fn make(name: &str, kind: Kind, mode: PutMode, data: &str) -> Request {
    let cred = Cred { uid: 0, gid: 0, umask: 0 };
    let create = Some(Create { kind, mode: 0o644, rdev: 0, cred });
    let mode = mode.and(PutMode::CREATE).and(PutMode::EXCLUSIVE);
    Request::Put(Tput { create, ..put(name, mode, data) })
}

fn file(name: &str, data: &str) -> Request {
    make(name, Kind::File, PutMode::DATA, data)
}

fn append(name: &str, data: &str) -> Request {
    Request::Put(put(name, PutMode::DATA.and(PutMode::APPEND), data))
}

fn write(name: &str, data: &str) -> Request {
    Request::Put(put(name, PutMode::DATA, data))
}

fn remove(name: &str, directory: bool) -> Request {
    Request::Remove(Tremove { place: place(name), directory })
}

fn rename(from: &str, to: &str, flags: u32) -> Request {
    Request::Rename(Trename { from: place(from), to: place(to), flags })
}

fn link(from: &str, to: &str) -> Request {
    Request::Link(Tlink { target: Target::at(path(from)), to: place(to) })
}

fn xattr(action: XattrAction, flags: u32, value: &str) -> Request {
    Request::Xattr(Txattr {
        target: Target::at(path("f")),
        action,
        name: Text::new(b"user.x"),
        flags,
        kill_sgid: false,
        value: Data(Bytes::copy_from_slice(value.as_bytes())),
    })
}

// S-86
#[test]
fn repeated_creation_accepts_the_created_object() {
    on_each_tree(|tree| {
        let requests = [
            file("file", "data"),
            make("dir", Kind::Directory, PutMode::NONE, ""),
            make("link", Kind::Symlink, PutMode::DATA, "text"),
            make("fifo", Kind::Fifo, PutMode::NONE, ""),
        ];
        for request in requests {
            let Request::Put(made) = &request else { panic!("no Tput") };
            let found = tree.run_first(&request);
            let name = std::str::from_utf8(made.target.path.as_bytes()).unwrap();
            let first = tree.stat(name).unwrap();
            let Ok(Reply::Put(reply)) = tree.repeat_request(&request, found) else {
                panic!("{request:?} fails")
            };
            let stat = reply.stat.unwrap();
            assert_eq!(
                (stat.id, stat.kind, stat.mode, stat.size),
                (first.id, first.kind, first.mode, first.size)
            );
            assert_eq!((reply.before, reply.fd), (0, NOFD), "it is new");
            assert_eq!(reply.dir.unwrap().id, tree.id("").unwrap());
        }
        assert_eq!(tree.text("file"), "data");
    });
}

#[test]
fn repeated_creation_completes_a_partial_or_missing_one() {
    on_each_tree(|tree| {
        let request = file("f", "all of it");
        assert!(tree.repeat_request(&request, PriorState::default()).is_ok());
        assert_eq!(tree.text("f"), "all of it");
        tree.execute(&make("g", Kind::File, PutMode::NONE, ""));
        tree.execute(&write("g", "all"));
        let Ok(Reply::Put(reply)) = tree.repeat_request(&file("g", "all of it"), PriorState::default())
        else {
            panic!("it fails")
        };
        assert_eq!((reply.count, tree.text("g").as_str()), (9, "all of it"));
        let appending = make("g", Kind::File, PutMode::DATA.and(PutMode::APPEND), "all of it, and more");
        assert!(tree.repeat_request(&appending, PriorState::default()).is_ok());
        assert_eq!(tree.text("g"), "all of it, and more");
    });
}

#[test]
fn repeated_creation_rejects_an_older_or_different_object() {
    on_each_tree(|tree| {
        tree.execute(&file("f", "another's"));
        let refused = tree.run(&file("f", "ours"));
        assert!(refused.found.is_none() && matches!(refused.reply, Some(Reply::Error(_))));
        let link = make("l", Kind::Symlink, PutMode::DATA, "ours");
        tree.execute(&make("l", Kind::Symlink, PutMode::DATA, "another's"));
        for request in [make("f", Kind::Directory, PutMode::NONE, ""), link] {
            assert_eq!(tree.repeat_request(&request, PriorState::default()), Err(Errno::Exists));
        }
        assert_eq!(tree.text("f"), "another's");
    });
}

// S-86
#[test]
fn repeated_append_appends_once() {
    on_each_tree(|tree| {
        tree.execute(&file("f", "one"));
        let request = append("f", "two");
        let found = tree.run_first(&request);
        assert_eq!(found.size, 3);
        let Ok(Reply::Put(reply)) = tree.repeat_request(&request, found) else { panic!("it fails") };
        assert_eq!((reply.count, reply.offset, tree.text("f").as_str()), (3, 3, "onetwo"));
        // The append had begun only.
        assert!(tree.repeat_request(&append("f", "3"), PriorState { size: 6, ..found }).is_ok());
        assert_eq!(tree.text("f"), "onetwo3");
        // The append was done in part.
        assert!(tree.repeat_request(&append("f", "345"), PriorState { size: 6, ..found }).is_ok());
        assert_eq!(tree.text("f"), "onetwo345");
        // Another client appended something.
        assert!(tree.repeat_request(&append("f", "!"), PriorState { size: 6, ..found }).is_ok());
        assert_eq!(tree.text("f"), "onetwo345!");
    });
}

// S-86
#[test]
fn repeated_removal_succeeds_and_removes_no_other_object() {
    on_each_tree(|tree| {
        for (request, of) in [
            (remove("f", false), file("f", "")),
            (remove("f", true), make("f", Kind::Directory, PutMode::NONE, "")),
        ] {
            tree.execute(&of);
            let found = PriorState { named: tree.id("f"), ..PriorState::default() };
            assert!(tree.repeat_request(&request, found).is_ok());
            assert!(tree.id("f").is_none(), "it had not been removed");
            tree.execute(&of);
            let found = tree.run_first(&request);
            let Ok(Reply::Remove(reply)) = tree.repeat_request(&request, found) else { panic!("it fails") };
            assert_eq!(reply.dir.unwrap().id, tree.id("").unwrap());
        }
        tree.execute(&file("f", ""));
        let found = tree.run_first(&remove("f", false));
        // Inode numbers are reused, so the place must be occupied first.
        tree.execute(&file("other", ""));
        tree.execute(&file("f", "another's"));
        if tree.id("f") != found.named {
            assert!(tree.repeat_request(&remove("f", false), found).is_ok());
            assert_eq!(tree.text("f"), "another's");
        }
    });
}

// S-86
#[test]
fn repeated_rename_renames_once() {
    on_each_tree(|tree| {
        tree.execute(&file("a", "a"));
        tree.execute(&file("b", "b"));
        let request = rename("a", "b", 0);
        let found = tree.run_first(&request);
        let id = tree.id("b");
        let Ok(Reply::Rename(reply)) = tree.repeat_request(&request, found) else { panic!("it fails") };
        assert_eq!(reply.stat.map(|stat| stat.id), id);
        // Another client has taken the old name.
        tree.execute(&file("a", "another's"));
        assert!(tree.repeat_request(&request, found).is_ok());
        assert_eq!((tree.text("a").as_str(), tree.text("b").as_str()), ("another's", "a"));
        // The rename had not been done.
        let found = PriorState { object: tree.id("a"), named: tree.id("b"), size: 0 };
        assert!(tree.repeat_request(&request, found).is_ok());
        assert_eq!((tree.id("a"), tree.text("b").as_str()), (None, "another's"));
        assert_eq!(tree.repeat_request(&request, PriorState::default()), Err(Errno::NotFound));
    });
}

#[test]
fn repeated_exchange_exchanges_once() {
    on_each_tree(|tree| {
        tree.execute(&file("a", "a"));
        tree.execute(&file("b", "b"));
        let request = rename("a", "b", EXCHANGE);
        let found = tree.run_first(&request);
        assert!(tree.repeat_request(&request, found).is_ok());
        assert_eq!((tree.text("a").as_str(), tree.text("b").as_str()), ("b", "a"));
        let found = PriorState { object: tree.id("a"), named: tree.id("b"), size: 0 };
        assert!(tree.repeat_request(&request, found).is_ok());
        assert_eq!((tree.text("a").as_str(), tree.text("b").as_str()), ("a", "b"));
    });
}

// S-86
#[test]
fn repeated_link_accepts_the_existing_link() {
    on_each_tree(|tree| {
        tree.execute(&file("a", "a"));
        let request = link("a", "b");
        let found = tree.run_first(&request);
        let Ok(Reply::Link(reply)) = tree.repeat_request(&request, found) else { panic!("it fails") };
        assert_eq!(reply.stat.map(|stat| (stat.id, stat.nlink)), tree.id("a").map(|id| (id, 2)));
        tree.execute(&file("c", "another's"));
        assert_eq!(tree.repeat_request(&link("a", "c"), found), Err(Errno::Exists));
        assert!(tree.repeat_request(&link("a", "d"), found).is_ok());
        assert_eq!(tree.id("d"), tree.id("a"));
    });
}

#[test]
fn repeated_xattr_changes_accept_the_present_state() {
    on_each_tree(|tree| {
        tree.execute(&file("f", ""));
        let set = xattr(XattrAction::Set, 1, "value");
        let found = tree.run_first(&set);
        assert!(tree.repeat_request(&set, found).is_ok());
        assert_eq!(tree.repeat_request(&xattr(XattrAction::Set, 1, "other"), found), Err(Errno::Exists));
        let removal = xattr(XattrAction::Remove, 0, "");
        assert!(tree.repeat_request(&removal, found).is_ok(), "it is there");
        assert!(tree.repeat_request(&removal, found).is_ok(), "it is not");
        assert!(tree.run(&xattr(XattrAction::Set, 0, "value")).found.is_none());
    });
}

#[test]
fn repeated_change_in_another_directory_is_stale() {
    on_each_tree(|tree| {
        tree.execute(&make("d", Kind::Directory, PutMode::NONE, ""));
        tree.execute(&file("d/f", ""));
        let elsewhere = Some(FileId { fs: 0, ino: 1 << 40, generation: 1 });
        let at = tree.id("d/f");
        let removal = Tremove { place: Place { dir: elsewhere, ..place("d/f") }, directory: false };
        let gone = Tremove { place: Place { dir: elsewhere, ..place("e/f") }, directory: false };
        for request in [Request::Remove(removal), Request::Remove(gone)] {
            assert_eq!(
                tree.repeat_request(&request, PriorState { named: at, ..PriorState::default() }),
                Err(Errno::Stale)
            );
        }
        assert!(tree.id("d/f").is_some());
    });
}

#[test]
fn requests_with_other_names_or_types_are_distinguished() {
    let requests = [
        file("a", ""),
        file("b", ""),
        remove("a", false),
        rename("a", "b", 0),
        rename("b", "a", 0),
        rename("ab", "", 0),
        link("a", "b"),
        xattr(XattrAction::Set, 0, ""),
    ];
    let mut fingerprints: Vec<u64> = requests.iter().map(repeat::fingerprint).collect();
    fingerprints.sort_unstable();
    fingerprints.dedup();
    assert_eq!(fingerprints.len(), requests.len());
    assert_eq!(repeat::fingerprint(&file("a", "x")), repeat::fingerprint(&file("a", "y")));
}
