//! Pieces of contents in segments: appended, read at any place, dropped a segment at a time.
//!
//! A piece is found by file, version and offset, and believed if its checksum is right. Nothing is synced: what a crash tears
//! is found by that checksum. Version and file never come again with other contents, so that what is old is just not asked
//! for, and goes with its segment.

mod index;
mod segment;

use crate::limits::{CONTENTS_BYTES_MIN, PIECES_MAX, SEGMENT_BYTES_MAX};
use crate::place::remove;
use index::Index;
pub use index::Spot;
use segment::Segment;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wirefs_cache::CachePiece;

/// What the store holds, and how it did since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Bytes on disk.
    pub bytes: u64,
    /// The most that they may be.
    pub bytes_max: u64,
    /// Pieces that can be found.
    pub pieces: u64,
    /// Pieces that were found and sound.
    pub hits: u64,
    /// Pieces that were not there.
    pub misses: u64,
    /// Pieces and files that were damaged, and dropped.
    pub damaged: u64,
}

/// Whether a piece is there.
#[derive(Debug)]
pub enum Found {
    /// It can be read, without the store.
    Here(Stored),
    /// It is not there, another piece of this version of the file is.
    Missing,
    /// Nothing of this version of the file is there.
    Nothing,
}

/// Where a piece is.
#[derive(Clone, Debug)]
pub struct Stored {
    file: Arc<File>,
    spot: Spot,
}

/// Room for a piece at the end of a segment.
#[derive(Debug)]
pub struct Reserved {
    file: Arc<File>,
    spot: Spot,
}

/// All pieces.
///
/// INVARIANT: each spot of the index lies within its segment's bytes, and each segment of it is there.
#[derive(Debug)]
pub struct Contents {
    dir: PathBuf,
    bytes_max: u64,
    segments: BTreeMap<u32, Segment>,
    index: Index,
    figures: Figures,
}

