//! The boot id of an export: a new one means that unstable writes may be lost.
//!
//! Written data is in the kernel's page cache, which outlives the server's process. So the boot id depends on the
//! kernel's boot and on the directory, not on the process.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use wirefs_op::fnv1a;
use wirefs_op::message::version::BootId;

/// Identifies the kernel's boot.
const KERNEL_RUN: &str = "/proc/sys/kernel/random/boot_id";

/// Returns the id of the kernel's boot.
pub(super) fn kernel_run() -> Vec<u8> {
    std::fs::read(KERNEL_RUN).unwrap_or_else(|_| {
        // Without it each process has its own boot id: clients then send stable data again, and lose nothing.
        format!("{}-{:?}", std::process::id(), std::time::SystemTime::now()).into_bytes()
    })
}

/// Returns the boot id of an exported directory.
pub(crate) fn id_of(directory: &Path) -> BootId {
    let run = kernel_run();
    let place = std::fs::metadata(directory).map_or((0, 0), |found| (found.dev(), found.ino()));
    let (device, inode) = place;
    let seed = [run.as_slice(), &device.to_le_bytes(), &inode.to_le_bytes()].concat();
    BootId(fnv1a(&[&seed]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_restart_keeps_the_id_and_another_directory_has_another() {
        let dir = std::env::temp_dir();
        assert_eq!(id_of(&dir), id_of(&dir));
        assert_ne!(id_of(&dir), id_of(Path::new("/")));
    }
}
