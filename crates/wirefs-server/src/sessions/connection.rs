//! One connection: Tversion, then Tattach, then requests.
//!
//! ```text
//!          Tversion op2              Tattach            the tree agrees
//!   Fresh ─────────────► Negotiated ─────────► Attaching ─────────────► Attached
//!     │ other version        ▲                     │ the tree refuses
//!     ▼ Rversion unknown     └─────────────────────┘ Rerror
//!   Fresh
//! ```
//! With FEATURE_JOIN, a Fresh connection becomes a data connection instead ([`data`]). While another session is
//! exclusive, a Tattach is held before it goes to the tree.
//!
//! Any other message in a stage is a fault of the peer and ends the connection. Tping and Tflush are answered in
//! each stage after Fresh.

mod version;

pub(super) use version::packs;

use super::data;
use super::party::Party;
use super::{ConnectionKey, JobKey, ServerOutput, Sessions};
use crate::blame::{CloseReason, PeerFault};
use crate::limits::CONNECTIONS_MAX;
use crate::saved_ledger::LedgerRecord;
use crate::tree::SessionKey;
use bytes::Bytes;
use std::collections::BTreeMap;
use wirefs_op::limits::{MESSAGE_BYTES_MAX, REQUESTS_MAX};
use wirefs_op::message::error::Rerror;
use wirefs_op::message::number::Tnumber;
use wirefs_op::message::ping::Rping;
use wirefs_op::message::version::Tversion;
use wirefs_op::wire::Text;
use wirefs_op::{Errno, NOTAG, Reply, Request, Tag, Time, TreePath};

/// The stage of a connection.
#[derive(Clone, Debug)]
pub(super) enum Stage {
    Fresh,
    /// The saved ledger of its session is being loaded.
    LoadingLedger(Tversion),
    Negotiated(SessionKey),
    /// Its Tattach waits for an exclusive session.
    Held(SessionKey, Tag, TreePath),
    Attaching(SessionKey, Tag, TreePath, JobKey),
    Attached(SessionKey),
    /// A data connection.
    Data(SessionKey),
}

/// The use of a tag.
#[derive(Clone, Copy, Debug)]
pub(super) enum Outstanding {
    /// A job.
    Job(JobKey),
    /// A Tflush that waits for the end of a job.
    Flush(JobKey),
}

/// The client of a connection.
#[derive(Debug, Default)]
pub(super) struct Peer {
    pub(super) party: Party,
    /// Whether it may change nothing.
    pub(super) is_read_only: bool,
}

/// The state of one connection.
#[derive(Debug)]
pub(super) struct ConnectionState {
    pub(super) stage: Stage,
    pub(super) msize: usize,
    pub(super) peer: Peer,
    /// The start of the connection, or of its last attempt to attach.
    pub(super) since: Time,
    /// Whether data connections were negotiated, or this is one.
    pub(super) data: bool,
    /// Whether leases were negotiated.
    pub(super) leases: bool,
    /// Whether numbered changes were negotiated.
    ledger: bool,
    /// Whether provisional ids and exclusive sessions were negotiated.
    alone: bool,
    /// Whether the client wants to know the times of its requests.
    pub(super) times: bool,
    /// The number of the next change, after the first Tnumber.
    number: Option<u64>,
    /// The tags in use.
    pub(super) tags: BTreeMap<Tag, Outstanding>,
    /// Tags that the client may reuse, although the last reply may not be queued yet.
    pub(super) answering: BTreeMap<Tag, JobKey>,
}

impl ConnectionState {
    /// Its session.
    pub(super) fn session(&self) -> Option<SessionKey> {
        match &self.stage {
            Stage::Fresh | Stage::LoadingLedger(_) => None,
            Stage::Negotiated(session)
            | Stage::Held(session, ..)
            | Stage::Attaching(session, ..)
            | Stage::Attached(session)
            | Stage::Data(session) => Some(*session),
        }
    }

    /// Its session, if this is a data connection.
    pub(super) fn data_session(&self) -> Option<SessionKey> {
        match &self.stage {
            Stage::Data(session) => Some(*session),
            Stage::Fresh
            | Stage::LoadingLedger(_)
            | Stage::Negotiated(_)
            | Stage::Held(..)
            | Stage::Attaching(..)
            | Stage::Attached(_) => None,
        }
    }

    /// The held Tattach.
    pub(super) fn held(&self) -> Option<(SessionKey, Tag, TreePath)> {
        match &self.stage {
            Stage::Held(session, tag, path) => Some((*session, *tag, path.clone())),
            Stage::Fresh
            | Stage::LoadingLedger(_)
            | Stage::Negotiated(_)
            | Stage::Attaching(..)
            | Stage::Attached(_)
            | Stage::Data(_) => None,
        }
    }

