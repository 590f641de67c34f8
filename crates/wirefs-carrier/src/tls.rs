//! TLS 1.3 with pinned ed25519 keys: raw public keys (RFC 7250) in place of certificates.
//!
//! Both sides prove that they own their key by signing the handshake. The client compares the server's key with its
//! known-hosts file; the server looks the client's key up in its authorized-keys file. There is no certificate
//! authority.
//!
//! Bytes inside the TLS stream: the server sends one greeting byte when it has accepted the client, then messages; the
//! client sends messages.

mod accept;
mod authorized;
pub mod base64;
mod cipher;
mod config;
mod dial;
mod handshake;
mod identity;
mod key;
mod known_hosts;
mod network;
mod private_file;
mod seal;
mod session;
mod shared;
mod sink;
mod source;
mod verify;

pub(crate) use accept::TlsAcceptor;
pub use authorized::{
    AuthorizedError, AuthorizedKeys, BrokenLine, KeyLine, KeyOptions, KeyRights, LineError, is_export_name,
};
pub use dial::TlsDial;
pub use identity::{Identity, IdentityError};
pub use key::{Fingerprint, PublicKey};
pub use known_hosts::{KnownHosts, KnownHostsError};
pub use network::Network;
pub use private_file::{FileError, Forbidden, read_secret};

/// Returns the message for a client whose key the server does not accept.
pub(crate) fn explain_refusal(line: &str) -> String {
    format!(
        "the server does not accept this key from here; to let it in, run this on the server \
         (with --authorized FILE if it was started with that):\n  wirefs allow {line}"
    )
}
