//! Topen, Tlopen: open files and directories.

use super::fids::{FidEntry, FidUse};
use super::listing::Cursor;
use super::{Files, NineConversation, Place, answers};
use crate::message::{Fid, Rmessage};
use crate::qid::Qid;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wirefs_client::call::{Call, Caller, Handle, OpenHow};
use wirefs_op::{Errno, Kind, Stat};

/// The flags of `open(2)`, of which Linux has the same on all machines that 9P2000.L is spoken between.
pub(super) mod flag {
    pub(in crate::server) const ACCESS: u32 = 3;
    pub(in crate::server) const WRITE_ONLY: u32 = 1;
    pub(in crate::server) const READ_WRITE: u32 = 2;
    pub(in crate::server) const EXCLUSIVE: u32 = 0o200;
    pub(in crate::server) const TRUNCATE: u32 = 0o1000;
    pub(in crate::server) const APPEND: u32 = 0o2000;
    pub(in crate::server) const DATA_SYNC: u32 = 0o10000;
    pub(in crate::server) const DIRECT: u32 = 0o40000;
    pub(in crate::server) const DIRECTORY: u32 = 0o200_000;
}

/// The mode of Topen: truncate, remove when closed.
const OTRUNC: u8 = 0x10;
const ORCLOSE: u8 = 0x40;

/// How Tlopen and Tlcreate want it.
pub(super) fn how_of_flags(flags: u32) -> OpenHow {
    let access = flags & flag::ACCESS;
    OpenHow {
        read: access != flag::WRITE_ONLY,
        write: matches!(access, flag::WRITE_ONLY | flag::READ_WRITE),
        append: flags & flag::APPEND != 0,
        truncate: flags & flag::TRUNCATE != 0,
        exclusive: flags & flag::EXCLUSIVE != 0,
        direct: flags & flag::DIRECT != 0,
        sync: flags & flag::DATA_SYNC != 0,
    }
}

/// How Topen and Tcreate want it; read 0, write 1, both 2, execute 3.
pub(super) fn how_of_mode(mode: u8) -> OpenHow {
    OpenHow {
        read: mode & 3 != 1,
        write: matches!(mode & 3, 1 | 2),
        truncate: mode & OTRUNC != 0,
        ..OpenHow::default()
    }
}

pub(super) fn removes_on_close(mode: u8) -> bool {
    mode & ORCLOSE != 0
}

/// The kind of an open object, and its state.
pub(super) enum OpenKind {
    File(OpenHow),
    Directory(Mutex<Cursor>),
}

/// An open file or directory, closed when this is dropped.
pub(super) struct Opened {
    files: Arc<dyn Files>,
    /// Held as long as it is open.
    pub(super) place: Arc<Place>,
    pub(super) handle: Handle,
    pub(super) kind: OpenKind,
    pub(super) removes_on_close: bool,
    /// The processes that have locked through it.
    owners: Mutex<BTreeSet<u64>>,
}

impl Opened {
    pub(super) fn new(files: &Arc<dyn Files>, place: &Arc<Place>, handle: Handle, kind: OpenKind) -> Opened {
        Opened {
            files: Arc::clone(files),
            place: Arc::clone(place),
            handle,
            kind,
            removes_on_close: false,
            owners: Mutex::default(),
        }
    }

    pub(super) fn owners(&self) -> MutexGuard<'_, BTreeSet<u64>> {
        self.owners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends what was written, and releases the locks that were taken through it.
    ///
    /// # Errors
    /// Errors of writes that are not reported yet.
    pub(super) fn flush(&self, caller: Caller) -> Result<(), Errno> {
        let OpenKind::File(how) = &self.kind else { return Ok(()) };
        let owners = std::mem::take(&mut *self.owners());
        if !how.write && owners.is_empty() {
            return Ok(());
        }
        // At least once, for what was written.
        let owners = if owners.is_empty() { BTreeSet::from([0]) } else { owners };
        let (node, handle) = (self.place.node, self.handle);
        let flush = |owner| answers::done(self.files.call(caller, Call::Flush { node, handle, owner }));
        owners.into_iter().map(flush).fold(Ok(()), Result::and)
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        let (node, handle) = (self.place.node, self.handle);
        let call = match self.kind {
            OpenKind::File(_) => Call::Release { node, handle, flock_owner: None },
            OpenKind::Directory(_) => Call::Releasedir { node, handle },
        };
        self.files.call(Caller::default(), call);
    }
}

impl NineConversation {
    pub(super) fn open(&self, fid: Fid, mode: u8) -> Result<Rmessage, Errno> {
        let (qid, iounit) = self.open_fid(fid, how_of_mode(mode), false, removes_on_close(mode))?;
        Ok(Rmessage::Open { qid, iounit })
    }

    pub(super) fn lopen(&self, fid: Fid, flags: u32) -> Result<Rmessage, Errno> {
        let how = OpenHow { exclusive: false, ..how_of_flags(flags) };
        let (qid, iounit) = self.open_fid(fid, how, flags & flag::DIRECTORY != 0, false)?;
        Ok(Rmessage::Lopen { qid, iounit })
    }

    fn open_fid(&self, fid: Fid, how: OpenHow, directory: bool, remove: bool) -> Result<(Qid, u32), Errno> {
        let entry = self.fid(fid)?;
        if !matches!(entry.used, FidUse::Walked) {
            return Err(Errno::BadDescriptor);
        }
        let stat = entry.place.stat(entry.caller)?;
        let mut opened = self.open_place(&entry.place, &stat, entry.caller, how, directory)?;
        opened.removes_on_close = remove;
        self.set_fid(fid, FidEntry { used: FidUse::Open(Arc::new(opened)), ..entry })?;
        Ok((Qid::of(&stat), self.data_max()))
    }

    pub(super) fn open_place(
        &self,
        place: &Arc<Place>,
        stat: &Stat,
        caller: Caller,
        how: OpenHow,
        directory: bool,
    ) -> Result<Opened, Errno> {
        let node = place.node;
        match stat.kind {
            Kind::Directory if !how.only_reads() => Err(Errno::IsDirectory),
            Kind::Directory => {
                let handle = answers::opened(self.files.call(caller, Call::Opendir { node }))?;
                Ok(Opened::new(&self.files, place, handle, OpenKind::Directory(Mutex::default())))
            }
            _ if directory => Err(Errno::NotDirectory),
            Kind::Symlink => Err(Errno::Loop),
            // The client's own kernel opens these.
            Kind::Fifo | Kind::Socket | Kind::CharDevice | Kind::BlockDevice => Err(Errno::NoSuchDevice),
            Kind::File => {
                let handle = answers::opened(self.files.call(caller, Call::Open { node, how }))?;
                Ok(Opened::new(&self.files, place, handle, OpenKind::File(how)))
            }
        }
    }
}
