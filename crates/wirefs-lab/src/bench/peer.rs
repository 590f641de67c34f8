//! What workloads are measured on.

/// A way to reach the server's directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Peer {
    /// The directory itself, without a network.
    Local,
    /// A bare TCP transfer of as many bytes; only for the steps that are one.
    Bare,
    /// sshfs with its defaults, to an sshd of its own.
    Sshfs,
    /// wirefs over TLS.
    Wirefs,
    /// The same with a journal, where changes are answered before the server has them.
    Journal,
}

impl Peer {
    /// All of them, in the order of reports.
    pub const ALL: [Peer; 5] = [Peer::Local, Peer::Bare, Peer::Sshfs, Peer::Wirefs, Peer::Journal];

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Peer::Local => "local",
            Peer::Bare => "bare TCP",
            Peer::Sshfs => "sshfs",
            Peer::Wirefs => "wirefs",
            Peer::Journal => "wirefs --journal",
        }
    }

    /// Whether it shows the server's tree from afar, which is what is to be judged.
    pub(super) fn is_remote_tree(self) -> bool {
        match self {
            Peer::Local | Peer::Bare => false,
            Peer::Sshfs | Peer::Wirefs | Peer::Journal => true,
        }
    }

    /// Whether its programs are ours.
    pub(super) fn is_wirefs(self) -> bool {
        match self {
            Peer::Local | Peer::Bare | Peer::Sshfs => false,
            Peer::Wirefs | Peer::Journal => true,
        }
    }

    /// Reads a word of the command line.
    ///
    /// # Errors
    /// What could have been written.
    pub fn parse(word: &str) -> Result<Peer, String> {
        match word {
            "local" => Ok(Peer::Local),
            "bare" => Ok(Peer::Bare),
            "sshfs" => Ok(Peer::Sshfs),
            "wirefs" => Ok(Peer::Wirefs),
            "journal" => Ok(Peer::Journal),
            other => Err(format!("`{other}` is none of local, bare, sshfs, wirefs, journal")),
        }
    }

    /// Programs that it needs, each with the Debian package that has it.
    pub(super) fn programs(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Peer::Local | Peer::Bare => &[],
            Peer::Sshfs => &[
                ("sshfs", "sshfs"),
                ("ssh-keygen", "openssh-client"),
                ("sshd", "openssh-server"),
                ("fusermount3", "fuse3"),
            ],
            Peer::Wirefs | Peer::Journal => &[("fusermount3", "fuse3")],
        }
    }
}
