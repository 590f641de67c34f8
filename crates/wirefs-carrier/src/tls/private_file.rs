//! Key files and access lists: created private, and rejected if others could read or change them.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// The maximum size of such a file, in bytes; a larger one is a mistake.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Access to a file that other users must not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Forbidden {
    /// Read or write: private keys.
    Access,
    /// Write: lists of keys.
    Change,
}

/// An unusable file.
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

/// Reads the file as text, after checking its owner and mode.
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
    let shared_node = found.uid();
    if shared_node != 0 && shared_node != rustix::process::geteuid().as_raw() {
        return Err(FileError::Foreign(path.to_owned()));
    }
    let mut text = String::new();
    let count = file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text).map_err(fail)?;
    if count as u64 > FILE_BYTES_MAX {
        return Err(FileError::TooLarge(path.to_owned()));
    }
    Ok(text)
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
