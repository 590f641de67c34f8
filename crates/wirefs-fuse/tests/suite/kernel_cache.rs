//! What the kernel remembers, and what it is told to forget.

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

    fn forget_name(&self, parent: TreeNodeId, name: &str) {
        let what = Invalidate::Entry { parent, name: name.as_bytes().to_vec(), is_directory: false };
        assert_eq!(self.notifier().invalidate(&what).unwrap(), None);
    }

    fn forget_node(&self, node: TreeNodeId) {
        self.notifier().invalidate(&Invalidate::Node { node, offset: 0, length: 0 }).unwrap();
    }

    /// Says when it must be told again.
    fn forget_directory(&self, parent: TreeNodeId, name: &str) -> Option<Instant> {
        let what = Invalidate::Entry { parent, name: name.as_bytes().to_vec(), is_directory: true };
        self.notifier().invalidate(&what).unwrap()
    }

    fn count_entries(&self, directory: &str) -> usize {
        fs::read_dir(self.path(directory)).unwrap().count()
    }
}

#[test]
fn what_is_known_is_not_asked_again_until_it_is_invalidated() {
    let mounted = Mounted::new();
    let path = mounted.path("file");
    fs::write(&path, b"old").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"old");
    // Reading makes the kernel doubt the time of access, so the next program to look asks once more.
    fs::metadata(&path).unwrap();
    let node = mounted.memory.overwrite("file", b"newer");
    assert_eq!(fs::read(&path).unwrap(), b"old", "the kernel may believe it for ever");
    mounted.forget_node(node);
    assert_eq!(fs::read(&path).unwrap(), b"newer");

    mounted.memory.forget_name("file");
    assert!(path.exists());
    mounted.forget_name(ROOT, "file");
    assert!(!path.exists());
}

#[test]
fn an_absent_name_is_looked_up_once() {
    let mounted = Mounted::new();
    for _ in 0..5 {
        assert!(!mounted.path("absent").exists());
    }
    assert_eq!(mounted.memory.count_asked("Lookup"), 1);
}

#[test]
fn forgetting_what_was_never_known_is_no_error() {
    let mounted = Mounted::new();
    mounted.forget_node(TreeNodeId(4711));
    for parent in [ROOT, TreeNodeId(4711)] {
        mounted.forget_name(parent, "never");
    }
    mounted.forget_name(ROOT, "");
    assert!(mounted.root().is_dir());
}

#[test]
fn an_absent_name_is_looked_up_again_once_it_is_invalidated() {
    let mounted = Mounted::new();
    assert!(!mounted.path("absent").exists());
    mounted.memory.make(ROOT, "absent", Kind::File);
    assert!(!mounted.path("absent").exists(), "nobody has told the kernel");
    mounted.forget_name(ROOT, "absent");
    assert!(mounted.path("absent").exists());
}

#[test]
fn a_listing_is_kept_until_its_directory_is_invalidated_or_changed() {
    let mounted = Mounted::new();
    let directory = mounted.memory.make(ROOT, "directory", Kind::Directory);
    mounted.memory.make(directory, "first", Kind::File);
    assert_eq!(mounted.count_entries("directory"), 1);
    let listed = mounted.memory.count_asked("Readdir");
    mounted.memory.make(directory, "second", Kind::File);
    for _ in 0..3 {
        assert_eq!(mounted.count_entries("directory"), 1, "nobody has told the kernel");
    }
    assert_eq!(mounted.memory.count_asked("Readdir"), listed);
    mounted.forget_node(directory);
    assert_eq!(mounted.count_entries("directory"), 2);
    fs::write(mounted.path("directory/third"), b"").unwrap();
    assert_eq!(mounted.count_entries("directory"), 3);
}

#[test]
fn where_a_link_leads_is_kept_until_it_is_invalidated() {
    let mounted = Mounted::new();
    std::os::unix::fs::symlink("target", mounted.path("link")).unwrap();
    for _ in 0..3 {
        assert_eq!(fs::read_link(mounted.path("link")).unwrap().as_os_str(), "target");
    }
    assert_eq!(mounted.memory.count_asked("Readlink"), 1);
    let node = mounted.memory.overwrite("link", b"elsewhere");
    mounted.forget_node(node);
    assert_eq!(fs::read_link(mounted.path("link")).unwrap().as_os_str(), "elsewhere");
}

