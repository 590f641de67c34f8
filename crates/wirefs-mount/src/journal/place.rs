//! Where journals are: a directory for each source, in it one for each session, which one process uses at a time.
//!
//! ```text
//!  DIR/SOURCE/SESSION/lock
//!  DIR/SOURCE/SESSION/00000001.journal …
//!  DIR/SOURCE/SESSION/decided              while changes are done again
//! ```

use super::decided;
use super::left::journals_of;
use super::recover::Progress;
use crate::previous_mount::MountNote;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use wirefs_carrier::PeerInfo;
use wirefs_op::message::version::SessionId;
use wirefs_store::source_directory::{LOCK, SourceDirectory, SourceDirectoryError, directory_name};

const EXTENSION: &str = "journal";

/// Where a mount's journal is, and what it is the journal of.
#[derive(Clone, Debug)]
pub struct JournalPlan {
    /// The directory of all journals.
    pub dir: PathBuf,
    /// Where changes are kept that a server refuses.
    pub quarantine: PathBuf,
    /// The server's address, which stands for it where it has no key. Of a server whose key is known beforehand: that key's fingerprint.
    pub address: Vec<u8>,
    /// The directory at the server.
    pub path: Vec<u8>,
    /// What is mounted, as the user wrote it.
    pub source: Vec<u8>,
    /// The user whose mount it is.
    pub user: u32,
    /// Told from time to time how far an earlier mount's journal has been brought to the server.
    pub tell: fn(Progress),
    /// Whether this mount keeps one. If not, what an earlier one left is brought to the server all the same.
    pub keeps: bool,
    /// What `fsync` waits for.
    pub fsync: FsyncWaits,
}

/// What `fsync` waits for, where a journal is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum FsyncWaits {
    /// The server's disk, each time.
    Each,
    /// The server's disk, but where it only orders what a program writes: the server sees to that then.
    #[default]
    Server,
    /// The journal.
    Journal,
}

impl JournalPlan {
    /// Whether journals are there of a server whose key is known beforehand, those in use too.
    ///
    /// # Cost
    /// No round trip: a listing of one directory, and of those in it.
    pub fn has_any(&self) -> bool {
        !journals_of(&self.dir.join(directory_name(&self.address, &self.path, self.user))).is_empty()
    }

    /// The name of the source, when this server answers.
    pub(super) fn name(&self, peer: &PeerInfo) -> String {
        match identity(peer) {
            Some(identity) => directory_name(&identity, &self.path, self.user),
            None => directory_name(&self.address, &self.path, self.user),
        }
    }

    /// The directory of the source's journals.
    pub(super) fn source_dir(&self, peer: &PeerInfo) -> PathBuf {
        self.dir.join(self.name(peer))
    }

    /// Where changes of a session of this source are kept that a server refuses.
    pub(super) fn quarantine_of(&self, name: &str, session: SessionId) -> PathBuf {
        // A part of the name is enough to tell sessions apart.
        self.quarantine.join(name).join(hex(&session).chars().take(16).collect::<String>())
    }
}

/// The server's key, where its carrier has one.
pub(super) fn identity(peer: &PeerInfo) -> Option<Vec<u8>> {
    peer.identity.map(|key| key.fingerprint().to_string().into_bytes())
}

/// A session's name.
pub(super) fn hex(session: &SessionId) -> String {
    session.0.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Makes directories for this user alone.
pub(super) fn make_private(dir: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

/// A journal's directory, locked for as long as this lives.
#[derive(Debug)]
pub(super) struct Claim {
    place: SourceDirectory,
}

impl Claim {
    /// Makes the directory if it is not there.
    ///
    /// # Errors
    /// Another process uses it, others could write there, or the system refuses.
    pub(super) fn take(dir: &Path) -> Result<Claim, SourceDirectoryError> {
        SourceDirectory::open(dir).map(|place| Claim { place })
    }

    pub(super) fn dir(&self) -> &Path {
        self.place.dir()
    }

    /// Tells the next mount how far this one is.
    pub(super) fn note(&self, holder: &MountNote) {
        // Where that cannot be written, the next mount leaves the journal to the one after it.
        let _unsaid = self.place.write_note(&holder.encode());
    }

    /// Removes all of it: nothing in it is needed any more.
    ///
    /// # Errors
    /// The system refuses; what is left of it is replayed without effect.
    pub(super) fn remove(self) -> io::Result<()> {
        // From the back, so that what is left at any moment is a journal.
        for (_, path) in segments(self.dir())?.into_iter().rev() {
            std::fs::remove_file(path)?;
        }
        let dir = self.dir();
        decided::forget(dir);
        std::fs::remove_file(dir.join(LOCK))?;
        std::fs::remove_dir(dir)?;
        // Other sessions may be there.
        let _in_use = dir.parent().map(std::fs::remove_dir);
        Ok(())
    }
}

/// The file of a segment.
pub(super) fn segment_path(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("{number:08}.{EXTENSION}"))
}

/// The segments in a directory, in order.
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

/// The directories below one.
pub(super) fn directories(dir: &Path) -> Vec<PathBuf> {
    // What cannot be listed has nothing for us; most often it is not there.
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    found.sort();
    found
}
