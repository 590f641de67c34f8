//! A 9P server that was attached to: its fids, and its operations in the terms of Op.

use crate::source::NineSource;
use crate::wire::{NineWire, Sent};
use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use wirefs_ninep::limits::{DATA_HEAD_BYTES, MSIZE_MAX, MSIZE_MIN, WALK_NAMES_MAX};
use wirefs_ninep::message::{Fid, NOFID};
use wirefs_ninep::plan_stat::PlanStat;
use wirefs_ninep::qid::Qid;
use wirefs_ninep::text::{Few, NineString, Tail};
use wirefs_ninep::{Rmessage, Tmessage};
use wirefs_op::wire::Data;
use wirefs_op::{Errno, Stat};

/// The root of the attached tree.
const ROOT: Fid = Fid(0);

/// The dialect that the server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    Plan,
    Linux,
}

/// A server, attached.
pub(crate) struct Remote {
    wire: NineWire,
    pub(crate) dialect: Dialect,
    msize: u32,
    next: AtomicU32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

/// A fid of ours, given back when dropped.
pub(crate) struct OwnFid {
    pub(crate) remote: Arc<Remote>,
    pub(crate) fid: Fid,
}

impl OwnFid {
    /// Lets go of a fid that the server takes back by itself.
    pub(crate) fn disown(mut self) {
        self.fid = NOFID;
    }
}

impl Drop for OwnFid {
    fn drop(&mut self) {
        if self.fid != NOFID {
            self.remote.wire.tell(&Tmessage::Clunk { fid: self.fid });
        }
    }
}

impl std::fmt::Debug for OwnFid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "fid {}", self.fid.0)
    }
}

/// A reply of another kind than the request has is the server's fault.
pub(crate) const WRONG_REPLY: Errno = Errno::Protocol;

fn never() -> bool {
    false
}

impl Remote {
    /// Connects, agrees on the dialect and attaches as this process's user.
    ///
    /// # Errors
    /// `EHOSTDOWN`: there is no connection. `EPROTO`: it does not speak 9P. Or the server's refusal.
    pub(crate) fn attach(source: &NineSource) -> Result<Arc<Remote>, Errno> {
        let pipe = source.connect().map_err(|_| Errno::HostDown)?;
        let wire = NineWire::start(pipe).map_err(|_| Errno::NoMemory)?;
        let (dialect, msize) = version(&wire)?;
        let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        let remote = Remote { wire, dialect, msize, next: AtomicU32::new(1), uid, gid };
        let tail = match dialect {
            Dialect::Linux => Tail(Some(uid)),
            Dialect::Plan => Tail(None),
        };
        let uname = match dialect {
            Dialect::Linux => NineString::default(),
            Dialect::Plan => {
                NineString::new(std::env::var("USER").unwrap_or_else(|_| "none".into()).as_bytes())
            }
        };
        let aname = NineString::new(&source.aname);
        remote.ask(&Tmessage::Attach { fid: ROOT, afid: NOFID, uname, aname, uid: tail })?;
        Ok(Arc::new(remote))
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.wire.is_lost()
    }

    /// The data of one message, at most, in bytes.
    pub(crate) fn data_max(&self) -> u32 {
        self.msize - DATA_HEAD_BYTES
    }

