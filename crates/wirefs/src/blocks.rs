//! Local block trees, as sources of `wirefs mount` and of `wirefs serve`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};
use wirefs_blockfs::{BlockFs, BlockFsOptions, DISK_PAYLOAD_BYTES, DiskStore};
use wirefs_blocks::store::{BlockStore, MemoryStore};
use wirefs_op::fnv1a;
use wirefs_op::message::version::BootId;

use crate::failure::failure;
use crate::serve::boot;

/// The maximum number of blocks of a tree in memory: 4 GiB of full blocks.
const MEMORY_BLOCKS_MAX: u64 = 1 << 18;

/// The store of the blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Blocks {
    /// `blocks+memory:`, lost at the end of the process.
    Memory,
    /// `blocks:///DIR`.
    Directory(PathBuf),
}

impl Blocks {
    /// Returns the block tree that a source names; `None` if it names something else.
    ///
    /// # Errors
    /// Fails if the text is malformed.
    pub(crate) fn parse(source: &OsStr) -> Result<Option<Blocks>> {
        let bytes = source.as_bytes();
        if bytes == b"blocks+memory:" {
            return Ok(Some(Blocks::Memory));
        }
        match bytes.strip_prefix(b"blocks://") {
            None => Ok(None),
            Some(path) if path.starts_with(b"/") => {
                Ok(Some(Blocks::Directory(PathBuf::from(OsStr::from_bytes(path)))))
            }
            Some(_) => Err(failure(
                format!("`{}` has no absolute path", source.to_string_lossy()),
                "write blocks:///path/of/a/directory, with three slashes, or blocks+memory:",
            )),
        }
    }

    /// Opens the tree; makes it if there is none.
    ///
    /// # Errors
    /// Fails if the store cannot be opened, or has no tree.
    pub(crate) fn open(&self) -> Result<(BlockFs, BootId)> {
        let (store, boot): (Arc<dyn BlockStore>, BootId) = match self {
            Blocks::Memory => {
                (Arc::new(MemoryStore::new(DISK_PAYLOAD_BYTES, MEMORY_BLOCKS_MAX)), boot_of_process())
            }
            Blocks::Directory(path) => (Arc::new(DiskStore::open(path)?), boot::id_of(path)),
        };
        let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        let options = BlockFsOptions { uid, gid, ..BlockFsOptions::new(boot) };
        Ok((BlockFs::open(store, options).context("the block tree cannot be opened")?, boot))
    }
}

/// Returns a boot id for data that is lost at the end of this process.
pub(crate) fn boot_of_process() -> BootId {
    let text = format!("{}-{:?}", std::process::id(), std::time::SystemTime::now());
    BootId(fnv1a(&[text.as_bytes()]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_tree_sources_are_recognized() {
        let parsed = |text: &str| Blocks::parse(OsStr::new(text)).ok();
        assert_eq!(parsed("blocks+memory:"), Some(Some(Blocks::Memory)));
        assert_eq!(parsed("blocks:///a b"), Some(Some(Blocks::Directory("/a b".into()))));
        assert_eq!(parsed("blocks://host/a"), None);
        assert_eq!(parsed("blocks:a"), Some(None), "a host may have this name");
    }
}
