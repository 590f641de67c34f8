//! The durability that `fsync` waits for.

use clap::ValueEnum;
use wirefs_mount::FsyncWaits;

/// The durability that `fsync` waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Fsync {
    /// The server's disk, for each fsync
    Each,
    /// The server's disk; syncs of a database's journal only order writes
    #[default]
    Server,
    /// The local disk, with the journal
    Journal,
}

impl From<Fsync> for FsyncWaits {
    fn from(fsync: Fsync) -> FsyncWaits {
        match fsync {
            Fsync::Each => FsyncWaits::Each,
            Fsync::Server => FsyncWaits::Server,
            Fsync::Journal => FsyncWaits::Journal,
        }
    }
}
