//! Appending: entries are gathered, and written with one call before anything is done that they have to precede.

use super::disk::is_full;
use super::group::Group;
use super::place::{Claim, segments};
use crate::mount::ending::Holder;
use bytes::Bytes;
use std::fs::File;
use std::io::{self, IoSlice, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wirefs_journal::entry::{self, EntryKind, HEAD_BYTES, NOT_ALONE, Spot, head};
use wirefs_journal::limits::SEGMENT_BYTES;
use wirefs_journal::{Figures, Header, Live, Misuse, Told};
use wirefs_op::message::version::BootId;
use wirefs_op::{FileId, Frame};

/// Entries that are written with one call, at most: the kernel takes 1024 pieces, and each has three.
const GATHERED_MAX: usize = 300;

/// Why nothing more can be written.
#[derive(Debug, thiserror::Error)]
pub(super) enum AppendError {
    #[error("cannot write below {}: {error}", dir.display())]
    System { dir: PathBuf, error: io::Error },
    /// Room is all that is missing.
    #[error("no room below {}: {error}; make {} MiB free there", dir.display(), SEGMENT_BYTES >> 20)]
    Full { dir: PathBuf, error: io::Error },
    /// What was refused cannot be kept.
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

    /// Whether it may be tried again once there is room.
    pub(super) fn is_full(&self) -> bool {
        matches!(self, AppendError::Full { .. })
    }
}

/// An entry that is not written yet.
struct Gathered {
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
    live: Live,
    /// The segment that is written to, but where there was no room for one, and the sum of its header.
    file: Option<Arc<File>>,
    salt: u32,
    gathered: Vec<Gathered>,
    /// The last number below which all changes were noted to be answered.
    answered: u64,
    /// The last that was noted of who else was there, and of the server's clock.
    alone: Option<u64>,
    seen: u64,
}

impl Writer {
    /// Begins a journal.
    ///
    /// # Errors
    /// The system refuses, or there is no room: nothing is left there then.
    pub(super) fn begin(claim: Claim, header: Header, group: &Group) -> Result<Writer, AppendError> {
        let live = Live::new(header.encode().len() as u64);
        let (file, salt) = match group.make(&header) {
            Ok(made) => made,
            Err(error) => {
                let error = AppendError::below(claim.dir(), error);
                // Whoever looks for journals finds an empty place, and no fault in it.
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
            gathered: Vec::new(),
            answered: 0,
            alone: None,
            seen: 0,
        })
    }

    /// Tells the next mount how far this one is.
    pub(super) fn note_holder(&self, holder: &Holder) {
        self.claim.note(holder);
    }

    pub(super) fn record(&mut self, number: u64, frame: Frame, group: &Group) -> Result<(), AppendError> {
        let bytes = body(&frame).iter().map(|part| part.len()).sum();
        let placed = self.live.record(number, bytes)?;
        if placed.opens {
            self.next_segment(placed.segment, group)?;
        }
        self.gather(EntryKind::Record, number, frame, placed.offset, group)
    }

    /// Notes which changes are answered, unless that is noted.
    pub(super) fn answered(&mut self, below: u64, group: &Group) -> Result<(), AppendError> {
        if below <= self.answered {
            return Ok(());
        }
        self.answered = below;
        self.note(EntryKind::Answered, below, Frame::default(), group)
    }

    /// Notes what the server said of a change.
    pub(super) fn told(&mut self, number: u64, told: &Told, group: &Group) -> Result<(), AppendError> {
        let frame = Frame { data: Bytes::copy_from_slice(&told.encode()), ..Frame::default() };
        self.note(EntryKind::Told, number, frame, group)
    }

    /// Notes from which change on nobody else has come between.
    pub(super) fn alone(&mut self, from: Option<u64>, group: &Group) -> Result<(), AppendError> {
        self.alone = from;
        self.note(EntryKind::Alone, from.unwrap_or(NOT_ALONE), Frame::default(), group)
    }

    /// Notes what the server's clock has said of these changes.
    pub(super) fn seen(&mut self, nanos: u64, group: &Group) -> Result<(), AppendError> {
        self.seen = nanos;
        self.note(EntryKind::Seen, nanos, Frame::default(), group)
    }

    /// Notes a file whose contents the server's disk has, as the changes below a number left them.
    pub(super) fn synced(&mut self, below: u64, file: FileId, group: &Group) -> Result<(), AppendError> {
        let frame = Frame { data: Bytes::copy_from_slice(&entry::synced(file)), ..Frame::default() };
        self.note(EntryKind::Synced, below, frame, group)
    }

    /// Whether none was noted to be answered yet.
    pub(super) fn has_no_answer(&self) -> bool {
        self.answered <= 1
    }

    /// Forgets the changes below a number; segments that are not needed go.
    pub(super) fn forget(&mut self, below: u64, group: &Group) -> Result<(), AppendError> {
        self.answered(below, group)?;
        self.note(EntryKind::Forget, below, Frame::default(), group)?;
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

    /// Begins anew where there was no room: nothing in it is needed, and all that is below a number is done at this start of the server's
    /// machine. What was there goes first, and leaves its room.
    pub(super) fn begin_anew(&mut self, below: u64, boot: BootId, group: &Group) -> Result<(), AppendError> {
        self.gathered.clear();
        (self.answered, self.alone, self.file) = (below, None, None);
        group.let_go();
        for (number, _) in segments(self.dir()).map_err(|error| self.cannot(error))?.into_iter().rev() {
            group.remove(number).map_err(|error| self.cannot(error))?;
        }
        self.live.forget(below);
        let turned = self.turn(boot, group);
        // The one before is gone as well.
        self.live.forget(below);
        turned
    }

    fn dir(&self) -> &Path {
        self.claim.dir()
    }

    fn cannot(&self, error: io::Error) -> AppendError {
        AppendError::below(self.dir(), error)
    }

    /// Notes once more what counts for all changes that follow: the segment where it was noted goes.
    fn note_again(&mut self, group: &Group) -> Result<(), AppendError> {
        self.note(EntryKind::Answered, self.answered, Frame::default(), group)?;
        if let Some(from) = self.alone {
            self.note(EntryKind::Alone, from, Frame::default(), group)?;
        }
        self.note(EntryKind::Seen, self.seen, Frame::default(), group)
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
        self.gathered.push(Gathered { head, frame });
        if self.gathered.len() >= GATHERED_MAX {
            self.write(group)?;
        }
        Ok(())
    }

    /// Writes what was gathered: from then on it outlives this process.
    pub(super) fn write(&mut self, group: &Group) -> Result<(), AppendError> {
        if self.gathered.is_empty() {
            return Ok(());
        }
        let parts = self.gathered.iter().flat_map(|entry| {
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
        self.gathered.clear();
        Ok(())
    }

    /// The server's machine was started again, and has all that is in the journal: what follows is for that start of it.
    pub(super) fn turn(&mut self, boot: BootId, group: &Group) -> Result<(), AppendError> {
        self.header.boot = boot;
        let segment = self.live.turn();
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

    /// Whose journal it is, and where.
    pub(super) fn header(&self) -> (&Header, &Path) {
        (&self.header, self.claim.dir())
    }

    pub(super) fn figures(&self, answered: u64) -> Figures {
        self.live.figures(answered)
    }

    /// Ends the journal, of which nothing is needed.
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
