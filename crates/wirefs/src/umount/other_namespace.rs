//! Mounts that another mount namespace keeps: their process goes on after the unmount.

use std::fs;
use std::path::Path;

use crate::mountpoint::devices;

/// Returns a process in whose mount namespace the file system with this device number is mounted, as far as this user
/// may see that.
pub(super) fn keeper(device: &str) -> Option<u32> {
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let mut processes = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    processes.find(|process| {
        let table = fs::read(format!("/proc/{process}/mountinfo")).unwrap_or_default();
        devices(&table).any(|(found, _)| found == device.as_bytes())
    })
}

/// Returns the note about a mount that a process keeps.
pub(super) fn message(path: &Path, process: u32) -> String {
    let path = path.display();
    format!(
        "{path} is unmounted here, and the server has everything; the mount goes on in the mount namespace of process \
         {process} until that ends, or `nsenter --target {process} --mount umount {path}`"
    )
}
