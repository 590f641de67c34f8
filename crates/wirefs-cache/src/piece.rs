//! The pieces of file contents in the disk cache.

use wirefs_op::FileId;

/// The size of a piece in bytes, except for the last one of a file.
pub const PIECE_BYTES: u64 = 128 * 1024;

/// One piece of one version of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CachePiece {
    /// The file.
    pub file: FileId,
    /// The version of the file; contents of other versions are not valid.
    pub version: u64,
    /// The offset in bytes, a multiple of [`PIECE_BYTES`].
    pub offset: u64,
    /// The length in bytes: [`PIECE_BYTES`], or less at the end of the file.
    pub length: u32,
}

impl CachePiece {
    /// Returns the piece with the byte at `offset`, in a file of `size` bytes; `None` past the end.
    pub fn at(file: FileId, version: u64, size: u64, offset: u64) -> Option<CachePiece> {
        let start = offset - offset % PIECE_BYTES;
        let length = u32::try_from(size.checked_sub(start)?.min(PIECE_BYTES)).ok()?;
        (offset < size).then_some(CachePiece { file, version, offset: start, length })
    }

    /// Returns the end of the piece in bytes.
    pub fn end(&self) -> u64 {
        self.offset + u64::from(self.length)
    }
}
