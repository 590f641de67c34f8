//! Tests of the comparisons themselves: each must detect planted faults.

use crate::scratch::Scratch;
use crate::seeds;
use std::path::Path;
use wirefs_model::{ModelTree, run_op, run_posix, run_touches};
use wirefs_op::message::version::BootId;
use wirefs_op::{Errno, FileId, Reply, Request, Stat, TreePath};
use wirefs_server::{Attached, Parked, Replies, SessionKey, Stopped, Touched, Tree};

type RequestFault = fn(&mut Request);

/// A tree with one fault.
struct FaultyTree {
    tree: ModelTree,
    /// Changes a request before it is served.
    fault: RequestFault,
}

impl Tree for FaultyTree {
    fn attach(&self, session: SessionKey, path: &TreePath) -> Result<Attached, Errno> {
        self.tree.attach(session, path)
    }

    fn serve(&self, session: SessionKey, mut request: Request, replies: &mut dyn Replies) {
        (self.fault)(&mut request);
        self.tree.serve(session, request, replies);
    }

    fn end(&self, session: SessionKey) {
        self.tree.end(session);
    }
}

#[test]
fn two_models_match() {
    let tree = ModelTree::new(BootId(2));
    assert_eq!(run_op(3, 3000, &tree), Ok(()));
}

#[test]
fn model_announces_its_changes() {
    for seed in seeds(4) {
        if let Err(mismatch) = run_touches(seed, 1000, &ModelTree::new(BootId(2))) {
            panic!("{mismatch}");
        }
    }
}

#[test]
fn tree_with_one_fault_is_detected() {
    use wirefs_op::message::put::PutMode;
    let faults: [(&str, RequestFault); 4] = [
        ("loses the last byte of a write", |request| {
            if let Request::Put(put) = request
                && put.create.is_none()
            {
                let len = put.data.0.len().saturating_sub(1);
                put.data.0.truncate(len);
            }
        }),
        ("ignores NOREPLACE", |request| {
            if let Request::Rename(rename) = request
                && rename.flags == 1
            {
                rename.flags = 0;
            }
        }),
        ("appends at the offset of the client", |request| {
            if let Request::Put(put) = request {
                put.mode = PutMode(put.mode.0 & !PutMode::APPEND.0);
            }
        }),
        ("ignores the inode id of a request", |request| {
            if let Request::Get(get) = request {
                get.target.id = None;
            }
        }),
    ];
    for (name, fault) in faults {
        let tree = FaultyTree { tree: ModelTree::new(BootId(2)), fault };
        assert!(run_op(0, 3000, &tree).is_err(), "a tree that {name} passes");
    }
}

/// Faults in the announcements and grants of a tree.
#[derive(Clone, Copy, Debug)]
enum AnnouncementFault {
    OmitsObjects,
    OmitsNames,
    AnnouncesTooMuch,
    GrantsNothing,
    IgnoresParking,
}

struct FaultyAnnouncements(ModelTree, AnnouncementFault);

struct FaultyReplies<'a>(&'a mut dyn Replies, AnnouncementFault);

impl Tree for FaultyAnnouncements {
    fn attach(&self, session: SessionKey, path: &TreePath) -> Result<Attached, Errno> {
        self.0.attach(session, path)
    }

    fn serve(&self, session: SessionKey, request: Request, replies: &mut dyn Replies) {
        self.0.serve(session, request, &mut FaultyReplies(replies, self.1));
    }

    fn end(&self, session: SessionKey) {
        self.0.end(session);
    }
}

impl Replies for FaultyReplies<'_> {
    fn send(&mut self, reply: Reply) -> Result<(), Stopped> {
        self.0.send(reply)
    }

    fn is_stopped(&self) -> bool {
        self.0.is_stopped()
    }

    fn touch(&mut self, touched: &[Touched]) -> Result<(), Parked> {
        let mut announced = touched.to_vec();
        match self.1 {
            AnnouncementFault::OmitsObjects => announced.retain(|touched| touched.name.is_some()),
            AnnouncementFault::OmitsNames => announced.retain(|touched| touched.name.is_none()),
            AnnouncementFault::AnnouncesTooMuch if !announced.is_empty() => {
                announced.push(Touched::name(ROOT, b"never"))
            }
            AnnouncementFault::AnnouncesTooMuch | AnnouncementFault::GrantsNothing => {}
            AnnouncementFault::IgnoresParking => {
                let _ = self.0.touch(&announced);
                return Ok(());
            }
        }
        self.0.touch(&announced)
    }

    fn grant(&mut self, stats: &mut dyn Iterator<Item = &mut Stat>) {
        match self.1 {
            AnnouncementFault::GrantsNothing => {}
            AnnouncementFault::OmitsObjects
            | AnnouncementFault::OmitsNames
            | AnnouncementFault::AnnouncesTooMuch
            | AnnouncementFault::IgnoresParking => self.0.grant(stats),
        }
    }

    fn grant_names(&mut self, dir: FileId) -> bool {
        self.0.grant_names(dir)
    }

    fn wait(&mut self) {
        self.0.wait();
    }
}

/// The model's root.
const ROOT: FileId = FileId { fs: 0, ino: 1, generation: 1 };

#[test]
fn tree_with_wrong_announcements_is_detected() {
    for fault in [
        AnnouncementFault::OmitsObjects,
        AnnouncementFault::OmitsNames,
        AnnouncementFault::AnnouncesTooMuch,
        AnnouncementFault::GrantsNothing,
        AnnouncementFault::IgnoresParking,
    ] {
        let found = run_touches(0, 300, &FaultyAnnouncements(ModelTree::new(BootId(2)), fault));
        assert!(found.is_err(), "{fault:?} passes");
    }
}

#[test]
fn mounts_of_different_directories_are_detected() {
    let (one, other) = (Scratch::within(Path::new("/dev/shm")), Scratch::within(Path::new("/dev/shm")));
    let mismatch = run_posix(0, 200, &[one.path(), other.path()]).unwrap_err();
    assert!(mismatch.to_string().contains("seed 0, step"), "{mismatch}");
}
