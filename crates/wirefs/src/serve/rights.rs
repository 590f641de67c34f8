//! The rights of clients, from the authorized-keys file, and their review when the file changes.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use wirefs_carrier::tls::AuthorizedKeys;
use wirefs_serve::{AccessCheck, ExportRouter, PeerRights};

/// The interval at which the file is checked.
const CHECK_INTERVAL: Duration = Duration::from_millis(250);

/// Returns a check by this file. Peers without a key come through sockets that ask for none.
pub(super) fn check(authorized: Option<PathBuf>) -> AccessCheck {
    Arc::new(move |peer, export| {
        let (Some(file), Some(key)) = (&authorized, &peer.identity) else {
            return Some(PeerRights::default());
        };
        let keys = AuthorizedKeys::read(file).ok()?;
        let rights = keys.rights(key, &peer.address, export)?;
        Some(PeerRights { read_only: rights.read_only })
    })
}

/// Starts a thread that reviews all sessions after each change of the file, until the router is dropped.
///
/// # Errors
/// The system has no thread left.
pub(super) fn watch(router: &Arc<ExportRouter>, file: PathBuf) -> Result<()> {
    let router = Arc::downgrade(router);
    let body = move || review_changes(&router, &file);
    thread::Builder::new().name("wirefs-keys".into()).spawn(body).map(drop).context("cannot start a thread")
}

fn review_changes(router: &Weak<ExportRouter>, file: &Path) {
    let mut reviewed = version(file);
    let mut seen = reviewed;
    loop {
        thread::sleep(CHECK_INTERVAL);
        let Some(router) = router.upgrade() else { return };
        let current = version(file);
        // An editor may truncate the file before it writes: only a file that rests is read.
        if current == seen && current != reviewed {
            router.review();
            reviewed = current;
        }
        seen = current;
    }
}

/// Returns values that differ after a change; `None` without a file.
fn version(file: &Path) -> Option<[i64; 5]> {
    let found = std::fs::metadata(file).ok()?;
    let (inode, size) = (found.ino().cast_signed(), found.size().cast_signed());
    Some([inode, size, found.ctime(), found.ctime_nsec(), i64::from(found.mode())])
}
