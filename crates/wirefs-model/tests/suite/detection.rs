//! A comparison that finds nothing must be one that would have found something.

use crate::scratch::Scratch;
use crate::seeds;
use std::path::Path;
use wirefs_model::{ModelTree, run_op, run_posix, run_touches};
use wirefs_op::message::version::BootId;
use wirefs_op::{Errno, Request, TreePath};
use wirefs_server::{Attached, Replies, SessionKey, Tree};

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

#[test]
fn mounts_of_different_directories_are_found() {
    let (one, other) = (Scratch::within(Path::new("/dev/shm")), Scratch::within(Path::new("/dev/shm")));
    let mismatch = run_posix(0, 200, &[one.path(), other.path()]).unwrap_err();
    assert!(mismatch.to_string().contains("seed 0, step"), "{mismatch}");
}
