//! One connection: Tversion, then Tattach, then requests.
//!
//! ```text
//!          Tversion op2          Tattach            the tree agrees
//!   Fresh ─────────────► Agreed ─────────► Attaching ─────────────► Attached
//!     │ other version      ▲                   │ the tree refuses
//!     ▼ Rversion unknown   └───────────────────┘ Rerror
//!   Fresh
//! ```
//! A Tversion that asks for that makes a Fresh connection Joined instead: a data connection ([`data`]).
//! While another session is alone, a Tattach is held before the tree is asked.
//!
//! Anything else at its wrong place is the client's fault and ends the connection. Tping and Tflush are answered
//! wherever the version is agreed on.

mod greeting;

use super::data;
use super::{ConnectionKey, JobKey, Output, Sessions};
use crate::blame::{Parting, PeerFault};
use crate::limits::CONNECTIONS_MAX;
use crate::notes::Note;
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

/// How far a connection is.
#[derive(Clone, Debug)]
pub(super) enum Stage {
    Fresh,
    /// What was noted of its session is being looked for.
    Recollecting(Tversion),
    Agreed(SessionKey),
    /// Its Tattach waits for somebody who is alone.
    Held(SessionKey, Tag, TreePath),
    Attaching(SessionKey, Tag, TreePath, JobKey),
    Attached(SessionKey),
    /// A data connection.
    Joined(SessionKey),
}

/// What a tag in use stands for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Outstanding {
    /// A job.
    Job(JobKey),
    /// A Tflush that waits for the end of a job.
    Flush(JobKey),
}

/// One connection.
#[derive(Debug)]
pub(super) struct Conversation {
    pub(super) stage: Stage,
    pub(super) msize: usize,
    /// The key of its peer, where that proved one.
    pub(super) identity: Option<[u8; 32]>,
    /// Whether data connections were agreed on, or it is one.
    pub(super) data: bool,
    /// Whether leases were agreed on.
    pub(super) leases: bool,
    /// Whether changes may be numbered.
    ledger: bool,
    /// Whether what they create may be named by their numbers, and the client wants to know whether it is alone.
    alone: bool,
    /// The number of the next change, once the client has told one.
    number: Option<u64>,
    /// The tags in use.
    pub(super) tags: BTreeMap<Tag, Outstanding>,
    /// Tags that may be used again although the last reply to the job before may not be in the queue yet.
    pub(super) answering: BTreeMap<Tag, JobKey>,
}

impl Conversation {
    /// The session that it speaks for.
    pub(super) fn session(&self) -> Option<SessionKey> {
        match &self.stage {
            Stage::Fresh | Stage::Recollecting(_) => None,
            Stage::Agreed(session)
            | Stage::Held(session, ..)
            | Stage::Attaching(session, ..)
            | Stage::Attached(session)
            | Stage::Joined(session) => Some(*session),
        }
    }

    /// The session whose data connection it is.
    pub(super) fn joined(&self) -> Option<SessionKey> {
        match &self.stage {
            Stage::Joined(session) => Some(*session),
            Stage::Fresh
            | Stage::Recollecting(_)
            | Stage::Agreed(_)
            | Stage::Held(..)
            | Stage::Attaching(..)
            | Stage::Attached(_) => None,
        }
    }

    /// The Tattach that waits.
    pub(super) fn held(&self) -> Option<(SessionKey, Tag, TreePath)> {
        match &self.stage {
            Stage::Held(session, tag, path) => Some((*session, *tag, path.clone())),
            Stage::Fresh
            | Stage::Recollecting(_)
            | Stage::Agreed(_)
            | Stage::Attaching(..)
            | Stage::Attached(_)
            | Stage::Joined(_) => None,
        }
    }

    /// Whether its Tattach came and is not answered.
    pub(super) fn is_coming(&self) -> bool {
        matches!(self.stage, Stage::Held(..) | Stage::Attaching(..))
    }

