//! Requests on one object, except Tget and Tput.

use crate::tree::{ModelState, ResolvedObject};
use bytes::Bytes;
use wirefs_op::limits::{NAME_BYTES_MAX, XATTR_BYTES_MAX};
use wirefs_op::message::allocate::{Rallocate, Tallocate};
use wirefs_op::message::commit::{CommitScope, Rcommit, Tcommit};
use wirefs_op::message::copy::{Rcopy, Tcopy};
use wirefs_op::message::seek::{Rseek, Tseek};
use wirefs_op::message::statfs::{Rstatfs, Tstatfs};
use wirefs_op::message::target::Target;
use wirefs_op::message::xattr::{Rxattr, Txattr, XattrAction};
use wirefs_op::wire::Data;
use wirefs_op::{Errno, FsStat, Kind};
use wirefs_server::SessionKey;

/// The statistics of an empty file system of 4 TiB.
const EMPTY_FS: FsStat = FsStat {
    block_bytes: 4096,
    blocks: 1 << 30,
    blocks_free: 1 << 30,
    blocks_available: 1 << 30,
    files: 1 << 20,
    files_free: 1 << 20,
    name_bytes_max: NAME_BYTES_MAX as u32,
};

impl ModelState {
    /// Returns the object if it can be opened as a file.
    fn locate_file(&self, session: SessionKey, target: &Target) -> Result<ResolvedObject, Errno> {
        let object = self.locate(session, target)?;
        match object.kind {
            Kind::File => Ok(object),
            Kind::Directory => Err(Errno::IsDirectory),
            Kind::Symlink => Err(Errno::Loop),
            Kind::Fifo | Kind::Socket | Kind::CharDevice | Kind::BlockDevice => Err(Errno::NoSuchDevice),
        }
    }

    pub(super) fn xattr(&mut self, session: SessionKey, request: &Txattr) -> Result<Rxattr, Errno> {
        let ino = self.locate(session, &request.target)?.ino;
        let name = request.name.as_bytes();
        let value = match request.action {
            XattrAction::Read => self.fs.xattr(ino, name)?.to_vec(),
            XattrAction::List => {
                let ended = self.fs.xattr_names(ino)?.into_iter().map(|name| [name, b"\0"].concat());
                ended.collect::<Vec<_>>().concat()
            }
            XattrAction::Set if request.value.0.len() > XATTR_BYTES_MAX => return Err(Errno::TooBig),
            XattrAction::Set => {
                self.fs.set_xattr(ino, name, &request.value.0, request.flags)?;
                vec![]
            }
            XattrAction::Remove => {
                self.fs.remove_xattr(ino, name)?;
                vec![]
            }
        };
        let changes = matches!(request.action, XattrAction::Set | XattrAction::Remove);
        let stat = self.stat(ino).filter(|_| changes);
        Ok(Rxattr { stat, value: Data(Bytes::from(value)) })
    }

    pub(super) fn statfs(&self, session: SessionKey, request: &Tstatfs) -> Result<Rstatfs, Errno> {
        self.locate(session, &request.target)?;
        Ok(Rstatfs { figures: EMPTY_FS })
    }

    pub(super) fn allocate(&mut self, session: SessionKey, request: &Tallocate) -> Result<Rallocate, Errno> {
        let ino = self.locate_file(session, &request.target)?.ino;
        self.fs.allocate(ino, request.mode, request.offset, request.length)?;
        Ok(Rallocate { stat: self.stat(ino) })
    }

    pub(super) fn copy(&mut self, session: SessionKey, request: &Tcopy) -> Result<Rcopy, Errno> {
        // A directory can be opened for reading; the copy itself fails later.
        let from = match self.locate(session, &request.from)? {
            ResolvedObject { kind: Kind::Directory, ino, .. } => ino,
            _ => self.locate_file(session, &request.from)?.ino,
        };
        let to = self.locate_file(session, &request.to)?.ino;
        let count = self.fs.copy((from, request.from_offset), (to, request.to_offset), request.length)?;
        Ok(Rcopy { count, stat: self.stat(to) })
    }

    pub(super) fn seek(&mut self, session: SessionKey, request: &Tseek) -> Result<Rseek, Errno> {
        let ino = self.locate_file(session, &request.target)?.ino;
        Ok(Rseek { offset: self.fs.seek(ino, request.offset, request.hole)? })
    }

    pub(super) fn commit(&mut self, session: SessionKey, request: &Tcommit) -> Result<Rcommit, Errno> {
        let ino = self.locate(session, &request.target)?.ino;
        if let Some(disk) = &mut self.disk {
            disk.committed(&self.fs, (request.scope != CommitScope::Filesystem).then_some(ino));
        }
        Ok(Rcommit { boot: self.boot })
    }
}
