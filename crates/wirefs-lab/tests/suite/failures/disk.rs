//! A server with a full disk.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::io::Errno;

use super::{errno, pattern};
use crate::site::{ProgramResult, Site};

const DISK_BYTES: usize = 4 << 20;

/// A small tmpfs, unmounted on drop.
struct TmpfsDisk(PathBuf);

impl TmpfsDisk {
    fn mount(at: &Path) -> TmpfsDisk {
        fs::create_dir_all(at).unwrap();
        let size = format!("size={DISK_BYTES}");
        ProgramResult::of(Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(at))
            .succeeds();
        TmpfsDisk(at.to_owned())
    }
}

impl Drop for TmpfsDisk {
    fn drop(&mut self) {
        Command::new("umount").arg("--lazy").arg(&self.0).status().ok();
    }
}

/// Fills the disk through a mount. Data synced before remains; the failed write reports the error.
fn fill_disk(mode: &str) {
    let mut site = Site::unix("full");
    let disk = TmpfsDisk::mount(&site.path("disk"));
    site.kill_server();
    site.set_export(&site.path("disk"));
    site.start_server();
    let mount = site.mount("mnt", &["--mode", mode]);
    let kept = pattern(DISK_BYTES / 2);
    let mut file = File::create(mount.join("kept")).unwrap();
    file.write_all(&kept).unwrap();
    file.sync_all().unwrap();
    drop(file);

    let mut file = File::create(mount.join("too-much")).unwrap();
    let error = file.write_all(&pattern(DISK_BYTES)).and_then(|()| file.sync_all()).unwrap_err();
    assert_eq!(errno(&error), Some(Errno::NOSPC));
    drop(file);
    assert!(fs::read(site.path("disk/kept")).unwrap() == kept);
    assert!(fs::read(mount.join("kept")).unwrap() == kept);

    // `close` reports the error too; cp and tar depend on that.
    let copy = ProgramResult::of(site.command("cp").arg(mount.join("kept")).arg(mount.join("again")));
    assert_ne!(copy.code, Some(0), "{copy:?}");
    assert!(copy.stderr.contains("No space left"), "{copy:?}");

    fs::remove_file(mount.join("too-much")).unwrap();
    fs::remove_file(mount.join("again")).unwrap();
    fs::write(mount.join("fits"), &kept[..100_000]).unwrap();
    assert!(fs::read(site.path("disk/fits")).unwrap() == kept[..100_000]);
    site.unmount(&mount);
    site.kill_server();
    drop(disk);
}

#[test]
fn full_disk_is_reported_with_a_window() {
    fill_disk("window");
}

#[test]
fn full_disk_is_reported_in_a_strict_mount() {
    fill_disk("strict");
}
