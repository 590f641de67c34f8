//! The server's side of a conversation with one client: fids, and each request as calls of a file system.
//!
//! ```text
//!   frame ─► admit ─┬─► a frame to send (Tversion, Tflush)
//!                   └─► a job ─► execute (any thread) ─► finish ─► frames to send: the reply, and each Rflush behind it
//! ```

mod answers;
mod attributes;
mod clunk;
mod create;
mod fids;
mod listing;
mod lock;
mod names;
mod open;
mod place;
mod read;
mod remove;
mod rename;
mod running;
mod version;
mod walk;
mod write;
mod xattr;

use crate::limits::DATA_HEAD_BYTES;
use crate::message::{Rmessage, Tmessage};
use crate::text::NineString;
use bytes::Bytes;
use fids::Fids;
use place::Place;
use running::Running;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use version::Dialect;
use wirefs_client::call::{Answer, Call, Caller};
use wirefs_op::wire::Malformed;
use wirefs_op::{Errno, Frame, Tag};

/// A file system that answers calls. Called by several threads at once; each call may wait.
pub trait Files: Send + Sync {
    /// Makes one call and returns its answer. [`Call::Forget`] has none: [`Answer::Done`] stands for it.
    fn call(&self, caller: Caller, call: Call<'_>) -> Answer;
}

/// The users that calls are made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NineUsers {
    /// The user of a client that names none by number.
    pub uid: u32,
    /// The group of calls that name none.
    pub gid: u32,
}

/// A fault of the client that ends its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NineFault {
    /// The bytes are no message.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// The tag is that of a request which is not answered yet.
    #[error("tag {} is in use", .0.0)]
    TagInUse(Tag),
    /// The conversation must begin with a Tversion.
    #[error("a request before Tversion")]
    NoVersion,
    /// More requests than a client may have.
    #[error("more than {} requests at once", crate::limits::REQUESTS_MAX)]
    TooMany,
}

/// The next step for a message.
#[derive(Debug)]
pub enum Admitted {
    /// A request to execute.
    Job(NineJob),
    /// The answer.
    Reply(Frame),
    /// Nothing now: a Tflush is answered behind the request that it cancels.
    Later,
}

/// A request to execute once.
#[derive(Debug)]
pub struct NineJob {
    tag: Tag,
    request: Tmessage,
    /// The Tversion that it came after.
    generation: u64,
}

/// An executed request whose reply is not sent yet.
#[derive(Debug)]
pub struct NineDone {
    tag: Tag,
    generation: u64,
    reply: Rmessage,
}

struct State {
    dialect: Dialect,
    msize: u32,
    fids: Fids,
    running: Running,
}

/// A conversation with one client.
pub struct NineConversation {
    files: Arc<dyn Files>,
    users: NineUsers,
    /// Differs for each client: owners of locks begin with it.
    number: u32,
    state: Mutex<State>,
}

impl std::fmt::Debug for NineConversation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NineConversation").field("number", &self.number).finish_non_exhaustive()
    }
}

impl NineConversation {
    /// Begins a conversation; `number` differs from those of all other clients of these files.
    pub fn new(files: Arc<dyn Files>, users: NineUsers, number: u32) -> NineConversation {
        let state = State {
            dialect: Dialect::None,
            msize: crate::limits::MSIZE_MAX,
            fids: Fids::default(),
            running: Running::default(),
        };
        NineConversation { files, users, number, state: Mutex::new(state) }
    }

    /// INVARIANT: nothing panics while the lock is held; a poisoned one is as good as any.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the largest message that the client may send, in bytes.
    pub fn msize(&self) -> u32 {
        self.lock().msize
    }

    /// Takes a message without its size word.
    ///
    /// # Errors
    /// Fails with the fault of the client, whose connection is closed then.
    pub fn admit(&self, body: Bytes) -> Result<Admitted, NineFault> {
        let (tag, request) = Tmessage::decode(body)?;
        match request {
            Tmessage::Version { msize, version } => Ok(Admitted::Reply(self.version(tag, msize, &version))),
            Tmessage::Flush { old } => self.flush(tag, Tag(old)),
            request => {
                let mut state = self.lock();
                if state.dialect == Dialect::None {
                    return Err(NineFault::NoVersion);
                }
                state.running.begin(tag)?;
                Ok(Admitted::Job(NineJob { tag, request, generation: state.running.generation() }))
            }
        }
    }

