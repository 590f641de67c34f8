//! The header of a segment: the session, server and directory that its changes belong to.
//!
//! ```text
//!  0   magic[16] "wirefs journal\r\n"   version[4]   length[4] of what follows before the sum
//!  24  session[16]  root[16]  boot[8]  run[8]  segment[8]
//!  80  identity  path  source           length[4] and bytes each
//!  ..  sum[4] over all before
//! ```
//! Integers are little endian; `root` is `fs[4] ino[8] generation[4]`. Magic and version have the same place in every version.

use crate::limits::NAME_BYTES_MAX;
use bytes::Buf;
use wirefs_log::{Checksum, Crc32c};
use wirefs_op::FileId;
use wirefs_op::message::version::{BootId, SessionId};

const MAGIC: [u8; 16] = *b"wirefs journal\r\n";
/// The version that is written.
pub const VERSION: u32 = 3;
/// The oldest version that is read: it has no notes of synced files.
const VERSION_MIN: u32 = 2;
/// Magic, version and length.
const FRONT_BYTES: usize = 24;
/// The longest header, in bytes.
const HEADER_BYTES_MAX: usize = 80 + 3 * (4 + NAME_BYTES_MAX) + 4;

/// The owner of the changes in a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The session that made the changes, a secret between client and server.
    pub session: SessionId,
    /// The directory that was mounted.
    pub root: FileId,
    /// The server's boot id when the mount was made.
    pub boot: BootId,
    /// The run of the client's kernel that wrote the segment. Unsynced writes survive as long as the run lasts.
    pub run: u64,
    /// The number of the segment in the journal, counting up.
    pub segment: u64,
    /// The fingerprint of the server's key; empty if the carrier has no keys.
    pub identity: Vec<u8>,
    /// The directory below the export.
    pub path: Vec<u8>,
    /// The mounted source, as the user wrote it.
    pub source: Vec<u8>,
}

/// The reason why a file is not a readable segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderFault {
    /// The file has no data yet.
    #[error("nothing is written in it")]
    Blank,
    /// The file is something else.
    #[error("it is no journal")]
    Foreign,
    /// Another version wrote it.
    #[error("it is of version {0}, and this program reads versions {VERSION_MIN} to {VERSION}")]
    Version(u32),
    /// Its header is damaged.
    #[error("its header is damaged")]
    Damaged,
}

impl Header {
    /// Encodes the header. Cuts names that are too long: they only serve people, and to find the server.
    pub fn encode(&self) -> Vec<u8> {
        let mut fields = Vec::new();
        fields.extend_from_slice(&self.session.0);
        fields.extend(self.root.to_bytes());
        for number in [self.boot.0, self.run, self.segment] {
            fields.extend_from_slice(&number.to_le_bytes());
        }
        for name in [&self.identity, &self.path, &self.source] {
            let name = name.get(..NAME_BYTES_MAX).unwrap_or(name);
            fields.extend_from_slice(&(name.len() as u32).to_le_bytes());
            fields.extend_from_slice(name);
        }
        let mut header = Vec::with_capacity(FRONT_BYTES + fields.len() + 4);
        header.extend_from_slice(&MAGIC);
        header.extend_from_slice(&VERSION.to_le_bytes());
        header.extend_from_slice(&(fields.len() as u32).to_le_bytes());
        header.extend_from_slice(&fields);
        header.extend_from_slice(&Crc32c::of(&[&header]));
        header
    }

    /// Decodes a header. Returns also its length and its sum, with which the sums of the entries begin.
    ///
    /// # Errors
    /// Fails if the bytes are no readable header.
    pub fn decode(segment: &[u8]) -> Result<(Header, usize, u32), HeaderFault> {
        if segment.iter().take(FRONT_BYTES).all(|&byte| byte == 0) {
            return Err(HeaderFault::Blank);
        }
        let mut front = segment.get(..FRONT_BYTES).ok_or(HeaderFault::Damaged)?;
        if !front.starts_with(&MAGIC) {
            return Err(HeaderFault::Foreign);
        }
        front.advance(MAGIC.len());
        let version = front.get_u32_le();
        if !(VERSION_MIN..=VERSION).contains(&version) {
            return Err(HeaderFault::Version(version));
        }
        let length = usize::try_from(front.get_u32_le()).map_err(|_| HeaderFault::Damaged)?;
        if length > HEADER_BYTES_MAX {
            return Err(HeaderFault::Damaged);
        }
        let end = FRONT_BYTES + length;
        let summed = segment.get(..end).ok_or(HeaderFault::Damaged)?;
        let found = segment.get(end..).and_then(|rest| rest.first_chunk()).ok_or(HeaderFault::Damaged)?;
        let expected = Crc32c::of(&[summed]);
        if *found != expected {
            return Err(HeaderFault::Damaged);
        }
        let fields = summed.get(FRONT_BYTES..).unwrap_or_default();
        Ok((Header::fields(fields).ok_or(HeaderFault::Damaged)?, end + 4, u32::from_le_bytes(expected)))
    }

    fn fields(mut from: &[u8]) -> Option<Header> {
        let mut session = SessionId([0; 16]);
        from.try_copy_to_slice(&mut session.0).ok()?;
        let root = FileId::take_bytes(&mut from)?;
        let boot = BootId(from.try_get_u64_le().ok()?);
        let (run, segment) = (from.try_get_u64_le().ok()?, from.try_get_u64_le().ok()?);
        let (identity, path, source) = (name(&mut from)?, name(&mut from)?, name(&mut from)?);
        let header = Header { session, root, boot, run, segment, identity, path, source };
        from.is_empty().then_some(header)
    }
}

fn name(from: &mut &[u8]) -> Option<Vec<u8>> {
    let length = usize::try_from(from.try_get_u32_le().ok()?).ok()?;
    let (name, rest) = from.split_at_checked(length).filter(|_| length <= NAME_BYTES_MAX)?;
    *from = rest;
    Some(name.to_vec())
}

#[cfg(test)]
pub(crate) mod tests;
