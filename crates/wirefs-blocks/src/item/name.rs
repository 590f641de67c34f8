//! Where a name stands among the names of a directory, or of an object's attributes.

use crate::limits::TWINS_MAX;

/// The bits of a place that tell apart names with one hash.
const TWIN_BITS: u32 = 8;

const _: () = assert!(TWINS_MAX < 1 << TWIN_BITS, "each twin has a place of its own");

/// The first place that a name may have; never 0, so that a listing can begin before all of them.
pub(crate) fn first_place(name: &[u8]) -> u64 {
    hash(name) << TWIN_BITS | 1
}

/// The last place that a name may have; never the very last, so that something can stand behind all names.
pub(crate) fn last_place(name: &[u8]) -> u64 {
    (hash(name) << TWIN_BITS | TWINS_MAX).min(u64::MAX - 1)
}

/// 56 bits that say as little about the name as possible: FNV-1a, mixed once more. Whoever makes names with one hash
/// on purpose gets no more than [`TWINS_MAX`] of them into one directory.
fn hash(name: &[u8]) -> u64 {
    let folded = name.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mixed = (folded ^ folded >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 29) >> TWIN_BITS
}
