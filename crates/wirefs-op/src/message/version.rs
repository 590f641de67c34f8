//! Tversion: agrees on the protocol and names the session.

#[cfg(test)]
mod tests;

use crate::wire::{Malformed, Reader, Text, Wire, Writer, wire_struct};

/// The protocol that this crate speaks.
pub const VERSION: &[u8] = b"op2";

/// Feature: the server recalls what it leased before it changes. Only where it was agreed on are there leases in Rattach,
/// [`Stat::leased`](crate::Stat::leased), Rrecall and Trecalled.
pub const FEATURE_LEASES: u64 = 1;

/// Feature: changes are numbered, and one that is sent again gets the reply that it got the first time. Only where it was
/// agreed on is there Tnumber.
pub const FEATURE_LEDGER: u64 = 2;

/// Feature: requests may name what a change creates before it is carried out ([`FileId::provisional`](crate::FileId::provisional)),
/// and a session that takes leases is told whether it is alone. Only together with [`FEATURE_LEDGER`], and only where it was
/// agreed on is there Ralone.
pub const FEATURE_ALONE: u64 = 4;

/// Feature: a Tput that does nothing but SYNC is a barrier ([`Tput::is_barrier`](crate::message::put::Tput::is_barrier)): no change behind
/// it begins before all that came before it is on stable storage, as far as it is the object's, and no contents change if that
/// fails. Only together with [`FEATURE_LEDGER`].
pub const FEATURE_BARRIERS: u64 = 8;

/// Feature: the session may have data connections beside its first one ([`FEATURE_JOIN`]), and is told when one would help
/// ([`Rlimited`](crate::message::limited::Rlimited)).
pub const FEATURE_DATA: u64 = 16;

/// Asked for alone, this makes the connection a data connection of a session whose first one agreed on [`FEATURE_DATA`]: it carries
/// reads of file data and nothing else.
pub const FEATURE_JOIN: u64 = 32;

/// Names a session, whatever connections it lives through. Chosen at random by the client; who knows it owns the
/// session, so it is a secret between the two.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId(pub [u8; 16]);

impl std::fmt::Debug for SessionId {
    /// Shows enough to tell sessions apart, not enough to take one over.
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

/// Names one life of the server's unwritten data: another number means that what was not committed may be lost (NFSv4's
/// write verifier, RFC 8881 §18.32). A mere restart of the server's process keeps it: the kernel still has the data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BootId(pub u64);

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
        /// The largest message that the client takes, in bytes.
        msize: u32,
        /// [`VERSION`], or what a later edition calls itself.
        version: Text,
        /// Optional parts of the protocol that the client knows, a bit each: [`FEATURE_LEASES`], [`FEATURE_LEDGER`],
        /// [`FEATURE_ALONE`], [`FEATURE_BARRIERS`], [`FEATURE_DATA`], [`FEATURE_JOIN`]. Others are ignored.
        features: u64,
        /// The session to open or to resume.
        session: SessionId,
    }
}

wire_struct! {
    /// `Rversion tag[2] msize[4] version[s] features[8] boot[8] resumed[1] number[8]`
    pub struct Rversion {
        /// The largest message that either side sends from now on, in bytes.
        msize: u32,
        /// The version that both speak, or `unknown`.
        version: Text,
        /// The features that both know.
        features: u64,
        /// This run of the server.
        boot: BootId,
        /// Whether the session was known: its open files and locks are still there.
        resumed: bool,
        /// Above the numbers of all changes that the session has sent; 0 where it was not known.
        number: u64,
    }
}
