//! Tversion: negotiates the protocol and identifies the session.

#[cfg(test)]
mod tests;

use crate::mix::{GOLDEN, mix};
use crate::wire::{Malformed, Reader, Text, Wire, Writer, wire_struct};

/// The protocol version of this crate.
pub const VERSION: &[u8] = b"op2";

/// Feature: the server recalls leased objects before they change. Only with this feature are there leases in
/// Rattach, [`Stat::leased`](crate::Stat::leased), Rrecall and Trecalled.
pub const FEATURE_LEASES: u64 = 1;

/// Feature: changes are numbered, and a change that is sent again gets its first reply. Only with this
/// feature is there Tnumber.
pub const FEATURE_LEDGER: u64 = 2;

/// Feature: requests may refer to an object before the change that creates it was executed
/// ([`FileId::provisional`](crate::FileId::provisional)), and the server grants exclusive sessions to clients
/// with leases. Requires [`FEATURE_LEDGER`]. Only with this feature is there Ralone.
pub const FEATURE_ALONE: u64 = 4;

/// Feature: a Tput with SYNC alone is a barrier
/// ([`Tput::is_barrier`](crate::message::put::Tput::is_barrier)). No later change begins before all earlier
/// ones to the object are on stable storage, and no contents change if that fails. Requires
/// [`FEATURE_LEDGER`].
pub const FEATURE_BARRIERS: u64 = 8;

/// Feature: the session may have data connections beside its first one ([`FEATURE_JOIN`]), and the server
/// reports when one would help ([`Rlimited`](crate::message::limited::Rlimited)).
pub const FEATURE_DATA: u64 = 16;

/// If requested alone, makes the connection a data connection of a session whose first connection has
/// negotiated [`FEATURE_DATA`]. A data connection carries only reads of file contents.
pub const FEATURE_JOIN: u64 = 32;

/// Feature: the server reports the times that requests take there
/// ([`Rtimes`](crate::message::times::Rtimes)).
pub const FEATURE_TIMES: u64 = 64;

/// Feature: both sides may send [packed messages](crate::packed). Also allowed beside [`FEATURE_JOIN`].
pub const FEATURE_PACKED: u64 = 128;

/// Identifies a session over all its connections. The client chooses it at random. Knowledge of the id gives
/// control of the session, so it is a secret of client and server.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId(pub [u8; 16]);

impl std::fmt::Debug for SessionId {
    /// Shows enough to distinguish sessions, but not enough to take one over.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [a, b, ..] = self.0;
        write!(f, "SessionId({a:02x}{b:02x}…)")
    }
}

impl Wire for SessionId {
    fn put(&self, writer: &mut Writer) {
        for byte in self.0 {
            byte.put(writer);
        }
    }
    fn take(reader: &mut Reader) -> Result<Self, Malformed> {
        let mut id = [0; 16];
        for byte in &mut id {
            *byte = u8::take(reader)?;
        }
        Ok(SessionId(id))
    }
}

/// The boot id: a new value means that uncommitted data may be lost (the write verifier of NFSv4, RFC 8881,
/// 18.32). A restart of the server process alone keeps it, since the kernel still has the data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BootId(pub u64);

impl BootId {
    /// The version to send for an object with this stored version; never 0. After a power loss, the disk may have an
    /// earlier version with other contents, so versions of different boots are never equal.
    pub const fn version(self, stored: u64) -> u64 {
        match mix(stored ^ mix(self.0 ^ GOLDEN)) {
            0 => 1,
            version => version,
        }
    }
}

impl Wire for BootId {
    fn put(&self, writer: &mut Writer) {
        self.0.put(writer);
    }
    fn take(reader: &mut Reader) -> Result<Self, Malformed> {
        u64::take(reader).map(BootId)
    }
}

wire_struct! {
    /// `Tversion tag[2] msize[4] version[s] features[8] session[16]`
    pub struct Tversion {
        /// The largest message that the client accepts, in bytes.
        msize: u32,
        /// [`VERSION`], or the name of a later version.
        version: Text,
        /// The optional features that the client supports, one bit each: [`FEATURE_LEASES`],
        /// [`FEATURE_LEDGER`], [`FEATURE_ALONE`], [`FEATURE_BARRIERS`], [`FEATURE_DATA`], [`FEATURE_JOIN`],
        /// [`FEATURE_TIMES`], [`FEATURE_PACKED`].
        /// The server ignores unknown ones.
        features: u64,
        /// The session to open or to resume.
        session: SessionId,
    }
}

wire_struct! {
    /// `Rversion tag[2] msize[4] version[s] features[8] boot[8] resumed[1] number[8]`
    pub struct Rversion {
        /// The largest message that either side may send from now on, in bytes.
        msize: u32,
        /// The common version, or `unknown`.
        version: Text,
        /// The common features.
        features: u64,
        /// The server's boot id.
        boot: BootId,
        /// True if the session existed: its open files and locks are still valid.
        resumed: bool,
        /// A number above those of all changes that the session has sent; 0 if the session is new.
        number: u64,
    }
}