    /// Whether its Tattach has no answer yet.
    pub(super) fn is_attaching(&self) -> bool {
        matches!(self.stage, Stage::Held(..) | Stage::Attaching(..))
    }

    /// Whether it is attached, or will be.
    pub(super) fn is_attached_or_attaching(&self) -> bool {
        self.is_attaching() || matches!(self.stage, Stage::Attached(_))
    }

    /// Whether it is attached and its session may become exclusive.
    pub(super) fn wants_exclusive(&self) -> bool {
        self.alone && self.leases && matches!(self.stage, Stage::Attached(_))
    }

    /// Whether requests may name created objects by change numbers.
    pub(super) fn may_use_provisional_ids(&self) -> bool {
        self.alone
    }

    /// Takes the number for a change.
    pub(super) fn next_number(&mut self) -> Option<u64> {
        let number = self.number?;
        self.number = number.checked_add(1);
        Some(number)
    }

    /// Frees the tag of a job. Returns false if the tag has another use by now.
    pub(super) fn forget(&mut self, tag: Tag, key: JobKey) -> bool {
        match self.tags.get(&tag) {
            Some(Outstanding::Job(job)) if *job == key => self.tags.remove(&tag).is_some(),
            Some(Outstanding::Job(_) | Outstanding::Flush(_)) | None => false,
        }
    }

    fn jobs(&self) -> Vec<JobKey> {
        let job = |outstanding: &Outstanding| match outstanding {
            Outstanding::Job(key) => Some(*key),
            Outstanding::Flush(_) => None,
        };
        self.tags.values().filter_map(job).chain(self.answering.values().copied()).collect()
    }
}

impl Sessions {
    pub(super) fn connected(&mut self, now: Time, connection: ConnectionKey) {
        if self.connections.len() >= CONNECTIONS_MAX {
            let why = CloseReason::ConnectionsFull;
            self.outputs.push_back(ServerOutput::Close { connection, why });
            return;
        }
        let state = ConnectionState {
            stage: Stage::Fresh,
            msize: MESSAGE_BYTES_MAX,
            peer: Peer::default(),
            since: now,
            data: false,
            leases: false,
            ledger: false,
            alone: false,
            times: false,
            number: None,
            tags: BTreeMap::new(),
            answering: BTreeMap::new(),
        };
        self.connections.insert(connection, state);
    }

    /// Notes that the peer may change nothing.
    pub(super) fn restricted(&mut self, connection: ConnectionKey) {
        if let Some(state) = self.connections.get_mut(&connection) {
            state.peer.is_read_only = true;
        }
    }

    /// Removes a connection and cancels its requests.
    pub(super) fn disconnected(&mut self, now: Time, connection: ConnectionKey) {
        self.leases_disconnected(now, connection);
        let Some(state) = self.connections.remove(&connection) else {
            return;
        };
        if let Stage::Attaching(.., job) = state.stage {
            self.end_leasing(now, job);
        }
        self.abandon(now, state.jobs());
        if let (Some(session), None) = (state.session(), state.data_session()) {
            self.close_data_connections(now, session);
            self.connection_lost(now, session, connection);
        }
    }

    /// Closes a connection.
    pub(super) fn close(&mut self, now: Time, connection: ConnectionKey, why: CloseReason) {
        self.disconnected(now, connection);
        self.outputs.push_back(ServerOutput::Close { connection, why });
    }

    /// Handles a message while the server is about to stop: only recall answers.
    pub(super) fn received_late(&mut self, now: Time, connection: ConnectionKey, body: Bytes) {
        // An exclusive client answers the recall after its unconfirmed changes, so these are still executed.
        if self.is_recalling_exclusive(connection) {
            return self.received(now, connection, body);
        }
        if let Ok((NOTAG, Request::Recalled(recalled))) = Request::decode(body) {
            self.renew_leases(now, connection);
            self.recalled(now, connection, recalled.serial);
        }
    }

    pub(super) fn received(&mut self, now: Time, connection: ConnectionKey, body: Bytes) {
        self.renew_leases(now, connection);
        self.confirm(connection);
        if let Err(fault) = self.dispatch(now, connection, body) {
            self.blame(now, connection, fault);
        }
    }

    /// Notes that the client received Rattach: it has sent a message over an attached connection.
    fn confirm(&mut self, connection: ConnectionKey) {
        let stage = self.connections.get(&connection).map(|state| &state.stage);
        if let Some(Stage::Attached(session)) = stage
            && let Some(owner) = self.sessions.get_mut(session)
        {
            owner.is_confirmed = true;
        }
    }

