//! Tnumber: which number the next change has, so that one that is sent again is not carried out again.

#[cfg(test)]
mod tests;

use crate::wire::wire_struct;

wire_struct! {
    /// `Tnumber tag[2] number[8] answered[8]`, with the tag NOTAG; never answered.
    pub struct Tnumber {
        /// The number of the next change on this connection; those behind it count on from there.
        number: u64,
        /// The replies to all changes with lower numbers than this have come, or will not be asked for again. At most `number`.
        answered: u64,
    }
}
