//! Directories of a user, by the XDG base directory specification.

use std::env;
use std::fs::DirBuilder;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::failure::failure;
use crate::sys;

/// Returns the directory of identity, known hosts and authorized keys.
pub(crate) fn config_dir() -> Result<PathBuf> {
    user_dir("XDG_CONFIG_HOME", ".config", "keys and known hosts")
}

/// Returns the directory of logs and other persistent state.
pub(crate) fn state_dir() -> Result<PathBuf> {
    user_dir("XDG_STATE_HOME", ".local/state", "logs")
}

/// Returns the directory of data that can be fetched again.
pub(crate) fn cache_dir() -> Result<PathBuf> {
    user_dir("XDG_CACHE_HOME", ".cache", "cached data")
}

/// Returns the directory of data that this user has installed.
pub(crate) fn data_dir() -> Option<PathBuf> {
    user_dir("XDG_DATA_HOME", ".local/share", "installed programs").ok()
}

/// Returns this user's home directory: `$HOME`, or the one of the password database if `$HOME` belongs to another user.
/// The helpers of mount(8) set it to root's.
pub(crate) fn home() -> Option<PathBuf> {
    let home = absolute("HOME");
    let ours = rustix::process::geteuid();
    if ours.is_root() || home.as_deref().is_some_and(is_ours) {
        return home;
    }
    sys::home_of(ours.as_raw()).filter(|home| is_ours(home)).or(home)
}

fn is_ours(dir: &Path) -> bool {
    std::fs::metadata(dir).is_ok_and(|found| found.uid() == rustix::process::geteuid().as_raw())
}

/// Returns the directories of control sockets. New ones are created in the first; the others are searched too, since
/// root's shells differ in their environment.
pub(crate) fn runtime_dirs() -> Vec<PathBuf> {
    let uid = rustix::process::geteuid().as_raw();
    let fallback = match uid {
        0 => PathBuf::from("/run/wirefs"),
        uid => PathBuf::from(format!("/tmp/wirefs-{uid}")),
    };
    let session = match uid {
        0 => Some(PathBuf::from("/run/user/0/wirefs")),
        _ => None,
    };
    // A user may have the variable of another one, by `su` or mount(8).
    let set = absolute("XDG_RUNTIME_DIR").filter(|dir| uid == 0 || !dir.exists() || is_ours(dir));
    let mut found: Vec<PathBuf> = set.map(|dir| dir.join("wirefs")).into_iter().collect();
    for dir in std::iter::once(fallback).chain(session) {
        if !found.contains(&dir) {
            found.push(dir);
        }
    }
    found
}

/// Creates the directory of the control sockets, with mode 0700.
///
/// # Errors
/// Fails if it cannot be created, or belongs to another user: anyone can create names in `/tmp`.
pub(crate) fn create_runtime_dir() -> Result<PathBuf> {
    let dir = runtime_dirs().into_iter().next().unwrap_or_default();
    create_private(&dir)?;
    Ok(dir)
}

/// Creates a directory with mode 0700, and its parents.
///
/// # Errors
/// Fails if it cannot be created, or other users can access it.
pub(crate) fn create_private(dir: &Path) -> Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .with_context(|| format!("cannot make the directory {}", dir.display()))?;
    let found = std::fs::symlink_metadata(dir)
        .with_context(|| format!("cannot read the attributes of {}", dir.display()))?;
    let ours = rustix::process::geteuid().as_raw();
    if !found.is_dir() || found.uid() != ours || found.mode() & 0o022 != 0 {
        return Err(failure(
            format!("{} is not a directory that only this user can change", dir.display()),
            format!(
                "run `chmod 700 {}`, or if it is another user's, set XDG_RUNTIME_DIR to a directory of yours",
                dir.display()
            ),
        ));
    }
    Ok(())
}

fn user_dir(variable: &str, below_home: &str, what: &str) -> Result<PathBuf> {
    let home = || home().map(|home| home.join(below_home));
    absolute(variable).or_else(home).map(|dir| dir.join("wirefs")).ok_or_else(|| {
        failure(
            format!("neither $HOME nor ${variable} is set, so there is no directory for {what}"),
            format!("set one of them to a directory of yours, as in `export HOME=/home/NAME` or `export {variable}=DIR`"),
        )
    })
}

/// A variable counts only with an absolute path (XDG base directory specification).
fn absolute(variable: &str) -> Option<PathBuf> {
    env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute())
}