    /// Reports a protocol violation to the client and closes the connection.
    fn blame(&mut self, now: Time, connection: ConnectionKey, fault: PeerFault) {
        let ename = Text::new(fault.to_string().as_bytes());
        let reply = Reply::Error(Rerror { errno: Errno::Protocol, ename });
        self.outputs.push_back(ServerOutput::Reply { connection, tag: NOTAG, reply });
        self.close(now, connection, CloseReason::Fault(fault));
    }

    fn dispatch(&mut self, now: Time, connection: ConnectionKey, body: Bytes) -> Result<(), PeerFault> {
        let Some(state) = self.connections.get(&connection) else {
            return Ok(());
        };
        let bytes = body.len().saturating_add(4);
        let msize = state.msize;
        if bytes > msize {
            return Err(PeerFault::Oversized { bytes, msize });
        }
        let (tag, request) = Request::decode(body.clone())?;
        let is_version = matches!(request, Request::Version(_));
        match (&state.stage, is_version) {
            // The driver hands in nothing else while the ledger is being loaded.
            (Stage::Fresh, false) | (Stage::LoadingLedger(_), _) => return Err(PeerFault::NotVersion),
            (Stage::Fresh, true) | (_, false) => {}
            (_, true) => return Err(PeerFault::SecondVersion),
        }
        let is_notification = matches!(request, Request::Recalled(_) | Request::Number(_));
        if (is_version || is_notification) != (tag == NOTAG) {
            return Err(PeerFault::StrayTag(tag));
        }
        if state.tags.contains_key(&tag) {
            return Err(PeerFault::TagInUse(tag));
        }
        // A notification needs no tag.
        if !is_notification && state.tags.len() >= REQUESTS_MAX {
            return Err(PeerFault::TooManyRequests);
        }
        match request {
            Request::Version(version) => self.negotiate(now, connection, version),
            Request::Ping(_) => self.reply(connection, tag, Reply::Ping(Rping {})),
            Request::Flush(flush) => {
                self.flush(now, connection, tag, flush.oldtag);
                Ok(())
            }
            other if state.data_session().is_some() && !data::is_allowed(&other) => {
                Err(PeerFault::NotData(other.name()))
            }
            Request::Attach(attach) => self.attach(now, connection, tag, attach.path),
            Request::Recalled(recalled) if state.leases => {
                self.recalled(now, connection, recalled.serial);
                Ok(())
            }
            Request::Number(number) if state.ledger => self.number(connection, &number),
            Request::Recalled(_) | Request::Number(_) => Err(PeerFault::NotAgreed(request.name())),
            Request::Remove(_)
            | Request::Get(_)
            | Request::Put(_)
            | Request::Rename(_)
            | Request::Link(_)
            | Request::Xattr(_)
            | Request::Statfs(_)
            | Request::Lock(_)
            | Request::Allocate(_)
            | Request::Copy(_)
            | Request::Seek(_)
            | Request::Commit(_)
            | Request::Find(_) => match state.stage {
                Stage::Attached(session) | Stage::Data(session) => {
                    let request = self.unpinned(session, request, &body)?;
                    self.admit(now, (connection, session), tag, request, bytes)
                }
                Stage::Fresh
                | Stage::LoadingLedger(_)
                | Stage::Negotiated(_)
                | Stage::Held(..)
                | Stage::Attaching(..) => Err(PeerFault::NotAttached),
            },
        }
    }

    /// Handles Tnumber.
    fn number(&mut self, connection: ConnectionKey, announced: &Tnumber) -> Result<(), PeerFault> {
        let Some(state) = self.connections.get_mut(&connection) else {
            return Ok(());
        };
        let Some(session) = state.session() else {
            return Err(PeerFault::NotVersion);
        };
        state.number = Some(announced.number);
        let owner = self.sessions.get_mut(&session);
        let Some(owner) = owner else { return Ok(()) };
        if owner.ledger.answered(announced.answered, announced.number).is_err() {
            return Err(PeerFault::StrayNumber(announced.number));
        }
        owner.fence.acknowledge(announced);
        if self.saves_ledgers {
            self.outputs.push_back(ServerOutput::AppendLedger(
                owner.id,
                LedgerRecord::Acknowledged(announced.answered),
            ));
        }
        Ok(())
    }

    pub(super) fn enter(&mut self, connection: ConnectionKey, stage: Stage) {
        if let Some(state) = self.connections.get_mut(&connection) {
            state.stage = stage;
        }
    }

    /// Sends a reply. The result is always `Ok`, for use as a tail expression.
    pub(super) fn reply(
        &mut self,
        connection: ConnectionKey,
        tag: Tag,
        reply: Reply,
    ) -> Result<(), PeerFault> {
        self.outputs.push_back(ServerOutput::Reply { connection, tag, reply });
        Ok(())
    }
}
