//! The server's disk: an ext4 in a file, whose power can be cut.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::fs::{Mode, OFlags};

use crate::sys::cut_power;

/// Room for all that is done, and far more than a lone mount wants to find free.
const BYTES: u64 = 1 << 30;

/// The block device. It goes with this process, however that ends.
pub(super) struct Disk {
    _attached: File,
    path: PathBuf,
}

impl Disk {
    pub(super) fn new(image: &Path) -> Disk {
        File::create(image).unwrap().set_len(BYTES).unwrap();
        run(Command::new("mkfs.ext4").args(["-q", "-F"]).arg(image));
        let name = run(Command::new("losetup").args(["--find", "--show"]).arg(image));
        let attached = File::open(name.trim()).unwrap();
        // Whoever has it open last detaches it.
        run(Command::new("losetup").args(["--detach", name.trim()]));
        Disk { _attached: attached, path: PathBuf::from(name.trim()) }
    }

    pub(super) fn path(&self) -> &str {
        self.path.to_str().unwrap()
    }

    /// Nothing of the file system there comes to the disk any more, and its log ends where it is.
    pub(super) fn cut(mounted: &Path) {
        cut_power(&File::open(mounted).unwrap()).unwrap();
    }

    /// Nobody has it mounted.
    pub(super) fn is_free(&self) -> bool {
        let flags = OFlags::RDONLY | OFlags::EXCL | OFlags::CLOEXEC;
        rustix::fs::open(&self.path, flags, Mode::empty()).is_ok()
    }
}

fn run(command: &mut Command) -> String {
    let ran = command.stdin(Stdio::null()).output().unwrap();
    assert!(ran.status.success(), "{command:?}: {}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(ran.stdout).unwrap()
}

/// Says that this is another run of the machine.
pub(super) fn set_boot_id(file: &Path, number: u64) {
    fs::write(file, format!("00000000-0000-4000-8000-{number:012x}\n")).unwrap();
}
