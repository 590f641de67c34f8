//! Which contents blocks hold a run of a file's pieces.

use crate::codec::{Corrupt, Reader, Writer};
use crate::id::BlockId;
use crate::limits::RUN_PIECES;
use bytes::Bytes;
use std::collections::BTreeMap;

/// The blocks of [`RUN_PIECES`] pieces; those that are not there are holes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Run {
    pieces: BTreeMap<u32, BlockId>,
}

impl Run {
    /// The run that a piece belongs to, and its place there.
    pub(crate) fn of(piece: u64) -> (u64, u32) {
        (piece / RUN_PIECES, (piece % RUN_PIECES) as u32)
    }

    /// The piece at a place of a run.
    pub(crate) fn piece(run: u64, place: u32) -> u64 {
        run.saturating_mul(RUN_PIECES).saturating_add(u64::from(place))
    }

    pub(crate) fn get(&self, place: u32) -> Option<BlockId> {
        self.pieces.get(&place).copied()
    }

    /// Puts a block, or a hole, at a place; answers what was there.
    pub(crate) fn set(&mut self, place: u32, id: Option<BlockId>) -> Option<BlockId> {
        match id {
            Some(id) => self.pieces.insert(place, id),
            None => self.pieces.remove(&place),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = BlockId> {
        self.pieces.values().copied()
    }

    pub(crate) fn places(&self) -> impl Iterator<Item = u32> {
        self.pieces.keys().copied()
    }

    pub(crate) fn encode(&self) -> Bytes {
        let mut writer = Writer::new();
        let bits = self.pieces.keys().fold(0_u32, |bits, place| bits | 1 << place);
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
            return Err(reader.corrupt("a run of holes alone"));
        }
        let mut run = Run::default();
        let mut before = 0;
        for place in (0..u32::BITS).filter(|place| bits & 1 << place != 0) {
            run.pieces.insert(place, reader.id(&mut before)?);
        }
        reader.end()?;
        Ok(run)
    }
}
