//! The durability that `fsync` waits for.

use clap::ValueEnum;
use wirefs_driver::mount::FsyncWaits;

/// The durability that `fsync` waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Fsync {
    /// The server's disk, each time
    Each,
    /// The server's disk; but the journal of a database only has to be there before the database
    #[default]
    Server,
    /// This machine's disk, with the journal
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
