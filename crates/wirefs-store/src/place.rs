//! The directory of one source, which one mount uses at a time.

use crate::snapshot::{self, Snapshot, Taken};
use crate::sum;
use rustix::fs::{FlockOperation, Mode, OFlags};
use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The file that says who the server is that the contents are from.
const SERVER: &str = "server";

/// A note is shorter than this, in bytes.
const NOTE_BYTES_MAX: usize = 4096;
/// The file that is locked.
pub const LOCK: &str = "lock";

/// Why a directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// Another mount uses it.
    #[error("another mount of the same source uses {dir}")]
    Busy {
        /// The directory.
        dir: PathBuf,
        /// The last note of the mount that uses it; empty: none yet.
        note: Vec<u8>,
    },
    /// The mount that used it has removed it in this moment: the next try makes it anew.
    #[error("{0} was removed meanwhile")]
    Removed(PathBuf),
    /// Others could write there.
    #[error("{0} is not a directory that only this user can change")]
    Foreign(PathBuf),
    /// The system refuses.
    #[error("cannot use {0}: {1}")]
    System(PathBuf, #[source] io::Error),
}

/// A directory that is locked for as long as this lives, or until it is released.
#[derive(Debug)]
pub struct Place {
    dir: PathBuf,
    lock: File,
}

/// The name of the directory for a source: the carrier's address, the directory at the server, the user who sees it.
pub fn name_of(address: &[u8], path: &[u8], user: u32) -> String {
    let lengths = [address.len() as u64, path.len() as u64, u64::from(user)].map(u64::to_le_bytes);
    sum::name(&[&lengths.concat(), address, path])
}

impl Place {
    /// Makes the directory, readable by this user alone, and locks it.
    ///
    /// # Errors
    /// It is in use, not this user's alone, or cannot be made.
    pub fn open(dir: &Path) -> Result<Place, PlaceError> {
        let system = |error| PlaceError::System(dir.to_path_buf(), error);
        DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(system)?;
        let found = std::fs::symlink_metadata(dir).map_err(system)?;
        let ours = rustix::process::geteuid().as_raw();
        if !found.is_dir() || found.uid() != ours || found.mode() & 0o077 != 0 {
            return Err(PlaceError::Foreign(dir.to_path_buf()));
        }
        let lock = open_lock(dir).map_err(system)?;
        match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) if !is_in_place(&lock, dir) => Err(PlaceError::Removed(dir.to_path_buf())),
            Ok(()) => {
                lock.set_len(0).map_err(system)?;
                Ok(Place { dir: dir.to_path_buf(), lock })
            }
            Err(rustix::io::Errno::WOULDBLOCK) => {
                let mut note = vec![0; NOTE_BYTES_MAX];
                let count = lock.read_at(&mut note, 0).unwrap_or(0);
                note.truncate(note.iter().take(count).position(|&byte| byte == 0).unwrap_or(0));
                Err(PlaceError::Busy { dir: dir.to_path_buf(), note })
            }
            Err(errno) => Err(system(errno.into())),
        }
    }

    /// Leaves a note in the lock's file, in place of the one before, for those who find the directory in use.
    ///
    /// # Errors
    /// The note is too long, or the disk is full, or worse.
    pub fn note(&self, note: &[u8]) -> io::Result<()> {
        if note.len() >= NOTE_BYTES_MAX {
            return Err(rustix::io::Errno::MSGSIZE.into());
        }
        // One write, up to a zero: nobody finds none in between.
        self.lock.write_all_at(&[note, &[0]].concat(), 0)?;
        self.lock.set_len(note.len() as u64 + 1)
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Reads the snapshot and removes it, for good: it counts once. A damaged one is removed as well, and said to be so.
    ///
    /// # Errors
    /// It is there and cannot be removed: then it must not be used.
    ///
    /// # Cost
    /// One fsync when there is one.
    pub fn take_snapshot(&self) -> io::Result<Taken> {
        let path = self.dir.join(snapshot::NAME);
        let taken = match File::open(&path) {
            Ok(file) => snapshot::read(file).map_or(Taken::Damaged, Taken::Sound),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Taken::None),
            Err(_) => Taken::Damaged,
        };
        remove(&path)?;
        self.settle()?;
        Ok(taken)
    }

    /// Leaves a snapshot for the next mount.
    ///
    /// # Errors
    /// The disk is full, or worse; nothing is left then.
    ///
    /// # Cost
    /// Two fsyncs.
    pub fn put_snapshot(&self, snapshot: &Snapshot) -> io::Result<()> {
        let (new, path) = (self.dir.join("snapshot.new"), self.dir.join(snapshot::NAME));
        let written = create(&new).and_then(|file| snapshot::write(file, snapshot));
        let done = written.and_then(|()| std::fs::rename(&new, &path)).and_then(|()| self.settle());
        if done.is_err() {
            // The error that counts is the first one. What is in its place and may not last must not be believed either.
            let _ = remove(&new).and(remove(&path));
        }
        done
    }

    /// Whether the contents here are known to be from the server that is `identity`.
    pub fn is_of(&self, identity: &[u8]) -> bool {
        std::fs::read(self.dir.join(SERVER)).is_ok_and(|known| known == identity)
    }

    /// Notes that the contents here are from the server that is `identity`, once those of another are gone.
    ///
    /// # Errors
    /// The disk is full, or worse: then nothing of this server may be kept here.
    ///
    /// # Cost
    /// Two fsyncs.
    pub fn set_server(&self, identity: &[u8]) -> io::Result<()> {
        let path = self.dir.join(SERVER);
        // What was removed before must not come back beside this.
        self.settle()?;
        let mut file = create(&path)?;
        io::Write::write_all(&mut file, identity)?;
        file.sync_all()
    }

    /// Lets the next mount have the directory, while this process is still about to end. Nothing may be changed in it from now on.
    pub fn release(&self) {
        // What cannot be unlocked now is unlocked when the process ends.
        let _ = rustix::fs::flock(&self.lock, FlockOperation::Unlock);
    }

    /// Waits until what was renamed or removed in the directory is so on disk.
    fn settle(&self) -> io::Result<()> {
        File::open(&self.dir)?.sync_all()
    }
}

fn open_lock(dir: &Path) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::open(dir.join(LOCK), flags, Mode::RUSR | Mode::WUSR)?))
}

/// Whether the next one finds this very file: a holder that ends may have removed it with the directory.
fn is_in_place(lock: &File, dir: &Path) -> bool {
    let of = |found: std::fs::Metadata| (found.dev(), found.ino());
    let there = std::fs::symlink_metadata(dir.join(LOCK)).map(of);
    lock.metadata().map(of).is_ok_and(|ours| there.is_ok_and(|there| there == ours))
}

/// Makes an empty file for this user alone.
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

/// Removes a file that may be gone already.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests;
