//! Checks of the user's files and of mounts.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::Finding;
use crate::{control, mountpoint, user_dirs};

/// The files of the configuration directory, and the mode bits that other users must not have.
const FILES: [(&str, u32); 3] = [("identity.pem", 0o077), ("known_hosts", 0o022), ("authorized_keys", 0o022)];

pub(super) fn checks() -> Vec<Finding> {
    vec![config(), data_dirs(), runtime(), mounts()]
}

fn config() -> Finding {
    const CHECK: &str = "keys";
    let directory = match user_dirs::config_dir() {
        Ok(directory) => directory,
        Err(error) => {
            return Finding::bad(
                CHECK,
                first_line(&error),
                "set HOME to your home directory, as in `export HOME=/home/NAME`",
            );
        }
    };
    if !directory.exists() {
        return Finding::ok(CHECK, format!("none yet; the first use of TLS makes {}", directory.display()));
    }
    let files = FILES.iter().map(|(name, forbidden)| (directory.join(name), *forbidden));
    let open: Vec<String> = std::iter::once((directory.clone(), 0o022))
        .chain(files)
        .filter(|(path, forbidden)| is_open(path, *forbidden))
        .map(|(path, _)| path.display().to_string())
        .collect();
    if open.is_empty() {
        return Finding::ok(CHECK, format!("{}, yours alone", directory.display()));
    }
    Finding::bad(
        CHECK,
        format!("others can read or change {}", open.join(", ")),
        format!("chmod 700 {0} && chmod go-rwx {0}/*", directory.display()),
    )
}

/// Returns whether other users have one of these mode bits, or own the file.
fn is_open(path: &Path, forbidden: u32) -> bool {
    let ours = rustix::process::geteuid().as_raw();
    std::fs::metadata(path)
        .is_ok_and(|found| found.mode() & forbidden != 0 || ![0, ours].contains(&found.uid()))
}

fn data_dirs() -> Finding {
    const CHECK: &str = "logs and cache";
    match (user_dirs::state_dir(), user_dirs::cache_dir()) {
        (Ok(state), Ok(cache)) => Finding::ok(CHECK, format!("{}, {}", state.display(), cache.display())),
        (Err(error), _) | (_, Err(error)) => Finding::warn(
            CHECK,
            format!("{}; mounts in the background keep no log", first_line(&error)),
            "set HOME to your home directory",
        ),
    }
}

fn runtime() -> Finding {
    const CHECK: &str = "control sockets";
    match user_dirs::create_runtime_dir() {
        Ok(directory) => Finding::ok(CHECK, directory.display().to_string()),
        Err(error) => Finding::warn(
            CHECK,
            format!("{}; status and sync do not work", first_line(&error)),
            "set XDG_RUNTIME_DIR to a directory of yours",
        ),
    }
}

/// A mount whose process has died blocks programs that use its directory.
fn mounts() -> Finding {
    const CHECK: &str = "mounts";
    let mounted = mountpoint::mounted();
    let silent: Vec<String> = mounted
        .iter()
        // Other users see to theirs.
        .filter(|mount| !mount.is_foreign() && control::find(&mount.mountpoint).is_none())
        .map(|mount| mount.mountpoint.display().to_string())
        .collect();
    match silent.first() {
        None => Finding::ok(CHECK, format!("{} of this machine's, all of this user's answer", mounted.len())),
        Some(first) => Finding::warn(
            CHECK,
            format!("no process of this user answers for {}", silent.join(", ")),
            format!("if its process has ended: wirefs umount -f {first}"),
        ),
    }
}

fn first_line(error: &anyhow::Error) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}