    /// Whether it is attached, or about to be.
    pub(super) fn is_in_or_coming(&self) -> bool {
        self.is_coming() || matches!(self.stage, Stage::Attached(_))
    }

    /// Whether it is attached and has to be told when it is alone.
    pub(super) fn wants_solitude(&self) -> bool {
        self.alone && self.leases && matches!(self.stage, Stage::Attached(_))
    }

    /// Whether requests may name what changes before them create.
    pub(super) fn may_name_ahead(&self) -> bool {
        self.alone
    }

    /// Counts a change.
    pub(super) fn next_number(&mut self) -> Option<u64> {
        let number = self.number?;
        self.number = number.checked_add(1);
        Some(number)
    }

    /// Frees the tag of a job; false when the tag stands for something else by now.
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
    pub(super) fn connected(&mut self, connection: ConnectionKey) {
        if self.conversations.len() >= CONNECTIONS_MAX {
            let why = Parting::ConnectionsFull;
            self.outputs.push_back(Output::Close { connection, why });
            return;
        }
        let conversation = Conversation {
            stage: Stage::Fresh,
            msize: MESSAGE_BYTES_MAX,
            identity: None,
            data: false,
            leases: false,
            ledger: false,
            alone: false,
            number: None,
            tags: BTreeMap::new(),
            answering: BTreeMap::new(),
        };
        self.conversations.insert(connection, conversation);
    }

    /// Its peer has proved a key.
    pub(super) fn identified(&mut self, connection: ConnectionKey, identity: [u8; 32]) {
        if let Some(conversation) = self.conversations.get_mut(&connection) {
            conversation.identity = Some(identity);
        }
    }

    /// Forgets a connection and what it waits for.
    pub(super) fn disconnected(&mut self, now: Time, connection: ConnectionKey) {
        self.part_leasing(now, connection);
        let Some(conversation) = self.conversations.remove(&connection) else {
            return;
        };
        if let Stage::Attaching(.., job) = conversation.stage {
            self.end_leasing(now, job);
        }
        self.abandon(now, conversation.jobs());
        if let (Some(session), None) = (conversation.session(), conversation.joined()) {
            self.part_data(now, session);
            self.leave(now, session, connection);
        }
    }

    /// Ends a connection from this side.
    pub(super) fn part(&mut self, now: Time, connection: ConnectionKey, why: Parting) {
        self.disconnected(now, connection);
        self.outputs.push_back(Output::Close { connection, why });
    }

    /// While the server is about to stop, only what is needed to take leases back.
    pub(super) fn received_late(&mut self, now: Time, connection: ConnectionKey, body: Bytes) {
        // Who is alone answers when all its changes are confirmed, so these are still carried out.
        if self.is_giving_way(connection) {
            return self.received(now, connection, body);
        }
        if let Ok((NOTAG, Request::Recalled(recalled))) = Request::decode(body) {
            self.heard(now, connection);
            self.recalled(now, connection, recalled.serial);
        }
    }

    pub(super) fn received(&mut self, now: Time, connection: ConnectionKey, body: Bytes) {
        self.heard(now, connection);
        self.confirm(connection);
        if let Err(fault) = self.converse(now, connection, body) {
            self.blame(now, connection, fault);
        }
    }

    /// A message came. Over an attached connection that is a request, which a client sends only once Rattach has arrived.
    fn confirm(&mut self, connection: ConnectionKey) {
        let stage = self.conversations.get(&connection).map(|conversation| &conversation.stage);
        if let Some(Stage::Attached(session)) = stage
            && let Some(owner) = self.sessions.get_mut(session)
        {
            owner.is_confirmed = true;
        }
    }

    /// Tells the client what it did, and ends the connection.
    fn blame(&mut self, now: Time, connection: ConnectionKey, fault: PeerFault) {
        let ename = Text::new(fault.to_string().as_bytes());
        let reply = Reply::Error(Rerror { errno: Errno::Protocol, ename });
        self.outputs.push_back(Output::Reply { connection, tag: NOTAG, reply });
        self.part(now, connection, Parting::Fault(fault));
    }

