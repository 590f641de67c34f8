//! Tseek: finds data and holes.

use crate::failure::{Failure, uninterrupted};
use crate::open_files::Access;
use crate::session::Session;
use rustix::fs::SeekFrom;
use wirefs_op::Errno;
use wirefs_op::message::seek::{Rseek, Tseek};

impl Session {
    pub(crate) fn seek(&self, request: &Tseek) -> Result<Rseek, Failure> {
        if i64::try_from(request.offset).is_err() {
            return Err(Errno::NoSuchDevice.into());
        }
        let object = self.locate(&request.target)?;
        // A write-only file can be used as well.
        let file = match object.opened(Access::default()) {
            Some(file) => std::sync::Arc::clone(file),
            None => object.open(Access::READ)?,
        };
        let from = if request.hole { SeekFrom::Hole(request.offset) } else { SeekFrom::Data(request.offset) };
        let _position = file.position();
        let offset = uninterrupted(|| rustix::fs::seek(&*file, from))?;
        Ok(Rseek { offset })
    }
}
