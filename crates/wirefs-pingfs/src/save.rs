//! A tree in a file: the format of `--save` and `--load`.
//!
//! ```text
//! | "WFSECHO1" 8 | payload 4 | root 8 | { id 8 | length 4 | bytes … } for each block | 0 8 | SHA-256 of all before 32 |
//! ```
//!
//! Numbers are big-endian. *Payload* is the block size of the tree in bytes. The blocks are in the order of
//! their ids. The contents are not encrypted. A block that was lost before is missing in the file, and is
//! lost after a load too; the rest is intact.
//!
//! The file is written under another name, synced, and renamed. So a file with the final name is complete.

#[cfg(test)]
mod tests;

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use ring::digest::{Context, SHA256, SHA256_OUTPUT_LEN};
use wirefs_blocks::id::BlockId;
use wirefs_blocks::limits::PAYLOAD_BYTES_MAX;
use wirefs_blocks::store::{BlockStore, StoreFault, Wanted};

use crate::limits::SAVE_BATCH;

const MAGIC: &[u8; 8] = b"WFSECHO1";
/// Size of the header in bytes.
const HEAD_BYTES: usize = 20;

/// The reason why a tree cannot be saved or loaded.
#[derive(Debug, thiserror::Error)]
pub enum SaveError {
    /// The file cannot be written or read.
    #[error("cannot {action} {path}: {source}", path = .path.display())]
    File {
        /// "write" or "read".
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file is no tree, or incomplete.
    #[error("{path} is not a file written by --save, or is damaged: {what}", path = .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The defect.
        what: &'static str,
    },
    /// The root block is lost, and the tree with it.
    #[error("the root block {0} is lost, so the tree cannot be saved")]
    Lost(BlockId),
    /// The store has no tree.
    #[error("there is no tree to save")]
    NoRoot,
    /// The store rejects the blocks.
    #[error("the hosts do not accept the tree: {0}")]
    Store(#[from] StoreFault),
}

/// Summary of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Saved {
    /// The block size of the tree in bytes.
    pub payload_bytes: usize,
    /// The root of the tree.
    pub root: BlockId,
    /// Number of blocks in the file.
    pub blocks: u64,
    /// Number of blocks that were lost when the file was written; 0 for a file that was read.
    pub lost: u64,
}

/// A file with a running digest of its contents.
struct Digested<T> {
    inner: T,
    digest: Context,
}

impl<T> Digested<T> {
    fn new(inner: T) -> Digested<T> {
        Digested { inner, digest: Context::new(&SHA256) }
    }
}

impl<T: Write> Digested<T> {
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.digest.update(bytes);
        self.inner.write_all(bytes)
    }
}

impl<T: Read> Digested<T> {
    fn take<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    fn fill(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        self.inner.read_exact(bytes)?;
        self.digest.update(bytes);
        Ok(())
    }
}

/// Writes the tree of a store to a file. The tree must not change meanwhile.
///
/// # Errors
/// [`SaveError`]; an existing file of this name is then unchanged.
pub fn write(store: &dyn BlockStore, path: &Path) -> Result<Saved, SaveError> {
    let root = store.root()?.ok_or(SaveError::NoRoot)?;
    let ids = store.registered(None, usize::MAX);
    let failed = |source| SaveError::File { action: "write", path: path.to_path_buf(), source };
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".part");
    let part = path.with_file_name(name);
    let outcome = write_part(store, &part, root, &ids, failed).and_then(|saved| {
        std::fs::rename(&part, path).map_err(failed)?;
        sync_directory(path).map_err(failed)?;
        Ok(saved)
    });
    if outcome.is_err() {
        // An incomplete file is useless.
        let _gone = std::fs::remove_file(&part);
    }
    outcome
}

fn sync_directory(path: &Path) -> io::Result<()> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
}

fn write_part(
    store: &dyn BlockStore,
    part: &Path,
    root: BlockId,
    ids: &[BlockId],
    failed: impl Fn(io::Error) -> SaveError + Copy,
) -> Result<Saved, SaveError> {
    // A left-over file may have other permissions, and a symbolic link leads elsewhere.
    match std::fs::remove_file(part) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
        Ok(()) | Err(_) => {}
    }
    // For the owner alone: the file is not encrypted.
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(part);
    let mut out = Digested::new(BufWriter::new(file.map_err(failed)?));
    let mut saved = Saved { payload_bytes: store.payload_bytes(), root, blocks: 0, lost: 0 };
    out.put(MAGIC).map_err(failed)?;
    out.put(&(saved.payload_bytes as u32).to_be_bytes()).map_err(failed)?;
    out.put(&root.bits().to_be_bytes()).map_err(failed)?;
    for batch in ids.chunks(SAVE_BATCH) {
        let blocks = fetch(store, batch);
        saved.lost += (batch.len() - blocks.len()) as u64;
        saved.blocks += blocks.len() as u64;
        for (id, bytes) in blocks {
            out.put(&id.bits().to_be_bytes()).map_err(failed)?;
            out.put(&(bytes.len() as u32).to_be_bytes()).map_err(failed)?;
            out.put(&bytes).map_err(failed)?;
        }
        if batch.contains(&root) && fetch(store, &[root]).is_empty() {
            return Err(SaveError::Lost(root));
        }
    }
    if !ids.contains(&root) {
        return Err(SaveError::Lost(root));
    }
    out.put(&0u64.to_be_bytes()).map_err(failed)?;
    let digest = out.digest.finish();
    out.inner.write_all(digest.as_ref()).map_err(failed)?;
    let file = out.inner.into_inner().map_err(|error| failed(error.into_error()))?;
    file.sync_all().map_err(failed)?;
    Ok(saved)
}

