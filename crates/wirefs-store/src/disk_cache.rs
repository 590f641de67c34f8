//! File contents on disk: pieces, appended to segments, read at any offset, evicted by segment.
//!
//! A piece is found by file, version and offset, and used if its checksum is right. There is no fsync; checksums detect
//! torn writes. A version of a file never has other contents, so outdated pieces are just not requested any more, and
//! go with their segment.

mod index;
mod segment;

use crate::limits::{DISK_CACHE_BYTES_MIN, PIECES_MAX, SEGMENT_BYTES_MAX};
use crate::source_directory::remove;
use index::Index;
pub use index::PieceLocation;
use segment::Segment;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wirefs_cache::CachePiece;

/// Contents and statistics of the cache since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskCacheStats {
    /// Bytes on disk.
    pub bytes: u64,
    /// The limit of them.
    pub bytes_max: u64,
    /// Pieces in the index.
    pub pieces: u64,
    /// Valid pieces read.
    pub hits: u64,
    /// Lookups without a piece.
    pub misses: u64,
    /// Damaged pieces and files, evicted.
    pub damaged: u64,
}

/// The result of a lookup.
#[derive(Debug)]
pub enum CacheLookup {
    /// The piece can be read, without the cache's lock.
    Hit(CachedPiece),
    /// The piece is missing, but another one of this version of the file is cached.
    Miss,
    /// No piece of this version of the file is cached.
    VersionMiss,
}

/// The location of a cached piece.
#[derive(Clone, Debug)]
pub struct CachedPiece {
    file: Arc<File>,
    location: PieceLocation,
}

/// Space for a piece at the end of a segment.
#[derive(Debug)]
pub struct ReservedPiece {
    file: Arc<File>,
    location: PieceLocation,
}

/// A cache of file contents on disk, in segments.
///
/// INVARIANT: each location in the index is within its segment, and the segment exists.
#[derive(Debug)]
pub struct DiskCache {
    dir: PathBuf,
    bytes_max: u64,
    segments: BTreeMap<u32, Segment>,
    index: Index,
    stats: DiskCacheStats,
}

impl DiskCache {
    /// Opens the cache in a directory that this mount has locked. Without a valid index all segments are scanned.
    ///
    /// # Errors
    /// Fails if the directory cannot be read.
    pub fn open(dir: &Path, bytes_max: u64) -> io::Result<DiskCache> {
        let mut disk_cache = DiskCache {
            dir: dir.to_path_buf(),
            bytes_max: bytes_max.max(DISK_CACHE_BYTES_MIN),
            segments: BTreeMap::new(),
            index: Index::default(),
            stats: DiskCacheStats::default(),
        };
        let lengths = disk_cache.take_index();
        for (number, path) in segment::all_in(dir)? {
            let known = lengths.as_ref().and_then(|lengths| lengths.get(&number)).copied();
            if let Err(error) = disk_cache.open_segment(number, &path, known) {
                // An unreadable segment is removed.
                disk_cache.stats.damaged += 1;
                disk_cache.index.remove_segment(number);
                remove(&path).map_err(|_| error)?;
            }
        }
        let segments = &disk_cache.segments;
        disk_cache
            .index
            .retain(|location| segments.get(&location.segment).is_some_and(|known| known.holds(location)));
        disk_cache.evict_segments();
        Ok(disk_cache)
    }

    /// Removes everything, when the server is another one.
    ///
    /// # Errors
    /// Fails if a file cannot be removed; its pieces are not found any more nonetheless.
    pub fn clear(&mut self) -> io::Result<()> {
        self.index = Index::default();
        let numbers = std::mem::take(&mut self.segments).into_keys();
        numbers
            .map(|number| remove(&segment::path(&self.dir, number)))
            .collect::<Vec<_>>()
            .into_iter()
            .collect()
    }

    /// Reads the index and removes it; returns the lengths of the segments.
    fn take_index(&mut self) -> Option<BTreeMap<u32, u64>> {
        let path = self.dir.join(index::NAME);
        let bytes = std::fs::read(&path).ok()?;
        // If the file remains, the checksums detect outdated entries.
        let _ = remove(&path);
        match Index::parse(bytes.into()) {
            Some((index, lengths)) => {
                self.index = index;
                Some(lengths)
            }
            None => {
                self.stats.damaged += 1;
                None
            }
        }
    }

    fn open_segment(&mut self, number: u32, path: &Path, known: Option<u64>) -> io::Result<()> {
        let file = File::options().read(true).write(true).open(path)?;
        let file_length = file.metadata()?.len();
        let length = match known {
            Some(length) if length <= file_length => length,
            Some(_) | None => {
                self.index.remove_segment(number);
                segment::scan(&file, |piece, at| {
                    self.index.insert(piece, PieceLocation { segment: number, at, length: piece.length });
                })?
            }
        };
        // The rest was torn.
        if length < file_length {
            file.set_len(length)?;
        }
        self.segments.insert(number, Segment { file: Arc::new(file), bytes: length });
        Ok(())
    }

