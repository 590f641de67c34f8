//! Memory in large pages that is filled from its front and shared without copies.
//!
//! Data that is kept, such as what a mount reads ahead or has just written, needs fresh memory, and the kernel hands that
//! out in pages of 4 KiB, each with a fault that costs several times as much as filling it. A [`Slab`] is one page of
//! 2 MiB where the system has such pages, with one fault; where it has none, it is memory like any other.
//!
//! *Holds*: what is shared never changes while anybody holds it; a slab goes back when the last share of it is dropped;
//! at most [`FREE_SLABS_MAX`] slabs are kept for the next who need one.
//!
//! *Never*: knowledge of what the bytes mean.
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

pub use slab::{FREE_SLABS_MAX, SLAB_BYTES, Slab, unused_bytes};
