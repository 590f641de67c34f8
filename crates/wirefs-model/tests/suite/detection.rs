//! A comparison that finds nothing must be one that would have found something.

use crate::scratch::Scratch;
use crate::seeds;
use std::path::Path;
use wirefs_model::{ModelTree, run_op, run_posix, run_touches};
use wirefs_op::message::version::BootId;
use wirefs_op::{Errno, FileId, Reply, Request, Stat, TreePath};
use wirefs_server::{Attached, Parked, Replies, SessionKey, Stopped, Touched, Tree};

type Fault = fn(&mut Request);

/// A tree that does what was not asked, in one respect.
struct Faulty {
    tree: ModelTree,
    /// Changes a request on its way in.
    fault: Fault,
}

impl Tree for Faulty {
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
fn a_model_agrees_with_another() {
    let tree = ModelTree::new(BootId(2));
    assert_eq!(run_op(3, 3000, &tree), Ok(()));
}

#[test]
fn a_model_touches_what_it_changes() {
    for seed in seeds(4) {
        if let Err(mismatch) = run_touches(seed, 1000, &ModelTree::new(BootId(2))) {
            panic!("{mismatch}");
        }
    }
}

#[test]
fn a_tree_with_one_fault_is_found() {
    use wirefs_op::message::put::PutMode;
    let faults: [(&str, Fault); 4] = [
        ("loses the last byte of a write", |request| {
            if let Request::Put(put) = request
                && put.create.is_none()
            {
                let len = put.data.0.len().saturating_sub(1);
                put.data.0.truncate(len);
            }
        }),
        ("replaces what NOREPLACE protects", |request| {
            if let Request::Rename(rename) = request
                && rename.flags == 1
            {
                rename.flags = 0;
            }
        }),
        ("appends where the client says", |request| {
            if let Request::Put(put) = request {
                put.mode = PutMode(put.mode.0 & !PutMode::APPEND.0);
            }
        }),
        ("takes whatever is there for what was meant", |request| {
            if let Request::Get(get) = request {
                get.target.id = None;
            }
        }),
    ];
    for (what, fault) in faults {
        let tree = Faulty { tree: ModelTree::new(BootId(2)), fault };
        assert!(run_op(0, 3000, &tree).is_err(), "a tree that {what} passes");
    }
}

/// What a tree says before it changes something, and what it promises, made wrong.
#[derive(Clone, Copy, Debug)]
enum Lie {
    HidesObjects,
    HidesNames,
    SaysTooMuch,
    PromisesLittle,
    GoesOn,
}

struct Lying(ModelTree, Lie);

struct LyingReplies<'a>(&'a mut dyn Replies, Lie);

impl Tree for Lying {
    fn attach(&self, session: SessionKey, path: &TreePath) -> Result<Attached, Errno> {
        self.0.attach(session, path)
    }

    fn serve(&self, session: SessionKey, request: Request, replies: &mut dyn Replies) {
        self.0.serve(session, request, &mut LyingReplies(replies, self.1));
    }

    fn end(&self, session: SessionKey) {
        self.0.end(session);
    }
}

impl Replies for LyingReplies<'_> {
    fn send(&mut self, reply: Reply) -> Result<(), Stopped> {
        self.0.send(reply)
    }

    fn is_stopped(&self) -> bool {
        self.0.is_stopped()
    }

    fn touch(&mut self, touched: &[Touched]) -> Result<(), Parked> {
        let mut said = touched.to_vec();
        match self.1 {
            Lie::HidesObjects => said.retain(|touched| touched.name.is_some()),
            Lie::HidesNames => said.retain(|touched| touched.name.is_none()),
            Lie::SaysTooMuch if !said.is_empty() => said.push(Touched::name(ROOT, b"never")),
            Lie::SaysTooMuch | Lie::PromisesLittle => {}
            Lie::GoesOn => {
                let _ = self.0.touch(&said);
                return Ok(());
            }
        }
        self.0.touch(&said)
    }

    fn grant(&mut self, stats: &mut dyn Iterator<Item = &mut Stat>) {
        match self.1 {
            Lie::PromisesLittle => {}
            Lie::HidesObjects | Lie::HidesNames | Lie::SaysTooMuch | Lie::GoesOn => self.0.grant(stats),
        }
    }

    fn grant_place(&mut self, dir: FileId) -> bool {
        self.0.grant_place(dir)
    }

    fn wait(&mut self) {
        self.0.wait();
    }
}

/// The model's root.
const ROOT: FileId = FileId { fs: 0, ino: 1, generation: 1 };

#[test]
fn a_tree_that_hides_what_it_changes_is_found() {
    for lie in [Lie::HidesObjects, Lie::HidesNames, Lie::SaysTooMuch, Lie::PromisesLittle, Lie::GoesOn] {
        let found = run_touches(0, 300, &Lying(ModelTree::new(BootId(2)), lie));
        assert!(found.is_err(), "{lie:?} passes");
    }
}

#[test]
fn mounts_of_different_directories_are_found() {
    let (one, other) = (Scratch::within(Path::new("/dev/shm")), Scratch::within(Path::new("/dev/shm")));
    let mismatch = run_posix(0, 200, &[one.path(), other.path()]).unwrap_err();
    assert!(mismatch.to_string().contains("seed 0, step"), "{mismatch}");
}
