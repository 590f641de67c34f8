//! Rollback journals of databases.

use std::collections::BTreeSet;
use wirefs_cache::TreeNodeId;
use wirefs_op::message::put::Tput;

/// The maximum number of journals with a begun transaction. Beyond it, all of them are forgotten, so that their syncs
/// wait.
pub(crate) const BEGUN_MAX: usize = 64;

/// The suffix of a database's rollback journal.
pub(crate) const SUFFIX: &[u8] = b"-journal";

/// The size of a header's known fields, in bytes.
pub(crate) const HEADER_BYTES: usize = 28;

/// The first bytes of a header whose journal is synced. Before, they are zeros.
pub(crate) const MAGIC: [u8; 8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];

/// Whether a name is a rollback journal's.
pub(crate) fn is_journal(name: &[u8]) -> bool {
    name.len() > SUFFIX.len() && name.ends_with(SUFFIX)
}

/// Journals in which a transaction has begun.
#[derive(Debug, Default)]
pub(crate) struct Rollback {
    pub(crate) begun: BTreeSet<TreeNodeId>,
}

impl Rollback {
    /// Forgets all journals.
    pub(crate) fn forget(&mut self) {
        self.begun.clear();
    }
}

/// Whether a transaction has begun in a journal after this write.
pub(crate) fn begins(put: &Tput, is_begun: bool) -> bool {
    let data = &put.data.0;
    if put.offset != 0 {
        return is_begun && put.offset >= HEADER_BYTES as u64;
    }
    let magic = data.get(..MAGIC.len()).unwrap_or_default();
    match data.get(..HEADER_BYTES) {
        // Sizes of a sector and of a page: a header that was overwritten has none.
        Some(header) => {
            let sizes = header.chunks_exact(4).skip(5).map(|size| {
                let size: [u8; 4] = size.try_into().unwrap_or_default();
                u32::from_be_bytes(size)
            });
            (magic == MAGIC || magic == [0; 8]) && sizes.into_iter().all(u32::is_power_of_two)
        }
        // How many pages follow is entered once they are on the disk.
        None => is_begun && magic == MAGIC,
    }
}

#[cfg(test)]
mod tests;
