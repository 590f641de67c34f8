//! Lease markers: files by which a server knows that its predecessor died with leases granted, and that it must wait.
//!
//! A client with a lease uses cached data for some seconds without contact to the server. A server that ends cleanly
//! recalls all leases. A server that is killed leaves its marker, which no process locks any more. The next server of
//! the directory finds it, and applies no change until the leases have expired, or all clients named in the file have
//! reconnected.
//!
//! ```text
//!   the run of the kernel, a line
//!   session 32 hexadecimal digits      a line for each that was promised something
//!   end
//! ```

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::fs::FlockOperation;
use wirefs_op::fnv1a;
use wirefs_op::message::version::SessionId;
use wirefs_serve::{Believers, RECOVERY_PERIOD};

use super::boot::kernel_run;
use crate::user_dirs;

/// The markers of one exported directory.
#[derive(Debug)]
pub(super) struct LeaseMarkers {
    dir: PathBuf,
    /// The name prefix of this directory's markers.
    prefix: String,
    /// Markers of dead servers.
    stale: Mutex<Vec<PathBuf>>,
    own: Mutex<Option<OwnMarker>>,
    opened: Instant,
}

/// Our own marker.
#[derive(Debug)]
struct OwnMarker {
    path: PathBuf,
    /// Locked as long as the process lives.
    _locked: File,
    /// The sessions that it names.
    sessions: BTreeSet<SessionId>,
}

const SESSION: &str = "session ";
const END: &str = "end\n";

impl LeaseMarkers {
    /// Finds the markers of dead servers of `exported`.
    ///
    /// # Errors
    /// Fails without a directory for markers, or if other users can access it.
    pub(super) fn open(exported: &Path) -> Result<LeaseMarkers> {
        LeaseMarkers::open_in(user_dirs::state_dir()?.join("exports"), exported)
    }

    fn open_in(dir: PathBuf, exported: &Path) -> Result<LeaseMarkers> {
        user_dirs::create_private(&dir)?;
        let found = std::fs::metadata(exported)
            .with_context(|| format!("cannot read the attributes of {}", exported.display()))?;
        let place = [found.dev().to_le_bytes(), found.ino().to_le_bytes()].concat();
        let prefix = format!("{:016x}-", fnv1a(&[&place]));
        let names = std::fs::read_dir(&dir).with_context(|| format!("cannot list {}", dir.display()))?;
        let of_this = |name: &std::fs::DirEntry| name.file_name().to_string_lossy().starts_with(&prefix);
        let stale = names
            .flatten()
            .filter(of_this)
            .map(|name| name.path())
            .filter(|marker| is_stale(marker))
            .collect();
        Ok(LeaseMarkers {
            dir,
            prefix,
            stale: Mutex::new(stale),
            own: Mutex::new(None),
            opened: Instant::now(),
        })
    }

    /// Returns how long leases of earlier servers may still be in use.
    pub(super) fn recovery(&self) -> Duration {
        let uptime = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let uptime = Duration::try_from(uptime).unwrap_or_default();
        let stale = self.stale.lock().unwrap_or_else(PoisonError::into_inner);
        let stale = stale
            .iter()
            .filter(|marker| sessions_in(marker).is_none_or(|sessions| !sessions.is_empty()))
            .map(|marker| {
                // All clients of an earlier boot ended with that boot, at the latest.
                let is_of_this_run = std::fs::read(marker).is_ok_and(|text| text.starts_with(&kernel_run()));
                if is_of_this_run { RECOVERY_PERIOD } else { RECOVERY_PERIOD.saturating_sub(uptime) }
            });
        stale.max().unwrap_or_default()
    }

    /// Returns the sessions with leases of earlier servers; `None` if unknown.
    pub(super) fn pending_sessions(&self) -> Option<BTreeSet<SessionId>> {
        let stale = self.stale.lock().unwrap_or_else(PoisonError::into_inner);
        let sessions: Option<Vec<BTreeSet<SessionId>>> =
            stale.iter().map(|marker| sessions_in(marker)).collect();
        Some(sessions?.into_iter().flatten().collect())
    }

