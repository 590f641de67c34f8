//! Tcopy: copies at the server.

use wirefs_op::Errno;
use wirefs_op::message::copy::{Rcopy, Tcopy};

use super::{At, Failure};
use crate::message::Request;

impl At<'_> {
    pub(super) fn copy(&self, request: &Tcopy) -> Result<Rcopy, Failure> {
        if !self.remote.extensions.copies {
            return Err(Errno::NotSupported.into());
        }
        let from = self.open_file(&request.from, true, false)?;
        let to = self.open_file(&request.to, false, true)?;
        let size = self.remote.fstat(&from.handle)?.attributes()?.size.unwrap_or_default();
        let count = request.length.min(size.saturating_sub(request.from_offset));
        // A length of 0 would copy all.
        if count > 0 {
            let copy = self.remote.send(&Request::CopyData {
                from: from.handle.bytes(),
                offset: request.from_offset,
                length: count,
                to: to.handle.bytes(),
                to_offset: request.to_offset,
            })?;
            copy.done()?;
        }
        let stat = self.remote.fstat(&to.handle)?.attributes()?.stat(to.ino);
        Ok(Rcopy { count, stat: Some(stat) })
    }
}
