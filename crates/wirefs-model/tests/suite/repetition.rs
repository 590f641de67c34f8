//! Changes that had begun when the process of the server ended, carried out again: on the model and on a host directory.

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
use wirefs_server::{Begun, Found, Replies, SessionKey, Stopped, Tree, repeat};

const SESSION: SessionKey = SessionKey(1);

/// What a request led to.
#[derive(Default)]
struct Ran {
    reply: Option<Reply>,
    found: Option<Found>,
}

impl Replies for Ran {
    fn send(&mut self, reply: Reply) -> Result<(), Stopped> {
        self.reply.get_or_insert(reply);
        Ok(())
    }

    fn is_stopped(&self) -> bool {
        false
    }

    fn begins(&mut self, find: &mut dyn FnMut() -> Option<Found>) {
        self.found = find();
    }

    fn wait(&mut self) {}
}

/// A tree, and words for what is done to it.
struct World(Box<dyn Tree>);

impl World {
    fn run(&self, request: &Request) -> Ran {
        let mut ran = Ran::default();
        self.0.serve(SESSION, request.clone(), &mut ran);
        ran
    }

    /// Does it; fails where it fails.
    fn does(&self, request: &Request) -> Reply {
        match self.run(request).reply.unwrap() {
            Reply::Error(error) => panic!("{request:?}: {error:?}"),
            reply => reply,
        }
    }

    /// Does it for the first time; what it found.
    fn first(&self, request: &Request) -> Found {
        let ran = self.run(request);
        assert!(!matches!(ran.reply, Some(Reply::Error(_))), "{request:?}: {:?}", ran.reply);
        ran.found.unwrap_or_else(|| panic!("{request:?} is the same when it is done twice"))
    }

