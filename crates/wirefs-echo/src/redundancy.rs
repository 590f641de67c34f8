//! The number of packets per block, and how many of them suffice.

use crate::limits::LANES_MAX;

/// Average number of transmissions of a packet between the loss of another one of its block and the
/// replacement of that.
const RTTS_AT_RISK: f64 = 1.3;

/// The redundancy of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Redundancy {
    /// This many equal packets, spread over the cycle. Each is the whole block.
    Copies(u8),
    /// Reed–Solomon code: any `pieces` of all packets restore the block.
    Code {
        /// Packets that suffice.
        pieces: u8,
        /// Additional packets.
        extra: u8,
    },
}

/// The numbers derived from a redundancy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Packets that suffice.
    pub(crate) needed: usize,
    /// All packets.
    pub(crate) lanes: usize,
}

impl Redundancy {
    /// Returns the approximate probability that a block is lost in one cycle, for a uniform packet loss. The
    /// contents are only in the packets, so only more packets reduce it.
    ///
    /// A lost packet is replaced when another one of its block comes back after the loss was detected. Until
    /// then the others are at risk. With two copies and 1 % loss, about one block in four thousand is lost
    /// per cycle.
    ///
    /// # Source
    /// Ours; compared with simulated networks in `tests/suite/loss.rs`.
    pub fn loss_per_cycle(self, wire_loss: f64) -> f64 {
        let Some(shape) = self.shape() else {
            return 1.0;
        };
        // One packet is lost first, then as many others as the block cannot do without.
        let others = shape.lanes - shape.needed;
        let choices: f64 = (0..others).map(|nth| (shape.lanes - 1 - nth) as f64 / (nth + 1) as f64).product();
        let risk = (RTTS_AT_RISK * wire_loss).powi(i32::try_from(others).unwrap_or(i32::MAX));
        (shape.lanes as f64 * wire_loss * choices * risk).min(1.0)
    }

    /// Returns the shape; `None` if a block would take no packet or more than [`LANES_MAX`].
    pub(crate) fn shape(self) -> Option<Shape> {
        let (needed, lanes) = match self {
            Redundancy::Copies(copies) => (1, usize::from(copies)),
            Redundancy::Code { pieces, extra } => {
                (usize::from(pieces), usize::from(pieces) + usize::from(extra))
            }
        };
        (needed >= 1 && (1..=LANES_MAX).contains(&lanes)).then_some(Shape { needed, lanes })
    }
}

impl Shape {
    /// Returns whether each packet is the whole block.
    pub(crate) fn is_copies(self) -> bool {
        self.needed == 1
    }

    /// Returns the size of a piece in bytes for a block of `block_bytes`.
    pub(crate) fn piece_bytes(self, block_bytes: usize) -> usize {
        block_bytes.div_ceil(self.needed.max(1))
    }

    /// Returns the size of the largest block in bytes for pieces of at most `piece_bytes`.
    pub(crate) fn block_bytes_max(self, piece_bytes: usize) -> usize {
        piece_bytes * self.needed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_beyond_the_limits_are_rejected() {
        assert_eq!(Redundancy::Copies(2).shape(), Some(Shape { needed: 1, lanes: 2 }));
        assert_eq!(Redundancy::Code { pieces: 4, extra: 2 }.shape(), Some(Shape { needed: 4, lanes: 6 }));
        assert_eq!(Redundancy::Copies(0).shape(), None);
        assert_eq!(Redundancy::Code { pieces: 0, extra: 2 }.shape(), None);
        assert_eq!(Redundancy::Code { pieces: 200, extra: 200 }.shape(), None);
    }

    #[test]
    fn loss_probability_matches_the_formula() {
        let close = |redundancy: Redundancy, expected: f64| {
            let chance = redundancy.loss_per_cycle(0.01);
            assert!((chance / expected - 1.0).abs() < 1e-9, "{redundancy:?}: {chance}");
        };
        let risk = RTTS_AT_RISK * 0.01;
        close(Redundancy::Copies(1), 0.01);
        close(Redundancy::Copies(2), 0.02 * risk);
        close(Redundancy::Copies(3), 0.03 * risk * risk);
        close(Redundancy::Code { pieces: 4, extra: 0 }, 0.04);
        close(Redundancy::Code { pieces: 4, extra: 1 }, 0.05 * 4.0 * risk);
        close(Redundancy::Code { pieces: 3, extra: 2 }, 0.05 * 6.0 * risk * risk);
        assert_eq!(Redundancy::Copies(0).loss_per_cycle(0.01), 1.0);
    }

    #[test]
    fn pieces_of_a_block_cover_it() {
        for needed in 1..=10 {
            let shape = Shape { needed, lanes: needed + 2 };
            for block_bytes in 0..200 {
                assert!(shape.piece_bytes(block_bytes) * needed >= block_bytes);
            }
            let max = shape.block_bytes_max(1_416);
            assert!(shape.piece_bytes(max) <= 1_416);
        }
    }
}
