//! Into how many packets a block goes, and how many of them are enough.

use crate::limits::LANES_MAX;

/// How often a packet is on the wire from the loss of another of its block to the replacement of that, on average.
const TRIPS_AT_RISK: f64 = 1.3;

/// How a block survives the loss of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Redundancy {
    /// The same packet so many times, spread over the lap: any one of them is the block.
    Copies(u8),
    /// So many pieces, and so many more computed from them (Reed–Solomon): any `pieces` of all of them are the block.
    Code {
        /// Pieces that are enough.
        pieces: u8,
        /// Pieces more than enough.
        extra: u8,
    },
}

/// The two numbers that follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Packets that are enough.
    pub(crate) needed: usize,
    /// All packets.
    pub(crate) lanes: usize,
}

impl Redundancy {
    /// About the chance that a block is lost in one lap of a wire which loses this part of the packets, evenly. The
    /// contents are nowhere but in the packets, so no care makes it less: only more packets do.
    ///
    /// A packet that is lost is replaced when another of its block comes back after the loss was noticed; until then the
    /// others are at risk. With two copies and a hundredth lost, that costs one block in about four thousand each lap.
    ///
    /// # Source
    /// Ours; compared with simulated networks in `tests/suite/loss.rs`.
    pub fn loss_a_lap(self, wire_loss: f64) -> f64 {
        let Some(shape) = self.shape() else {
            return 1.0;
        };
        // One of the packets is lost first, and then of the others as many as the block cannot do without.
        let others = shape.lanes - shape.needed;
        let choices: f64 = (0..others).map(|nth| (shape.lanes - 1 - nth) as f64 / (nth + 1) as f64).product();
        let risk = (TRIPS_AT_RISK * wire_loss).powi(i32::try_from(others).unwrap_or(i32::MAX));
        (shape.lanes as f64 * wire_loss * choices * risk).min(1.0)
    }

    /// The numbers; none when a block would take no packet or more than [`LANES_MAX`].
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
    /// Whether each packet is the whole block.
    pub(crate) fn is_copies(self) -> bool {
        self.needed == 1
    }

    /// The bytes of a piece of a block with so many bytes.
    pub(crate) fn piece_bytes(self, block_bytes: usize) -> usize {
        block_bytes.div_ceil(self.needed.max(1))
    }

    /// The bytes of the largest block whose pieces have at most so many bytes.
    pub(crate) fn block_bytes_max(self, piece_bytes: usize) -> usize {
        piece_bytes * self.needed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_beyond_the_limits_are_refused() {
        assert_eq!(Redundancy::Copies(2).shape(), Some(Shape { needed: 1, lanes: 2 }));
        assert_eq!(Redundancy::Code { pieces: 4, extra: 2 }.shape(), Some(Shape { needed: 4, lanes: 6 }));
        assert_eq!(Redundancy::Copies(0).shape(), None);
        assert_eq!(Redundancy::Code { pieces: 0, extra: 2 }.shape(), None);
        assert_eq!(Redundancy::Code { pieces: 200, extra: 200 }.shape(), None);
    }

    #[test]
    fn chance_of_losing_a_block_is_what_counting_gives() {
        let close = |redundancy: Redundancy, expected: f64| {
            let chance = redundancy.loss_a_lap(0.01);
            assert!((chance / expected - 1.0).abs() < 1e-9, "{redundancy:?}: {chance}");
        };
        let risk = TRIPS_AT_RISK * 0.01;
        close(Redundancy::Copies(1), 0.01);
        close(Redundancy::Copies(2), 0.02 * risk);
        close(Redundancy::Copies(3), 0.03 * risk * risk);
        close(Redundancy::Code { pieces: 4, extra: 0 }, 0.04);
        close(Redundancy::Code { pieces: 4, extra: 1 }, 0.05 * 4.0 * risk);
        close(Redundancy::Code { pieces: 3, extra: 2 }, 0.05 * 6.0 * risk * risk);
        assert_eq!(Redundancy::Copies(0).loss_a_lap(0.01), 1.0);
    }

    #[test]
    fn pieces_of_a_block_hold_all_of_it() {
        for needed in 1..=10 {
            let shape = Shape { needed, lanes: needed + 2 };
            for block_bytes in 0..200 {
                assert!(shape.piece_bytes(block_bytes) * needed >= block_bytes);
            }
            let most = shape.block_bytes_max(1_416);
            assert!(shape.piece_bytes(most) <= 1_416);
        }
    }
}