    /// Does it again.
    fn again(&self, request: &Request, found: Found) -> Result<Reply, Errno> {
        let begun = Begun { about: repeat::about(request), found };
        let mut ran = Ran::default();
        repeat::serve(&*self.0, SESSION, request.clone(), &begun, &mut ran);
        match ran.reply.unwrap() {
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
        let Reply::Get(got) = self.does(&get(name, GetMode::DATA)) else { panic!("no Rget") };
        String::from_utf8(got.data.0.to_vec()).unwrap()
    }
}

/// Has this happen in each kind of tree, empty.
fn each(body: impl Fn(&World)) {
    let scratch = Scratch::within(Path::new("/dev/shm"));
    let host = HostTree::open(scratch.path(), HostOptions::default()).unwrap();
    let trees: [Box<dyn Tree>; 2] = [Box::new(ModelTree::new(BootId(1))), Box::new(host)];
    for tree in trees {
        tree.attach(SESSION, &TreePath::root()).unwrap();
        body(&World(tree));
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

// S-75
#[test]
fn what_was_made_is_taken_for_what_was_to_be_made() {
    each(|world| {
        let requests = [
            file("file", "data"),
            make("dir", Kind::Directory, PutMode::NONE, ""),
            make("link", Kind::Symlink, PutMode::DATA, "text"),
            make("fifo", Kind::Fifo, PutMode::NONE, ""),
        ];
        for request in requests {
            let Request::Put(made) = &request else { panic!("no Tput") };
            let found = world.first(&request);
            let name = std::str::from_utf8(made.target.path.as_bytes()).unwrap();
            let first = world.stat(name).unwrap();
            let Ok(Reply::Put(reply)) = world.again(&request, found) else { panic!("{request:?} fails") };
            let stat = reply.stat.unwrap();
            assert_eq!(
                (stat.id, stat.kind, stat.mode, stat.size),
                (first.id, first.kind, first.mode, first.size)
            );
            assert_eq!((reply.before, reply.fd), (0, NOFD), "it is new");
            assert_eq!(reply.dir.unwrap().id, world.id("").unwrap());
        }
        assert_eq!(world.text("file"), "data");
    });
}

#[test]
fn what_was_made_in_part_is_completed_and_what_was_not_made_is_made() {
    each(|world| {
        let request = file("f", "all of it");
        assert!(world.again(&request, Found::default()).is_ok());
        assert_eq!(world.text("f"), "all of it");
        world.does(&make("g", Kind::File, PutMode::NONE, ""));
        world.does(&write("g", "all"));
        let Ok(Reply::Put(reply)) = world.again(&file("g", "all of it"), Found::default()) else {
            panic!("it fails")
        };
        assert_eq!((reply.count, world.text("g").as_str()), (9, "all of it"));
        let appending = make("g", Kind::File, PutMode::DATA.and(PutMode::APPEND), "all of it, and more");
        assert!(world.again(&appending, Found::default()).is_ok());
        assert_eq!(world.text("g"), "all of it, and more");
    });
}

#[test]
fn what_was_there_before_or_is_something_else_is_not_taken_for_it() {
    each(|world| {
        world.does(&file("f", "another's"));
        let refused = world.run(&file("f", "ours"));
        assert!(refused.found.is_none() && matches!(refused.reply, Some(Reply::Error(_))));
        let link = make("l", Kind::Symlink, PutMode::DATA, "ours");
        world.does(&make("l", Kind::Symlink, PutMode::DATA, "another's"));
        for request in [make("f", Kind::Directory, PutMode::NONE, ""), link] {
            assert_eq!(world.again(&request, Found::default()), Err(Errno::Exists));
        }
        assert_eq!(world.text("f"), "another's");
    });
}

// S-75
#[test]
fn data_is_appended_once() {
    each(|world| {
        world.does(&file("f", "one"));
        let request = append("f", "two");
        let found = world.first(&request);
        assert_eq!(found.size, 3);
        let Ok(Reply::Put(reply)) = world.again(&request, found) else { panic!("it fails") };
        assert_eq!((reply.count, reply.offset, world.text("f").as_str()), (3, 3, "onetwo"));
        // It had begun, and no more.
        assert!(world.again(&append("f", "3"), Found { size: 6, ..found }).is_ok());
        assert_eq!(world.text("f"), "onetwo3");
        // It was done in part.
        assert!(world.again(&append("f", "345"), Found { size: 6, ..found }).is_ok());
        assert_eq!(world.text("f"), "onetwo345");
        // Somebody else appended something.
        assert!(world.again(&append("f", "!"), Found { size: 6, ..found }).is_ok());
        assert_eq!(world.text("f"), "onetwo345!");
    });
}

// S-75
#[test]
fn what_is_removed_is_not_missed_and_nothing_else_is_removed() {
    each(|world| {
        for (request, of) in [
            (remove("f", false), file("f", "")),
            (remove("f", true), make("f", Kind::Directory, PutMode::NONE, "")),
        ] {
            world.does(&of);
            let found = Found { at: world.id("f"), ..Found::default() };
            assert!(world.again(&request, found).is_ok());
            assert!(world.id("f").is_none(), "it had not been removed");
            world.does(&of);
            let found = world.first(&request);
            let Ok(Reply::Remove(reply)) = world.again(&request, found) else { panic!("it fails") };
            assert_eq!(reply.dir.unwrap().id, world.id("").unwrap());
        }
        world.does(&file("f", ""));
        let found = world.first(&remove("f", false));
        // The place is not another's yet: file systems give numbers out again.
        world.does(&file("other", ""));
        world.does(&file("f", "another's"));
        if world.id("f") != found.at {
            assert!(world.again(&remove("f", false), found).is_ok());
            assert_eq!(world.text("f"), "another's");
        }
    });
}

// S-75
#[test]
fn what_has_its_new_name_is_not_renamed_again() {
    each(|world| {
        world.does(&file("a", "a"));
        world.does(&file("b", "b"));
        let request = rename("a", "b", 0);
        let found = world.first(&request);
        let id = world.id("b");
        let Ok(Reply::Rename(reply)) = world.again(&request, found) else { panic!("it fails") };
        assert_eq!(reply.stat.map(|stat| stat.id), id);
        // Somebody else has taken the old name.
        world.does(&file("a", "another's"));
        assert!(world.again(&request, found).is_ok());
        assert_eq!((world.text("a").as_str(), world.text("b").as_str()), ("another's", "a"));
        // It had not been done.
        let found = Found { of: world.id("a"), at: world.id("b"), size: 0 };
        assert!(world.again(&request, found).is_ok());
        assert_eq!((world.id("a"), world.text("b").as_str()), (None, "another's"));
        assert_eq!(world.again(&request, Found::default()), Err(Errno::NotFound));
    });
}

#[test]
fn what_changed_places_does_not_change_back() {
    each(|world| {
        world.does(&file("a", "a"));
        world.does(&file("b", "b"));
        let request = rename("a", "b", EXCHANGE);
        let found = world.first(&request);
        assert!(world.again(&request, found).is_ok());
        assert_eq!((world.text("a").as_str(), world.text("b").as_str()), ("b", "a"));
        let found = Found { of: world.id("a"), at: world.id("b"), size: 0 };
        assert!(world.again(&request, found).is_ok());
        assert_eq!((world.text("a").as_str(), world.text("b").as_str()), ("a", "b"));
    });
}

// S-75
#[test]
fn what_is_linked_is_not_in_the_way() {
    each(|world| {
        world.does(&file("a", "a"));
        let request = link("a", "b");
        let found = world.first(&request);
        let Ok(Reply::Link(reply)) = world.again(&request, found) else { panic!("it fails") };
        assert_eq!(reply.stat.map(|stat| (stat.id, stat.nlink)), world.id("a").map(|id| (id, 2)));
        world.does(&file("c", "another's"));
        assert_eq!(world.again(&link("a", "c"), found), Err(Errno::Exists));
        assert!(world.again(&link("a", "d"), found).is_ok());
        assert_eq!(world.id("d"), world.id("a"));
    });
}

#[test]
fn attributes_that_are_set_or_gone_are_not_in_the_way() {
    each(|world| {
        world.does(&file("f", ""));
        let set = xattr(XattrAction::Set, 1, "value");
        let found = world.first(&set);
        assert!(world.again(&set, found).is_ok());
        assert_eq!(world.again(&xattr(XattrAction::Set, 1, "other"), found), Err(Errno::Exists));
        let removal = xattr(XattrAction::Remove, 0, "");
        assert!(world.again(&removal, found).is_ok(), "it is there");
        assert!(world.again(&removal, found).is_ok(), "it is not");
        assert!(world.run(&xattr(XattrAction::Set, 0, "value")).found.is_none());
    });
}

#[test]
fn a_directory_that_is_not_the_one_that_was_meant_is_left_alone() {
    each(|world| {
        world.does(&make("d", Kind::Directory, PutMode::NONE, ""));
        world.does(&file("d/f", ""));
        let elsewhere = Some(FileId { fs: 0, ino: 1 << 40, generation: 1 });
        let at = world.id("d/f");
        let removal = Tremove { place: Place { dir: elsewhere, ..place("d/f") }, directory: false };
        let gone = Tremove { place: Place { dir: elsewhere, ..place("e/f") }, directory: false };
        for request in [Request::Remove(removal), Request::Remove(gone)] {
            assert_eq!(world.again(&request, Found { at, ..Found::default() }), Err(Errno::Stale));
        }
        assert!(world.id("d/f").is_some());
    });
}

#[test]
fn changes_of_other_names_and_kinds_are_told_apart() {
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
    let mut abouts: Vec<u64> = requests.iter().map(repeat::about).collect();
    abouts.sort_unstable();
    abouts.dedup();
    assert_eq!(abouts.len(), requests.len());
    assert_eq!(repeat::about(&file("a", "x")), repeat::about(&file("a", "y")));
}
