//! What earlier mounts left: the journals that no process uses.

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

/// A file that is longer is no segment, in bytes.
const FILE_BYTES_MAX: u64 = SEGMENT_BYTES + 2 * BODY_BYTES_MAX as u64;

/// Who only looks at a journal holds it for less than this.
const LOOK_MAX: Duration = Duration::from_millis(10);
/// How often it is held by such, before it counts as a mount's.
const LOOKS_MAX: usize = 5;

/// A journal on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftJournal {
    /// Its directory.
    pub dir: PathBuf,
    /// What is known of it.
    pub state: LeftState,
}

/// What is known of a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeftState {
    /// A mount uses it.
    InUse,
    /// A mount left it that did not end in order.
    Left {
        /// What was mounted, as the user wrote it.
        source: String,
        /// Changes of which it is not known that the server's disk has them.
        changes: u64,
        /// Their bytes.
        bytes: u64,
        /// Changes behind a damaged place.
        behind: u64,
        /// The damaged place.
        damage: Option<Damage>,
    },
    /// It cannot be read. Why, in words.
    Unreadable(String),
}

/// All journals below the directory of journals.
pub fn left_journals(dir: &Path) -> Vec<LeftJournal> {
    directories(dir).iter().flat_map(|source| journals_of(source)).filter_map(|dir| look(&dir)).collect()
}

/// The journals of one source.
pub(super) fn journals_of(source_dir: &Path) -> Vec<PathBuf> {
    let mut found = directories(source_dir);
    // A directory without segments is that of a mount that is just being made.
    found.retain(|dir| segments(dir).is_ok_and(|segments| !segments.is_empty()));
    found
}

/// `None`: it has just been done with.
fn look(dir: &Path) -> Option<LeftJournal> {
    // Held for no longer than it takes to know: whoever wants to bring it to the server must not think that it is in use.
    let claim = Claim::take(dir).map(drop);
    let state = match claim.map_err(LeftError::from).and_then(|()| Left::own(dir)) {
        Ok(left) => left.state(),
        Err(LeftError::Place(SourceDirectoryError::Busy { .. })) => LeftState::InUse,
        Err(_) if !segments(dir).is_ok_and(|segments| !segments.is_empty()) => return None,
        Err(error) => LeftState::Unreadable(error.to_string()),
    };
    Some(LeftJournal { dir: dir.to_path_buf(), state })
}

/// Why a journal that was left cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum LeftError {
    #[error(transparent)]
    Place(#[from] SourceDirectoryError),
    #[error("{0}")]
    System(#[from] io::Error),
    #[error("a segment cannot be read: {0}")]
    Fault(#[from] HeaderFault),
}

/// A journal that was looked through.
pub(super) struct Left {
    dir: PathBuf,
    /// Of one that was left.
    pub(super) claim: Option<Claim>,
    pub(super) survey: Survey,
}

impl Left {
    /// Waits for a mount that is unmounted and about to end. `None`: a mount uses it, or somebody has just done with it.
    pub(super) fn open(dir: &Path, tell: fn(MountStep)) -> Result<Option<Left>, LeftError> {
        for _ in 0..LOOKS_MAX {
            match wait_for_previous(tell, || Claim::take(dir)) {
                Ok(claim) if segments(dir)?.is_empty() => {
                    claim.remove()?;
                    return Ok(None);
                }
                Ok(claim) => return Ok(Some(Left { claim: Some(claim), ..Left::own(dir)? })),
                // A mount leaves a note there once it is made.
                Err(SourceDirectoryError::Busy { note, .. }) if !note.is_empty() => return Ok(None),
                Err(SourceDirectoryError::Busy { .. }) => std::thread::sleep(LOOK_MAX),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(None)
    }

    /// The journal of a mount of this process, which appends nothing that counts meanwhile.
    pub(super) fn own(dir: &Path) -> Result<Left, LeftError> {
        let mut survey = Survey::default();
        for (number, path) in segments(dir)? {
            // One segment at a time is in memory.
            drop(survey.take(number, read(&path)?)?);
        }
        survey.ended(kernel_run());
        Ok(Left { dir: dir.to_path_buf(), claim: None, survey })
    }

    /// Where it is.
    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Whose it is; `None` where not even that can be read.
    pub(super) fn header(&self) -> Option<&Header> {
        self.survey.header.as_ref()
    }

    fn state(&self) -> LeftState {
        let (changes, bytes) = self.survey.needed_from(0);
        let source = self.header().map(|header| String::from_utf8_lossy(&header.source).into_owned());
        LeftState::Left {
            source: source.unwrap_or_default(),
            changes,
            bytes,
            behind: self.survey.after_damage,
            damage: self.survey.damage,
        }
    }

    /// Goes through all of it again, in order.
    pub(super) fn segments(&self) -> io::Result<Segments> {
        Ok(Segments { left: segments(&self.dir)?.into_iter(), survey: Survey::default() })
    }
}

/// The segments of a journal, read one after the other.
pub(super) struct Segments {
    left: std::vec::IntoIter<(u64, PathBuf)>,
    survey: Survey,
}

impl Segments {
    pub(super) fn next(&mut self) -> Result<Option<SegmentRecords>, LeftError> {
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
