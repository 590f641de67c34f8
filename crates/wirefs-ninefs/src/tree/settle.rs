//! Tcommit, Tstatfs, Tseek.

use super::At;
use crate::remote::{Dialect, WRONG_REPLY};
use wirefs_ninep::plan_stat::{PlanStat, SizedStat};
use wirefs_ninep::text::Tail;
use wirefs_ninep::{Rmessage, Tmessage};
use wirefs_op::message::commit::{CommitScope, Rcommit, Tcommit};
use wirefs_op::message::seek::{Rseek, Tseek};
use wirefs_op::message::statfs::{Rstatfs, Tstatfs};
use wirefs_op::{Errno, FsStat};

impl At<'_> {
    pub(super) fn commit(&self, request: &Tcommit) -> Result<Rcommit, Errno> {
        let file = self.open(&request.target, false, false, 0)?;
        let fid = file.own.fid;
        let data_only = Tail(Some(u32::from(request.scope == CommitScope::Data)));
        let ask = match self.remote.dialect {
            Dialect::Linux => Tmessage::Fsync { fid, data_only },
            Dialect::Plan => Tmessage::Wstat { fid, stat: SizedStat(PlanStat::unchanged()) },
        };
        match (self.remote.ask(&ask), request.scope) {
            // A server that cannot sync a directory has no way to sync all.
            (Err(_), CommitScope::Filesystem) | (Ok(_), _) => Ok(Rcommit { boot: self.boot }),
            (Err(errno), CommitScope::Data | CommitScope::File) => Err(errno),
        }
    }

    pub(super) fn statfs(&self, request: &Tstatfs) -> Result<Rstatfs, Errno> {
        if self.remote.dialect == Dialect::Plan {
            let figures = FsStat { block_bytes: 4096, name_bytes_max: 255, ..FsStat::default() };
            return Ok(Rstatfs { figures });
        }
        let found = self.locate(&request.target)?;
        match self.remote.ask(&Tmessage::Statfs { fid: found.own.fid })? {
            Rmessage::Statfs { figures } => Ok(Rstatfs {
                figures: FsStat {
                    block_bytes: figures.block_bytes,
                    blocks: figures.blocks,
                    blocks_free: figures.blocks_free,
                    blocks_available: figures.blocks_available,
                    files: figures.files,
                    files_free: figures.files_free,
                    name_bytes_max: figures.name_bytes_max,
                },
            }),
            _ => Err(WRONG_REPLY),
        }
    }

    /// 9P knows no holes: a file is data to its end.
    pub(super) fn seek(&self, request: &Tseek) -> Result<Rseek, Errno> {
        let size = match self.client.find(&request.target) {
            Some(file) => self.remote.stat(file.own.fid)?.size,
            None => self.remote.stat(self.locate(&request.target)?.own.fid)?.size,
        };
        request.without_holes(size)
    }
}
