//! Tremove, Trename, Tlink.

use super::tree::{At, Failure};
use crate::convert::stat_of;
use crate::proto;
use wirefs_op::Errno;
use wirefs_op::message::link::{Rlink, Tlink};
use wirefs_op::message::remove::{Rremove, Tremove};
use wirefs_op::message::rename::{NOREPLACE, Rrename, Trename};

impl At<'_> {
    pub(super) fn remove(&self, request: &Tremove) -> Result<Rremove, Failure> {
        let path = self.named(&request.place.path, None);
        match request.directory {
            true => self.remote.ask(|mut client| async move { client.remove_directory(path).await })?,
            false => self.remote.ask(|mut client| async move { client.remove(path).await })?,
        };
        Ok(Rremove { dir: None })
    }

    pub(super) fn rename(&self, request: &Trename) -> Result<Rrename, Failure> {
        if request.flags & !NOREPLACE != 0 {
            return Err(Errno::Invalid.into());
        }
        if request.flags & NOREPLACE != 0 {
            match self.stat(&request.to.path, None) {
                Ok(_) => return Err(Errno::Exists.into()),
                Err(Failure::Errno(Errno::NotFound)) => {}
                Err(failure) => return Err(failure),
            }
        }
        let (from, to) = (self.full(&request.from.path).into(), self.full(&request.to.path).into());
        let ask = proto::TwoPaths { from, to };
        self.remote.ask(|mut client| async move { client.rename(ask).await })?;
        let stat = Some(self.stat(&request.to.path, None)?);
        Ok(Rrename { stat, from_dir: None, to_dir: None })
    }

    pub(super) fn link(&self, request: &Tlink) -> Result<Rlink, Failure> {
        let (from, to) = (self.full(&request.target.path).into(), self.full(&request.to.path).into());
        let ask = proto::TwoPaths { from, to };
        let found = self.remote.ask(|mut client| async move { client.link(ask).await })?;
        Ok(Rlink { stat: Some(stat_of(&found)), dir: None })
    }
}
