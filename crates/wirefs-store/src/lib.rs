//! What a client remembers between mounts, on disk: listings in a snapshot, contents in segments.
//!
//! ```text
//!  DIRECTORY/            0700, one for each source
//!    lock                held while a mount uses the directory
//!    snapshot            listings and the session, written by a mount that ended in order, gone once it is used
//!    index               where pieces are in the segments; the same
//!    00000001.segment …  pieces of contents, appended; the oldest segment goes first
//! ```
//!
//! *Holds*: nothing is believed whose checksum is wrong; what is used for a session is off the disk before, so that an old
//! state is never taken for the last one; no file grows beyond its limit; files are 0600.
//!
//! *Never*: decisions about what may be believed, which are the client core's.
//!
//! *Drive it*: [`Place::open`], then [`Place::take_snapshot`] and [`Contents::open`]; at the end [`Contents::close`] and
//! [`Place::put_snapshot`].
//!
//! *Proved by*: unit tests beside each module: files cut anywhere, wrong in any byte.

pub mod contents;
pub mod limits;
pub mod place;
pub mod snapshot;
pub mod sum;

pub use contents::{Contents, Figures};
pub use place::{Place, PlaceError};
pub use snapshot::{Snapshot, Taken};