impl Contents {
    /// Opens what is in a directory that this mount has locked. Without a sound index all segments are looked through.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn open(dir: &Path, bytes_max: u64) -> io::Result<Contents> {
        let mut contents = Contents {
            dir: dir.to_path_buf(),
            bytes_max: bytes_max.max(CONTENTS_BYTES_MIN),
            segments: BTreeMap::new(),
            index: Index::default(),
            figures: Figures::default(),
        };
        let lengths = contents.take_index();
        for (number, path) in segment::all_in(dir)? {
            let known = lengths.as_ref().and_then(|lengths| lengths.get(&number)).copied();
            if let Err(error) = contents.open_segment(number, &path, known) {
                // One that cannot be read is of no use to anyone.
                contents.figures.damaged += 1;
                contents.index.forget_segment(number);
                remove(&path).map_err(|_| error)?;
            }
        }
        let segments = &contents.segments;
        contents.index.retain(|spot| segments.get(&spot.segment).is_some_and(|known| known.holds(spot)));
        contents.shrink();
        Ok(contents)
    }

    /// Drops everything: it is from another server.
    ///
    /// # Errors
    /// Something cannot be removed; nothing of it is found any more nonetheless.
    pub fn clear(&mut self) -> io::Result<()> {
        self.index = Index::default();
        let numbers = std::mem::take(&mut self.segments).into_keys();
        numbers
            .map(|number| remove(&segment::path(&self.dir, number)))
            .collect::<Vec<_>>()
            .into_iter()
            .collect()
    }

    /// Reads the index and removes it; hands back how long the segments were.
    fn take_index(&mut self) -> Option<BTreeMap<u32, u64>> {
        let path = self.dir.join(index::NAME);
        let bytes = std::fs::read(&path).ok()?;
        // One that stays is found out by the checksums of what it names.
        let _ = remove(&path);
        match Index::parse(bytes.into()) {
            Some((index, lengths)) => {
                self.index = index;
                Some(lengths)
            }
            None => {
                self.figures.damaged += 1;
                None
            }
        }
    }

    fn open_segment(&mut self, number: u32, path: &Path, known: Option<u64>) -> io::Result<()> {
        let file = File::options().read(true).write(true).open(path)?;
        let there = file.metadata()?.len();
        let length = match known {
            Some(length) if length <= there => length,
            Some(_) | None => {
                self.index.forget_segment(number);
                segment::scan(&file, |piece, at| {
                    self.index.insert(piece, Spot { segment: number, at, length: piece.length });
                })?
            }
        };
        // What is behind was torn.
        if length < there {
            file.set_len(length)?;
        }
        self.segments.insert(number, Segment { file: Arc::new(file), bytes: length });
        Ok(())
    }

    /// Looks for a piece.
    pub fn find(&mut self, piece: &CachePiece) -> Found {
        let spot = self.index.find(piece).filter(|spot| spot.length == piece.length);
        let here = spot.and_then(|spot| {
            let file = Arc::clone(&self.segments.get(&spot.segment)?.file);
            Some(Stored { file, spot })
        });
        match here {
            Some(stored) => Found::Here(stored),
            None if self.index.has_any(piece) => {
                self.figures.misses += 1;
                Found::Missing
            }
            None => {
                self.figures.misses += 1;
                Found::Nothing
            }
        }
    }

    /// Notes that a piece was read as it should be.
    pub fn was_sound(&mut self) {
        self.figures.hits += 1;
    }

    /// Drops a piece that was not.
    pub fn was_damaged(&mut self, piece: &CachePiece) {
        self.figures.damaged += 1;
        self.index.remove(piece);
    }

    /// Makes room for a piece; none when it is there already. To be written, then [`Contents::insert`]ed, before the next is made
    /// room for.
    ///
    /// # Errors
    /// No new segment can be made.
    pub fn reserve(&mut self, piece: &CachePiece) -> io::Result<Option<Reserved>> {
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
        let spot = Spot { segment: number, at, length: piece.length };
        Ok(Some(Reserved { file: Arc::clone(&segment.file), spot }))
    }

    fn add_segment(&mut self, number: u32) -> io::Result<u32> {
        let file = crate::place::create(&segment::path(&self.dir, number))?;
        self.segments.insert(number, Segment { file: Arc::new(file), bytes: 0 });
        Ok(number)
    }

    /// A piece was written to its room.
    pub fn insert(&mut self, piece: &CachePiece, reserved: &Reserved) {
        let Some(segment) = self.segments.get_mut(&reserved.spot.segment) else { return };
        segment.bytes = segment::end_of(&reserved.spot);
        self.index.insert(piece, reserved.spot);
        self.shrink();
    }

    /// The oldest segments make room, all but the one that is being filled.
    fn shrink(&mut self) {
        while self.segments.len() > 1 && (self.bytes() > self.bytes_max || self.index.len() > PIECES_MAX) {
            let Some((number, _)) = self.segments.pop_first() else { return };
            self.index.forget_segment(number);
            // What cannot be removed now is removed when the directory is opened the next time and is still too full.
            let _ = remove(&segment::path(&self.dir, number));
        }
    }

    fn bytes(&self) -> u64 {
        self.segments.values().map(|segment| segment.bytes).sum()
    }

    /// What it holds, and how it did.
    pub fn figures(&self) -> Figures {
        let (bytes, pieces) = (self.bytes(), self.index.len() as u64);
        Figures { bytes, pieces, bytes_max: self.bytes_max, ..self.figures }
    }

    /// Writes the index, so that the next one to open this need not look through all segments.
    ///
    /// # Errors
    /// The disk is full, or worse; nothing is lost by that.
    pub fn close(&mut self) -> io::Result<()> {
        let lengths = self.segments.iter().map(|(number, segment)| (*number, segment.bytes));
        let bytes = self.index.encode(lengths);
        let (new, path) = (self.dir.join("index.new"), self.dir.join(index::NAME));
        let written = crate::place::create(&new).and_then(|mut file| io::Write::write_all(&mut file, &bytes));
        let done = written.and_then(|()| std::fs::rename(&new, path));
        if done.is_err() {
            let _ = remove(&new);
        }
        done
    }
}

impl Stored {
    /// Reads the piece; none when it is damaged.
    pub fn read(&self, piece: &CachePiece) -> Option<bytes::Bytes> {
        segment::read(&self.file, u64::from(self.spot.at), piece)
    }
}

impl Reserved {
    /// Writes the piece; `data` are its bytes.
    ///
    /// # Errors
    /// The disk is full, or worse.
    pub fn write(&self, piece: &CachePiece, data: &[u8]) -> io::Result<()> {
        segment::write(&self.file, u64::from(self.spot.at), piece, data)
    }
}

#[cfg(test)]
mod tests;