    pub(crate) fn send(&self, request: &Tmessage) -> Result<Sent<'_>, Errno> {
        self.wire.send(request)
    }

    /// Asks, and waits for the reply.
    pub(crate) fn ask(&self, request: &Tmessage) -> Result<Rmessage, Errno> {
        self.wire.send(request)?.wait(&never)
    }

    /// A number that no fid has: it wraps after four billion, when the first ones are long given back.
    pub(crate) fn new_fid(&self) -> Fid {
        match self.next.fetch_add(1, Ordering::Relaxed) {
            // The root's, or none.
            0 | u32::MAX => self.new_fid(),
            number => Fid(number),
        }
    }

    /// Walks from the root. Returns a fid of the last name, and the qid of each.
    ///
    /// # Errors
    /// `ENOENT`, or as the server says.
    pub(crate) fn walk<'a>(
        self: &Arc<Remote>,
        names: impl Iterator<Item = &'a [u8]>,
    ) -> Result<(OwnFid, Vec<Qid>), Errno> {
        let names: Vec<NineString> = names.map(NineString::new).collect();
        let mut qids = Vec::with_capacity(names.len());
        let mut steps = names.chunks(WALK_NAMES_MAX);
        let newfid = self.new_fid();
        // The first step makes the fid, those behind it move it on.
        let first = steps.next().unwrap_or_default();
        qids.extend(self.walk_step(ROOT, newfid, first)?);
        let own = OwnFid { remote: Arc::clone(self), fid: newfid };
        for step in steps {
            qids.extend(self.walk_step(newfid, newfid, step)?);
        }
        Ok((own, qids))
    }

    /// Whether a name is in the directory of a fid.
    ///
    /// # Errors
    /// It is not there.
    pub(crate) fn walk_from(self: &Arc<Remote>, fid: Fid, name: &NineString) -> Result<OwnFid, Errno> {
        let newfid = self.new_fid();
        self.walk_step(fid, newfid, std::slice::from_ref(name))?;
        Ok(OwnFid { remote: Arc::clone(self), fid: newfid })
    }

    fn walk_step(&self, fid: Fid, newfid: Fid, names: &[NineString]) -> Result<Vec<Qid>, Errno> {
        match self.ask(&Tmessage::Walk { fid, newfid, names: Few(names.to_vec()) })? {
            Rmessage::Walk { qids: Few(qids) } if qids.len() == names.len() => Ok(qids),
            Rmessage::Walk { .. } => Err(Errno::NotFound),
            _ => Err(WRONG_REPLY),
        }
    }

    /// Reads attributes.
    pub(crate) fn stat(&self, fid: Fid) -> Result<Stat, Errno> {
        self.stat_of(self.ask(&self.stat_request(fid))?)
    }

    pub(crate) fn stat_request(&self, fid: Fid) -> Tmessage {
        match self.dialect {
            Dialect::Linux => Tmessage::Getattr { fid, mask: 0x3fff },
            Dialect::Plan => Tmessage::Stat { fid },
        }
    }

    pub(crate) fn stat_of(&self, reply: Rmessage) -> Result<Stat, Errno> {
        match reply {
            Rmessage::Getattr { attributes } => attributes.to_stat().ok_or(WRONG_REPLY),
            Rmessage::Stat { stat } => Ok(self.plan_stat(&stat.0)),
            _ => Err(WRONG_REPLY),
        }
    }

    /// Attributes of 9P2000; users that are no numbers are this process's user.
    pub(crate) fn plan_stat(&self, stat: &PlanStat) -> Stat {
        stat.to_stat(self.uid, self.gid)
    }

    /// Opens, with flags of Linux.
    pub(crate) fn open(&self, fid: Fid, flags: u32) -> Result<(), Errno> {
        let request = match self.dialect {
            Dialect::Linux => Tmessage::Lopen { fid, flags },
            Dialect::Plan => Tmessage::Open { fid, mode: (flags & 3) as u8 },
        };
        self.ask(&request).map(drop)
    }

    /// Reads once.
    ///
    /// # Errors
    /// `EINTR`: nobody wants the data any more.
    pub(crate) fn read(
        &self,
        fid: Fid,
        offset: u64,
        count: u32,
        stopped: &dyn Fn() -> bool,
    ) -> Result<Bytes, Errno> {
        let count = count.min(self.data_max());
        match self.send(&Tmessage::Read { fid, offset, count })?.wait(stopped)? {
            Rmessage::Read { data } if data.0.len() <= count as usize => Ok(data.0),
            _ => Err(WRONG_REPLY),
        }
    }

    /// Writes all, in as many messages as it takes. Returns the bytes that the server took.
    pub(crate) fn write(&self, fid: Fid, offset: u64, data: &Bytes) -> Result<u32, Errno> {
        let mut done = 0;
        while done < data.len() {
            let end = data.len().min(done + self.data_max() as usize);
            let piece = Data(data.slice(done..end));
            let taken = match self.ask(&Tmessage::Write { fid, offset: offset + done as u64, data: piece }) {
                Ok(Rmessage::Write { count }) if count as usize <= end - done => count as usize,
                Ok(_) => return Err(WRONG_REPLY),
                Err(_) if done > 0 => break,
                Err(errno) => return Err(errno),
            };
            if taken == 0 {
                break;
            }
            done += taken;
        }
        Ok(done as u32)
    }
}

fn version(wire: &NineWire) -> Result<(Dialect, u32), Errno> {
    let version = NineString::new(b"9P2000.L");
    let reply = wire.send(&Tmessage::Version { msize: MSIZE_MAX, version })?.wait(&never)?;
    let Rmessage::Version { msize, version } = reply else { return Err(WRONG_REPLY) };
    let dialect = match &version.0[..] {
        b"9P2000.L" => Dialect::Linux,
        b"9P2000" => Dialect::Plan,
        // A server that knows neither may still take the older one by its name.
        _ => return plan_version(wire),
    };
    if !(MSIZE_MIN..=MSIZE_MAX).contains(&msize) {
        return Err(WRONG_REPLY);
    }
    Ok((dialect, msize))
}

fn plan_version(wire: &NineWire) -> Result<(Dialect, u32), Errno> {
    let request = Tmessage::Version { msize: MSIZE_MAX, version: NineString::new(b"9P2000") };
    match wire.send(&request)?.wait(&never)? {
        Rmessage::Version { msize, version }
            if &version.0[..] == b"9P2000" && (MSIZE_MIN..=MSIZE_MAX).contains(&msize) =>
        {
            Ok((Dialect::Plan, msize))
        }
        _ => Err(WRONG_REPLY),
    }
}