    /// Looks up a piece.
    pub fn find(&mut self, piece: &CachePiece) -> CacheLookup {
        let location = self.index.find(piece).filter(|location| location.length == piece.length);
        let found = location.and_then(|location| {
            let file = Arc::clone(&self.segments.get(&location.segment)?.file);
            Some(CachedPiece { file, location })
        });
        match found {
            Some(piece_location) => CacheLookup::Hit(piece_location),
            None if self.index.has_version(piece) => {
                self.stats.misses += 1;
                CacheLookup::Miss
            }
            None => {
                self.stats.misses += 1;
                CacheLookup::VersionMiss
            }
        }
    }

    /// Counts a piece that was read and valid.
    pub fn count_hit(&mut self) {
        self.stats.hits += 1;
    }

    /// Evicts a damaged piece.
    pub fn evict_damaged(&mut self, piece: &CachePiece) {
        self.stats.damaged += 1;
        self.index.remove(piece);
    }

    /// Reserves space for a piece; `None` if it is cached already. The caller writes it, then calls
    /// [`DiskCache::insert`], before the next reservation.
    ///
    /// # Errors
    /// Fails if no new segment can be created.
    pub fn reserve(&mut self, piece: &CachePiece) -> io::Result<Option<ReservedPiece>> {
        if self.index.find(piece).is_some() {
            return Ok(None);
        }
        let full = SEGMENT_BYTES_MAX.min(self.bytes_max / 8);
        let number = match self.segments.last_key_value() {
            Some((number, segment)) if segment.bytes < full => *number,
            Some((number, _)) => self.add_segment(number.wrapping_add(1))?,
            None => self.add_segment(1)?,
        };
        let Some(segment) = self.segments.get_mut(&number) else { return Ok(None) };
        let at = u32::try_from(segment.bytes).map_err(|_| io::ErrorKind::FileTooLarge)?;
        let location = PieceLocation { segment: number, at, length: piece.length };
        Ok(Some(ReservedPiece { file: Arc::clone(&segment.file), location }))
    }

    fn add_segment(&mut self, number: u32) -> io::Result<u32> {
        let file = crate::source_directory::create(&segment::path(&self.dir, number))?;
        self.segments.insert(number, Segment { file: Arc::new(file), bytes: 0 });
        Ok(number)
    }

    /// Adds a piece that was written to its space.
    pub fn insert(&mut self, piece: &CachePiece, reserved: &ReservedPiece) {
        let Some(segment) = self.segments.get_mut(&reserved.location.segment) else { return };
        segment.bytes = segment::record_end(&reserved.location);
        self.index.insert(piece, reserved.location);
        self.evict_segments();
    }

    /// Evicts the oldest segments to stay within the limit, never the current one.
    fn evict_segments(&mut self) {
        while self.segments.len() > 1 && (self.bytes() > self.bytes_max || self.index.len() > PIECES_MAX) {
            let Some((number, _)) = self.segments.pop_first() else { return };
            self.index.remove_segment(number);
            // A file that cannot be removed now is removed at a later open.
            let _ = remove(&segment::path(&self.dir, number));
        }
    }

    fn bytes(&self) -> u64 {
        self.segments.values().map(|segment| segment.bytes).sum()
    }

    /// Returns the contents and statistics.
    pub fn stats(&self) -> DiskCacheStats {
        let (bytes, pieces) = (self.bytes(), self.index.len() as u64);
        DiskCacheStats { bytes, pieces, bytes_max: self.bytes_max, ..self.stats }
    }

    /// Writes the index, so that the next open need not scan all segments.
    ///
    /// # Errors
    /// Fails on a disk error; no piece is lost by that.
    pub fn close(&mut self) -> io::Result<()> {
        let lengths = self.segments.iter().map(|(number, segment)| (*number, segment.bytes));
        let bytes = self.index.encode(lengths);
        let (new, path) = (self.dir.join("index.new"), self.dir.join(index::NAME));
        let written = crate::source_directory::create(&new)
            .and_then(|mut file| io::Write::write_all(&mut file, &bytes));
        let done = written.and_then(|()| std::fs::rename(&new, path));
        if done.is_err() {
            let _ = remove(&new);
        }
        done
    }
}

impl CachedPiece {
    /// Reads the piece; `None` if it is damaged.
    pub fn read(&self, piece: &CachePiece) -> Option<bytes::Bytes> {
        segment::read(&self.file, u64::from(self.location.at), piece)
    }
}

impl ReservedPiece {
    /// Writes the piece with its contents `data`.
    ///
    /// # Errors
    /// Fails on a disk error.
    pub fn write(&self, piece: &CachePiece, data: &[u8]) -> io::Result<()> {
        segment::write(&self.file, u64::from(self.location.at), piece, data)
    }
}

#[cfg(test)]
mod tests;
