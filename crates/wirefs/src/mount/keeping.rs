//! Where a mount keeps what it knows for the next one: below `$XDG_CACHE_HOME/wirefs`, a directory for each source. And where it
//! keeps what it has changed until the server has it: below `$XDG_STATE_HOME/wirefs`.

use wirefs_carrier::Source;
use wirefs_driver::mount::{FsyncWaits, JournalPlan, StorePlan};
use wirefs_store::place::name_of;

use super::chosen::Chosen;
use crate::places;
use crate::recover;
use crate::terminal::note;

/// The directory of journals, below the state directory.
pub(crate) const JOURNALS: &str = "journal";
/// The directory of what servers refused.
pub(crate) const QUARANTINE: &str = "quarantine";

/// The journals of a source; `None` where there is no place for them.
pub(crate) fn journal_of(source: &Source, text: &[u8], keeps: bool) -> Option<JournalPlan> {
    let dir = places::state_dir().and_then(|dir| places::make_private(&dir).map(|()| dir));
    match dir {
        Ok(dir) => Some(JournalPlan {
            dir: dir.join(JOURNALS),
            quarantine: dir.join(QUARANTINE),
            address: source.address.to_string().into_bytes(),
            path: source.path.clone(),
            source: text.to_vec(),
            user: rustix::process::geteuid().as_raw(),
            tell: recover::progress,
            keeps,
            fsync: FsyncWaits::default(),
        }),
        Err(error) => {
            note!("wirefs: no journal is kept: {error}");
            None
        }
    }
}

/// The directory for a source; `None` where the user wants none, or has no place for it.
pub(super) fn of(source: &Source, chosen: &Chosen) -> Option<StorePlan> {
    let contents_bytes_max = chosen.disk_bytes_max?;
    let address = source.address.to_string();
    let name = name_of(address.as_bytes(), &source.path, rustix::process::geteuid().as_raw());
    let dir = places::cache_dir().and_then(|dir| places::make_private(&dir).map(|()| dir.join(name)));
    match dir {
        Ok(dir) => Some(StorePlan { dir, contents_bytes_max }),
        Err(error) => {
            note!("wirefs: nothing is kept on disk: {error}");
            None
        }
    }
}
