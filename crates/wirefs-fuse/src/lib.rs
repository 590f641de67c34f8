//! The kernel interface: the FUSE protocol spoken over `/dev/fuse`, translated to and from the client's calls.
//!
//! *Holds*: each request is answered exactly once, through the descriptor that it was read from, whatever the file system
//! does (a dropped [`Reply`] and a panic answer `EIO`); an answer of the wrong shape never reaches the kernel; a signal
//! reaches the call that it interrupts, however early it comes; the buffers are two slabs
//! of 2 MiB for each thread, and data of writes that somebody keeps.
//!
//! *Never*: decisions about files, caching or time; knowledge of the server or the wire.
//!
//! *Drive it*:
//! ```no_run
//! use std::sync::Arc;
//! use wirefs_client::call::{Answer, Call, CallId, Caller};
//! use wirefs_fuse::{FileSystem, MountOptions, Reading, Reply, Session, SessionOptions, mount};
//! use wirefs_op::Errno;
//!
//! struct Nothing;
//! impl FileSystem for Nothing {
//!     fn call(&self, _: Caller, _: Call<'_>, reply: Reply, _: &Reading<'_>) {
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
//! mounts a file system in memory and uses it. Why not a library: `docs/design/0001-own-fuse-protocol.md`.

mod abi;
mod answer;
mod beliefs;
mod device;
mod inbox;
mod init;
mod mount;
mod nearness;
mod notifier;
mod operands;
mod reading;
mod reply;
pub mod request;
mod session;
mod sys;
mod unmount;

pub use answer::Expects;
pub use device::Device;
pub use init::{Agreed, Offer};
pub use mount::{MountError, MountOptions, RemountError, TableEntry, is_read_only, mount, remount};
pub use notifier::Notifier;
pub use reading::{Reading, before_waiting};
pub use reply::Reply;
pub use session::{Ended, Session, SessionOptions, StartError};
pub use unmount::{UnmountError, abort, unmount};

use wirefs_client::call::{Call, CallId, Caller};

/// What is mounted. Called from several threads at once.
pub trait FileSystem: Send + Sync + 'static {
    /// Takes one call. It may be answered now, or later from any thread; dropping `reply` answers `EIO`.
    ///
    /// Where it waits or takes its time it is to let another thread read before (`reading`): until then nobody reads requests. The kernel remembers an answer
    /// `NotImplemented` and does not ask for that operation again while the mount lives; it then does without (no
    /// `flush`, locks kept in the kernel alone). Interrupts come through [`FileSystem::interrupt`], never as a call.
    fn call(&self, caller: Caller, call: Call<'_>, reply: Reply, reading: &Reading<'_>);

    /// Learns that a signal interrupted the caller of `call`, which should then be answered soon, with `Interrupted` if
    /// it is not done. Says whether it knows of that call.
    ///
    /// On `false` the kernel asks again at once, as long as the call is unanswered: a call whose reply is held must be
    /// known, or this goes on until it is answered.
    fn interrupt(&self, call: CallId) -> bool;
}
