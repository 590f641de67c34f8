//! What a client remembers of a tree: names, attributes, listings, data; and how long it believes them.
//!
//! *Holds*: nothing is believed longer than the mode says; a reply that was asked for before a local change never
//! undoes what that change taught; every table is bounded or bounded by what the kernel holds.
//!
//! *Never*: clocks, files, sockets, threads; it does not know the messages either, only the values in them.
//!
//! *Proved by*: unit tests and properties beside each module.

pub mod coherency;
pub mod directories;
pub mod inactive_listings;
pub mod long_listing;
pub mod mode;
pub mod name_tree;
pub mod path_estimator;
pub mod piece;
pub mod ranges;
pub mod read_ahead;

pub use coherency::{Coherency, FOREVER, Freshness};
pub use directories::{CachedLookup, DirectoryCache};
pub use inactive_listings::{InactiveListings, PackedListing};
pub use long_listing::{ListingPage, LongListing};
pub use mode::{Fetch, Mode, Publish, Validate};
pub use name_tree::{NameTree, ROOT, TreeNode, TreeNodeId};
pub use path_estimator::PathEstimator;
pub use piece::{CachePiece, PIECE_BYTES};
pub use ranges::CachedRanges;
pub use read_ahead::ReadAhead;
