//! The server's disk: a file system in an image file; its power can be cut.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Enough for all tests, and far above the free space that a sole client requires.
const BYTES: u64 = 1 << 30;

/// The type of the file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileSystem {
    Ext4,
    Xfs,
}

impl FileSystem {
    fn make(self, image: &Path) {
        let mut command = match self {
            FileSystem::Ext4 => Command::new("mkfs.ext4"),
            FileSystem::Xfs => Command::new("mkfs.xfs"),
        };
        command.args(match self {
            FileSystem::Ext4 => ["-q", "-F"],
            FileSystem::Xfs => ["-q", "-f"],
        });
        run(command.arg(image));
    }

    /// Returns the mount options. ext4 writes its log every second; xfs has no such option and writes it every 30 s.
    fn options(self) -> &'static str {
        match self {
            FileSystem::Ext4 => "commit=1",
            FileSystem::Xfs => "defaults",
        }
    }
}

/// A loop device, detached when this process ends.
pub(crate) struct LoopDisk {
    _attached: File,
    path: PathBuf,
    file_system: FileSystem,
}

impl LoopDisk {
    pub(crate) fn new(image: &Path, file_system: FileSystem) -> LoopDisk {
        File::create(image).unwrap().set_len(BYTES).unwrap();
        file_system.make(image);
        let name = run(Command::new("losetup").args(["--find", "--show"]).arg(image));
        let attached = File::open(name.trim()).unwrap();
        // The device detaches when its last user closes it.
        run(Command::new("losetup").args(["--detach", name.trim()]));
        LoopDisk { _attached: attached, path: PathBuf::from(name.trim()), file_system }
    }

    pub(crate) fn path(&self) -> &str {
        self.path.to_str().unwrap()
    }

    pub(crate) fn options(&self) -> &'static str {
        self.file_system.options()
    }

    /// Returns whether no namespace has it mounted.
    pub(crate) fn is_free(&self) -> bool {
        let mounted = match self.file_system {
            FileSystem::Ext4 => Path::new("/sys/fs/ext4"),
            FileSystem::Xfs => Path::new("/sys/fs/xfs"),
        };
        !mounted.join(self.path.file_name().unwrap()).exists()
    }
}

fn run(command: &mut Command) -> String {
    let result = command.stdin(Stdio::null()).output().unwrap();
    assert!(result.status.success(), "{command:?}: {}", String::from_utf8_lossy(&result.stderr));
    String::from_utf8(result.stdout).unwrap()
}
