//! The sort position of a name among directory entries or extended attributes.

use crate::limits::HASH_COLLISIONS_MAX;
use wirefs_op::fnv1a;

/// The bits of a position that distinguish names with equal hashes.
const COLLISION_BITS: u32 = 8;

const _: () = assert!(HASH_COLLISIONS_MAX < 1 << COLLISION_BITS, "each colliding name has its own position");

/// The first position of a name. Never 0, so that a listing can start before all names.
pub(crate) fn first_position(name: &[u8]) -> u64 {
    hash(name) << COLLISION_BITS | 1
}

/// The last position of a name. Never `u64::MAX`, which is reserved for an entry after all names.
pub(crate) fn last_position(name: &[u8]) -> u64 {
    (hash(name) << COLLISION_BITS | HASH_COLLISIONS_MAX).min(u64::MAX - 1)
}

/// A 56-bit hash: FNV-1a with a finalizer. An attacker who creates colliding names gets at most
/// [`HASH_COLLISIONS_MAX`] of them into one directory.
fn hash(name: &[u8]) -> u64 {
    let folded = fnv1a(&[name]);
    let mixed = (folded ^ folded >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 29) >> COLLISION_BITS
}
