//! A run: the contents blocks of [`RUN_PIECES`] consecutive pieces of a file.

use crate::codec::{Corrupt, Reader, Writer};
use crate::id::BlockId;
use crate::limits::RUN_PIECES;
use bytes::Bytes;
use std::collections::BTreeMap;

/// Blocks by their index in the run; a missing index is a hole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Run {
    pieces: BTreeMap<u32, BlockId>,
}

impl Run {
    /// Returns the run of a piece, and its index there.
    pub(crate) fn of(piece: u64) -> (u64, u32) {
        (piece / RUN_PIECES, (piece % RUN_PIECES) as u32)
    }

    /// Returns the piece at an index of a run.
    pub(crate) fn piece(run: u64, index: u32) -> u64 {
        run.saturating_mul(RUN_PIECES).saturating_add(u64::from(index))
    }

    pub(crate) fn get(&self, index: u32) -> Option<BlockId> {
        self.pieces.get(&index).copied()
    }

    /// Sets the block at an index, or makes it a hole. Returns the previous block.
    pub(crate) fn set(&mut self, index: u32, id: Option<BlockId>) -> Option<BlockId> {
        match id {
            Some(id) => self.pieces.insert(index, id),
            None => self.pieces.remove(&index),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = BlockId> {
        self.pieces.values().copied()
    }

    pub(crate) fn indices(&self) -> impl Iterator<Item = u32> {
        self.pieces.keys().copied()
    }

    pub(crate) fn encode(&self) -> Bytes {
        let mut writer = Writer::new();
        let bits = self.pieces.keys().fold(0_u32, |bits, index| bits | 1 << index);
        writer.number(u64::from(bits));
        let mut before = 0;
        for id in self.pieces.values() {
            writer.id(*id, &mut before);
        }
        writer.finish()
    }

    pub(crate) fn decode(bytes: Bytes) -> Result<Run, Corrupt> {
        let mut reader = Reader::new(bytes);
        let bits: u32 = reader.fitting()?;
        if bits == 0 {
            return Err(reader.corrupt("a run without blocks"));
        }
        let mut run = Run::default();
        let mut before = 0;
        for index in (0..u32::BITS).filter(|index| bits & 1 << index != 0) {
            run.pieces.insert(index, reader.id(&mut before)?);
        }
        reader.end()?;
        Ok(run)
    }
}
