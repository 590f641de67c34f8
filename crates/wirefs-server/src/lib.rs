//! The server core: sessions, order, and the trait that every tree answers.
//!
//! *Holds*: the changes of one session are carried out one after the other, in the order received; each request gets
//! exactly one last reply or is stopped; a tag is free again only when no reply to it can come any more; a session
//! outlives its connections by a bounded time; a change that somebody else was promised to hear of is carried out only when
//! that one has forgotten, and waits in its turn without a thread; every table is bounded.
//!
//! *Never*: clocks, threads, files, sockets, randomness. What a peer does wrong closes its connection and nothing else.
//!
//! *Drive it*:
//! ```
//! use wirefs_op::message::version::{BootId, SessionId, Tversion, VERSION};
//! use wirefs_op::{NOTAG, Request, Time, wire::Text};
//! use wirefs_server::{ConnectionKey, Input, Output, Sessions};
//!
//! let mut sessions = Sessions::new(BootId(7));
//! let connection = ConnectionKey(1);
//! sessions.handle(Time(0), Input::Connected(connection));
//! let hello = Request::Version(Tversion {
//!     msize: 1 << 20,
//!     version: Text::new(VERSION),
//!     features: 0,
//!     session: SessionId([1; 16]),
//! });
//! sessions.handle(Time(1), Input::Received(connection, hello.encode(NOTAG).to_body()));
//! assert!(matches!(sessions.poll(), Some(Output::Reply { tag: NOTAG, .. })));
//! ```
//!
//! *Proved by*: a test per rule and a property over random interleavings in `sessions/tests`.

pub mod blame;
mod creations;
mod ledger;
pub mod limits;
pub mod notes;
pub mod repeat;
pub mod sessions;
pub mod tree;

pub use blame::{Parting, PeerFault};
pub use limits::{PATIENCE, RECOVERY};
pub use notes::{Begun, Found, Note, Noted};
pub use sessions::{ConnectionKey, Input, Job, JobKey, Neighbours, Output, Sessions, Terms};
pub use tree::{Attached, Outside, Parked, Replies, SessionKey, Stopped, Tell, Touched, Tree};
