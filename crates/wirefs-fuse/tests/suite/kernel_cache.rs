//! The kernel's caches and their invalidation.

use crate::mounted::Mounted;
use std::io::Write as _;
use std::process::{Child, Command, Stdio};
use std::time::Instant;
use std::{fs, thread};
use wirefs_client::call::{Invalidate, ROOT, TreeNodeId};
use wirefs_fuse::Notifier;
use wirefs_op::Kind;

impl Mounted {
    fn notifier(&self) -> Notifier {
        self.session.as_ref().unwrap().notifier()
    }

    fn invalidate_name(&self, parent: TreeNodeId, name: &str) {
        let what = Invalidate::Entry { parent, name: name.as_bytes().to_vec(), is_directory: false };
        assert_eq!(self.notifier().invalidate(&what).unwrap(), None);
    }

    fn invalidate_node(&self, node: TreeNodeId) {
        self.notifier().invalidate(&Invalidate::Node { node, offset: 0, length: 0 }).unwrap();
    }

    /// Returns when the invalidation must be repeated.
    fn invalidate_directory_name(&self, parent: TreeNodeId, name: &str) -> Option<Instant> {
        let what = Invalidate::Entry { parent, name: name.as_bytes().to_vec(), is_directory: true };
        self.notifier().invalidate(&what).unwrap()
    }

    fn count_entries(&self, directory: &str) -> usize {
        fs::read_dir(self.path(directory)).unwrap().count()
    }
}

#[test]
fn cached_data_causes_no_call_until_it_is_invalidated() {
    let mounted = Mounted::new();
    let path = mounted.path("file");
    fs::write(&path, b"old").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"old");
    // A read makes the access time stale, so the next `stat` causes a call.
    fs::metadata(&path).unwrap();
    let node = mounted.memory.overwrite("file", b"newer");
    assert_eq!(fs::read(&path).unwrap(), b"old", "the kernel may believe it for ever");
    mounted.invalidate_node(node);
    assert_eq!(fs::read(&path).unwrap(), b"newer");

    mounted.memory.invalidate_name("file");
    assert!(path.exists());
    mounted.invalidate_name(ROOT, "file");
    assert!(!path.exists());
}

#[test]
fn an_absent_name_is_looked_up_once() {
    let mounted = Mounted::new();
    for _ in 0..5 {
        assert!(!mounted.path("absent").exists());
    }
    assert_eq!(mounted.memory.count_calls("Lookup"), 1);
}

#[test]
fn invalidating_unknown_names_is_no_error() {
    let mounted = Mounted::new();
    mounted.invalidate_node(TreeNodeId(4711));
    for parent in [ROOT, TreeNodeId(4711)] {
        mounted.invalidate_name(parent, "never");
    }
    mounted.invalidate_name(ROOT, "");
    assert!(mounted.root().is_dir());
}

#[test]
fn an_absent_name_is_looked_up_again_once_it_is_invalidated() {
    let mounted = Mounted::new();
    assert!(!mounted.path("absent").exists());
    mounted.memory.make(ROOT, "absent", Kind::File);
    assert!(!mounted.path("absent").exists(), "nobody has told the kernel");
    mounted.invalidate_name(ROOT, "absent");
    assert!(mounted.path("absent").exists());
}

#[test]
fn a_listing_is_kept_until_its_directory_is_invalidated_or_changed() {
    let mounted = Mounted::new();
    let directory = mounted.memory.make(ROOT, "directory", Kind::Directory);
    mounted.memory.make(directory, "first", Kind::File);
    assert_eq!(mounted.count_entries("directory"), 1);
    let listed = mounted.memory.count_calls("Readdir");
    mounted.memory.make(directory, "second", Kind::File);
    for _ in 0..3 {
        assert_eq!(mounted.count_entries("directory"), 1, "nobody has told the kernel");
    }
    assert_eq!(mounted.memory.count_calls("Readdir"), listed);
    mounted.invalidate_node(directory);
    assert_eq!(mounted.count_entries("directory"), 2);
    fs::write(mounted.path("directory/third"), b"").unwrap();
    assert_eq!(mounted.count_entries("directory"), 3);
}

#[test]
fn a_symlink_target_is_cached_until_it_is_invalidated() {
    let mounted = Mounted::new();
    std::os::unix::fs::symlink("target", mounted.path("link")).unwrap();
    for _ in 0..3 {
        assert_eq!(fs::read_link(mounted.path("link")).unwrap().as_os_str(), "target");
    }
    assert_eq!(mounted.memory.count_calls("Readlink"), 1);
    let node = mounted.memory.overwrite("link", b"elsewhere");
    mounted.invalidate_node(node);
    assert_eq!(fs::read_link(mounted.path("link")).unwrap().as_os_str(), "elsewhere");
}

