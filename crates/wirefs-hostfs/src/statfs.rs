//! Tstatfs: the figures of an object's file system.

use crate::failure::{Failure, uninterrupted};
use crate::session::Session;
use wirefs_op::FsStat;
use wirefs_op::message::statfs::{Rstatfs, Tstatfs};

impl Session {
    pub(crate) fn statfs(&self, request: &Tstatfs) -> Result<Rstatfs, Failure> {
        let object = self.locate(&request.target)?;
        let figures = uninterrupted(|| rustix::fs::fstatvfs(&object))?;
        let narrow = |word: u64| u32::try_from(word).unwrap_or(u32::MAX);
        Ok(Rstatfs {
            figures: FsStat {
                block_bytes: narrow(figures.f_frsize),
                blocks: figures.f_blocks,
                blocks_free: figures.f_bfree,
                blocks_available: figures.f_bavail,
                files: figures.f_files,
                files_free: figures.f_ffree,
                name_bytes_max: narrow(figures.f_namemax),
            },
        })
    }
}
