//! The directory of one source, used by one mount at a time.

use crate::snapshot::{self, LoadedSnapshot, Snapshot};
use rustix::fs::{FlockOperation, Mode, OFlags};
use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use wirefs_log::hash_name;

/// The file with the identity of the server that the contents are from.
const SERVER: &str = "server";

/// A note is shorter than this, in bytes.
const NOTE_BYTES_MAX: usize = 4096;
/// The name of the lock file.
pub const LOCK: &str = "lock";

/// Errors of opening a source directory.
#[derive(Debug, thiserror::Error)]
pub enum SourceDirectoryError {
    /// Another mount uses it.
    #[error("another mount of the same source uses {dir}")]
    Busy {
        /// The directory.
        dir: PathBuf,
        /// The last note of the mount that uses it; empty if there is none.
        note: Vec<u8>,
    },
    /// The mount that used it has just removed it; a retry creates it again.
    #[error("{0} was removed meanwhile")]
    Removed(PathBuf),
    /// Other users could write there.
    #[error("{0} is not a directory that only this user can change")]
    Foreign(PathBuf),
    /// An error of the system.
    #[error("cannot use {0}: {1}")]
    System(PathBuf, #[source] io::Error),
}

/// A source directory, locked until it is dropped or released.
#[derive(Debug)]
pub struct SourceDirectory {
    dir: PathBuf,
    lock: File,
}

/// Returns the directory name of a source: the carrier's address, the directory at the server, the user.
pub fn directory_name(address: &[u8], path: &[u8], user: u32) -> String {
    let lengths = [address.len() as u64, path.len() as u64, u64::from(user)].map(u64::to_le_bytes);
    hash_name(&[&lengths.concat(), address, path])
}

impl SourceDirectory {
    /// Creates the directory, with mode 0700, and locks it.
    ///
    /// # Errors
    /// Fails if it is in use, accessible to other users, or cannot be created.
    pub fn open(dir: &Path) -> Result<SourceDirectory, SourceDirectoryError> {
        let system = |error| SourceDirectoryError::System(dir.to_path_buf(), error);
        DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(system)?;
        let found = std::fs::symlink_metadata(dir).map_err(system)?;
        let ours = rustix::process::geteuid().as_raw();
        if !found.is_dir() || found.uid() != ours || found.mode() & 0o077 != 0 {
            return Err(SourceDirectoryError::Foreign(dir.to_path_buf()));
        }
        let lock = open_lock(dir).map_err(system)?;
        match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) if !is_current_file(&lock, dir) => Err(SourceDirectoryError::Removed(dir.to_path_buf())),
            Ok(()) => {
                lock.set_len(0).map_err(system)?;
                Ok(SourceDirectory { dir: dir.to_path_buf(), lock })
            }
            Err(rustix::io::Errno::WOULDBLOCK) => {
                let mut note = vec![0; NOTE_BYTES_MAX];
                let count = lock.read_at(&mut note, 0).unwrap_or(0);
                note.truncate(note.iter().take(count).position(|&byte| byte == 0).unwrap_or(0));
                Err(SourceDirectoryError::Busy { dir: dir.to_path_buf(), note })
            }
            Err(errno) => Err(system(errno.into())),
        }
    }

    /// Replaces the note in the lock file, which processes that find the directory in use can read.
    ///
    /// # Errors
    /// Fails if the note is too long, or on a disk error.
    pub fn write_note(&self, note: &[u8]) -> io::Result<()> {
        if note.len() >= NOTE_BYTES_MAX {
            return Err(rustix::io::Errno::MSGSIZE.into());
        }
        // One write, up to a zero byte: readers never see an empty note.
        self.lock.write_all_at(&[note, &[0]].concat(), 0)?;
        self.lock.set_len(note.len() as u64 + 1)
    }

    /// Returns the directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Reads the snapshot and removes it permanently: it is used once. A damaged one is removed too, and reported.
    ///
    /// # Errors
    /// Fails if it exists and cannot be removed; then it must not be used.
    ///
    /// # Cost
    /// One fsync if there is a snapshot.
    pub fn take_snapshot(&self) -> io::Result<LoadedSnapshot> {
        let path = self.dir.join(snapshot::NAME);
        let snapshot_read = match File::open(&path) {
            Ok(file) => snapshot::read(file).map_or(LoadedSnapshot::Damaged, LoadedSnapshot::Valid),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(LoadedSnapshot::None),
            Err(_) => LoadedSnapshot::Damaged,
        };
        remove(&path)?;
        self.sync_dir()?;
        Ok(snapshot_read)
    }

    /// Writes a snapshot for the next mount.
    ///
    /// # Errors
    /// Fails on a disk error; then there is no snapshot.
    ///
    /// # Cost
    /// Two fsyncs.
    pub fn put_snapshot(&self, snapshot: &Snapshot) -> io::Result<()> {
        let (new, path) = (self.dir.join("snapshot.new"), self.dir.join(snapshot::NAME));
        let written = create(&new).and_then(|file| snapshot::write(file, snapshot));
        let done = written.and_then(|()| std::fs::rename(&new, &path)).and_then(|()| self.sync_dir());
        if done.is_err() {
            // The first error counts. A file that may not survive a crash must not be used either.
            let _ = remove(&new).and(remove(&path));
        }
        done
    }

    /// Returns whether the cached contents are known to be from this server.
    pub fn is_from_server(&self, identity: &[u8]) -> bool {
        std::fs::read(self.dir.join(SERVER)).is_ok_and(|known| known == identity)
    }

    /// Records that the contents are from this server, after those of another one were removed.
    ///
    /// # Errors
    /// Fails on a disk error; then nothing of this server may be cached here.
    ///
    /// # Cost
    /// Two fsyncs.
    pub fn record_server(&self, identity: &[u8]) -> io::Result<()> {
        let path = self.dir.join(SERVER);
        // The removed files must not reappear beside this one.
        self.sync_dir()?;
        let mut file = create(&path)?;
        io::Write::write_all(&mut file, identity)?;
        file.sync_all()
    }

    /// Unlocks the directory for the next mount, while this process is about to end. It must not be changed from now
    /// on.
    pub fn release(&self) {
        // The lock is released at the end of the process, at the latest.
        let _ = rustix::fs::flock(&self.lock, FlockOperation::Unlock);
    }

    /// Fsyncs the directory, so that renames and removals are on disk.
    fn sync_dir(&self) -> io::Result<()> {
        File::open(&self.dir)?.sync_all()
    }
}

fn open_lock(dir: &Path) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::open(dir.join(LOCK), flags, Mode::RUSR | Mode::WUSR)?))
}

/// Returns whether the lock file is still in the directory: a previous holder may have removed it with the directory.
fn is_current_file(lock: &File, dir: &Path) -> bool {
    let of = |found: std::fs::Metadata| (found.dev(), found.ino());
    let there = std::fs::symlink_metadata(dir.join(LOCK)).map(of);
    lock.metadata().map(of).is_ok_and(|ours| there.is_ok_and(|there| there == ours))
}

/// Creates an empty file with mode 0600.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
        .open(path)
}

/// Removes a file; a missing one is no error.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests;
