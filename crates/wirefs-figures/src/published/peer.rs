//! The compared file systems.

/// A file system, with its options, that is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PublishedPeer {
    /// The directory itself, without a network.
    Local,
    /// sshfs with its defaults.
    Sshfs,
    /// wirefs over TLS, without options.
    Wirefs,
    /// wirefs without a journal.
    NoJournal,
    /// wirefs in mode `commit`: `close` waits for the server's disk.
    Commit,
    /// wirefs in mode `strict`: each write waits for the server.
    Strict,
    /// wirefs in mode `session`: whole files, as in AFS.
    Session,
    /// wirefs without prefetching.
    NoPrefetch,
}

impl PublishedPeer {
    /// Returns the name for reports.
    pub fn name(self) -> &'static str {
        match self {
            PublishedPeer::Local => "local",
            PublishedPeer::Sshfs => "sshfs",
            PublishedPeer::Wirefs => "wirefs",
            PublishedPeer::NoJournal => "wirefs --no-journal",
            PublishedPeer::Commit => "wirefs --mode commit",
            PublishedPeer::Strict => "wirefs --mode strict",
            PublishedPeer::Session => "wirefs --mode session",
            PublishedPeer::NoPrefetch => "wirefs --no-prefetch",
        }
    }

    /// Returns the options of `wirefs mount`.
    pub(super) fn options(self) -> &'static [&'static str] {
        match self {
            PublishedPeer::Local | PublishedPeer::Sshfs | PublishedPeer::Wirefs => &[],
            PublishedPeer::NoJournal => &["--no-journal"],
            PublishedPeer::Commit => &["--mode", "commit"],
            PublishedPeer::Strict => &["--mode", "strict"],
            PublishedPeer::Session => &["--mode", "session"],
            PublishedPeer::NoPrefetch => &["--no-prefetch"],
        }
    }

    /// Returns whether the mount survives a restart of its server.
    pub(super) fn outlives_servers(self) -> bool {
        match self {
            PublishedPeer::Local
            | PublishedPeer::Sshfs
            | PublishedPeer::Strict
            | PublishedPeer::Session
            | PublishedPeer::NoPrefetch => false,
            PublishedPeer::Wirefs | PublishedPeer::NoJournal | PublishedPeer::Commit => true,
        }
    }
}
