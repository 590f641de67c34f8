//! Tcommit, Tstatfs.

use super::tree::{At, Failure};
use wirefs_op::limits::NAME_BYTES_MAX;
use wirefs_op::message::commit::{CommitScope, Rcommit, Tcommit};
use wirefs_op::message::statfs::{Rstatfs, Tstatfs};
use wirefs_op::{FsStat, TreePath};

impl At<'_> {
    pub(super) fn commit(&self, request: &Tcommit) -> Result<Rcommit, Failure> {
        let path = match request.scope {
            CommitScope::Data | CommitScope::File => self.named(&request.target.path, request.target.id),
            // The service syncs objects; the verifier says whether any unsynced data was lost.
            CommitScope::Filesystem => self.named(&TreePath::root(), None),
        };
        let done = self.remote.ask(|mut client| async move { client.commit(path).await })?;
        self.check(done.verifier)?;
        Ok(Rcommit { boot: self.boot })
    }

    pub(super) fn statfs(&self, request: &Tstatfs) -> Result<Rstatfs, Failure> {
        let path = self.named(&request.target.path, request.target.id);
        let found = self.remote.ask(|mut client| async move { client.stat_fs(path).await })?;
        Ok(Rstatfs {
            figures: FsStat {
                block_bytes: u32::try_from(found.block_bytes).unwrap_or(u32::MAX),
                blocks: found.blocks,
                blocks_free: found.blocks_free,
                blocks_available: found.blocks_available,
                files: found.files,
                files_free: found.files_free,
                name_bytes_max: NAME_BYTES_MAX as u32,
            },
        })
    }
}