#[test]
fn an_expired_name_keeps_what_is_known_below() {
    let mounted = Mounted::new();
    let directory = mounted.memory.make(ROOT, "directory", Kind::Directory);
    mounted.memory.make(directory, "file", Kind::File);
    // Listings make names known that nobody looked up.
    assert_eq!((mounted.count_entries(""), mounted.count_entries("directory")), (1, 1));
    let lookups = mounted.memory.count_asked("Lookup");
    mounted.forget_name(ROOT, "directory");
    assert!(mounted.path("directory/file").exists());
    assert_eq!(mounted.memory.count_asked("Lookup") - lookups, 1, "the directory's own name");
    assert_eq!(mounted.memory.count_asked("Forget"), 0);
}

/// A program that stands in a directory, and says where that is once it is told to go on.
struct Standing(Child);

impl Standing {
    fn is_in(directory: &std::path::Path) -> Standing {
        let mut command = Command::new("sh");
        command.args(["-c", "read go; readlink /proc/self/cwd"]).current_dir(directory);
        Standing(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap())
    }

    /// As the kernel has it: a name that it has dropped ends in ` (deleted)`.
    fn says(mut self) -> String {
        self.0.stdin.take().unwrap().write_all(b"go\n").unwrap();
        String::from_utf8(self.0.wait_with_output().unwrap().stdout).unwrap().trim_end().to_owned()
    }
}

#[test]
fn who_stands_in_a_directory_keeps_it_although_its_name_is_taken_back_right_behind_its_lookup() {
    let mounted = Mounted::new();
    mounted.memory.make(ROOT, "directory", Kind::Directory);
    let directory = mounted.path("directory");
    let standing = Standing::is_in(&directory);
    let again = mounted.forget_directory(ROOT, "directory").unwrap();
    assert_eq!(standing.says(), directory.to_str().unwrap());

    thread::sleep(again.saturating_duration_since(Instant::now()));
    let standing = Standing::is_in(&directory);
    assert_eq!(mounted.forget_directory(ROOT, "directory"), None, "it was told for no time");
    assert_eq!(standing.says(), directory.to_str().unwrap());
}

#[test]
fn who_stands_in_a_directory_has_it_while_all_names_are_forgotten_and_once_it_is_looked_up_again() {
    let mounted = Mounted::new();
    mounted.memory.make(ROOT, "directory", Kind::Directory);
    let directory = mounted.path("directory");
    let (before, behind) = (Standing::is_in(&directory), Standing::is_in(&directory));
    mounted.notifier().forget_names().unwrap();
    assert_eq!(before.says(), directory.to_str().unwrap());
    assert!(directory.is_dir());
    assert_eq!(behind.says(), directory.to_str().unwrap());
}

#[test]
fn a_directory_that_is_taken_back_and_gone_is_noticed() {
    let mounted = Mounted::new();
    mounted.memory.make(ROOT, "directory", Kind::Directory);
    let directory = mounted.path("directory");
    let standing = Standing::is_in(&directory);
    mounted.memory.forget_name("directory");
    mounted.forget_directory(ROOT, "directory");
    assert!(!directory.exists());
    assert_eq!(standing.says(), format!("{} (deleted)", directory.display()));
    mounted.memory.make(ROOT, "directory", Kind::Directory);
    mounted.forget_directory(ROOT, "directory");
    assert_eq!(Standing::is_in(&directory).says(), directory.to_str().unwrap(), "another of this name");
}

#[test]
fn all_names_are_forgotten_at_once() {
    let mounted = Mounted::new();
    if !mounted.notifier().forget_names().unwrap() {
        let agreed = mounted.session.as_ref().unwrap().agreed();
        assert!(agreed.minor < 44, "this kernel could do it");
        return;
    }
    fs::write(mounted.path("file"), b"").unwrap();
    assert!(!mounted.path("absent").exists());
    mounted.memory.make(ROOT, "absent", Kind::File);
    mounted.memory.forget_name("file");
    mounted.notifier().forget_names().unwrap();
    assert!(mounted.path("absent").exists());
    assert!(!mounted.path("file").exists());
}

/// The calling thread must not wait for a change that is under way, or this hangs.
#[test]
fn names_are_distrusted_while_a_change_holds_their_directory() {
    let mounted = Mounted::new();
    assert!(!mounted.path("absent").exists());
    let held = mounted.path("held");
    let making = thread::spawn(move || fs::create_dir(held));
    mounted.memory.wait_until_asked("Mkdir");
    let wait = mounted.notifier().distrust(&[ROOT], Instant::now()).unwrap();
    mounted.memory.make(ROOT, "absent", Kind::File);
    thread::sleep(wait);
    let absent = mounted.path("absent");
    let looking = thread::spawn(move || absent.exists());
    // The look waits for the change now, since the kernel knows nothing any more.
    mounted.memory.refuse_held();
    assert!(making.join().unwrap().is_err());
    assert!(looking.join().unwrap());
}
