//! The compared file systems.

/// A file system, with its options, that is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BenchPeer {
    /// The directory itself, without a network.
    Local,
    /// A bare TCP transfer of the same number of bytes; only for steps that are transfers.
    Bare,
    /// sshfs with its defaults, to its own sshd.
    Sshfs,
    /// wirefs over TLS, without options: as the sole client it answers changes before the server has them.
    Wirefs,
    /// wirefs without a journal: each change waits for the server.
    NoJournal,
    /// wirefs with one connection, regardless of its socket buffers.
    OneConnection,
    /// wirefs over SFTP, to the sshd of sshfs.
    Sftp,
}

impl BenchPeer {
    /// All peers, in the order of reports.
    pub const ALL: [BenchPeer; 7] = [
        BenchPeer::Local,
        BenchPeer::Bare,
        BenchPeer::Sshfs,
        BenchPeer::Wirefs,
        BenchPeer::NoJournal,
        BenchPeer::OneConnection,
        BenchPeer::Sftp,
    ];

    /// Returns the name for reports.
    pub fn name(self) -> &'static str {
        match self {
            BenchPeer::Local => "local",
            BenchPeer::Bare => "bare TCP",
            BenchPeer::Sshfs => "sshfs",
            BenchPeer::Wirefs => "wirefs",
            BenchPeer::NoJournal => "wirefs --no-journal",
            BenchPeer::OneConnection => "wirefs -o connections=1",
            BenchPeer::Sftp => "wirefs over SFTP",
        }
    }

    /// Returns whether the peer is a remote file system, and not a baseline.
    pub(super) fn is_remote_tree(self) -> bool {
        match self {
            BenchPeer::Local | BenchPeer::Bare => false,
            BenchPeer::Sshfs
            | BenchPeer::Wirefs
            | BenchPeer::NoJournal
            | BenchPeer::OneConnection
            | BenchPeer::Sftp => true,
        }
    }

    /// Returns whether the client is wirefs.
    pub(super) fn is_wirefs(self) -> bool {
        match self {
            BenchPeer::Local | BenchPeer::Bare | BenchPeer::Sshfs => false,
            BenchPeer::Wirefs | BenchPeer::NoJournal | BenchPeer::OneConnection | BenchPeer::Sftp => true,
        }
    }

    /// Returns whether the server is an sshd.
    pub(super) fn needs_sshd(self) -> bool {
        match self {
            BenchPeer::Sshfs | BenchPeer::Sftp => true,
            BenchPeer::Local
            | BenchPeer::Bare
            | BenchPeer::Wirefs
            | BenchPeer::NoJournal
            | BenchPeer::OneConnection => false,
        }
    }

    /// Parses the name on the command line.
    ///
    /// # Errors
    /// Returns the list of the valid names.
    pub fn parse(word: &str) -> Result<BenchPeer, String> {
        match word {
            "local" => Ok(BenchPeer::Local),
            "bare" => Ok(BenchPeer::Bare),
            "sshfs" => Ok(BenchPeer::Sshfs),
            "wirefs" => Ok(BenchPeer::Wirefs),
            "no-journal" => Ok(BenchPeer::NoJournal),
            "one-connection" => Ok(BenchPeer::OneConnection),
            "sftp" => Ok(BenchPeer::Sftp),
            other => Err(format!(
                "`{other}` is not one of local, bare, sshfs, wirefs, no-journal, one-connection, sftp"
            )),
        }
    }

    /// Returns the required programs, each with its Debian package.
    pub(super) fn programs(self) -> &'static [(&'static str, &'static str)] {
        match self {
            BenchPeer::Local | BenchPeer::Bare => &[],
            BenchPeer::Sshfs => &[
                ("sshfs", "sshfs"),
                ("ssh-keygen", "openssh-client"),
                ("sshd", "openssh-server"),
                ("fusermount3", "fuse3"),
            ],
            BenchPeer::Sftp => &[
                ("ssh", "openssh-client"),
                ("ssh-keygen", "openssh-client"),
                ("sshd", "openssh-server"),
                ("fusermount3", "fuse3"),
            ],
            BenchPeer::Wirefs | BenchPeer::NoJournal | BenchPeer::OneConnection => {
                &[("fusermount3", "fuse3")]
            }
        }
    }
}
