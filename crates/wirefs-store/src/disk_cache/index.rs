//! The index of pieces.
//!
//! ```text
//!  "wirefs index 1\n"  segments[4] (number[4] bytes[8])…  pieces[4]
//!  (file[16] version[8] offset[8] segment[4] at[4] length[4])…  sum[16] over all before
//! ```

use bytes::{Buf, Bytes};
use std::collections::BTreeMap;
use wirefs_cache::CachePiece;
use wirefs_log::{Checksum, HalfSha256};
use wirefs_op::FileId;

/// The name of the file.
pub(super) const NAME: &str = "index";
const MAGIC: &[u8] = b"wirefs index 1\n";

/// The location of a piece's record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PieceLocation {
    /// The segment's number.
    pub(crate) segment: u32,
    /// The record's offset in it, in bytes.
    pub(crate) at: u32,
    /// Bytes of its data.
    pub(crate) length: u32,
}

/// Locations by file, version and offset.
#[derive(Debug, Default)]
pub(super) struct Index {
    locations: BTreeMap<(FileId, u64, u64), PieceLocation>,
}

impl Index {
    pub(super) fn len(&self) -> usize {
        self.locations.len()
    }

    pub(super) fn insert(&mut self, piece: &CachePiece, location: PieceLocation) {
        self.locations.insert((piece.file, piece.version, piece.offset), location);
    }

    pub(super) fn remove(&mut self, piece: &CachePiece) {
        self.locations.remove(&(piece.file, piece.version, piece.offset));
    }

    pub(super) fn find(&self, piece: &CachePiece) -> Option<PieceLocation> {
        self.locations.get(&(piece.file, piece.version, piece.offset)).copied()
    }

    /// Returns whether any piece of this version of the file is cached.
    pub(super) fn has_version(&self, piece: &CachePiece) -> bool {
        let CachePiece { file, version, .. } = *piece;
        self.locations.range((file, version, 0)..=(file, version, u64::MAX)).next().is_some()
    }

    pub(super) fn remove_segment(&mut self, number: u32) {
        self.retain(|location| location.segment != number);
    }

    pub(super) fn retain(&mut self, keep: impl Fn(&PieceLocation) -> bool) {
        self.locations.retain(|_, location| keep(location));
    }

    /// Encodes the index, with the lengths of the segments.
    pub(super) fn encode(&self, lengths: impl ExactSizeIterator<Item = (u32, u64)>) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&(lengths.len() as u32).to_le_bytes());
        for (number, length) in lengths {
            bytes.extend_from_slice(&number.to_le_bytes());
            bytes.extend_from_slice(&length.to_le_bytes());
        }
        bytes.extend_from_slice(&(self.locations.len() as u32).to_le_bytes());
        for ((file, version, offset), location) in &self.locations {
            bytes.extend(file.to_bytes());
            bytes.extend_from_slice(&version.to_le_bytes());
            bytes.extend_from_slice(&offset.to_le_bytes());
            for part in [location.segment, location.at, location.length] {
                bytes.extend_from_slice(&part.to_le_bytes());
            }
        }
        bytes.extend(HalfSha256::of(&[&bytes]));
        bytes
    }

    /// Decodes the index and the lengths of the segments; `None` if it is damaged.
    pub(super) fn parse(mut bytes: Bytes) -> Option<(Index, BTreeMap<u32, u64>)> {
        let checked = bytes.split_off(bytes.len().checked_sub(HalfSha256::BYTES)?);
        if HalfSha256::of(&[&bytes]) != *checked || !bytes.starts_with(MAGIC) {
            return None;
        }
        bytes.advance(MAGIC.len());
        let mut lengths = BTreeMap::new();
        for _ in 0..bytes.try_get_u32_le().ok()? {
            let number = bytes.try_get_u32_le().ok()?;
            lengths.insert(number, bytes.try_get_u64_le().ok()?);
        }
        let mut index = Index::default();
        for _ in 0..bytes.try_get_u32_le().ok()? {
            let file = FileId::take_bytes(&mut bytes)?;
            let (version, offset) = (bytes.try_get_u64_le().ok()?, bytes.try_get_u64_le().ok()?);
            let segment = bytes.try_get_u32_le().ok()?;
            let (at, length) = (bytes.try_get_u32_le().ok()?, bytes.try_get_u32_le().ok()?);
            index
                .insert(&CachePiece { file, version, offset, length }, PieceLocation { segment, at, length });
        }
        bytes.is_empty().then_some((index, lengths))
    }
}
