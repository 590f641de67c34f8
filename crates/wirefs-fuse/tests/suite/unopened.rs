//! Directories that the kernel opens and closes without asking, and the listings that it keeps of them.

use crate::mounted::Mounted;
use std::fs;
use std::path::Path;
use wirefs_client::call::{Invalidate, ROOT, TreeNodeId};
use wirefs_fuse::SessionOptions;
use wirefs_op::Kind;

/// A mount with a directory of so many files.
fn mounted(files: usize) -> (Mounted, TreeNodeId) {
    let mounted =
        Mounted::with(SessionOptions { threads: 3, spares_opendir: true, ..SessionOptions::default() });
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
fn a_directory_that_is_known_is_listed_without_a_call_until_it_is_dropped() {
    for files in [0, 3, 2000] {
        let (mounted, directory) = mounted(files);
        let path = mounted.path("directory");
        // The second time: reading makes the kernel doubt the time of access, which the first `fstat` behind it asks for.
        assert_eq!((count(&path), count(&path)), (files, files));
        let asked = mounted.memory.asked().len();
        mounted.memory.make(directory, "behind the kernel's back", Kind::File);
        for _ in 0..3 {
            assert_eq!(count(&path), files, "nobody has told the kernel");
        }
        assert_eq!(mounted.memory.asked().len(), asked);
        drop_listing(&mounted, directory);
        assert_eq!(count(&path), files + 1);
        fs::write(path.join("own"), b"").unwrap();
        assert_eq!(count(&path), files + 2);
        assert!(!mounted.memory.was_asked("Opendir") && !mounted.memory.was_asked("Releasedir"));
    }
}

#[test]
fn from_a_plain_end_the_kernel_concludes_nothing() {
    for files in [0, 3, 2000] {
        let (mounted, directory) = mounted(files);
        let path = mounted.path("directory");
        mounted.memory.end_plainly(true);
        assert_eq!(count(&path), files);
        mounted.memory.make(directory, "behind the kernel's back", Kind::File);
        assert_eq!(count(&path), files + 1, "it asks again");
        // Now it has gathered the listing to its end, which was told twice; the end says that it is whole.
        mounted.memory.end_plainly(false);
        drop_listing(&mounted, directory);
        assert_eq!(count(&path), files + 1);
        assert_eq!(count(&path), files + 1);
    }
}

#[test]
fn waiting_for_who_reads_a_directory_leaves_the_kernel_its_listing() {
    let (mounted, directory) = mounted(3);
    let path = mounted.path("directory");
    let notifier = mounted.session.as_ref().unwrap().notifier();
    notifier.await_readers(directory).unwrap();
    assert_eq!((count(&path), count(&path)), (3, 3));
    let asked = mounted.memory.asked().len();
    // Nor does one that has left in the midst hold it up.
    let mut reader = fs::read_dir(&path).unwrap();
    reader.next().unwrap().unwrap();
    notifier.await_readers(directory).unwrap();
    assert_eq!((count(&path), reader.count()), (3, 2));
    assert_eq!(mounted.memory.asked().len(), asked);
}

#[test]
fn a_listing_that_is_dropped_while_it_is_read_is_not_kept() {
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
