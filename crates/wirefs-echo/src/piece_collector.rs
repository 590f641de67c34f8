//! Collects pieces as they pass, to restore a block for a reader or for repair.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::block::EchoBlockId;
use crate::limits::COLLECTED_BYTES_MAX;
use crate::packet::Piece;
use crate::pieces;
use crate::redundancy::Shape;

/// The blocks whose pieces are being collected.
#[derive(Debug)]
pub(crate) struct PieceCollector {
    shape: Shape,
    blocks: BTreeMap<EchoBlockId, PartialBlock>,
    bytes: usize,
}

#[derive(Debug)]
struct PartialBlock {
    pieces: Vec<Option<Bytes>>,
    here: usize,
}

impl PieceCollector {
    /// Creates an empty collector.
    pub(crate) fn new(shape: Shape) -> PieceCollector {
        PieceCollector { shape, blocks: BTreeMap::new(), bytes: 0 }
    }

    /// Adds a piece and returns the block once there are enough pieces. A block without room is started by a
    /// later piece.
    pub(crate) fn add(&mut self, piece: Piece, body: &[u8]) -> Option<Bytes> {
        if self.shape.is_copies() {
            return Some(Bytes::copy_from_slice(body));
        }
        let block_bytes = piece.block_bytes as usize;
        if body.len() != self.shape.piece_bytes(block_bytes) {
            return None;
        }
        let reserved = body.len() * self.shape.needed;
        if !self.blocks.contains_key(&piece.id) {
            if self.bytes + reserved > COLLECTED_BYTES_MAX {
                return None;
            }
            self.bytes += reserved;
        }
        let none = || PartialBlock { pieces: vec![None; self.shape.lanes], here: 0 };
        let parts = self.blocks.entry(piece.id).or_insert_with(none);
        let slot = parts.pieces.get_mut(usize::from(piece.lane.0))?;
        if slot.is_none() {
            *slot = Some(Bytes::copy_from_slice(body));
            parts.here += 1;
        }
        if parts.here < self.shape.needed {
            return None;
        }
        let parts = self.blocks.remove(&piece.id)?;
        self.bytes -= reserved;
        pieces::reassemble(self.shape, block_bytes, &parts.pieces)
    }

    /// Discards the pieces of a block.
    pub(crate) fn discard(&mut self, id: EchoBlockId) {
        if let Some(parts) = self.blocks.remove(&id) {
            let piece_bytes = parts.pieces.iter().flatten().map(Bytes::len).next().unwrap_or(0);
            self.bytes -= piece_bytes * self.shape.needed;
        }
    }

    /// Returns the reserved memory in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests;
