//! The end of a journal. Entries are batched, and written with one call before anything that they must precede.

use super::disk::is_full;
use super::group::Group;
use super::place::{Claim, segments};
use crate::previous_mount::MountNote;
use bytes::Bytes;
use std::fs::File;
use std::io::{self, IoSlice, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wirefs_journal::entry::{EntryKind, HEAD_BYTES, NOT_EXCLUSIVE, Spot, head};
use wirefs_journal::limits::SEGMENT_BYTES;
use wirefs_journal::{ChangeOutcome, Figures, Header, Layout, Misuse};
use wirefs_op::message::version::BootId;
use wirefs_op::{FileId, Frame};

/// The maximum number of entries per write: the kernel accepts 1024 pieces, and each entry has three.
const BATCHED_MAX: usize = 300;

/// The reason why nothing more can be written.
#[derive(Debug, thiserror::Error)]
pub(super) enum AppendError {
    #[error("cannot write below {}: {error}", dir.display())]
    System { dir: PathBuf, error: io::Error },
    /// The disk is full.
    #[error("no room below {}: {error}; make {} MiB free there", dir.display(), SEGMENT_BYTES >> 20)]
    Full { dir: PathBuf, error: io::Error },
    /// A rejected change cannot be quarantined.
    #[error(transparent)]
    Refused(io::Error),
    #[error(transparent)]
    Misuse(#[from] Misuse),
}

impl AppendError {
    pub(super) fn below(dir: &Path, error: io::Error) -> AppendError {
        let dir = dir.to_path_buf();
        match error.kind() {
            kind if is_full(kind) => AppendError::Full { dir, error },
            _ => AppendError::System { dir, error },
        }
    }

    /// Returns whether to try again once there is space.
    pub(super) fn is_full(&self) -> bool {
        matches!(self, AppendError::Full { .. })
    }
}

/// An unwritten entry.
struct BatchedEntry {
    head: [u8; HEAD_BYTES],
    frame: Frame,
}

/// The message of a frame, without its size word.
fn body(frame: &Frame) -> [&[u8]; 2] {
    [frame.head.get(4..).unwrap_or_default(), &frame.data]
}

/// The end of the journal.
pub(super) struct Writer {
    claim: Claim,
    header: Header,
    live: Layout,
    /// The current segment, unless there was no space for one, and its header's checksum.
    file: Option<Arc<File>>,
    salt: u32,
    batch: Vec<BatchedEntry>,
    /// The last noted number below which all changes are answered.
    answered: u64,
    /// The last notes on exclusivity and on the server's clock.
    alone: Option<u64>,
    seen: u64,
}

impl Writer {
    /// Creates a journal.
    ///
    /// # Errors
    /// The system refuses, or the disk is full; nothing remains.
    pub(super) fn begin(claim: Claim, header: Header, group: &Group) -> Result<Writer, AppendError> {
        let live = Layout::new(header.encode().len() as u64);
        let (file, salt) = match group.make(&header) {
            Ok(made) => made,
            Err(error) => {
                let error = AppendError::below(claim.dir(), error);
                // So that a search for journals finds no damaged one.
                let _none_left = claim.remove();
                return Err(error);
            }
        };
        let file = Arc::new(file);
        group.opened(header.segment, &file).map_err(|error| AppendError::below(claim.dir(), error))?;
        Ok(Writer {
            claim,
            header,
            live,
            file: Some(file),
            salt,
            batch: Vec::new(),
            answered: 0,
            alone: None,
            seen: 0,
        })
    }

    /// Updates the note for the next mount.
    pub(super) fn note_holder(&self, holder: &MountNote) {
        self.claim.note(holder);
    }

    pub(super) fn record(&mut self, number: u64, frame: Frame, group: &Group) -> Result<(), AppendError> {
        let bytes = body(&frame).iter().map(|part| part.len()).sum();
        let placed = self.live.record(number, bytes)?;
        if placed.opens {
            self.next_segment(placed.segment, group)?;
        }
        self.gather(EntryKind::Change, number, frame, placed.offset, group)
    }

    /// Notes that the changes below a number are answered, unless noted before.
    pub(super) fn answered(&mut self, below: u64, group: &Group) -> Result<(), AppendError> {
        if below <= self.answered {
            return Ok(());
        }
        self.answered = below;
        self.note(EntryKind::Answered, below, Frame::default(), group)
    }

    /// Notes the outcome of a change.
    pub(super) fn outcome(
        &mut self,
        number: u64,
        outcome: &ChangeOutcome,
        group: &Group,
    ) -> Result<(), AppendError> {
        let frame = Frame { data: Bytes::copy_from_slice(&outcome.encode()), ..Frame::default() };
        self.note(EntryKind::Outcome, number, frame, group)
    }

    /// Notes the number of the change since which the session has been exclusive.
    pub(super) fn alone(&mut self, from: Option<u64>, group: &Group) -> Result<(), AppendError> {
        self.alone = from;
        self.note(EntryKind::Exclusive, from.unwrap_or(NOT_EXCLUSIVE), Frame::default(), group)
    }

    /// Notes the server's time of the changes.
    pub(super) fn seen(&mut self, nanos: u64, group: &Group) -> Result<(), AppendError> {
        self.seen = nanos;
        self.note(EntryKind::LatestTime, nanos, Frame::default(), group)
    }

    /// Notes a file whose contents the server's disk has, as the changes below a number left them.
    pub(super) fn synced(&mut self, below: u64, file: FileId, group: &Group) -> Result<(), AppendError> {
        let frame = Frame { data: Bytes::copy_from_slice(&file.to_bytes()), ..Frame::default() };
        self.note(EntryKind::Synced, below, frame, group)
    }

    /// Returns whether no answer is noted yet.
    pub(super) fn has_no_answer(&self) -> bool {
        self.answered <= 1
    }

    /// Removes the changes below a number, and the segments that are not needed.
    pub(super) fn forget(&mut self, below: u64, group: &Group) -> Result<(), AppendError> {
        self.answered(below, group)?;
        self.note(EntryKind::Durable, below, Frame::default(), group)?;
        let gone = self.live.forget(below);
        if !gone.is_empty() {
            self.note_again(group)?;
        }
        self.write(group)?;
        if let Some(last) = gone.last() {
            group.forget(last + 1);
        }
        Ok(())
    }

    /// Restarts a journal without space. None of it is needed: the server has all changes below a number on stable
    /// storage for this boot. The old segments are removed first, to make space.
    pub(super) fn begin_anew(&mut self, below: u64, boot: BootId, group: &Group) -> Result<(), AppendError> {
        self.batch.clear();
        (self.answered, self.alone, self.file) = (below, None, None);
        group.give_up();
        for (number, _) in segments(self.dir()).map_err(|error| self.cannot(error))?.into_iter().rev() {
            group.remove(number).map_err(|error| self.cannot(error))?;
        }
        self.live.forget(below);
        let turned = self.turn(boot, group);
        // The previous segment is removed as well.
        self.live.forget(below);
        turned
    }

    fn dir(&self) -> &Path {
        self.claim.dir()
    }

    fn cannot(&self, error: io::Error) -> AppendError {
        AppendError::below(self.dir(), error)
    }

    /// Repeats the notes that apply to all later changes, because their segment is removed.
    fn note_again(&mut self, group: &Group) -> Result<(), AppendError> {
        self.note(EntryKind::Answered, self.answered, Frame::default(), group)?;
        if let Some(from) = self.alone {
            self.note(EntryKind::Exclusive, from, Frame::default(), group)?;
        }
        self.note(EntryKind::LatestTime, self.seen, Frame::default(), group)
    }

    fn note(&mut self, kind: EntryKind, number: u64, frame: Frame, group: &Group) -> Result<(), AppendError> {
        let placed = self.live.note(frame.data.len());
        if placed.opens {
            self.next_segment(placed.segment, group)?;
        }
        self.gather(kind, number, frame, placed.offset, group)
    }

    fn gather(
        &mut self,
        kind: EntryKind,
        number: u64,
        frame: Frame,
        offset: u64,
        group: &Group,
    ) -> Result<(), AppendError> {
        let head = head(kind, number, &body(&frame), Spot { salt: self.salt, offset });
        self.batch.push(BatchedEntry { head, frame });
        if self.batch.len() >= BATCHED_MAX {
            self.write(group)?;
        }
        Ok(())
    }

    /// Writes the batch of entries, which then survive this process.
    pub(super) fn write(&mut self, group: &Group) -> Result<(), AppendError> {
        if self.batch.is_empty() {
            return Ok(());
        }
        let parts = self.batch.iter().flat_map(|entry| {
            let [front, data] = body(&entry.frame);
            [entry.head.as_slice(), front, data]
        });
        let mut slices: Vec<IoSlice<'_>> = parts.filter(|part| !part.is_empty()).map(IoSlice::new).collect();
        let bytes = slices.iter().map(|slice| slice.len() as u64).sum();
        let written = match &self.file {
            Some(file) => write_all(file, &mut slices).and_then(|()| group.wrote(bytes)),
            None => Err(io::ErrorKind::StorageFull.into()),
        };
        written.map_err(|error| AppendError::below(self.claim.dir(), error))?;
        self.batch.clear();
        Ok(())
    }

    /// Continues after a reboot of the server's machine, which has the whole journal: later entries are for the new
    /// boot.
    pub(super) fn turn(&mut self, boot: BootId, group: &Group) -> Result<(), AppendError> {
        self.header.boot = boot;
        let segment = self.live.begin_segment();
        self.next_segment(segment, group)?;
        self.note_again(group)?;
        self.write(group)
    }

    fn next_segment(&mut self, segment: u64, group: &Group) -> Result<(), AppendError> {
        self.write(group)?;
        self.header.segment = segment;
        let (file, salt) = group.make(&self.header).map_err(|error| self.cannot(error))?;
        let file = Arc::new(file);
        let opened = group.opened(segment, &file);
        (self.file, self.salt) = (Some(file), salt);
        opened.map_err(|error| self.cannot(error))
    }

    /// Returns the header and the directory.
    pub(super) fn header(&self) -> (&Header, &Path) {
        (&self.header, self.claim.dir())
    }

    pub(super) fn figures(&self, answered: u64) -> Figures {
        self.live.figures(answered)
    }

    /// Removes the journal, which is not needed.
    pub(super) fn remove(self) -> io::Result<()> {
        self.claim.remove()
    }
}

fn write_all(mut file: &File, mut slices: &mut [IoSlice<'_>]) -> io::Result<()> {
    while !slices.is_empty() {
        match file.write_vectored(slices) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => IoSlice::advance_slices(&mut slices, written),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
