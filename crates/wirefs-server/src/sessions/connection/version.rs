//! Tversion: negotiates version, features and session. An unknown session may have a saved ledger.

use super::Stage;
use crate::blame::{CloseReason, PeerFault};
use crate::limits::MSIZE_MIN;
use crate::saved_ledger::SavedLedger;
use crate::sessions::session::Session;
use crate::sessions::{ConnectionKey, ServerOutput, Sessions};
use wirefs_op::limits::MESSAGE_BYTES_MAX;
use wirefs_op::message::error::Rerror;
use wirefs_op::message::version::{
    FEATURE_ALONE, FEATURE_BARRIERS, FEATURE_DATA, FEATURE_JOIN, FEATURE_LEASES, FEATURE_LEDGER,
    FEATURE_PACKED, FEATURE_TIMES, Rversion, SessionId, Tversion, VERSION,
};
use wirefs_op::wire::Text;
use wirefs_op::{Errno, NOTAG, Reply, Time};

/// The version in Rversion if the two sides have none in common.
const UNKNOWN: &[u8] = b"unknown";

/// Whether the connection may have packed messages, which may be as long as any.
pub(in crate::sessions) fn packs(asked: &Tversion, msize: usize) -> bool {
    asked.features & FEATURE_PACKED != 0 && msize == MESSAGE_BYTES_MAX
}

impl Sessions {
    /// Handles Tversion, and loads the saved ledger of an unknown session.
    pub(super) fn negotiate(
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
        // Its changes are still running and being recorded. A new session with this id would not know them.
        let is_ending = |owner: &Session| owner.id == session && owner.is_ending();
        if !self.by_id.contains_key(&session) && self.sessions.values().any(is_ending) {
            self.reply(connection, NOTAG, Reply::Error(Rerror::from(Errno::Busy)))?;
            self.close(now, connection, CloseReason::SessionBusy);
            return Ok(());
        }
        if self.saves_ledgers && counts && !self.by_id.contains_key(&session) {
            self.enter(connection, Stage::LoadingLedger(asked));
            self.outputs.push_back(ServerOutput::LoadLedger { connection, session });
            return Ok(());
        }
        self.answer_version(now, connection, &asked, None)
    }

    /// Handles the saved ledger ([`ServerInput::LedgerLoaded`](crate::sessions::ServerInput::LedgerLoaded)).
    pub(in crate::sessions) fn ledger_loaded(
        &mut self,
        now: Time,
        connection: ConnectionKey,
        session: SessionId,
        saved: Option<Box<SavedLedger>>,
    ) {
        let stage = self.connections.get(&connection).map(|state| state.stage.clone());
        if let Some(Stage::LoadingLedger(asked)) = stage {
            self.enter(connection, Stage::Fresh);
            if let Err(fault) = self.answer_version(now, connection, &asked, saved.map(|saved| *saved)) {
                self.blame(now, connection, fault);
            }
        }
        if !self.by_id.contains_key(&session) {
            self.outputs.push_back(ServerOutput::LedgerClosed(session));
        }
    }

    /// Refuses the connection ([`ServerInput::SessionForeign`](crate::sessions::ServerInput::SessionForeign)).
    pub(in crate::sessions) fn session_foreign(&mut self, now: Time, connection: ConnectionKey) {
        if !self.connections.contains_key(&connection) {
            return;
        }
        let reply = Reply::Error(Rerror::from(Errno::NotPermitted));
        self.outputs.push_back(ServerOutput::Reply { connection, tag: NOTAG, reply });
        self.close(now, connection, CloseReason::NotOwner);
    }

    /// Answers Tversion.
    fn answer_version(
        &mut self,
        now: Time,
        connection: ConnectionKey,
        asked: &Tversion,
        saved: Option<SavedLedger>,
    ) -> Result<(), PeerFault> {
        let known = asked.version.as_bytes() == VERSION;
        let leases = known && asked.features & FEATURE_LEASES != 0 && self.leasing.is_some();
        let ledger = known && asked.features & FEATURE_LEDGER != 0;
        let alone = ledger && asked.features & FEATURE_ALONE != 0;
        let data = known && asked.features & FEATURE_DATA != 0;
        let times = known && asked.features & FEATURE_TIMES != 0;
        let msize = bounded(asked.msize)?;
        let packed = known && packs(asked, msize);
        let Some(state) = self.connections.get_mut(&connection) else {
            return Ok(());
        };
        (state.leases, state.ledger, state.alone) = (leases, ledger, alone);
        (state.data, state.times) = (data, times);
        let barriers = ledger && asked.features & FEATURE_BARRIERS != 0;
        let agreed = [
            (leases, FEATURE_LEASES),
            (ledger, FEATURE_LEDGER),
            (alone, FEATURE_ALONE),
            (barriers, FEATURE_BARRIERS),
            (data, FEATURE_DATA),
            (times, FEATURE_TIMES),
            (packed, FEATURE_PACKED),
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
            (state.msize, state.since) = (msize, now);
            match self.join(now, connection, asked.session, saved) {
                Ok((session, resumed)) => {
                    answer.resumed = resumed;
                    answer.number = self.sessions.get(&session).map_or(0, |owner| owner.ledger.next());
                    self.enter(connection, Stage::Negotiated(session));
                }
                Err((errno, why)) => {
                    self.reply(connection, NOTAG, Reply::Error(Rerror::from(errno)))?;
                    self.close(now, connection, why);
                    return Ok(());
                }
            }
        }
        self.reply(connection, NOTAG, Reply::Version(answer))
    }
}

/// The negotiated message size in bytes.
fn bounded(offer: u32) -> Result<usize, PeerFault> {
    let msize = usize::try_from(offer).unwrap_or(usize::MAX).min(MESSAGE_BYTES_MAX);
    if msize < MSIZE_MIN { Err(PeerFault::MsizeTooSmall { msize: offer }) } else { Ok(msize) }
}
