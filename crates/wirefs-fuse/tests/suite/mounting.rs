//! Failures to mount, and their messages.

use crate::mounted::{Mounted, fresh_directory};
use wirefs_fuse::{MountError, MountOptions, mount, unmount};

#[test]
fn a_second_mount_on_a_mountpoint_is_refused() {
    let mounted = Mounted::new();
    let refused = mount(mounted.root(), &MountOptions::default());
    assert!(matches!(refused, Err(MountError::Mounted { .. })), "{refused:?}");
}

#[test]
fn a_dead_mount_is_reported_as_stale_until_it_is_unmounted() {
    let directory = fresh_directory();
    drop(mount(&directory, &MountOptions::default()).unwrap());
    let refused = mount(&directory, &MountOptions::default());
    let unmounted = unmount(&directory, true);
    std::fs::remove_dir(&directory).unwrap();
    unmounted.unwrap();
    assert!(matches!(refused, Err(MountError::Stale { .. })), "{refused:?}");
    assert!(refused.unwrap_err().to_string().contains("wirefs umount -f"));
}

#[test]
fn an_unknown_option_is_named() {
    let directory = fresh_directory();
    let options = MountOptions { extra: vec!["nonsense=1".into()], ..MountOptions::default() };
    let refused = mount(&directory, &options);
    std::fs::remove_dir(&directory).unwrap();
    assert!(refused.unwrap_err().to_string().contains("nonsense=1"));
}
