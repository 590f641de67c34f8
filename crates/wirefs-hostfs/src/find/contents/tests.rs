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

/// An exported directory, gone afterwards.
struct Place {
    path: PathBuf,
    dir: OwnedFd,
    tree: HostTree,
}

impl Place {
    fn new(name: &str) -> Place {
        let path = std::env::temp_dir().join(format!("wirefs-contents-{}-{name}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        let dir = rustix::fs::open(&path, OFlags::PATH | OFlags::DIRECTORY, Mode::empty()).unwrap();
        let tree = HostTree::open(&path, HostOptions::default()).unwrap();
        tree.attach(SessionKey(1), &TreePath::root()).unwrap();
        Place { path, dir, tree }
    }

    fn write(&self, contents: &str) {
        std::fs::write(self.path.join("file"), contents).unwrap();
    }

    /// The attributes of what has this name, once they are old enough for contents.
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

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

#[test]
fn contents_come_with_the_attributes_that_they_belong_to() {
    let place = Place::new("same");
    place.write("before");
    let stat = place.settled(c"file");
    assert_eq!(place.contents(c"file", &stat).as_deref(), Some(&b"before"[..]));
}

#[test]
fn contents_that_changed_since_the_attributes_were_read_are_left_out() {
    let place = Place::new("changed");
    place.write("before");
    let stat = place.settled(c"file");
    for after in ["after!", "shorter than before", ""] {
        place.write(after);
        assert_eq!(place.contents(c"file", &stat), None, "{after}");
    }
    std::fs::remove_file(place.path.join("file")).unwrap();
    assert_eq!(place.contents(c"file", &stat), None);
    // Nothing is opened but files, so this waits for nobody.
    rustix::fs::mkfifoat(&place.dir, c"file", Mode::RUSR).unwrap();
    assert_eq!(place.contents(c"file", &stat), None);
}

#[test]
fn contents_that_changed_just_before_are_left_out() {
    let place = Place::new("young");
    place.write("before");
    let old = place.settled(c"file");
    // A change within one tick of the clock would be told by these very attributes.
    let young = Stat { ctime: wirefs_op::Timestamp { secs: old.ctime.secs + 3600, ..old.ctime }, ..old };
    assert!(place.contents(c"file", &old).is_some());
    assert!(!super::is_settled(&young));
    assert_eq!(place.contents(c"file", &young), None);
}

#[test]
fn another_links_target_is_left_out() {
    let place = Place::new("link");
    let link = place.path.join("link");
    std::os::unix::fs::symlink("before", &link).unwrap();
    let stat = place.settled(c"link");
    assert_eq!(place.contents(c"link", &stat).as_deref(), Some(&b"before"[..]));
    std::os::unix::fs::symlink("after!", place.path.join("new")).unwrap();
    std::fs::rename(place.path.join("new"), &link).unwrap();
    assert_eq!(place.contents(c"link", &stat), None);
}
