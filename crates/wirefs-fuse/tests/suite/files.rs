//! Files, directories, links and attributes through the kernel.

use crate::child;
use crate::mounted::Mounted;
use rustix::fs::{AtFlags, CWD, FallocateFlags, Mode, OFlags, RenameFlags, SeekFrom, XattrFlags};
use std::fs;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::time::{Duration, UNIX_EPOCH};

#[test]
fn a_file_is_created_written_read_renamed_and_removed() {
    let mounted = Mounted::new();
    let (old, new) = (mounted.path("old"), mounted.path("new"));
    fs::write(&old, b"contents").unwrap();
    assert_eq!(fs::read(&old).unwrap(), b"contents");
    fs::rename(&old, &new).unwrap();
    assert!(!old.exists());
    assert_eq!(fs::read(&new).unwrap(), b"contents");
    fs::remove_file(&new).unwrap();
    assert!(!new.exists());
}

#[test]
fn a_directory_lists_its_entries_with_their_attributes() {
    let mounted = Mounted::new();
    fs::create_dir(mounted.path("d")).unwrap();
    let names: Vec<_> = (0..500).map(|number| format!("entry-{number:03}-{}", "x".repeat(200))).collect();
    for name in &names {
        fs::write(mounted.path("d").join(name), name).unwrap();
    }
    let mut listed: Vec<_> = fs::read_dir(mounted.path("d"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    listed.sort();
    assert_eq!(listed, names);
    assert!(mounted.memory.was_called("with_stats: true"));
}

#[test]
fn large_data_travels_in_writes_of_a_megabyte() {
    let mounted = Mounted::new();
    let data: Vec<u8> =
        (0..5_000_003_u32).map(|index| (index.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    fs::write(mounted.path("large"), &data).unwrap();
    assert!(mounted.memory.was_called("Write 1048576 at 0"), "{:?}", mounted.memory.calls());
    assert!(fs::read(mounted.path("large")).unwrap() == data, "the pages as the kernel kept them");
    let direct =
        rustix::fs::open(mounted.path("large"), OFlags::RDONLY | OFlags::DIRECT, Mode::empty()).unwrap();
    let mut piece = vec![0; 1 << 20];
    assert_eq!(rustix::io::pread(&direct, &mut piece, 4096).unwrap(), 1 << 20);
    assert!(piece == data[4096..4096 + (1 << 20)], "past the kernel's cache");
}

// S-58
#[test]
fn names_are_any_bytes() {
    use std::os::unix::ffi::OsStrExt;
    let mounted = Mounted::new();
    let name: Vec<u8> = (1..=255).filter(|&byte| byte != b'/').chain([b'x']).collect();
    let path = mounted.root().join(std::ffi::OsStr::from_bytes(&name));
    fs::write(&path, b"x").unwrap();
    let listed = fs::read_dir(mounted.root()).unwrap().next().unwrap().unwrap().file_name();
    assert_eq!(listed.as_bytes(), name);
}

// S-49
#[test]
fn rename_flags_are_passed_on() {
    let mounted = Mounted::new();
    let (a, b) = (mounted.path("a"), mounted.path("b"));
    fs::write(&a, b"a").unwrap();
    fs::write(&b, b"b").unwrap();
    let refused = rustix::fs::renameat_with(CWD, &a, CWD, &b, RenameFlags::NOREPLACE);
    assert_eq!(refused, Err(rustix::io::Errno::EXIST));
    rustix::fs::renameat_with(CWD, &a, CWD, &b, RenameFlags::EXCHANGE).unwrap();
    assert!(mounted.memory.was_called("flags: 2"));
}

#[test]
fn hard_links_and_symlinks_lead_to_their_targets() {
    let mounted = Mounted::new();
    fs::write(mounted.path("file"), b"x").unwrap();
    fs::hard_link(mounted.path("file"), mounted.path("hard")).unwrap();
    std::os::unix::fs::symlink("file", mounted.path("soft")).unwrap();
    assert_eq!(fs::metadata(mounted.path("hard")).unwrap().nlink(), 2);
    assert_eq!(fs::read_link(mounted.path("soft")).unwrap().as_os_str(), "file");
    assert_eq!(fs::read(mounted.path("soft")).unwrap(), b"x");
}

#[test]
fn attributes_are_set_and_read() {
    let mounted = Mounted::new();
    let path = mounted.path("file");
    let file = fs::File::create(&path).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o4711)).unwrap();
    file.set_len(12_345).unwrap();
    let (atime, mtime) = (Duration::new(1_000, 1), Duration::new(5_000_000_000, 999_999_999));
    let times = fs::FileTimes::new().set_accessed(UNIX_EPOCH + atime).set_modified(UNIX_EPOCH + mtime);
    file.set_times(times).unwrap();
    let metadata = fs::metadata(&path).unwrap();
    assert_eq!(metadata.mode(), 0o104_711);
    assert_eq!(metadata.len(), 12_345);
    assert_eq!(metadata.accessed().unwrap(), UNIX_EPOCH + atime);
    assert_eq!(metadata.modified().unwrap(), UNIX_EPOCH + mtime);
    assert_eq!(metadata.blksize(), 4096);
    assert!(metadata.ino() > 1000, "the number is the file's own");
}

#[test]
fn special_files_keep_their_numbers() {
    let mounted = Mounted::new();
    let device = rustix::fs::makedev(0x123, 0x4567);
    let path = mounted.path("device");
    rustix::fs::mknodat(CWD, &path, rustix::fs::FileType::CharacterDevice, Mode::RUSR, device).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().rdev(), device);
}

#[test]
fn the_umask_is_left_to_the_file_system() {
    let mounted = Mounted::new();
    fs::create_dir(mounted.path("d")).unwrap();
    let mask = rustix::process::umask(Mode::empty());
    rustix::process::umask(mask);
    let expected = format!("mode: {}, umask: {}", 0o777, mask.bits());
    assert!(mounted.memory.was_called(&expected), "{:?}", mounted.memory.calls());
}

#[test]
fn extended_attributes_are_set_listed_read_and_removed() {
    let mounted = Mounted::new();
    let path = mounted.path("file");
    fs::write(&path, b"").unwrap();
    rustix::fs::setxattr(&path, "user.one", b"value", XattrFlags::CREATE).unwrap();
    let mut buffer = [0; 64];
    let length = rustix::fs::getxattr(&path, "user.one", &mut buffer).unwrap();
    assert_eq!(&buffer[..length], b"value");
    assert_eq!(rustix::fs::getxattr_query(&path, "user.one").unwrap(), 5);
    assert_eq!(rustix::fs::getxattr(&path, "user.one", &mut [0_u8; 2]), Err(rustix::io::Errno::RANGE));
    let length = rustix::fs::listxattr(&path, &mut buffer).unwrap();
    assert_eq!(&buffer[..length], b"user.one\0");
    rustix::fs::removexattr(&path, "user.one").unwrap();
    let absent = rustix::fs::getxattr(&path, "user.one", &mut buffer);
    assert_eq!(absent, Err(rustix::io::Errno::NODATA));
}

#[test]
fn a_file_without_a_name_can_be_linked() {
    let mounted = Mounted::new();
    let flags = OFlags::RDWR | OFlags::TMPFILE;
    let mut file = fs::File::from(rustix::fs::open(mounted.root(), flags, Mode::RUSR | Mode::WUSR).unwrap());
    file.write_all(b"unnamed").unwrap();
    assert!(mounted.memory.was_called("Tmpfile"));
    assert_eq!(fs::read_dir(mounted.root()).unwrap().count(), 0);
    let opened = format!("/proc/self/fd/{}", file.as_raw_fd());
    rustix::fs::linkat(CWD, opened, CWD, mounted.path("named"), AtFlags::SYMLINK_FOLLOW).unwrap();
    assert_eq!(fs::read(mounted.path("named")).unwrap(), b"unnamed");
}

// S-17
#[test]
fn memory_mapped_from_a_file_is_written_back() {
    let mounted = Mounted::new();
    let path = mounted.path("mapped");
    fs::write(&path, vec![b'a'; 8192]).unwrap();
    assert!(child::start("mmap", &path).wait().unwrap().success());
    assert_eq!(fs::read(&path).unwrap()[4095..4098], *b"aBa");
}

#[test]
fn space_is_allocated_holes_are_found_and_ranges_copied() {
    let mounted = Mounted::new();
    let open = |name: &str| {
        let options = fs::File::options().read(true).write(true).create(true).truncate(true).clone();
        options.open(mounted.path(name)).unwrap()
    };
    let (from, to) = (open("from"), open("to"));
    rustix::fs::fallocate(&from, FallocateFlags::empty(), 0, 10_000).unwrap();
    assert_eq!(from.metadata().unwrap().len(), 10_000);
    assert_eq!(rustix::fs::seek(&from, SeekFrom::Hole(5)).unwrap(), 10_000);
    assert_eq!(rustix::fs::seek(&from, SeekFrom::Data(5)).unwrap(), 5);
    let (mut start, mut end) = (1_000, 0);
    let copied = rustix::fs::copy_file_range(&from, Some(&mut start), &to, Some(&mut end), 20_000).unwrap();
    assert_eq!(copied, 9_000);
    assert!(mounted.memory.was_called("CopyRange"));
    assert_eq!(to.metadata().unwrap().len(), 9_000);
}

#[test]
fn the_file_system_has_figures_and_syncs() {
    let mounted = Mounted::new();
    let figures = rustix::fs::statvfs(mounted.root()).unwrap();
    assert_eq!((figures.f_blocks, figures.f_bfree, figures.f_bavail), (1000, 900, 800));
    assert_eq!((figures.f_bsize, figures.f_frsize, figures.f_namemax), (4096, 4096, 255));
    assert_eq!((figures.f_files, figures.f_ffree), (70, 60));
    let file = fs::File::create(mounted.path("file")).unwrap();
    file.sync_all().unwrap();
    file.sync_data().unwrap();
    fs::File::open(mounted.root()).unwrap().sync_all().unwrap();
    // Linux 6.18 passes it on only for virtiofs; it must not fail either way.
    rustix::fs::syncfs(&file).unwrap();
    for calls in ["data_only: false", "data_only: true", "Fsyncdir"] {
        assert!(mounted.memory.was_called(calls), "{calls}");
    }
}
