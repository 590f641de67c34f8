//! Open files of a session, by the fds that its client knows, and how a request finds its object.

use super::{At, NineClient};
use crate::remote::OwnFid;
use std::sync::Arc;
use wirefs_ninep::qid::{QID_DIRECTORY, Qid};
use wirefs_op::message::target::{NOFD, Place, Target};
use wirefs_op::{Errno, FileId, TreePath};

/// An open fid, and the access that it was opened for.
pub(super) struct OpenFile {
    pub(super) own: OwnFid,
    pub(super) qid: Qid,
    pub(super) reads: bool,
    pub(super) writes: bool,
}

impl NineClient {
    /// The file of an fd, unless its connection is lost or it is not the one meant.
    pub(super) fn find(&self, target: &Target) -> Option<Arc<OpenFile>> {
        let file = self.files.find(target.fd)?;
        let is_it = target.id.is_none_or(|id| id.ino == file.qid.path);
        (is_it && !file.own.remote.is_lost()).then_some(file)
    }
}

/// An object that a request works on.
pub(super) struct Found {
    /// Walked to for this request; not open.
    pub(super) own: OwnFid,
    pub(super) qid: Qid,
}

impl Found {
    pub(super) fn is_directory(&self) -> bool {
        self.qid.kind & QID_DIRECTORY != 0
    }
}

fn check(qid: Qid, id: Option<FileId>) -> Result<(), Errno> {
    if id.is_none_or(|id| id.ino == qid.path) { Ok(()) } else { Err(Errno::Stale) }
}

impl At<'_> {
    /// Walks to the object of a target.
    ///
    /// # Errors
    /// As a walk; `ESTALE` if another object is there.
    pub(super) fn locate(&self, target: &Target) -> Result<Found, Errno> {
        let (own, qids) = self.walk(&target.path)?;
        let qid = self.last_qid(&own, &qids)?;
        check(qid, target.id)?;
        Ok(Found { own, qid })
    }

    /// Walks to a name in a directory, which must be the one that is meant.
    pub(super) fn locate_entry(&self, place: &Place) -> Result<Found, Errno> {
        let (dir, _) = self.directory(place)?;
        let found = self.walk(&place.path);
        drop(dir);
        let (own, qids) = found?;
        let qid = qids.last().copied().ok_or(Errno::Invalid)?;
        Ok(Found { own, qid })
    }

    /// Walks to the directory of a name; returns the name too.
    pub(super) fn directory<'p>(&self, place: &'p Place) -> Result<(Found, &'p [u8]), Errno> {
        let (above, name) = place.path.split_last().ok_or(Errno::Busy)?;
        let dir = self.locate(&Target { path: above, fd: NOFD, id: place.dir })?;
        if !dir.is_directory() {
            return Err(Errno::NotDirectory);
        }
        Ok((dir, name))
    }

    pub(super) fn walk(&self, path: &TreePath) -> Result<(OwnFid, Vec<Qid>), Errno> {
        self.remote.walk(self.client.root.names().chain(path.names()))
    }

    fn last_qid(&self, own: &OwnFid, qids: &[Qid]) -> Result<Qid, Errno> {
        match qids.last() {
            Some(qid) => Ok(*qid),
            // The attached root itself: a walk of no names tells no qid.
            None => {
                let stat = self.remote.stat(own.fid)?;
                Ok(Qid::of(&stat))
            }
        }
    }

    /// The open file of a target, or one that is opened now for reading or writing.
    pub(super) fn open(
        &self,
        target: &Target,
        reads: bool,
        writes: bool,
        flags: u32,
    ) -> Result<Arc<OpenFile>, Errno> {
        let kept = self.client.find(target);
        if let Some(file) =
            kept.filter(|file| flags == 0 && (!reads || file.reads) && (!writes || file.writes))
        {
            return Ok(file);
        }
        let Found { own, qid } = self.locate(target)?;
        let access = match (reads, writes) {
            (true, true) => 2,
            (_, false) => 0,
            (false, true) => 1,
        };
        self.remote.open(own.fid, access | flags)?;
        Ok(Arc::new(OpenFile { own, qid, reads: access != 1, writes }))
    }
}
