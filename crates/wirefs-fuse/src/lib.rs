//! The kernel interface: the FUSE protocol on `/dev/fuse`, decoded to the client's calls and encoded from its answers.
//!
//! *Holds*: each request is answered exactly once, through the descriptor that it was read from, whatever the file
//! system does (a dropped [`Reply`] and a panic answer `EIO`). An answer of the wrong form never reaches the kernel. A
//! signal reaches the call that it interrupts, however early it comes. The buffers are two slabs of 2 MiB per thread,
//! and the data of writes that is still referenced.
//!
//! *Never*: decisions about files, caching or time; knowledge of the server or the wire.
//!
//! *Drive it*:
//! ```no_run
//! use std::sync::Arc;
//! use wirefs_client::call::{Answer, Call, CallId, Caller};
//! use wirefs_fuse::{FileSystem, MountOptions, ReaderRole, Reply, Session, SessionOptions, mount};
//! use wirefs_op::Errno;
//!
//! struct Nothing;
//! impl FileSystem for Nothing {
//!     fn call(&self, _: Caller, _: Call<'_>, reply: Reply, _: &ReaderRole<'_>) {
//!         reply.answer(Answer::Fail(Errno::NotFound));
//!     }
//!     fn interrupt(&self, _: CallId) -> bool {
//!         true
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mountpoint = std::path::Path::new("/mnt");
//! let device = mount(mountpoint, &MountOptions::default())?;
//! let session = Session::start(device, Arc::new(Nothing), SessionOptions::default())?;
//! session.join()?; // until `wirefs umount /mnt`
//! # Ok(())
//! # }
//! ```
//!
//! *Proved by*: golden bytes and a property over random bytes beside [`request`] and the answers; `tests/suite`, which
//! mounts a file system in memory and uses it. The reason for not using a library: `docs/design/0001-own-fuse-protocol.md`.

mod abi;
mod affinity;
mod answer;
mod device;
mod init;
mod mount;
mod name_cache;
mod notifier;
mod operands;
mod reader;
mod receive_buffer;
mod reply;
pub mod request;
mod session;
mod sys;
mod unmount;

pub use answer::Expects;
pub use device::Device;
pub use init::{Negotiated, Offer};
pub use mount::{
    MountError, MountOptions, RemountError, TableEntry, is_read_only, mount, remount, resolve_mountpoint,
};
pub use notifier::Notifier;
pub use reader::{ReaderRole, before_blocking};
pub use reply::Reply;
pub use session::{Ended, Session, SessionOptions, StartError};
pub use unmount::{UnmountError, abort, unmount};

use wirefs_client::call::{Call, CallId, Caller};

/// The mounted file system. Called from several threads.
pub trait FileSystem: Send + Sync + 'static {
    /// Executes one call. The answer may be sent now or later, from any thread; dropping `reply` answers `EIO`.
    ///
    /// Before it blocks or runs long it must hand over the `role` of the reader, since no other thread reads
    /// requests until then. After an answer `NotImplemented` the kernel never sends that operation again to this
    /// mount and does without it (no `flush`, locks only in the kernel). Interrupts arrive through
    /// [`FileSystem::interrupt`], never as a call.
    fn call(&self, caller: Caller, call: Call<'_>, reply: Reply, role: &ReaderRole<'_>);

    /// A signal interrupted the caller of `call`, which should be answered soon, with `Interrupted` if it is not
    /// done. Returns whether the call is known.
    ///
    /// After `false` the kernel repeats the interrupt at once, as long as the call has no answer. So a call whose
    /// reply is held must be known, or the kernel repeats without end.
    fn interrupt(&self, call: CallId) -> bool;
}
