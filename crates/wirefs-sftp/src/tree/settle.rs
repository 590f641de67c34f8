//! Tcommit, Tstatfs.

use wirefs_op::message::commit::{CommitScope, Rcommit, Tcommit};
use wirefs_op::message::statfs::{Rstatfs, Tstatfs};
use wirefs_op::{FsStat, Kind};

use super::{At, Failure};
use crate::message::Request;

impl At<'_> {
    /// Waits for the server's disk. SFTP syncs files alone: the names in a directory are with the server.
    pub(super) fn commit(&self, request: &Tcommit) -> Result<Rcommit, Failure> {
        let done = Rcommit { boot: self.tree.boot };
        if request.scope == CommitScope::Filesystem || !self.remote.extensions.syncs {
            return Ok(done);
        }
        if self.client.find(&request.target).is_none() && self.stat(&request.target)?.kind != Kind::File {
            return Ok(done);
        }
        let file = self.open_file(&request.target, false, false)?;
        self.remote.send(&Request::Fsync { handle: file.handle.bytes() })?.done()?;
        Ok(done)
    }

    pub(super) fn statfs(&self, request: &Tstatfs) -> Result<Rstatfs, Failure> {
        self.ino_of(&request.target)?;
        let unknown = FsStat { block_bytes: 4096, name_bytes_max: 255, ..FsStat::default() };
        let figures = self.remote.figures(&self.full(&request.target.path))?.unwrap_or(unknown);
        Ok(Rstatfs { figures })
    }
}
