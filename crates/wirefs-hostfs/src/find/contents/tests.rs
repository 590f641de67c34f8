use crate::attributes::stat_name;
use crate::find::reading::Reader;
use crate::tree::{HostOptions, HostTree};
use bytes::Bytes;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use std::ffi::CStr;
use std::path::PathBuf;
use std::time::Duration;
use wirefs_op::message::find::Tfind;
use wirefs_op::message::target::Target;
use wirefs_op::{Stat, TreePath};
use wirefs_server::{SessionKey, Tree};

/// An exported directory that is removed afterwards.
struct ExportedDir {
    path: PathBuf,
    dir: OwnedFd,
    tree: HostTree,
}

impl ExportedDir {
    fn new(name: &str) -> ExportedDir {
        let path = std::env::temp_dir().join(format!("wirefs-contents-{}-{name}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        let dir = rustix::fs::open(&path, OFlags::PATH | OFlags::DIRECTORY, Mode::empty()).unwrap();
        let tree = HostTree::open(&path, HostOptions::all_rights()).unwrap();
        tree.attach(SessionKey(1), &TreePath::root()).unwrap();
        ExportedDir { path, dir, tree }
    }

    fn write(&self, contents: &str) {
        std::fs::write(self.path.join("file"), contents).unwrap();
    }

    /// The attributes of the object with this name, once they are old enough for contents.
    fn settled(&self, name: &CStr) -> Stat {
        for _ in 0..2000 {
            let stat = stat_name(self.dir.as_fd(), name, self.tree.export.home).unwrap();
            if super::is_settled(&stat) {
                return stat;
            }
            std::thread::park_timeout(Duration::from_millis(5));
        }
        panic!("the file system's clock stands still");
    }

    fn contents(&self, name: &CStr, stat: &Stat) -> Option<Bytes> {
        let session = self.tree.session(SessionKey(1)).unwrap();
        let target = Target::at(TreePath::root());
        let request = Tfind { target, depth: 0, entries: 1, bytes: 1, inline: 100 };
        Reader::new(&session, &request).contents(self.dir.as_fd(), name, stat)
    }
}

impl Drop for ExportedDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

#[test]
fn contents_belong_to_their_attributes() {
    let queued = ExportedDir::new("same");
    queued.write("before");
    let stat = queued.settled(c"file");
    assert_eq!(queued.contents(c"file", &stat).as_deref(), Some(&b"before"[..]));
}

#[test]
fn contents_that_changed_since_the_attributes_were_read_are_left_out() {
    let queued = ExportedDir::new("changed");
    queued.write("before");
    let stat = queued.settled(c"file");
    for after in ["after!", "shorter than before", ""] {
        queued.write(after);
        assert_eq!(queued.contents(c"file", &stat), None, "{after}");
    }
    std::fs::remove_file(queued.path.join("file")).unwrap();
    assert_eq!(queued.contents(c"file", &stat), None);
    // Only files are opened, so this does not block.
    rustix::fs::mkfifoat(&queued.dir, c"file", Mode::RUSR).unwrap();
    assert_eq!(queued.contents(c"file", &stat), None);
}

#[test]
fn recently_changed_contents_are_left_out() {
    let queued = ExportedDir::new("young");
    queued.write("before");
    let old = queued.settled(c"file");
    // A change within one tick of the clock would have the same attributes.
    let young = Stat { ctime: wirefs_op::Timestamp { secs: old.ctime.secs + 3600, ..old.ctime }, ..old };
    assert!(queued.contents(c"file", &old).is_some());
    assert!(!super::is_settled(&young));
    assert_eq!(queued.contents(c"file", &young), None);
}

#[test]
fn another_links_target_is_left_out() {
    let queued = ExportedDir::new("link");
    let link = queued.path.join("link");
    std::os::unix::fs::symlink("before", &link).unwrap();
    let stat = queued.settled(c"link");
    assert_eq!(queued.contents(c"link", &stat).as_deref(), Some(&b"before"[..]));
    std::os::unix::fs::symlink("after!", queued.path.join("new")).unwrap();
    std::fs::rename(queued.path.join("new"), &link).unwrap();
    assert_eq!(queued.contents(c"link", &stat), None);
}
