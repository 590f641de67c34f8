//! The directory of an export's ledger.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use wirefs_op::fnv1a;

use crate::user_dirs;

/// Returns the directory of the ledger of `exported`; creates it if necessary. It depends on device, inode and path, so
/// another directory at the path, or the same one at another path, has its own.
///
/// # Errors
/// Fails without a state directory, or if other users can access it.
pub(super) fn dir_of(exported: &Path) -> Result<PathBuf> {
    dir_in(&user_dirs::state_dir()?.join("ledger"), exported)
}

fn dir_in(dir: &Path, exported: &Path) -> Result<PathBuf> {
    let missing = || format!("cannot read the attributes of {}", exported.display());
    let found = std::fs::metadata(exported).with_context(missing)?;
    let path = std::fs::canonicalize(exported).with_context(missing)?;
    let (device, inode) = (found.dev().to_le_bytes(), found.ino().to_le_bytes());
    let place = [device.as_slice(), &inode, path.as_os_str().as_bytes()].concat();
    user_dirs::create_private(dir)?;
    let dir = dir.join(format!("{:016x}", fnv1a(&[&place])));
    user_dirs::create_private(&dir)?;
    Ok(dir)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn each_export_has_its_own_private_directory() {
        let home = std::env::temp_dir().join(format!("wirefs-ledger-dirs-{}", std::process::id()));
        let exports = ["one", "two"].map(|name| home.join(name));
        for export in &exports {
            std::fs::create_dir_all(export).unwrap();
        }
        let dirs = exports.each_ref().map(|export| dir_in(&home.join("ledger"), export).unwrap());
        assert_ne!(dirs[0], dirs[1]);
        assert_eq!(dir_in(&home.join("ledger"), &exports[0]).unwrap(), dirs[0]);
        for dir in dirs.iter().map(PathBuf::as_path).chain([home.join("ledger").as_path()]) {
            assert_eq!(std::fs::metadata(dir).unwrap().permissions().mode() & 0o777, 0o700);
        }
        std::fs::remove_dir_all(home).unwrap();
    }
}
