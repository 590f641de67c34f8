//! Errors of dialing, as messages for users.

use std::io;
use std::path::PathBuf;

use crate::ether::EtherError;
use crate::ssh::indented;
use crate::tls::{Fingerprint, IdentityError, KnownHostsError};

/// A dial failed. The text of each variant names the next step.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    /// The host's name has no address.
    #[error("cannot find the address of `{host}`: {error}; check the name and this machine's network")]
    Resolve {
        /// The name.
        host: String,
        /// The resolver's error.
        error: io::Error,
    },
    /// The connection was refused, or the network path is blocked.
    #[error("cannot connect to {address}: {error}{}", connect_hint(.error))]
    Connect {
        /// The address.
        address: String,
        /// The system's error.
        error: io::Error,
    },
    /// The connection is established, but the peer did not finish the handshake in time.
    #[error(
        "{address} accepted the connection but did not answer in time; is a wirefs server behind that port?"
    )]
    Silent {
        /// The peer.
        address: String,
    },
    /// The handshake failed.
    #[error("{address} does not speak TLS 1.3 as wirefs does: {error}; is a wirefs server behind that port?")]
    Handshake {
        /// The peer.
        address: String,
        /// The error.
        error: String,
    },
    /// The server has another key than before.
    #[error(
        "THE KEY OF {host} HAS CHANGED. Someone may be listening in between, or the server has a new identity.\n\
         known key:   {known} ({}:{line})\n\
         shown key:   {shown}\n\
         If the server's owner confirms the new key, delete that line and mount again.", file.display()
    )]
    HostKeyChanged {
        /// `host:port`.
        host: String,
        /// The pinned key.
        known: Fingerprint,
        /// The key that it presents now.
        shown: Fingerprint,
        /// The known-hosts file.
        file: PathBuf,
        /// The line number, from 1.
        line: usize,
    },
    /// The server does not accept our key.
    #[error("{}", crate::tls::explain_refusal(.line))]
    Refused {
        /// The line that the server's authorized-keys file lacks.
        line: String,
    },
    /// Our own cards cannot be used.
    #[error(transparent)]
    Ether(#[from] EtherError),
    /// An `ether` address without the peer's hardware address.
    #[error(
        "{address} names no peer; write ether://MAC@CARD/path, with the hardware address that the server said when it \
         started"
    )]
    NoPeer {
        /// The address.
        address: String,
    },
    /// Our own key cannot be used.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The known-hosts file cannot be used.
    #[error(transparent)]
    KnownHosts(#[from] KnownHostsError),
    /// The ssh program could not be started.
    #[error(
        "cannot start `{program}`: {error}; install the OpenSSH client, or name another with -o ssh_command="
    )]
    SshMissing {
        /// The program.
        program: String,
        /// The system's error.
        error: io::Error,
    },
    /// ssh could not log in.
    #[error("ssh could not connect to {login}; check that `{command}` works{}", indented(.stderr))]
    SshFailed {
        /// `[user@]host`.
        login: String,
        /// The command line that reaches the host.
        command: String,
        /// The end of ssh's standard error.
        stderr: String,
    },
    /// ssh could not log in without a user's answer.
    #[error(
        "{login} asks for a password or another answer; `wirefs reconnect MOUNTPOINT` asks you for it{}",
        indented(.stderr)
    )]
    LoginNeeded {
        /// `[user@]host`.
        login: String,
        /// The end of ssh's standard error.
        stderr: String,
    },
    /// The user ended `wirefs reconnect`.
    #[error("`wirefs reconnect` ended before the login was complete")]
    NotAnswered,
    /// The login works, but wirefs is not installed there.
    #[error(
        "wirefs is not installed on {login}; install it there so that `{command} wirefs --version` works"
    )]
    RemoteMissing {
        /// `[user@]host`.
        login: String,
        /// The command line that reaches the host.
        command: String,
    },
    /// The login works, but the host starts no programs.
    #[error("{login} allows file transfer only, and starts no programs; ask its administrator for a shell{}", indented(.output))]
    SftpOnly {
        /// `[user@]host`.
        login: String,
        /// The output of the host.
        output: String,
    },
    /// The login works, but this program could not be copied there.
    #[error("wirefs is not installed on {login}, and cannot be copied there: {what}{}", indented(.stderr))]
    NotCopied {
        /// `[user@]host`.
        login: String,
        /// The cause.
        what: String,
        /// The end of the host's error output.
        stderr: String,
    },
    /// The remote wirefs ended with an error.
    #[error("wirefs on {login} {what}{}", indented(.stderr))]
    RemoteFailed {
        /// `[user@]host`.
        login: String,
        /// The cause.
        what: String,
        /// The end of its standard error.
        stderr: String,
    },
    /// A subsystem of ssh cannot be used.
    #[error("{name} on {login} {what}{}", indented(.stderr))]
    SubsystemFailed {
        /// `[user@]host`.
        login: String,
        /// The subsystem.
        name: &'static str,
        /// The cause.
        what: String,
        /// The end of ssh's standard error.
        stderr: String,
    },
    /// A program that carries the frames is not installed.
    #[error("`{program}` is not installed; it belongs to wirefs: install it beside wirefs, or in $PATH")]
    ProgramMissing {
        /// The program.
        program: String,
    },
    /// A program that carries the frames ended, or did not answer.
    #[error("`{program}` does not connect{}", indented(.stderr))]
    ProgramFailed {
        /// The program.
        program: String,
        /// The end of its standard error.
        stderr: String,
    },
    /// The user has paused the connections.
    #[error("paused; `wirefs resume` connects again")]
    Paused,
    /// This process is out of file descriptors, threads or memory.
    #[error("this machine has no resources left for a connection: {0}")]
    Resources(io::Error),
}

fn connect_hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => {
            "; start the server there with `wirefs serve DIR`, or check the port"
        }
        io::ErrorKind::NotFound => {
            "; there is no such socket, start the server with `wirefs serve DIR --listen`"
        }
        io::ErrorKind::PermissionDenied => "; only the user who runs the server may use this socket",
        io::ErrorKind::WouldBlock => "; its program is there but accepts nobody",
        io::ErrorKind::TimedOut => "; the host is down or a firewall drops the connection",
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => {
            "; no route leads there, check this machine's network"
        }
        _ => "",
    }
}
