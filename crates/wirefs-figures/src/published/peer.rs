//! By what files are written and read.

/// A way to the server's directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Peer {
    /// The directory itself, without a network.
    Local,
    /// sshfs with its defaults.
    Sshfs,
    /// wirefs over TLS, as it is without options.
    Wirefs,
    /// The same without a journal.
    Waiting,
    /// Its mode `commit`: `close` waits for the server's disk.
    Commit,
    /// Its mode `strict`: each write waits for the server.
    Strict,
    /// Its mode `session`: whole files, as AFS has them.
    Session,
    /// wirefs as it is without options but for `--no-prefetch`.
    Unasked,
}

impl Peer {
    /// The words for it.
    pub fn name(self) -> &'static str {
        match self {
            Peer::Local => "local",
            Peer::Sshfs => "sshfs",
            Peer::Wirefs => "wirefs",
            Peer::Waiting => "wirefs --no-journal",
            Peer::Commit => "wirefs --mode commit",
            Peer::Strict => "wirefs --mode strict",
            Peer::Session => "wirefs --mode session",
            Peer::Unasked => "wirefs --no-prefetch",
        }
    }

    /// What `wirefs mount` is told.
    pub(super) fn options(self) -> &'static [&'static str] {
        match self {
            Peer::Local | Peer::Sshfs | Peer::Wirefs => &[],
            Peer::Waiting => &["--no-journal"],
            Peer::Commit => &["--mode", "commit"],
            Peer::Strict => &["--mode", "strict"],
            Peer::Session => &["--mode", "session"],
            Peer::Unasked => &["--no-prefetch"],
        }
    }

    /// Whether its server can be killed and started again under it: what is mounted outlives that.
    pub(super) fn outlives_servers(self) -> bool {
        match self {
            Peer::Local | Peer::Sshfs | Peer::Strict | Peer::Session | Peer::Unasked => false,
            Peer::Wirefs | Peer::Waiting | Peer::Commit => true,
        }
    }
}