    fn converse(&mut self, now: Time, connection: ConnectionKey, body: Bytes) -> Result<(), PeerFault> {
        let Some(conversation) = self.conversations.get(&connection) else {
            return Ok(());
        };
        let bytes = body.len().saturating_add(4);
        let msize = conversation.msize;
        if bytes > msize {
            return Err(PeerFault::Oversized { bytes, msize });
        }
        let (tag, request) = Request::decode(body)?;
        let is_version = matches!(request, Request::Version(_));
        match (&conversation.stage, is_version) {
            // The driver lets nothing come between while it recollects.
            (Stage::Fresh, false) | (Stage::Recollecting(_), _) => return Err(PeerFault::NotVersion),
            (Stage::Fresh, true) | (_, false) => {}
            (_, true) => return Err(PeerFault::SecondVersion),
        }
        let is_remark = matches!(request, Request::Recalled(_) | Request::Number(_));
        if (is_version || is_remark) != (tag == NOTAG) {
            return Err(PeerFault::StrayTag(tag));
        }
        if conversation.tags.contains_key(&tag) {
            return Err(PeerFault::TagInUse(tag));
        }
        // A remark takes no tag.
        if !is_remark && conversation.tags.len() >= REQUESTS_MAX {
            return Err(PeerFault::TooManyRequests);
        }
        match request {
            Request::Version(version) => self.hear(now, connection, version),
            Request::Ping(_) => self.reply(connection, tag, Reply::Ping(Rping {})),
            Request::Flush(flush) => {
                self.flush(now, connection, tag, flush.oldtag);
                Ok(())
            }
            other if conversation.joined().is_some() && !data::may_carry(&other) => {
                Err(PeerFault::NotData(other.name()))
            }
            Request::Attach(attach) => self.attach(now, connection, tag, attach.path),
            Request::Recalled(recalled) if conversation.leases => {
                self.recalled(now, connection, recalled.serial);
                Ok(())
            }
            Request::Number(number) if conversation.ledger => self.number(connection, &number),
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
            | Request::Find(_) => match conversation.stage {
                Stage::Attached(session) | Stage::Joined(session) => {
                    self.admit(connection, session, tag, request, bytes)
                }
                Stage::Fresh
                | Stage::Recollecting(_)
                | Stage::Agreed(_)
                | Stage::Held(..)
                | Stage::Attaching(..) => Err(PeerFault::NotAttached),
            },
        }
    }

    /// Tnumber.
    fn number(&mut self, connection: ConnectionKey, told: &Tnumber) -> Result<(), PeerFault> {
        let Some(conversation) = self.conversations.get_mut(&connection) else {
            return Ok(());
        };
        let Some(session) = conversation.session() else {
            return Err(PeerFault::NotVersion);
        };
        conversation.number = Some(told.number);
        let owner = self.sessions.get_mut(&session);
        let Some(owner) = owner else { return Ok(()) };
        if owner.ledger.answered(told.answered, told.number).is_err() {
            return Err(PeerFault::StrayNumber(told.number));
        }
        owner.fence.heard(told);
        if self.keeps_notes {
            self.outputs.push_back(Output::Note(owner.id, Note::Answered(told.answered)));
        }
        Ok(())
    }

    pub(super) fn enter(&mut self, connection: ConnectionKey, stage: Stage) {
        if let Some(conversation) = self.conversations.get_mut(&connection) {
            conversation.stage = stage;
        }
    }

    /// Answers at once. Never fails: it returns what its callers return.
    pub(super) fn reply(
        &mut self,
        connection: ConnectionKey,
        tag: Tag,
        reply: Reply,
    ) -> Result<(), PeerFault> {
        self.outputs.push_back(Output::Reply { connection, tag, reply });
        Ok(())
    }
}
