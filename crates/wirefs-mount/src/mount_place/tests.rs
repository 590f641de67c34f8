use super::MountPlace;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;
use wirefs_fuse::TableEntry;

/// This thread's id.
fn thread() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()
}

/// A place in a file system of the system's own, as if it were a mount.
fn place(path: &Path) -> Option<MountPlace> {
    let device = std::fs::metadata(path).unwrap().dev();
    let entry = TableEntry { minor: rustix::fs::minor(device), source: String::new() };
    (rustix::fs::major(device) == 0).then(|| MountPlace::new(path, &entry).unwrap())
}

#[test]
fn only_threads_that_find_the_mount_by_its_path_see_it() {
    // Like each mount of FUSE, one without a block device.
    let shm = place(Path::new("/dev/shm")).expect("/dev/shm is a tmpfs");
    assert!(shm.is_seen_by(thread()));
    assert!(!shm.is_seen_by(0), "a caller of another process name space");
    let other = MountPlace { minor: shm.minor + 1, ..place(Path::new("/dev/shm")).unwrap() };
    assert!(!other.is_seen_by(thread()), "another file system is mounted over it");
    let gone = MountPlace { mountpoint: "/dev/shm/no/such/place".into(), ..shm };
    assert!(!gone.is_seen_by(thread()));
}

#[test]
fn path_through_a_symlink_is_resolved_once_and_no_symlink_counts_later() {
    let scratch = std::env::temp_dir().join(format!("wirefs-place-{}", std::process::id()));
    std::fs::create_dir_all(&scratch).unwrap();
    let link = scratch.join("link");
    symlink("/dev/shm", &link).unwrap();
    let through = place(&link).expect("/dev/shm is a tmpfs");
    assert_eq!(through.mountpoint(), std::fs::canonicalize("/dev/shm").unwrap());
    assert!(through.is_seen_by(thread()));
    let by_symlink = MountPlace { mountpoint: link, ..through };
    assert!(!by_symlink.is_seen_by(thread()), "its owner may lead the link elsewhere");
    std::fs::remove_dir_all(&scratch).unwrap();
}
