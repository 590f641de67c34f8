//! The cache of a client: names, attributes, listings and file data, and the rules for their validity.
//!
//! *Holds*: no data is used longer than the mode allows. A reply to a request sent before a local change
//! never reverts that change. Every table has a limit, or is limited by the kernel's own cache.
//!
//! *Never*: clocks, files, sockets, threads; messages, as opposed to the values in them.
//!
//! *Proved by*: unit tests and property tests beside each module.

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
