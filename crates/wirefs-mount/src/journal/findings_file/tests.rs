use super::*;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use wirefs_op::message::version::BootId;

/// A directory that is removed at the end.
struct Dir(PathBuf);

impl Dir {
    fn new() -> Dir {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("wirefs-decided-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        Dir(dir)
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _gone = std::fs::remove_dir_all(&self.0);
    }
}

fn decision(answered: u64) -> Findings {
    let (names, objects) = (BTreeMap::new(), BTreeMap::new());
    Findings { boot: BootId(3), next: 9, latest_time: 1, names, objects, answered }
}

#[test]
fn file_is_replaced_by_each_replay_and_continued_by_later_connections() {
    let dir = Dir::new();
    assert_eq!(noted(&dir.0), None);
    let mut notes = FindingsFile::of(&dir.0);
    notes.decided(&decision(0));
    notes.answered(12);
    assert_eq!(noted(&dir.0), Some(decision(12)));
    FindingsFile::of(&dir.0).answered(20);
    assert_eq!(noted(&dir.0), Some(decision(20)));
    FindingsFile::of(&dir.0).decided(&decision(0));
    assert_eq!(noted(&dir.0), Some(decision(0)));
    forget(&dir.0);
    assert_eq!(noted(&dir.0), None);
}

#[test]
fn file_without_its_beginning_is_ignored() {
    let dir = Dir::new();
    FindingsFile::of(&dir.0).answered(20);
    assert_eq!((noted(&dir.0), std::fs::read_dir(&dir.0).unwrap().count()), (None, 0));
}
