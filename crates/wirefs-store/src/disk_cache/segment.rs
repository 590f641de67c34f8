//! One segment: consecutive records.
//!
//! ```text
//!  0  magic[4]  length[4]  file[16]  version[8]  offset[8]     40
//!  40 checksum of the data[16]
//!  56 checksum of all above[8]                                 64
//!  64 data[length]
//! ```

use super::PieceLocation;
use bytes::{Buf, Bytes};
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wirefs_cache::{CachePiece, PIECE_BYTES};
use wirefs_log::{Checksum, HalfSha256};
use wirefs_op::FileId;

const MAGIC: [u8; 4] = *b"wfp1";
/// Bytes of a record's header.
const HEAD_BYTES: usize = 64;
const FIELDS_BYTES: usize = 40;
const HEAD_SUM_BYTES: usize = 8;
const EXTENSION: &str = "segment";

const _: () =
    assert!(FIELDS_BYTES + HalfSha256::BYTES + HEAD_SUM_BYTES == HEAD_BYTES, "the fields fill the head");

/// A segment, and its valid length.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) file: Arc<File>,
    pub(super) bytes: u64,
}

impl Segment {
    /// Returns whether a location is within it.
    pub(super) fn holds(&self, location: &PieceLocation) -> bool {
        record_end(location) <= self.bytes
    }
}

/// Returns the end of the record at a location.
pub(super) fn record_end(location: &PieceLocation) -> u64 {
    u64::from(location.at) + HEAD_BYTES as u64 + u64::from(location.length)
}

/// Returns the file of a segment.
pub(super) fn path(dir: &Path, number: u32) -> PathBuf {
    dir.join(format!("{number:08x}.{EXTENSION}"))
}

/// Returns all segments in a directory.
pub(super) fn all_in(dir: &Path) -> io::Result<Vec<(u32, PathBuf)>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        let is_segment = path.extension().is_some_and(|extension| extension == EXTENSION);
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        if let Some(number) = stem.filter(|_| is_segment).and_then(|stem| u32::from_str_radix(stem, 16).ok())
        {
            found.push((number, path));
        }
    }
    Ok(found)
}

fn head(piece: &CachePiece, data: &[u8]) -> Vec<u8> {
    let mut head = Vec::with_capacity(HEAD_BYTES);
    head.extend_from_slice(&MAGIC);
    head.extend_from_slice(&piece.length.to_le_bytes());
    head.extend(piece.file.to_bytes());
    head.extend_from_slice(&piece.version.to_le_bytes());
    head.extend_from_slice(&piece.offset.to_le_bytes());
    head.extend(HalfSha256::of(&[data]));
    let sum = HalfSha256::of(&[&head]);
    head.extend(sum.into_iter().take(HEAD_SUM_BYTES));
    head
}

/// Returns the piece that a header describes; `None` if it is damaged.
fn piece(head: &[u8; HEAD_BYTES]) -> Option<CachePiece> {
    let (checked, head_sum) = head.split_at_checked(FIELDS_BYTES + HalfSha256::BYTES)?;
    if !HalfSha256::of(&[checked]).starts_with(head_sum) || !checked.starts_with(&MAGIC) {
        return None;
    }
    let mut fields = checked.get(MAGIC.len()..)?;
    let length = fields.try_get_u32_le().ok()?;
    let file = FileId::take_bytes(&mut fields)?;
    let (version, offset) = (fields.try_get_u64_le().ok()?, fields.try_get_u64_le().ok()?);
    (u64::from(length) <= PIECE_BYTES).then_some(CachePiece { file, version, offset, length })
}

/// Writes a record.
pub(super) fn write(file: &File, at: u64, piece: &CachePiece, data: &[u8]) -> io::Result<()> {
    if data.len() != piece.length as usize {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    file.write_all_at(&head(piece, data), at)?;
    file.write_all_at(data, at + HEAD_BYTES as u64)
}

/// Reads the record of a piece; `None` if it is damaged or of another piece.
pub(super) fn read(file: &File, at: u64, wanted: &CachePiece) -> Option<Bytes> {
    let mut record = vec![0; HEAD_BYTES + wanted.length as usize];
    file.read_exact_at(&mut record, at).ok()?;
    let mut record = Bytes::from(record);
    let head = record.split_to(HEAD_BYTES);
    let found = piece(head.first_chunk()?)?;
    let data_sum = head.get(FIELDS_BYTES..FIELDS_BYTES + HalfSha256::BYTES)?;
    (found == *wanted && data_sum == HalfSha256::of(&[&record])).then_some(record)
}

/// Scans a segment: calls `report` with each record and its offset. Returns the end of the last valid one.
pub(super) fn scan(file: &File, mut report: impl FnMut(&CachePiece, u32)) -> io::Result<u64> {
    let length = file.metadata()?.len();
    let mut reader = BufReader::with_capacity(256 * 1024, file);
    let mut at = 0_u64;
    let mut head = [0; HEAD_BYTES];
    loop {
        match reader.read_exact(&mut head) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(at),
            Err(error) => return Err(error),
        }
        let (Some(piece), Ok(start)) = (piece(&head), u32::try_from(at)) else { return Ok(at) };
        let end = at + HEAD_BYTES as u64 + u64::from(piece.length);
        if end > length {
            return Ok(at);
        }
        report(&piece, start);
        reader.seek_relative(i64::from(piece.length))?;
        at = end;
    }
}
