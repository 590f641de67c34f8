//! What the kernel remembers, and what it is told to forget.

use crate::mounted::Mounted;
use std::fs;
use wirefs_client::call::{Invalidate, NodeId, ROOT};

#[test]
fn what_is_known_is_not_asked_again_until_it_is_invalidated() {
    let mounted = Mounted::new();
    let path = mounted.path("file");
    fs::write(&path, b"old").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"old");
    // Reading makes the kernel doubt the time of access, so the next program to look asks once more.
    fs::metadata(&path).unwrap();
    let node = mounted.memory.overwrite("file", b"newer");
    assert_eq!(fs::read(&path).unwrap(), b"old", "the kernel may believe it for an hour");
    let notifier = mounted.session.as_ref().unwrap().notifier();
    notifier.invalidate(&Invalidate::Node { node, offset: 0, length: 0 }).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"newer");

    mounted.memory.forget_name("file");
    assert!(path.exists());
    notifier.invalidate(&Invalidate::Entry { parent: ROOT, name: b"file".to_vec() }).unwrap();
    assert!(!path.exists());
}

#[test]
fn an_absent_name_is_looked_up_once() {
    let mounted = Mounted::new();
    for _ in 0..5 {
        assert!(!mounted.path("absent").exists());
    }
    let lookups = mounted.memory.asked().iter().filter(|call| call.starts_with("Lookup")).count();
    assert_eq!(lookups, 1);
}

#[test]
fn forgetting_what_was_never_known_is_no_error() {
    let mounted = Mounted::new();
    let notifier = mounted.session.as_ref().unwrap().notifier();
    notifier.invalidate(&Invalidate::Node { node: NodeId(4711), offset: 0, length: 0 }).unwrap();
    for parent in [ROOT, NodeId(4711)] {
        notifier.invalidate(&Invalidate::Entry { parent, name: b"never".to_vec() }).unwrap();
    }
    notifier.invalidate(&Invalidate::Entry { parent: ROOT, name: Vec::new() }).unwrap();
    assert!(mounted.root().is_dir());
}
