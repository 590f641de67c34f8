//! Tversion: which version, which features, and which session; one that is not here may have been noted by another process.

use super::Stage;
use crate::blame::{Parting, PeerFault};
use crate::limits::MSIZE_MIN;
use crate::notes::Noted;
use crate::sessions::session::Session;
use crate::sessions::{ConnectionKey, Output, Sessions};
use wirefs_op::limits::MESSAGE_BYTES_MAX;
use wirefs_op::message::error::Rerror;
use wirefs_op::message::version::{
    FEATURE_ALONE, FEATURE_BARRIERS, FEATURE_DATA, FEATURE_JOIN, FEATURE_LEASES, FEATURE_LEDGER, Rversion,
    SessionId, Tversion, VERSION,
};
use wirefs_op::wire::Text;
use wirefs_op::{Errno, NOTAG, Reply, Time};

/// What Rversion says when the two sides have no version in common.
const UNKNOWN: &[u8] = b"unknown";

impl Sessions {
    /// Tversion. A session that is not here may have been noted by another process before.
    pub(super) fn hear(
        &mut self,
        now: Time,
        connection: ConnectionKey,
        asked: Tversion,
    ) -> Result<(), PeerFault> {
        let is_known = asked.version.as_bytes() == VERSION;
        if is_known && asked.features & FEATURE_JOIN != 0 {
            return self.join_data(now, connection, &asked, bounded(asked.msize)?);
        }
        let counts = is_known && asked.features & FEATURE_LEDGER != 0;
        let session = asked.session;
        // Its changes are still carried out, and its notes are still written: another life of it would know nothing of them.
        let is_ending = |owner: &Session| owner.id == session && owner.is_ending();
        if !self.by_id.contains_key(&session) && self.sessions.values().any(is_ending) {
            self.reply(connection, NOTAG, Reply::Error(Rerror::from(Errno::Busy)))?;
            self.part(now, connection, Parting::SessionBusy);
            return Ok(());
        }
        if self.keeps_notes && counts && !self.by_id.contains_key(&session) {
            self.enter(connection, Stage::Recollecting(asked));
            self.outputs.push_back(Output::Recollect { connection, session });
            return Ok(());
        }
        self.agree(now, connection, &asked, None)
    }

    /// What was noted is found ([`Input::Noted`](crate::sessions::Input::Noted)).
    pub(in crate::sessions) fn recollected(
        &mut self,
        now: Time,
        connection: ConnectionKey,
        session: SessionId,
        noted: Option<Box<Noted>>,
    ) {
        let stage = self.conversations.get(&connection).map(|conversation| conversation.stage.clone());
        if let Some(Stage::Recollecting(asked)) = stage {
            self.enter(connection, Stage::Fresh);
            if let Err(fault) = self.agree(now, connection, &asked, noted.map(|noted| *noted)) {
                self.blame(now, connection, fault);
            }
        }
        if !self.by_id.contains_key(&session) {
            self.outputs.push_back(Output::NotesEnd(session));
        }
    }

    /// Answers Tversion.
    fn agree(
        &mut self,
        now: Time,
        connection: ConnectionKey,
        asked: &Tversion,
        noted: Option<Noted>,
    ) -> Result<(), PeerFault> {
        let known = asked.version.as_bytes() == VERSION;
        let leases = known && asked.features & FEATURE_LEASES != 0 && self.leasing.is_some();
        let ledger = known && asked.features & FEATURE_LEDGER != 0;
        let alone = ledger && asked.features & FEATURE_ALONE != 0;
        let data = known && asked.features & FEATURE_DATA != 0;
        let msize = bounded(asked.msize)?;
        let Some(conversation) = self.conversations.get_mut(&connection) else {
            return Ok(());
        };
        (conversation.leases, conversation.ledger, conversation.alone) = (leases, ledger, alone);
        conversation.data = data;
        let barriers = ledger && asked.features & FEATURE_BARRIERS != 0;
        let agreed = [
            (leases, FEATURE_LEASES),
            (ledger, FEATURE_LEDGER),
            (alone, FEATURE_ALONE),
            (barriers, FEATURE_BARRIERS),
            (data, FEATURE_DATA),
        ];
        let mut answer = Rversion {
            msize: u32::try_from(msize).unwrap_or(u32::MAX),
            version: Text::new(if known { VERSION } else { UNKNOWN }),
            features: agreed.iter().filter(|(agreed, _)| *agreed).map(|(_, feature)| feature).sum(),
            boot: self.boot,
            resumed: false,
            number: 0,
        };
        if known {
            conversation.msize = msize;
            match self.join(now, connection, asked.session, noted) {
                Ok((session, resumed)) => {
                    answer.resumed = resumed;
                    answer.number = self.sessions.get(&session).map_or(0, |owner| owner.ledger.next());
                    self.enter(connection, Stage::Agreed(session));
                }
                Err((errno, why)) => {
                    self.reply(connection, NOTAG, Reply::Error(Rerror::from(errno)))?;
                    self.part(now, connection, why);
                    return Ok(());
                }
            }
        }
        self.reply(connection, NOTAG, Reply::Version(answer))
    }
}

/// The size of messages that a client's offer comes to, in bytes.
fn bounded(offer: u32) -> Result<usize, PeerFault> {
    let msize = usize::try_from(offer).unwrap_or(usize::MAX).min(MESSAGE_BYTES_MAX);
    if msize < MSIZE_MIN { Err(PeerFault::MsizeTooSmall { msize: offer }) } else { Ok(msize) }
}