    /// Writes the sessions to our own marker, durable before any of them is granted a lease. Removes the markers of
    /// earlier servers once none of their leases is in use.
    ///
    /// # Errors
    /// The marker cannot be written.
    pub(super) fn write_own(&self, holders: &Believers) -> Result<()> {
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        let sessions = own.as_ref().map(|own| &own.sessions);
        if sessions.map_or(holders.sessions.is_empty(), |sessions| *sessions == holders.sessions) {
            return Ok(());
        }
        if !holders.is_recovering {
            self.remove_stale_markers();
        }
        let path = own.as_ref().map_or_else(|| self.own_path(), |own| own.path.clone());
        let written = self.write(&path, &holders.sessions);
        let locked = written.with_context(|| format!("cannot write {}", path.display()))?;
        *own = Some(OwnMarker { path, _locked: locked, sessions: holders.sessions.clone() });
        Ok(())
    }

    /// Returns the path of our own marker: not that of a marker in use from an earlier process with the same pid, as in
    /// a container.
    fn own_path(&self) -> PathBuf {
        let stale = self.stale.lock().unwrap_or_else(PoisonError::into_inner);
        let place = |nth: usize| self.dir.join(format!("{}{}-{nth}", self.prefix, std::process::id()));
        let free = (0..stale.len()).map(place).find(|place| !stale.contains(place));
        free.unwrap_or_else(|| place(stale.len()))
    }

    /// Writes a marker atomically, locked before it appears.
    fn write(&self, path: &Path, sessions: &BTreeSet<SessionId>) -> std::io::Result<File> {
        let new = self.dir.join(format!("new-{}{}", self.prefix, std::process::id()));
        // Left by an earlier process with the same pid.
        let _gone = std::fs::remove_file(&new);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
        rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        let mut text = kernel_run();
        text.push(b'\n');
        for SessionId(id) in sessions {
            text.extend_from_slice(SESSION.as_bytes());
            id.iter().for_each(|byte| text.extend_from_slice(format!("{byte:02x}").as_bytes()));
            text.push(b'\n');
        }
        text.extend_from_slice(END.as_bytes());
        file.write_all(&text)?;
        file.sync_all()?;
        std::fs::rename(&new, path)?;
        File::open(&self.dir)?.sync_all()?;
        Ok(file)
    }

    /// Removes the markers of earlier servers.
    fn remove_stale_markers(&self) {
        for marker in self.stale.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            let _gone = std::fs::remove_file(marker);
        }
    }

    /// The server has ended. Removes our own marker unless leases are still granted, and obsolete markers of others.
    pub(super) fn finish(&self, are_leases_out: bool) {
        let own = self.own.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let (Some(own), false) = (own, are_leases_out) {
            let _gone = std::fs::remove_file(own.path);
        }
        if self.opened.elapsed() >= RECOVERY_PERIOD {
            self.remove_stale_markers();
        }
    }
}

/// Returns the sessions that a marker names; `None` if it is incomplete.
fn sessions_in(marker: &Path) -> Option<BTreeSet<SessionId>> {
    let text = std::fs::read_to_string(marker).ok()?;
    let lines = text.strip_suffix(END)?.lines();
    lines.filter_map(|line| line.strip_prefix(SESSION)).map(session_of).collect()
}

fn session_of(digits: &str) -> Option<SessionId> {
    let id = u128::from_str_radix(digits, 16).ok().filter(|_| digits.len() == 32)?;
    Some(SessionId(id.to_be_bytes()))
}

/// Returns whether no process locks this marker.
fn is_stale(marker: &Path) -> bool {
    let file = OpenOptions::new().read(true).write(true).open(marker);
    file.is_ok_and(|file| rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok())
}

#[cfg(test)]
mod tests;
