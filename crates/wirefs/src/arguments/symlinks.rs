//! The symbolic links of a server that programs may follow.

use clap::ValueEnum;

/// The symbolic links of a server that programs may follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Symlinks {
    /// All
    All,
    /// Those that stay in the mount; the others fail with EACCES
    Inside,
    /// None: following one fails with ELOOP, and reading it works
    None,
}
