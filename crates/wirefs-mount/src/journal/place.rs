//! The directories of journals: one for each source, and in it one for each session, which one process uses at a time.
//!
//! ```text
//!  DIR/SOURCE/SESSION/lock
//!  DIR/SOURCE/SESSION/00000001.journal …
//!  DIR/SOURCE/SESSION/decided              during a replay after a reboot of the server's machine
//! ```

use super::findings_file;
use super::pending::journals_of;
use super::recover::ReplayProgress;
use crate::previous_mount::MountNote;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use wirefs_carrier::PeerInfo;
use wirefs_op::message::version::SessionId;
use wirefs_store::source_directory::{LOCK, SourceDirectory, SourceDirectoryError, directory_name};

const EXTENSION: &str = "journal";

/// The journals of a mount's source.
#[derive(Clone, Debug)]
pub struct JournalPlan {
    /// The directory of all journals.
    pub dir: PathBuf,
    /// The directory of all quarantined changes.
    pub quarantine: PathBuf,
    /// The server's address, which identifies it if it has no key. For a server whose key is known: the key's
    /// fingerprint.
    pub address: Vec<u8>,
    /// The exported directory.
    pub path: Vec<u8>,
    /// The mounted source, as the user wrote it.
    pub source: Vec<u8>,
    /// The user of the mount.
    pub user: u32,
    /// Called from time to time with the progress of a replay.
    pub tell: fn(ReplayProgress),
    /// Whether this mount keeps a journal. In any case it replays those of earlier mounts.
    pub keeps: bool,
    /// The completion of `fsync`.
    pub fsync: FsyncWaits,
}

/// The completion of `fsync` on a mount with a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum FsyncWaits {
    /// The server's disk, each time.
    Each,
    /// The server's disk, unless it only orders a program's writes: then the server keeps the order.
    #[default]
    Server,
    /// The journal.
    Journal,
}

impl JournalPlan {
    /// Returns whether there are journals, even in use, of a server whose key is known.
    ///
    /// # Cost
    /// No round trip: a listing of one directory and its subdirectories.
    pub fn has_any(&self) -> bool {
        !journals_of(&self.dir.join(directory_name(&self.address, &self.path, self.user))).is_empty()
    }

    /// Returns the directory name of the source at this server.
    pub(super) fn name(&self, peer: &PeerInfo) -> String {
        match identity(peer) {
            Some(identity) => directory_name(&identity, &self.path, self.user),
            None => directory_name(&self.address, &self.path, self.user),
        }
    }

    /// Returns the directory of the source's journals.
    pub(super) fn source_dir(&self, peer: &PeerInfo) -> PathBuf {
        self.dir.join(self.name(peer))
    }

    /// Returns the quarantine directory of a session.
    pub(super) fn quarantine_of(&self, name: &str, session: SessionId) -> PathBuf {
        // A part of the id is enough to distinguish sessions.
        self.quarantine.join(name).join(hex(&session).chars().take(16).collect::<String>())
    }
}

/// Returns the server's key, if its carrier has keys.
pub(super) fn identity(peer: &PeerInfo) -> Option<Vec<u8>> {
    peer.identity.map(|key| key.fingerprint().to_string().into_bytes())
}

/// Returns the directory name of a session.
pub(super) fn hex(session: &SessionId) -> String {
    session.0.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Creates directories that only this user can access.
pub(super) fn make_private(dir: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

/// A locked directory of a journal.
#[derive(Debug)]
pub(super) struct Claim {
    place: SourceDirectory,
}

impl Claim {
    /// Locks the directory, and creates it if needed.
    ///
    /// # Errors
    /// Another process uses it, other users could write there, or the system refuses.
    pub(super) fn take(dir: &Path) -> Result<Claim, SourceDirectoryError> {
        SourceDirectory::open(dir).map(|place| Claim { place })
    }

    pub(super) fn dir(&self) -> &Path {
        self.place.dir()
    }

    /// Updates the note for the next mount.
    pub(super) fn note(&self, holder: &MountNote) {
        // Without the note, the next mount leaves the journal to a later one.
        let _unsaid = self.place.write_note(&holder.encode());
    }

    /// Removes the journal, which is not needed any more.
    ///
    /// # Errors
    /// The system refuses. A remaining part is replayed without effect.
    pub(super) fn remove(self) -> io::Result<()> {
        // From the last segment on, so that the rest is a valid journal at any moment.
        for (_, path) in segments(self.dir())?.into_iter().rev() {
            std::fs::remove_file(path)?;
        }
        let dir = self.dir();
        findings_file::forget(dir);
        std::fs::remove_file(dir.join(LOCK))?;
        std::fs::remove_dir(dir)?;
        // The source may have other sessions.
        let _in_use = dir.parent().map(std::fs::remove_dir);
        Ok(())
    }
}

/// Returns the file of a segment.
pub(super) fn segment_path(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("{number:08}.{EXTENSION}"))
}

/// Returns the segments in a directory, in order.
pub(super) fn segments(dir: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        let is_segment = path.extension().is_some_and(|extension| extension == EXTENSION);
        let stem = path.file_stem().and_then(|stem| stem.to_str()).filter(|_| is_segment);
        if let Some(number) = stem.and_then(|stem| stem.parse().ok()) {
            found.push((number, path));
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// Returns the subdirectories of a directory.
pub(super) fn directories(dir: &Path) -> Vec<PathBuf> {
    // Usually it does not exist.
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    found.sort();
    found
}
