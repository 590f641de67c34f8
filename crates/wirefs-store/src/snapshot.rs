//! The state of an unmounted mount: its session, and complete listings that were leased to it.
//!
//! ```text
//!  head:   "wirefs snapshot 1\n"  session[16]  root[16]  length[4] identity[length]  sum[16]
//!  chunk:  length[4]  sum[16]  (directory[16] length[4] listing[length])…     sum over length and what follows
//!  end:    0[4]  sum[16] over all sums before
//! ```
//! Integers are little-endian; an id is `fs[4] ino[8] generation[4]`. A truncated file has no end record and is
//! rejected.

use crate::limits::{CHUNK_BYTES, IDENTITY_BYTES_MAX, SNAPSHOT_BYTES_MAX};
use bytes::{Buf, Bytes};
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use wirefs_log::{Checksum, Form, HalfSha256, ReadOutcome};
use wirefs_op::FileId;
use wirefs_op::message::version::SessionId;

/// The name of the file.
pub(crate) const NAME: &str = "snapshot";
const MAGIC: &[u8] = b"wirefs snapshot 1\n";
const CHUNK: Form<HalfSha256> = Form::new(SNAPSHOT_BYTES_MAX as usize);

/// The state that a mount saves for the next one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The session id, a secret.
    pub session: SessionId,
    /// The mounted directory.
    pub root: FileId,
    /// The server's identity, if its carrier has one.
    pub identity: Vec<u8>,
    /// Directories and their encoded listings.
    pub listings: Vec<(FileId, Bytes)>,
}

/// The result of reading a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadedSnapshot {
    /// A snapshot of a cleanly unmounted mount.
    Valid(Snapshot),
    /// A damaged snapshot.
    Damaged,
    /// No snapshot.
    None,
}

/// Writes and fsyncs the snapshot. Listings beyond the limit are omitted.
pub(crate) fn write(file: File, snapshot: &Snapshot) -> io::Result<()> {
    let mut out = Sums { out: BufWriter::with_capacity(CHUNK_BYTES, &file), sums: Vec::new(), written: 0 };
    let identity = snapshot.identity.get(..IDENTITY_BYTES_MAX).unwrap_or(&snapshot.identity);
    let length = (identity.len() as u32).to_le_bytes();
    let head = [MAGIC, &snapshot.session.0, &snapshot.root.to_bytes(), &length, identity];
    out.put(&head.concat(), &HalfSha256::of(&head))?;
    let mut chunk = Vec::with_capacity(CHUNK_BYTES);
    for (dir, listing) in &snapshot.listings {
        if out.written + (chunk.len() + listing.len()) as u64 + CHUNK_BYTES as u64 > SNAPSHOT_BYTES_MAX {
            continue;
        }
        chunk.extend(dir.to_bytes());
        chunk.extend_from_slice(&(listing.len() as u32).to_le_bytes());
        chunk.extend_from_slice(listing);
        if chunk.len() >= CHUNK_BYTES {
            out.chunk(&chunk)?;
            chunk.clear();
        }
    }
    if !chunk.is_empty() {
        out.chunk(&chunk)?;
    }
    out.out.write_all(&end(&out.sums))?;
    out.out.flush()?;
    drop(out);
    file.sync_all()
}

/// Returns the end record of a snapshot with these sums.
fn end(sums: &[u8]) -> Vec<u8> {
    [&0_u32.to_le_bytes()[..], &HalfSha256::of(&[sums])].concat()
}

struct Sums<'a> {
    out: BufWriter<&'a File>,
    sums: Vec<u8>,
    written: u64,
}

impl Sums<'_> {
    fn chunk(&mut self, chunk: &[u8]) -> io::Result<()> {
        let mut head = Vec::new();
        CHUNK.put_head(&mut head, HalfSha256::default(), [chunk].into_iter());
        let sum = head.split_off(head.len() - HalfSha256::BYTES);
        self.put(&head, &sum)?;
        self.out.write_all(chunk)?;
        self.written += chunk.len() as u64;
        Ok(())
    }

    fn put(&mut self, front: &[u8], sum: &[u8]) -> io::Result<()> {
        self.out.write_all(front)?;
        self.out.write_all(sum)?;
        self.written += (front.len() + sum.len()) as u64;
        self.sums.extend_from_slice(sum);
        Ok(())
    }
}

/// Reads the snapshot; `None` if any byte is wrong.
pub(crate) fn read(file: File) -> Option<Snapshot> {
    let length = file.metadata().ok()?.len();
    if length > SNAPSHOT_BYTES_MAX {
        return None;
    }
    let mut all = Vec::with_capacity(usize::try_from(length).ok()?);
    file.take(SNAPSHOT_BYTES_MAX).read_to_end(&mut all).ok()?;
    parse(Bytes::from(all))
}

fn parse(mut bytes: Bytes) -> Option<Snapshot> {
    let whole = bytes.clone();
    if take(&mut bytes, MAGIC.len())? != MAGIC {
        return None;
    }
    let mut session = SessionId([0; 16]);
    take(&mut bytes, session.0.len())?.copy_to_slice(&mut session.0);
    let root = FileId::take_bytes(&mut bytes)?;
    let length = usize::try_from(bytes.try_get_u32_le().ok()?).ok()?;
    let identity = take(&mut bytes, length)?.to_vec();
    let head = whole.slice(..whole.len() - bytes.len());
    let mut sums = take(&mut bytes, HalfSha256::BYTES)?.to_vec();
    if sums != HalfSha256::of(&[&head]) {
        return None;
    }
    let mut listings = Vec::new();
    while let ReadOutcome::Record { sum, contents, rest } = CHUNK.read(&bytes, HalfSha256::default()) {
        sums.extend_from_slice(sum);
        take_listings(bytes.slice_ref(contents), &mut listings)?;
        bytes = bytes.slice_ref(rest);
    }
    (bytes == end(&sums)).then_some(Snapshot { session, root, identity, listings })
}

fn take_listings(mut chunk: Bytes, listings: &mut Vec<(FileId, Bytes)>) -> Option<()> {
    while !chunk.is_empty() {
        let dir = FileId::take_bytes(&mut chunk)?;
        let length = usize::try_from(chunk.try_get_u32_le().ok()?).ok()?;
        listings.push((dir, take(&mut chunk, length)?));
    }
    Some(())
}

fn take(bytes: &mut Bytes, count: usize) -> Option<Bytes> {
    (count <= bytes.len()).then(|| bytes.split_to(count))
}

#[cfg(test)]
mod tests;
