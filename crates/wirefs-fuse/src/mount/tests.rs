//! Options, the mount table, the messages of errors. `tests/suite` has real mounts.

use super::options::Split;
use super::*;
use rustix::mount::MountFlags;

const TABLE: &[u8] = b"22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
40 22 0:33 / /mnt/with\\040space rw,nosuid shared:7 master:1 - fuse.wirefs host:/a\\134b rw,user_id=0
41 22 0:34 / /mnt/other rw - fuse.sshfs host: rw
42 22 0:35 / /mnt/covered rw - fuse.wirefs under rw
43 42 0:36 / /mnt/covered rw - tmpfs over rw
44 22 0:37 / /mnt/twice rw - fuse.wirefs under rw
45 44 0:38 / /mnt/twice rw - fuse over rw
46 22 0:39 / /mnt/fused rw - fuseblk /dev/sda rw
garbage
47 22 0:40 / /mnt/short rw -";

#[test]
fn the_table_finds_the_uppermost_fuse_mount() {
    let find = |path: &str| table::find_in(TABLE, Path::new(path)).map(|entry| (entry.minor, entry.source));
    assert_eq!(find("/mnt/with space"), Some((33, "host:/a\\b".to_owned())));
    assert_eq!(find("/mnt/other"), Some((34, "host:".to_owned())));
    assert_eq!(find("/mnt/twice"), Some((38, "over".to_owned())));
    for nothing in ["/", "/mnt", "/mnt/covered", "/mnt/fused", "/mnt/short", "/elsewhere"] {
        assert_eq!(find(nothing), None, "{nothing}");
    }
}

#[test]
fn a_mount_is_in_the_table_by_its_number_and_its_source() {
    let is_in = |minor, source: &str| TableEntry { minor, source: source.to_owned() }.is_in(TABLE);
    assert!(is_in(33, "host:/a\\b") && is_in(35, "under"));
    assert!(!is_in(33, "under"), "the number is another's now");
    assert!(!is_in(36, "over"), "no FUSE");
}

#[test]
fn a_remount_changes_only_the_named_flags() {
    let line = b"60 22 0:41 / /mnt/r rw,nosuid,nodev,noatime - fuse.wirefs host: rw,sync,user_id=0";
    let present = table::flags_at(line, Path::new("/mnt/r")).unwrap();
    assert_eq!(table::flags_at(TABLE, Path::new("/mnt/fused")), None);
    let changed = |options: &[&str]| {
        remount::changed(&present, &options.iter().map(|&option| option.to_owned()).collect::<Vec<_>>())
    };
    let kept = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::SYNCHRONOUS;
    assert_eq!(changed(&["remount", "ro", "mode=strict"]), kept | MountFlags::NOATIME | MountFlags::RDONLY);
    assert_eq!(changed(&["rw", "atime", "noexec", "dev", "suid"]), kept | MountFlags::NOEXEC);
}

#[test]
fn a_mountpoint_is_resolved_without_accessing_it() {
    assert_eq!(resolve_mountpoint(Path::new("/proc/./self/..//absent/")).ok(), Some("/proc/absent".into()));
    assert_eq!(resolve_mountpoint(Path::new("/")).ok(), Some("/".into()));
    assert!(resolve_mountpoint(Path::new("/absent/absent")).is_err());
}

#[test]
fn options_are_split_between_mount_flags_and_fuse() {
    let options = MountOptions {
        allow_other: true,
        read_only: true,
        max_read: Some(131_072),
        extra: vec![
            "noexec,rw,suid".into(),
            "x-systemd.automount".into(),
            "_netdev".into(),
            "blksize=4096".into(),
        ],
        ..MountOptions::default()
    };
    let Split { flags, data } = options.split();
    assert_eq!(flags, MountFlags::NODEV | MountFlags::NOEXEC);
    assert_eq!(data, ["allow_other", "default_permissions", "max_read=131072", "blksize=4096"]);
}

#[test]
fn by_default_setuid_and_devices_are_off() {
    let Split { flags, data } = MountOptions::default().split();
    assert_eq!(flags, MountFlags::NOSUID | MountFlags::NODEV);
    assert_eq!(data, ["default_permissions"]);
}

#[test]
fn commas_in_names_are_escaped_for_the_helper() {
    let options = MountOptions { fs_name: "host:/a,b\\c".into(), ..MountOptions::default() };
    assert_eq!(
        options.for_helper(),
        "fsname=host:/a\\,b\\\\c,subtype=wirefs,nosuid,nodev,default_permissions"
    );
}

#[test]
fn messages_of_the_helper_become_the_next_step() {
    let error = |output: &str| MountError::from_helper(output, Path::new("/mnt")).to_string();
    let allow_other = error(
        "fusermount3: option allow_other only allowed if 'user_allow_other' is set in /etc/fuse.conf\n",
    );
    assert!(allow_other.contains("add the line `user_allow_other` to /etc/fuse.conf"), "{allow_other}");
    let foreign = error("fusermount3: user has no write access to mountpoint /mnt\n");
    assert!(foreign.contains("use a directory of your own"), "{foreign}");
    let missing = error("fusermount3: fuse device not found, try 'modprobe fuse' first\n");
    assert!(missing.contains("modprobe fuse"), "{missing}");
    let refused = error("fusermount3: failed to open /dev/fuse: Permission denied\n");
    assert!(refused.contains("chmod 0666 /dev/fuse"), "{refused}");
    let stale = error("fusermount3: bad mount point /mnt: Transport endpoint is not connected\n");
    assert!(stale.contains("wirefs umount -f /mnt"), "{stale}");
    assert_eq!(error("fusermount3: something new\n"), "fusermount3 could not mount: something new");
}

#[test]
fn an_invalid_mountpoint_is_named_with_the_next_step() {
    let error =
        |path: &str| mount(Path::new(path), &MountOptions::default()).expect_err("refused").to_string();
    assert!(error("/proc/absent").contains("mkdir -p /proc/absent"));
    assert!(error("/proc/self/status").contains("is not a directory"));
    assert!(error("/proc/self/status/x").contains("is not a directory"));
}

/// Root may use the helper too, so this tests the path of an ordinary user for every user.
#[test]
fn the_helper_mounts_returns_the_descriptor_and_unmounts() {
    let directory = std::env::temp_dir().join(format!("wirefs-fuse-{}-helper", std::process::id()));
    std::fs::create_dir(&directory).expect("a directory for this test");
    let options = MountOptions { fs_name: "host:/a,b c".into(), ..MountOptions::default() };
    let device = fusermount::mount(&directory, &options);
    let entry = find_in_table(&directory);
    // The mount has no server: it is stale without its descriptor.
    let device = device.map(drop);
    let stale = examine(&directory);
    let unmounted = unmount_through_helper(&directory, true);
    let repeat_after = unmount_through_helper(&directory, true);
    let removed = std::fs::remove_dir(&directory);

    device.expect("mounted");
    assert_eq!(entry.expect("a table").expect("an entry").source, "host:/a,b c");
    assert!(matches!(stale, Err(MountError::Stale { .. })), "{stale:?}");
    unmounted.expect("unmounted");
    repeat_after.expect_err("not mounted any more");
    removed.expect("removed");
}
