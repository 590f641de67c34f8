//! The pieces in which contents are kept on disk.

use wirefs_op::FileId;

/// Bytes of a piece, but for a file's last one.
pub const PIECE_BYTES: u64 = 128 * 1024;

/// One piece of one version of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CachePiece {
    /// The file.
    pub file: FileId,
    /// Its version: contents of another are of no use.
    pub version: u64,
    /// Where the piece begins, a multiple of [`PIECE_BYTES`].
    pub offset: u64,
    /// Its bytes: [`PIECE_BYTES`], or up to the end of the file.
    pub length: u32,
}

impl CachePiece {
    /// The piece of a file of `size` bytes that has the byte at `offset`; none past the end.
    pub fn at(file: FileId, version: u64, size: u64, offset: u64) -> Option<CachePiece> {
        let start = offset - offset % PIECE_BYTES;
        let length = u32::try_from(size.checked_sub(start)?.min(PIECE_BYTES)).ok()?;
        (offset < size).then_some(CachePiece { file, version, offset: start, length })
    }

    /// Where it ends.
    pub fn end(&self) -> u64 {
        self.offset + u64::from(self.length)
    }
}