    /// Executes a request. May wait for the files.
    pub fn execute(&self, job: NineJob) -> NineDone {
        let NineJob { tag, request, generation } = job;
        let reply = self.answer(request).unwrap_or_else(|errno| self.error(errno));
        NineDone { tag, generation, reply }
    }

    /// Returns the frames to send for an executed request, none if a Tversion canceled it.
    ///
    /// Must be called with the connection locked for writing, before the frames are written: a Tflush that comes from
    /// now on is answered at once, and its reply must be written behind these.
    pub fn finish(&self, done: NineDone) -> Vec<Frame> {
        let NineDone { tag, generation, reply } = done;
        let mut state = self.lock();
        if state.running.generation() != generation {
            return Vec::new();
        }
        let flushed = state.running.end(tag);
        let flushes = flushed.into_iter().map(|flush| Rmessage::Flush {}.encode(flush));
        std::iter::once(reply.encode(tag)).chain(flushes).collect()
    }

    fn error(&self, errno: Errno) -> Rmessage {
        match self.lock().dialect {
            Dialect::Linux => Rmessage::Lerror { errno: u32::from(errno.code()) },
            Dialect::None | Dialect::Plan => {
                Rmessage::Error { text: NineString::new(errno.text().as_bytes()) }
            }
        }
    }

    fn answer(&self, request: Tmessage) -> Result<Rmessage, Errno> {
        match request {
            // Answered by `admit`.
            Tmessage::Version { .. } | Tmessage::Flush { .. } => Err(Errno::Protocol),
            Tmessage::Auth { .. } => self.auth(),
            Tmessage::Attach { fid, afid, uname, aname, uid } => self.attach(fid, afid, &uname, &aname, uid),
            Tmessage::Walk { fid, newfid, names } => self.walk(fid, newfid, &names.0),
            Tmessage::Clunk { fid } => self.clunk(fid),
            Tmessage::Remove { fid } => self.remove(fid),
            Tmessage::Open { fid, mode } => self.open(fid, mode),
            Tmessage::Lopen { fid, flags } => self.lopen(fid, flags),
            Tmessage::Create { fid, name, perm, mode } => self.create(fid, &name, perm, mode),
            Tmessage::Lcreate { fid, name, flags, mode, gid } => self.lcreate(fid, &name, flags, mode, gid),
            Tmessage::Read { fid, offset, count } => self.read(fid, offset, count),
            Tmessage::Readdir { fid, offset, count } => self.readdir(fid, offset, count),
            Tmessage::Write { fid, offset, data } => self.write(fid, offset, &data.0),
            Tmessage::Fsync { fid, data_only } => self.fsync(fid, data_only.0 == Some(1)),
            Tmessage::Stat { fid } => self.stat(fid),
            Tmessage::Wstat { fid, stat } => self.wstat(fid, &stat.0),
            Tmessage::Getattr { fid, mask } => self.getattr(fid, mask),
            Tmessage::Setattr { fid, set } => self.setattr(fid, set),
            Tmessage::Statfs { fid } => self.statfs(fid),
            Tmessage::Readlink { fid } => self.readlink(fid),
            Tmessage::Symlink { dir, name, target, gid } => self.symlink(dir, &name, &target, gid),
            Tmessage::Mknod { dir, name, mode, major, minor, gid } => {
                self.mknod(dir, &name, mode, (major, minor), gid)
            }
            Tmessage::Mkdir { dir, name, mode, gid } => self.mkdir(dir, &name, mode, gid),
            Tmessage::Link { dir, fid, name } => self.link(dir, fid, &name),
            Tmessage::Rename { fid, dir, name } => self.rename(fid, dir, &name),
            Tmessage::Renameat { dir, name, to_dir, to_name } => self.renameat(dir, &name, to_dir, &to_name),
            Tmessage::Unlinkat { dir, name, flags } => self.unlinkat(dir, &name, flags),
            Tmessage::Xattrwalk { fid, newfid, name } => self.xattrwalk(fid, newfid, &name),
            Tmessage::Xattrcreate { fid, name, size, flags } => self.xattrcreate(fid, &name, size, flags),
            Tmessage::Lock { fid, kind, start, length, process, .. } => {
                self.take_lock(fid, kind, (start, length), process)
            }
            Tmessage::Getlock { fid, lock } => self.getlock(fid, lock),
        }
    }

    /// The largest data of one message, in bytes.
    fn data_max(&self) -> u32 {
        self.msize().saturating_sub(DATA_HEAD_BYTES)
    }
}