#[test]
fn an_expired_name_keeps_cached_data_below_it() {
    let mounted = Mounted::new();
    let directory = mounted.memory.make(ROOT, "directory", Kind::Directory);
    mounted.memory.make(directory, "file", Kind::File);
    // Listings add names to the cache without lookups.
    assert_eq!((mounted.count_entries(""), mounted.count_entries("directory")), (1, 1));
    let lookups = mounted.memory.count_calls("Lookup");
    mounted.invalidate_name(ROOT, "directory");
    assert!(mounted.path("directory/file").exists());
    assert_eq!(mounted.memory.count_calls("Lookup") - lookups, 1, "the directory's own name");
    assert_eq!(mounted.memory.count_calls("Forget"), 0);
}

/// A program with a directory as its cwd, which prints it on request.
struct ProcessWithCwd(Child);

impl ProcessWithCwd {
    fn is_in(directory: &std::path::Path) -> ProcessWithCwd {
        let mut command = Command::new("sh");
        command.args(["-c", "read go; readlink /proc/self/cwd"]).current_dir(directory);
        ProcessWithCwd(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap())
    }

    /// As the kernel prints it: a dropped name ends with ` (deleted)`.
    fn says(mut self) -> String {
        self.0.stdin.take().unwrap().write_all(b"go\n").unwrap();
        String::from_utf8(self.0.wait_with_output().unwrap().stdout).unwrap().trim_end().to_owned()
    }
}

#[test]
fn getcwd_works_after_an_invalidation_right_after_the_lookup() {
    let mounted = Mounted::new();
    mounted.memory.make(ROOT, "directory", Kind::Directory);
    let directory = mounted.path("directory");
    let standing = ProcessWithCwd::is_in(&directory);
    let repeat_after = mounted.invalidate_directory_name(ROOT, "directory").unwrap();
    assert_eq!(standing.says(), directory.to_str().unwrap());

    thread::sleep(repeat_after.saturating_duration_since(Instant::now()));
    let standing = ProcessWithCwd::is_in(&directory);
    assert_eq!(mounted.invalidate_directory_name(ROOT, "directory"), None, "it was told for no time");
    assert_eq!(standing.says(), directory.to_str().unwrap());
}

#[test]
fn getcwd_works_after_all_names_were_invalidated_and_looked_up() {
    let mounted = Mounted::new();
    mounted.memory.make(ROOT, "directory", Kind::Directory);
    let directory = mounted.path("directory");
    let (before, behind) = (ProcessWithCwd::is_in(&directory), ProcessWithCwd::is_in(&directory));
    mounted.notifier().invalidate_all_names().unwrap();
    assert_eq!(before.says(), directory.to_str().unwrap());
    assert!(directory.is_dir());
    assert_eq!(behind.says(), directory.to_str().unwrap());
}

#[test]
fn a_removed_directory_is_detected_after_its_invalidation() {
    let mounted = Mounted::new();
    mounted.memory.make(ROOT, "directory", Kind::Directory);
    let directory = mounted.path("directory");
    let standing = ProcessWithCwd::is_in(&directory);
    mounted.memory.invalidate_name("directory");
    mounted.invalidate_directory_name(ROOT, "directory");
    assert!(!directory.exists());
    assert_eq!(standing.says(), format!("{} (deleted)", directory.display()));
    mounted.memory.make(ROOT, "directory", Kind::Directory);
    mounted.invalidate_directory_name(ROOT, "directory");
    assert_eq!(ProcessWithCwd::is_in(&directory).says(), directory.to_str().unwrap(), "another of this name");
}

#[test]
fn all_names_are_invalidated_at_once() {
    let mounted = Mounted::new();
    if !mounted.notifier().invalidate_all_names().unwrap() {
        let negotiated = mounted.session.as_ref().unwrap().negotiated();
        assert!(negotiated.minor < 44, "this kernel could do it");
        return;
    }
    fs::write(mounted.path("file"), b"").unwrap();
    assert!(!mounted.path("absent").exists());
    mounted.memory.make(ROOT, "absent", Kind::File);
    mounted.memory.invalidate_name("file");
    mounted.notifier().invalidate_all_names().unwrap();
    assert!(mounted.path("absent").exists());
    assert!(!mounted.path("file").exists());
}

/// The calling thread must not wait for a change in progress, or this test hangs.
#[test]
fn names_expire_while_a_change_holds_their_directory() {
    let mounted = Mounted::new();
    assert!(!mounted.path("absent").exists());
    let held = mounted.path("held");
    let making = thread::spawn(move || fs::create_dir(held));
    mounted.memory.wait_until_called("Mkdir");
    let wait = mounted.notifier().expire_directories(&[ROOT], Instant::now()).unwrap();
    mounted.memory.make(ROOT, "absent", Kind::File);
    thread::sleep(wait);
    let absent = mounted.path("absent");
    let poll = thread::spawn(move || absent.exists());
    // The lookup waits for the change now, since no name is cached.
    mounted.memory.refuse_held();
    assert!(making.join().unwrap().is_err());
    assert!(poll.join().unwrap());
}
