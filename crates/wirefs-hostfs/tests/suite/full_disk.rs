//! A full file system.

use crate::harness::{FIRST, World, at, create, need_root, write};
use rustix::mount::{MountFlags, UnmountFlags};
use std::path::{Path, PathBuf};
use wirefs_op::message::put::PutMode;
use wirefs_op::message::statfs::Tstatfs;
use wirefs_op::{Errno, Kind, Reply, Request};

/// A small file system in memory, unmounted afterwards.
pub(crate) struct Tmpfs(PathBuf);

impl Tmpfs {
    pub(crate) fn mount(dir: &Path, bytes: u64) -> Tmpfs {
        let options = std::ffi::CString::new(format!("size={bytes}")).unwrap();
        rustix::mount::mount("wirefs-test", dir, "tmpfs", MountFlags::empty(), options.as_c_str()).unwrap();
        Tmpfs(dir.to_path_buf())
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        let _ = rustix::mount::unmount(&self.0, UnmountFlags::DETACH);
    }
}

#[test]
fn a_full_disk_returns_a_short_write_and_then_enospc() {
    need_root();
    let world = World::new();
    std::fs::create_dir(world.host("small")).unwrap();
    let _mount = Tmpfs::mount(&world.host("small"), 256 << 10);
    let file = "small/file";
    let made = world.put(FIRST, create(file, Kind::File, 0o644, PutMode::NONE)).unwrap();
    assert_ne!(made.stat.unwrap().id.fs, 0, "another file system than the root's");
    let piece = vec![1; 100 << 10];
    let mut offset = 0;
    let error = loop {
        match world.put(FIRST, write(at(file), offset, &piece)) {
            Ok(wrote) => {
                assert!(wrote.count > 0);
                offset += u64::from(wrote.count);
                assert_eq!(wrote.stat.unwrap().size, offset);
            }
            Err(error) => break error,
        }
    };
    assert_eq!(error, Errno::NoSpace);
    assert_ne!(offset % (100 << 10), 0, "the last piece was cut");
    assert_eq!(world.read(FIRST, at(file), 0, u32::MAX).unwrap().len() as u64, offset);
    let statfs = Tstatfs { target: at("small") };
    let Ok(Reply::Statfs(figures)) = world.ask_one(FIRST, Request::Statfs(statfs)) else {
        panic!("not an answer to Tstatfs");
    };
    let figures = figures.figures;
    assert_eq!(figures.blocks * u64::from(figures.block_bytes), 256 << 10);
    assert_eq!((figures.blocks_available, figures.name_bytes_max), (0, 255));
}
