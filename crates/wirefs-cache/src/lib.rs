//! What a client remembers of a tree: names, attributes, listings, data; and how long it believes them.
//!
//! *Holds*: nothing is believed longer than the mode says; a reply that was asked for before a local change never
//! undoes what that change taught; every table is bounded or bounded by what the kernel holds.
//!
//! *Never*: clocks, files, sockets, threads; it does not know the messages either, only the values in them.
//!
//! *Proved by*: unit tests and properties beside each module.

pub mod directories;
pub mod long_listing;
pub mod meter;
pub mod mode;
pub mod names;
pub mod piece;
pub mod ranges;
pub mod read_ahead;
pub mod shelf;
pub mod trust;

pub use directories::{Directories, Found};
pub use long_listing::{LongListing, Page};
pub use meter::Meter;
pub use mode::{Fetch, Mode, Publish, Validate};
pub use names::{Names, Node, TreeNodeId, ROOT};
pub use piece::{PIECE_BYTES, Piece};
pub use ranges::Ranges;
pub use read_ahead::ReadAhead;
pub use shelf::{Packed, Shelf};
pub use trust::{FOREVER, Known, Trust};
