//! Pieces of blocks that are collected as they come by, to put the block together: for a reader, or to repair it.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::block::BlockId;
use crate::limits::GATHERED_BYTES_MAX;
use crate::packet::Piece;
use crate::pieces;
use crate::redundancy::Shape;

/// The blocks whose pieces are being collected.
#[derive(Debug)]
pub(crate) struct Gather {
    shape: Shape,
    blocks: BTreeMap<BlockId, Parts>,
    bytes: usize,
}

#[derive(Debug)]
struct Parts {
    pieces: Vec<Option<Bytes>>,
    here: usize,
}

impl Gather {
    /// Makes an empty collection.
    pub(crate) fn new(shape: Shape) -> Gather {
        Gather { shape, blocks: BTreeMap::new(), bytes: 0 }
    }

    /// Adds a piece that came by, and gives the whole block once there are enough. A block that finds no room begins
    /// later, with another piece.
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
            if self.bytes + reserved > GATHERED_BYTES_MAX {
                return None;
            }
            self.bytes += reserved;
        }
        let none = || Parts { pieces: vec![None; self.shape.lanes], here: 0 };
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
        pieces::join(self.shape, block_bytes, &parts.pieces)
    }

    /// Lets go of what was collected of a block.
    pub(crate) fn forget(&mut self, id: BlockId) {
        if let Some(parts) = self.blocks.remove(&id) {
            let piece_bytes = parts.pieces.iter().flatten().map(Bytes::len).next().unwrap_or(0);
            self.bytes -= piece_bytes * self.shape.needed;
        }
    }

    /// The memory that is set aside, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests;
