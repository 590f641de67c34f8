//! Whose disk `fsync` waits for.

use clap::ValueEnum;

/// The disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Fsync {
    /// The server's
    Server,
    /// This machine's, with the journal
    Journal,
}
