//! Key files and access lists: created private, and rejected if others could read or change them.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// The maximum size of such a file, in bytes; a larger one is a mistake.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// The sticky bit of a directory.
const STICKY: u32 = 0o1000;

/// Access to a file that other users must not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forbidden {
    /// Read or write: private keys.
    Access,
    /// Write: lists of keys.
    Change,
}

/// An unusable file.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The file does not exist.
    #[error("there is no file {}", .0.display())]
    Missing(PathBuf),
    /// The file cannot be read or written.
    #[error("cannot use {}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
    /// Other users have access that they must not have.
    #[error(
        "{} can be {} by other users (mode {mode:04o}); run: chmod {} {}",
        path.display(), verb(*.forbidden), chmod(*.forbidden), path.display()
    )]
    Exposed {
        /// The file, or its directory.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
        /// The access.
        forbidden: Forbidden,
    },
    /// The file or its directory belongs to another user.
    #[error("{} belongs to another user; make it yours with chown, or use another directory", .0.display())]
    Foreign(PathBuf),
    /// The file is too large for a key file.
    #[error("{} is larger than {FILE_BYTES_MAX} bytes; that cannot be right", .0.display())]
    TooLarge(PathBuf),
}

fn verb(forbidden: Forbidden) -> &'static str {
    match forbidden {
        Forbidden::Access => "read",
        Forbidden::Change => "changed",
    }
}

fn chmod(forbidden: Forbidden) -> &'static str {
    match forbidden {
        Forbidden::Access => "600",
        Forbidden::Change => "go-w",
    }
}

/// Reads the file as text, after checking its owner and mode, and those of its directory.
pub(super) fn read(path: &Path, forbidden: Forbidden) -> Result<String, FileError> {
    String::from_utf8(read_bytes(path, forbidden)?)
        .map_err(|error| FileError::Io { path: path.to_owned(), error: io::Error::other(error) })
}

/// Reads a file with a secret key of any bytes.
///
/// # Errors
/// The file cannot be read, or another user could read it, or could change it or its directory.
pub fn read_secret(path: &Path) -> Result<Vec<u8>, FileError> {
    read_bytes(path, Forbidden::Access)
}

fn read_bytes(path: &Path, forbidden: Forbidden) -> Result<Vec<u8>, FileError> {
    let fail = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => FileError::Missing(path.to_owned()),
        _ => FileError::Io { path: path.to_owned(), error },
    };
    let file = File::open(path).map_err(fail)?;
    let found = file.metadata().map_err(fail)?;
    let mask = match forbidden {
        Forbidden::Access => 0o077,
        Forbidden::Change => 0o022,
    };
    let mode = found.permissions().mode() & 0o7777;
    if mode & mask != 0 {
        return Err(FileError::Exposed { path: path.to_owned(), mode, forbidden });
    }
    if !is_trusted(found.uid()) {
        return Err(FileError::Foreign(path.to_owned()));
    }
    check_directory(path)?;
    let mut text = Vec::new();
    let count = file.take(FILE_BYTES_MAX + 1).read_to_end(&mut text).map_err(fail)?;
    if count as u64 > FILE_BYTES_MAX {
        return Err(FileError::TooLarge(path.to_owned()));
    }
    Ok(text)
}

fn is_trusted(owner: u32) -> bool {
    owner == 0 || owner == rustix::process::geteuid().as_raw()
}

/// Checks that no other user can put another file in the place of this one.
fn check_directory(path: &Path) -> Result<(), FileError> {
    let directory = match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => return Ok(()),
    };
    let found =
        fs::metadata(directory).map_err(|error| FileError::Io { path: directory.to_owned(), error })?;
    let mode = found.permissions().mode() & 0o7777;
    // In a sticky directory only the owner of a file replaces it.
    if mode & 0o022 != 0 && mode & STICKY == 0 {
        return Err(FileError::Exposed { path: directory.to_owned(), mode, forbidden: Forbidden::Change });
    }
    if is_trusted(found.uid()) { Ok(()) } else { Err(FileError::Foreign(directory.to_owned())) }
}

/// Creates the directory, private, unless it exists.
pub(super) fn make_directory(path: &Path) -> Result<(), FileError> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(|error| FileError::Io { path: path.to_owned(), error })
}

/// Creates a file atomically, with its contents. Returns `false` if the file exists; it is then unchanged.
pub(super) fn create(path: &Path, text: &str, mode: u32) -> Result<bool, FileError> {
    let fail = |error| FileError::Io { path: path.to_owned(), error };
    let mut temporary = path.as_os_str().to_owned();
    static TEMPORARY_FILES: AtomicU32 = AtomicU32::new(0);
    temporary.push(format!(
        ".{}.{}.new",
        std::process::id(),
        TEMPORARY_FILES.fetch_add(1, Ordering::Relaxed)
    ));
    let temporary = PathBuf::from(temporary);
    // Left by a process that died and had the same pid.
    let _stale = fs::remove_file(&temporary);
    let mut file =
        OpenOptions::new().write(true).create_new(true).mode(mode).open(&temporary).map_err(fail)?;
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
    let linked = written.and_then(|()| fs::hard_link(&temporary, path));
    let removed = fs::remove_file(&temporary);
    match linked {
        Ok(()) => removed.map(|()| true).map_err(fail),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(fail(error)),
    }
}

/// Opens the file for appending; a new file is private.
pub(super) fn open_append(path: &Path) -> Result<File, FileError> {
    OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)
        .map_err(|error| FileError::Io { path: path.to_owned(), error })
}

#[cfg(test)]
mod tests;
