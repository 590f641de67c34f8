//! Journals of earlier mounts, which no process uses.

use super::kernel_run;
use super::place::{Claim, directories, segments};
use crate::previous_mount::wait_for_previous;
use crate::slow_step::MountStep;
use bytes::Bytes;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;
use wirefs_journal::limits::{BODY_BYTES_MAX, SEGMENT_BYTES};
use wirefs_journal::{Damage, Header, HeaderFault, Scan, SegmentRecords, Survey, scan};
use wirefs_store::source_directory::SourceDirectoryError;

/// The maximum size of a segment file, in bytes.
const FILE_BYTES_MAX: u64 = SEGMENT_BYTES + 2 * BODY_BYTES_MAX as u64;

/// The maximum time for which a process holds a journal to inspect it.
const LOOK_MAX: Duration = Duration::from_millis(10);
/// The number of attempts before a held journal counts as in use by a mount.
const LOOKS_MAX: usize = 5;

/// A journal on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingJournal {
    /// Its directory.
    pub dir: PathBuf,
    /// Its state.
    pub state: PendingJournalState,
}

/// The state of a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PendingJournalState {
    /// A mount uses it.
    InUse,
    /// It is of a mount that ended unexpectedly.
    Pending {
        /// The mounted source, as the user wrote it.
        source: String,
        /// The number of changes that may not be on the server's stable storage.
        changes: u64,
        /// Their size in bytes.
        bytes: u64,
        /// The number of changes after the damage.
        behind: u64,
        /// The damage.
        damage: Option<Damage>,
    },
    /// It cannot be read, for this reason.
    Unreadable(String),
}

/// Returns all journals below the directory of journals.
pub fn pending_journals(dir: &Path) -> Vec<PendingJournal> {
    directories(dir).iter().flat_map(|source| journals_of(source)).filter_map(|dir| look(&dir)).collect()
}

/// Returns the journals of one source.
pub(super) fn journals_of(source_dir: &Path) -> Vec<PathBuf> {
    let mut found = directories(source_dir);
    // A directory without segments belongs to a mount that is being made.
    found.retain(|dir| segments(dir).is_ok_and(|segments| !segments.is_empty()));
    found
}

/// Inspects a journal; `None` if it was removed meanwhile.
fn look(dir: &Path) -> Option<PendingJournal> {
    // Held only briefly, so that a process that wants to replay it does not take it for one in use.
    let claim = Claim::take(dir).map(drop);
    let state = match claim.map_err(JournalError::from).and_then(|()| SurveyedJournal::own(dir)) {
        Ok(left) => left.state(),
        Err(JournalError::Place(SourceDirectoryError::Busy { .. })) => PendingJournalState::InUse,
        Err(_) if !segments(dir).is_ok_and(|segments| !segments.is_empty()) => return None,
        Err(error) => PendingJournalState::Unreadable(error.to_string()),
    };
    Some(PendingJournal { dir: dir.to_path_buf(), state })
}

/// The reason why a journal cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum JournalError {
    #[error(transparent)]
    Place(#[from] SourceDirectoryError),
    #[error("{0}")]
    System(#[from] io::Error),
    #[error("a segment cannot be read: {0}")]
    Fault(#[from] HeaderFault),
}

/// A surveyed journal.
pub(super) struct SurveyedJournal {
    dir: PathBuf,
    /// The claim on a journal of an earlier mount.
    pub(super) claim: Option<Claim>,
    pub(super) survey: Survey,
}

impl SurveyedJournal {
    /// Opens a journal, after an unmounted mount that is about to end. `None` if a mount uses it, or another process
    /// has replayed it.
    pub(super) fn open(dir: &Path, tell: fn(MountStep)) -> Result<Option<SurveyedJournal>, JournalError> {
        for _ in 0..LOOKS_MAX {
            match wait_for_previous(tell, || Claim::take(dir)) {
                Ok(claim) if segments(dir)?.is_empty() => {
                    claim.remove()?;
                    return Ok(None);
                }
                Ok(claim) => {
                    return Ok(Some(SurveyedJournal { claim: Some(claim), ..SurveyedJournal::own(dir)? }));
                }
                // A mount has left its note.
                Err(SourceDirectoryError::Busy { note, .. }) if !note.is_empty() => return Ok(None),
                Err(SourceDirectoryError::Busy { .. }) => std::thread::sleep(LOOK_MAX),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(None)
    }

    /// Opens the journal of a mount of this process, which appends only notes meanwhile.
    pub(super) fn own(dir: &Path) -> Result<SurveyedJournal, JournalError> {
        let mut survey = Survey::default();
        for (number, path) in segments(dir)? {
            // One segment at a time is in memory.
            drop(survey.take(number, read(&path)?)?);
        }
        survey.ended(kernel_run());
        Ok(SurveyedJournal { dir: dir.to_path_buf(), claim: None, survey })
    }

    /// Returns its directory.
    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns its header; `None` if that cannot be read.
    pub(super) fn header(&self) -> Option<&Header> {
        self.survey.header.as_ref()
    }

    fn state(&self) -> PendingJournalState {
        let (changes, bytes) = self.survey.needed_from(0);
        let source = self.header().map(|header| String::from_utf8_lossy(&header.source).into_owned());
        PendingJournalState::Pending {
            source: source.unwrap_or_default(),
            changes,
            bytes,
            behind: self.survey.after_damage,
            damage: self.survey.damage,
        }
    }

    /// Reads all of it again, in order.
    pub(super) fn segments(&self) -> io::Result<Segments> {
        Ok(Segments { left: segments(&self.dir)?.into_iter(), survey: Survey::default() })
    }
}

/// The segments of a journal, read in order.
pub(super) struct Segments {
    left: std::vec::IntoIter<(u64, PathBuf)>,
    survey: Survey,
}

impl Segments {
    pub(super) fn next(&mut self) -> Result<Option<SegmentRecords>, JournalError> {
        let Some((number, path)) = self.left.next() else { return Ok(None) };
        Ok(Some(self.survey.take(number, read(&path)?)?))
    }
}

fn read(path: &Path) -> io::Result<Result<Scan, HeaderFault>> {
    let file = File::open(path)?;
    if file.metadata()?.len() > FILE_BYTES_MAX {
        return Ok(Err(HeaderFault::Foreign));
    }
    let mut segment = Vec::new();
    file.take(FILE_BYTES_MAX).read_to_end(&mut segment)?;
    Ok(scan(&Bytes::from(segment)))
}
