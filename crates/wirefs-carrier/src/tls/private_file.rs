//! Files that decide who may enter: made private, and refused when others could read or change them.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Bytes read of such a file at most; a larger one is not what it claims to be.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// What others must not be able to do with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Forbidden {
    /// Read or write: private keys.
    Access,
    /// Write: lists of keys.
    Change,
}

/// A file that cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum FileError {
    #[error("there is no file {}", .0.display())]
    Missing(PathBuf),
    #[error("cannot use {}: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
    #[error(
        "{} can be {} by other users (mode {mode:04o}); run: chmod {} {}",
        path.display(), verb(*.forbidden), chmod(*.forbidden), path.display()
    )]
    Exposed { path: PathBuf, mode: u32, forbidden: Forbidden },
    #[error("{} belongs to another user; make it yours with chown, or use another directory", .0.display())]
    Foreign(PathBuf),
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

/// Reads the file as text, once its owner and mode are safe.
pub(super) fn read(path: &Path, forbidden: Forbidden) -> Result<String, FileError> {
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
    let owner = found.uid();
    if owner != 0 && owner != rustix::process::geteuid().as_raw() {
        return Err(FileError::Foreign(path.to_owned()));
    }
    let mut text = String::new();
    let count = file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text).map_err(fail)?;
    if count as u64 > FILE_BYTES_MAX {
        return Err(FileError::TooLarge(path.to_owned()));
    }
    Ok(text)
}

/// Makes the directory, private, unless it exists.
pub(super) fn make_directory(path: &Path) -> Result<(), FileError> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(|error| FileError::Io { path: path.to_owned(), error })
}

/// Writes a new file in one step: it appears whole or not at all. False: there was one already, which stays.
pub(super) fn create(path: &Path, text: &str, mode: u32) -> Result<bool, FileError> {
    let fail = |error| FileError::Io { path: path.to_owned(), error };
    let mut draft = path.as_os_str().to_owned();
    static DRAFTS: AtomicU32 = AtomicU32::new(0);
    draft.push(format!(".{}.{}.new", std::process::id(), DRAFTS.fetch_add(1, Ordering::Relaxed)));
    let draft = PathBuf::from(draft);
    // A draft of a process that died under the same id.
    let _stale = fs::remove_file(&draft);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&draft).map_err(fail)?;
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
    let linked = written.and_then(|()| fs::hard_link(&draft, path));
    let removed = fs::remove_file(&draft);
    match linked {
        Ok(()) => removed.map(|()| true).map_err(fail),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(fail(error)),
    }
}

/// Opens the file for appending, made private if it is new.
pub(super) fn open_append(path: &Path) -> Result<File, FileError> {
    OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)
        .map_err(|error| FileError::Io { path: path.to_owned(), error })
}
