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
    /// wirefs over TLS, as it is without options: alone, it answers changes before the server has them.
    Wirefs,
    /// The same without a journal, where each change waits for the server.
    Waiting,
    /// The same as `Wirefs`, with one connection whatever its socket buffers are.
    One,
}

impl Peer {
    /// All of them, in the order of reports.
    pub const ALL: [Peer; 6] = [Peer::Local, Peer::Bare, Peer::Sshfs, Peer::Wirefs, Peer::Waiting, Peer::One];

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Peer::Local => "local",
            Peer::Bare => "bare TCP",
            Peer::Sshfs => "sshfs",
            Peer::Wirefs => "wirefs",
            Peer::Waiting => "wirefs --no-journal",
            Peer::One => "wirefs -o connections=1",
        }
    }

    /// Whether it shows the server's tree from afar, which is what is to be judged.
    pub(super) fn is_remote_tree(self) -> bool {
        match self {
            Peer::Local | Peer::Bare => false,
            Peer::Sshfs | Peer::Wirefs | Peer::Waiting | Peer::One => true,
        }
    }

    /// Whether its programs are ours.
    pub(super) fn is_wirefs(self) -> bool {
        match self {
            Peer::Local | Peer::Bare | Peer::Sshfs => false,
            Peer::Wirefs | Peer::Waiting | Peer::One => true,
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
            "no-journal" => Ok(Peer::Waiting),
            "one-connection" => Ok(Peer::One),
            other => {
                Err(format!("`{other}` is none of local, bare, sshfs, wirefs, no-journal, one-connection"))
            }
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
            Peer::Wirefs | Peer::Waiting | Peer::One => &[("fusermount3", "fuse3")],
        }
    }
}
