//! 9P2000 and 9P2000.L: the messages as values with their encoding, and the server's side of a conversation.
//!
//! *Holds*: a decoded message is within every limit of [`limits`]; decoding an encoded value returns the same value;
//! data is shared with the buffer that it came in. Of a conversation: each request is answered exactly once, or
//! canceled by a Tversion; an Rflush follows the reply to the request that it cancels; each node that a fid stands for
//! is given back when the last fid of it is gone.
//!
//! *Never*: clocks, files, sockets, threads; a panic caused by a peer's bytes; the codec knows nothing of the server.
//!
//! *Drive it*: [`NineConversation::admit`] takes a message without its size word. Each [`NineJob`] is executed by any
//! thread, several at a time, and the frames that [`NineConversation::finish`] returns are sent.
//! ```
//! use wirefs_ninep::{Tmessage, message::Fid};
//! use wirefs_op::Tag;
//!
//! let request = Tmessage::Clunk { fid: Fid(7) };
//! let frame = request.encode(Tag(1));
//! assert_eq!(frame.head, [11, 0, 0, 0, 120, 1, 0, 7, 0, 0, 0]);
//! assert_eq!(Tmessage::decode(frame.to_body())?, (Tag(1), request));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! *Proved by*: golden bytes beside [`message`]; round trips, hostile bytes and fuzz targets in `tests/suite`; the
//! suite of `wirefs-gate`, where clients of other projects speak with it.

pub mod attributes;
pub mod limits;
pub mod message;
pub mod plan_stat;
pub mod qid;
mod server;
pub mod text;

pub use message::{Rmessage, Tmessage};
pub use server::{Admitted, Files, NineConversation, NineDone, NineFault, NineJob, NineUsers};
