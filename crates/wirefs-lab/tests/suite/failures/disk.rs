//! A server whose disk is full.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::io::Errno;

use super::{errno, pattern};
use crate::site::{Ran, Site};

const DISK_BYTES: usize = 4 << 20;

/// A small file system of its own.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(at: &Path) -> SmallDisk {
        fs::create_dir_all(at).unwrap();
        let size = format!("size={DISK_BYTES}");
        Ran::of(Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(at)).succeeds();
        SmallDisk(at.to_owned())
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        Command::new("umount").arg("--lazy").arg(&self.0).status().ok();
    }
}

/// Fills the disk through one mount; what was synced before is there, and what was not was told.
fn fills(mode: &str) {
    let mut site = Site::unix("full");
    let disk = SmallDisk::mount(&site.path("disk"));
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
    let told = file.write_all(&pattern(DISK_BYTES)).and_then(|()| file.sync_all()).unwrap_err();
    assert_eq!(errno(&told), Some(Errno::NOSPC));
    drop(file);
    assert!(fs::read(site.path("disk/kept")).unwrap() == kept);
    assert!(fs::read(mount.join("kept")).unwrap() == kept);

    // Who only closes is told as well: cp and tar rely on it.
    let copy = Ran::of(site.command("cp").arg(mount.join("kept")).arg(mount.join("again")));
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
fn a_full_disk_is_told_with_a_window() {
    fills("window");
}

#[test]
fn a_full_disk_is_told_in_a_strict_mount() {
    fills("strict");
}
