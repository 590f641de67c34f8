//! Memory in huge pages, filled from the front and shared without copies.
//!
//! Buffered data, such as read-ahead or recently written data, needs fresh memory. The kernel provides it in pages of 4
//! KiB, each with a page fault that costs several times as much as filling it. A [`Slab`] is one huge page of 2 MiB if
//! the system has them, with one fault; otherwise it is ordinary memory.
//!
//! *Holds*: shared bytes never change while a share exists. A slab is freed with its last share. At most
//! [`FREE_SLABS_MAX`] free slabs are kept for reuse.
//!
//! *Never*: interpretation of the bytes.
//!
//! *Drive it*:
//! ```
//! use wirefs_slab::Slab;
//!
//! let mut slab = Slab::new();
//! slab.room()[..5].copy_from_slice(b"hello");
//! slab.filled(5);
//! let word = slab.share(5);
//! assert_eq!(word, "hello");
//! ```
//!
//! *Proved by*: the tests beside the module.

mod slab;
mod sys;

pub use slab::{FREE_SLABS_MAX, SLAB_BYTES, Slab, release_free};
