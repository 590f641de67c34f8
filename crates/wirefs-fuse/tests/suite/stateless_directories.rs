//! Directories that the kernel opens and closes without calls, and its cached listings.

use crate::mounted::Mounted;
use std::fs;
use std::path::Path;
use wirefs_client::call::{Invalidate, ROOT, TreeNodeId};
use wirefs_fuse::SessionOptions;
use wirefs_op::Kind;

/// A mount with a directory of so many files.
fn mounted(files: usize) -> (Mounted, TreeNodeId) {
    let mounted = Mounted::with(SessionOptions { threads: 3, no_opendir: true, ..SessionOptions::default() });
    let directory = mounted.memory.make(ROOT, "directory", Kind::Directory);
    for number in 0..files {
        mounted.memory.make(directory, &format!("f{number:05}"), Kind::File);
    }
    (mounted, directory)
}

fn drop_listing(mounted: &Mounted, node: TreeNodeId) {
    mounted.session.as_ref().unwrap().notifier().invalidate(&Invalidate::Listing { node }).unwrap();
}

fn count(directory: &Path) -> usize {
    fs::read_dir(directory).unwrap().map(Result::unwrap).count()
}

#[test]
fn a_cached_directory_is_listed_without_a_call() {
    for files in [0, 3, 2000] {
        let (mounted, directory) = mounted(files);
        let path = mounted.path("directory");
        // Twice: a listing makes the access time stale, and the first `fstat` afterwards asks for it.
        assert_eq!((count(&path), count(&path)), (files, files));
        let calls = mounted.memory.calls().len();
        mounted.memory.make(directory, "behind the kernel's back", Kind::File);
        for _ in 0..3 {
            assert_eq!(count(&path), files, "no invalidation was sent");
        }
        assert_eq!(mounted.memory.calls().len(), calls);
        drop_listing(&mounted, directory);
        assert_eq!(count(&path), files + 1);
        fs::write(path.join("own"), b"").unwrap();
        assert_eq!(count(&path), files + 2);
        assert!(!mounted.memory.was_called("Opendir") && !mounted.memory.was_called("Releasedir"));
    }
}

#[test]
fn a_plain_end_does_not_complete_the_cached_listing() {
    for files in [0, 3, 2000] {
        let (mounted, directory) = mounted(files);
        let path = mounted.path("directory");
        mounted.memory.end_plainly(true);
        assert_eq!(count(&path), files);
        mounted.memory.make(directory, "behind the kernel's back", Kind::File);
        assert_eq!(count(&path), files + 1, "it asks again");
        // The kernel has cached the listing up to its end, which was answered twice; the end marks it as complete.
        mounted.memory.end_plainly(false);
        drop_listing(&mounted, directory);
        assert_eq!(count(&path), files + 1);
        assert_eq!(count(&path), files + 1);
    }
}

#[test]
fn await_readers_keeps_the_cached_listing() {
    let (mounted, directory) = mounted(3);
    let path = mounted.path("directory");
    let notifier = mounted.session.as_ref().unwrap().notifier();
    notifier.await_readers(directory).unwrap();
    assert_eq!((count(&path), count(&path)), (3, 3));
    let calls = mounted.memory.calls().len();
    // A reader that stopped half-way does not delay it.
    let mut reader = fs::read_dir(&path).unwrap();
    reader.next().unwrap().unwrap();
    notifier.await_readers(directory).unwrap();
    assert_eq!((count(&path), reader.count()), (3, 2));
    assert_eq!(mounted.memory.calls().len(), calls);
}

#[test]
fn a_listing_that_is_invalidated_during_the_read_is_not_cached() {
    let (mounted, directory) = mounted(2000);
    let path = mounted.path("directory");
    let mut reader = fs::read_dir(&path).unwrap();
    reader.next().unwrap().unwrap();
    mounted.memory.make(directory, "a", Kind::File);
    drop_listing(&mounted, directory);
    let rest = reader.map(Result::unwrap).count();
    assert!((1999..=2001).contains(&rest), "{rest}");
    for _ in 0..2 {
        assert_eq!(count(&path), 2001);
    }
}
