//! Tallocate: `fallocate`.

use crate::failure::{Failure, uninterrupted};
use crate::open_files::Access;
use crate::session::Session;
use rustix::fs::FallocateFlags;
use wirefs_op::message::allocate::{Rallocate, Tallocate};
use wirefs_server::{Replies, Touched};

impl Session {
    pub(crate) fn allocate(
        &self,
        request: &Tallocate,
        replies: &mut dyn Replies,
    ) -> Result<Rallocate, Failure> {
        self.check_writable()?;
        let object = self.locate(&request.target)?;
        let file = object.open(Access::WRITE)?;
        let touched = Touched::object(file.id);
        replies.touch(std::slice::from_ref(&touched))?;
        let _guard = self.export.changes.lock_contents(file.id);
        let before = self.version_of(&*file);
        self.defuse(&object)?;
        let mode = FallocateFlags::from_bits_retain(request.mode);
        uninterrupted(|| rustix::fs::fallocate(&*file, mode, request.offset, request.length))?;
        let stat = self.stat_leased(&object, replies).ok();
        self.report_change(&touched, before, stat.map(|stat| stat.version), replies);
        Ok(Rallocate { stat })
    }
}
