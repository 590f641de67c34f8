//! Where a mount keeps what it knows for the next one: below `$XDG_CACHE_HOME/wirefs`, a directory for each source.

use wirefs_carrier::Source;
use wirefs_driver::mount::StorePlan;
use wirefs_store::place::name_of;

use super::chosen::Chosen;
use crate::places;
use crate::terminal::note;

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