/// Returns the existing blocks in the order of their ids.
fn fetch(store: &dyn BlockStore, ids: &[BlockId]) -> Vec<(BlockId, Bytes)> {
    let mut blocks = Vec::with_capacity(ids.len());
    store.retrieve(&Wanted::of(ids.iter().copied()), &mut |id, block| {
        blocks.extend(block.map(|bytes| (id, bytes)))
    });
    blocks.sort_unstable_by_key(|(id, _)| *id);
    blocks
}

/// A file that was checked completely.
#[derive(Debug)]
pub struct SavedFile {
    path: PathBuf,
    head: Saved,
}

impl SavedFile {
    /// Opens a file and checks all of it.
    ///
    /// # Errors
    /// [`SaveError::File`], [`SaveError::Damaged`].
    pub fn open(path: &Path) -> Result<SavedFile, SaveError> {
        let (mut reader, mut head) = begin(path)?;
        while next(&mut reader, &head).map_err(|error| blame(path, error))?.is_some() {
            head.blocks += 1;
        }
        if !finish(reader).map_err(|error| blame(path, error))? {
            return Err(damaged(path, "its digest does not match"));
        }
        Ok(SavedFile { path: path.to_path_buf(), head })
    }

    /// Returns the summary of the file.
    pub fn head(&self) -> Saved {
        self.head
    }

    /// Registers the blocks in an empty store and sets its root.
    ///
    /// # Errors
    /// [`SaveError`]; the store is then unusable.
    pub fn load(&self, store: &dyn BlockStore) -> Result<(), SaveError> {
        let (mut reader, head) = begin(&self.path)?;
        loop {
            let blocks = (0..SAVE_BATCH).map_while(|_| next(&mut reader, &head).transpose());
            let blocks = blocks.collect::<io::Result<Vec<_>>>().map_err(|error| blame(&self.path, error))?;
            store.register(&blocks)?;
            if blocks.len() < SAVE_BATCH {
                break;
            }
        }
        if !finish(reader).map_err(|error| blame(&self.path, error))? {
            return Err(damaged(&self.path, "it changed while it was read"));
        }
        Ok(store.switch_root(head.root)?)
    }
}

type Reader = Digested<BufReader<File>>;

fn begin(path: &Path) -> Result<(Reader, Saved), SaveError> {
    let failed = |source| SaveError::File { action: "read", path: path.to_path_buf(), source };
    let mut reader = Digested::new(BufReader::new(File::open(path).map_err(failed)?));
    let head = reader.take::<HEAD_BYTES>().map_err(|error| blame(path, error))?;
    let (magic, rest) = head.split_at(MAGIC.len());
    let (payload, rest) = rest.split_at(4);
    let number = |bytes: &[u8]| bytes.iter().fold(0u64, |sum, &byte| (sum << 8) | u64::from(byte));
    let root = BlockId::from_bits(number(rest));
    match (magic == MAGIC, root, number(payload) as usize) {
        (false, _, _) => Err(damaged(path, "it has no wirefs header")),
        (true, Some(root), payload_bytes @ 1..=PAYLOAD_BYTES_MAX) => {
            Ok((reader, Saved { payload_bytes, root, blocks: 0, lost: 0 }))
        }
        (true, _, _) => Err(damaged(path, "its header is invalid")),
    }
}

/// Reads the next block; `None` after the last.
fn next(reader: &mut Reader, head: &Saved) -> io::Result<Option<(BlockId, Bytes)>> {
    let nonsense = || io::Error::from(io::ErrorKind::InvalidData);
    let bits = u64::from_be_bytes(reader.take()?);
    if bits == 0 {
        return Ok(None);
    }
    let id = BlockId::from_bits(bits).ok_or_else(nonsense)?;
    let length = u32::from_be_bytes(reader.take()?) as usize;
    if length > head.payload_bytes {
        return Err(nonsense());
    }
    let mut bytes = vec![0; length];
    reader.fill(&mut bytes)?;
    Ok(Some((id, bytes.into())))
}

/// Reads the digest. Returns whether it matches and the file ends there.
fn finish(mut reader: Reader) -> io::Result<bool> {
    let digest = reader.digest.finish();
    let mut written = [0; SHA256_OUTPUT_LEN];
    reader.inner.read_exact(&mut written)?;
    let is_end = reader.inner.read(&mut [0])? == 0;
    Ok(is_end && digest.as_ref() == written)
}

fn damaged(path: &Path, what: &'static str) -> SaveError {
    SaveError::Damaged { path: path.to_path_buf(), what }
}

/// Distinguishes a damaged file from a read error.
fn blame(path: &Path, source: io::Error) -> SaveError {
    match source.kind() {
        io::ErrorKind::UnexpectedEof => damaged(path, "it ends early"),
        io::ErrorKind::InvalidData => damaged(path, "a block is invalid"),
        _ => SaveError::File { action: "read", path: path.to_path_buf(), source },
    }
}
