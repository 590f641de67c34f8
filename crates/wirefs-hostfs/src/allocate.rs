//! Tallocate: `fallocate`.

use crate::failure::{Failure, uninterrupted};
use crate::open_files::Access;
use crate::session::Session;
use rustix::fs::FallocateFlags;
use wirefs_op::message::allocate::{Rallocate, Tallocate};

impl Session {
    pub(crate) fn allocate(&self, request: &Tallocate) -> Result<Rallocate, Failure> {
        self.check_writable()?;
        let file = self.locate(&request.target)?.open(Access::WRITE)?;
        let _turn = self.export.changes.turn(file.id);
        let mode = FallocateFlags::from_bits_retain(request.mode);
        uninterrupted(|| rustix::fs::fallocate(&*file, mode, request.offset, request.length))?;
        Ok(Rallocate { stat: self.stat(&*file).ok() })
    }
}
