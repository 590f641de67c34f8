//! Directories of a mount's persistent state: cached data below `$XDG_CACHE_HOME/wirefs`, one directory per source;
//! journals and quarantined changes below `$XDG_STATE_HOME/wirefs`.

use wirefs_carrier::Source;
use wirefs_mount::{FsyncWaits, JournalPlan, StorePlan};
use wirefs_store::source_directory::directory_name;

use super::settings::MountSettings;
use crate::recover;
use crate::terminal::note;
use crate::user_dirs;

/// The directory of journals, below the state directory.
pub(crate) const JOURNALS: &str = "journal";
/// The directory of quarantined changes.
pub(crate) const QUARANTINE: &str = "quarantine";

/// Returns the journal of a source; `None` without a state directory.
pub(crate) fn journal_of(source: &Source, text: &[u8], is_written: bool) -> Option<JournalPlan> {
    let dir = user_dirs::state_dir().and_then(|dir| user_dirs::create_private(&dir).map(|()| dir));
    match dir {
        Ok(dir) => Some(JournalPlan {
            dir: dir.join(JOURNALS),
            quarantine: dir.join(QUARANTINE),
            address: source.address.to_string().into_bytes(),
            path: source.path.clone(),
            source: text.to_vec(),
            user: rustix::process::geteuid().as_raw(),
            tell: recover::progress,
            keeps: is_written,
            fsync: FsyncWaits::default(),
        }),
        Err(error) => {
            note!("wirefs: no journal: {error}");
            None
        }
    }
}

/// Returns the cache directory of a source; `None` if disabled, or without a cache directory.
pub(super) fn of(source: &Source, settings: &MountSettings) -> Option<StorePlan> {
    let contents_bytes_max = settings.disk_bytes_max?;
    let address = source.address.to_string();
    let name = directory_name(address.as_bytes(), &source.path, rustix::process::geteuid().as_raw());
    let dir = user_dirs::cache_dir().and_then(|dir| user_dirs::create_private(&dir).map(|()| dir.join(name)));
    match dir {
        Ok(dir) => Some(StorePlan { dir, contents_bytes_max }),
        Err(error) => {
            note!("wirefs: no disk cache: {error}");
            None
        }
    }
}
