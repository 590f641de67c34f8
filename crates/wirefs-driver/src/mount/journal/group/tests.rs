use super::*;
use std::thread;

fn group() -> (Arc<Group>, Arc<File>, PathBuf) {
    let dir = std::env::temp_dir().join(format!(
        "wirefs-group-{}-{:?}",
        std::process::id(),
        thread::current().id()
    ));
    std::fs::create_dir_all(&dir).unwrap();
    let file = Arc::new(File::create(dir.join("segment")).unwrap());
    (Arc::new(Group::new(dir.clone())), file, dir)
}

#[test]
fn what_was_written_is_synced_once_for_all_who_wait() {
    let (group, file, dir) = group();
    group.opened(&file);
    let waiters: Vec<_> = (0..8)
        .map(|_| {
            let group = Arc::clone(&group);
            let point = group.written();
            thread::spawn(move || group.sync_to(point).map_err(|error| error.kind()))
        })
        .collect();
    waiters.into_iter().for_each(|waiter| assert_eq!(waiter.join().unwrap(), Ok(())));
    assert_eq!(group.syncs(), 1);
    group.sync_to(group.written()).unwrap();
    assert_eq!(group.syncs(), 1);
    group.wrote(&file);
    group.sync_to(group.written()).unwrap();
    assert_eq!(group.syncs(), 2);
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn a_disk_that_failed_is_not_believed_again() {
    let (group, file, dir) = group();
    group.wrote(&file);
    group.sync_to(group.written()).unwrap();
    group.opened(&file);
    std::fs::remove_dir_all(&dir).unwrap();
    assert!(group.sync_to(group.written()).is_err());
    std::fs::create_dir(&dir).unwrap();
    assert!(group.sync_to(group.written()).is_err());
    std::fs::remove_dir_all(dir).unwrap();
}
