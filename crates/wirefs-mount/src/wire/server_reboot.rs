//! A new connection to a server whose machine has rebooted, for a mount with a journal: lost changes are replayed
//! before the connection is used.

use crate::engine::Shared;
use crate::handshake::Attached;
use crate::journal::{Journal, ReplayState};
use std::sync::atomic::Ordering;
use wirefs_journal::SessionTerms;
use wirefs_op::message::version::BootId;

/// The use of a new connection.
pub(super) enum ConnectionUse {
    /// It is taken into use.
    Use(Box<Attached>),
    /// It was used up by the replay. Another one is dialed at once.
    DialNow,
    /// It was used up. Another one is dialed later.
    DialLater,
}

/// The state of a replay over several connections.
#[derive(Default)]
pub(super) struct ServerReboot {
    begun: Option<ReplayState>,
    /// The losses of a server with this boot id cannot be determined.
    given_up: Option<BootId>,
}

impl ServerReboot {
    /// Checks a new connection to the mounted tree, and replays if needed.
    pub(super) fn check(&mut self, engine: &Shared, attached: Attached) -> ConnectionUse {
        let boot = attached.attachment.boot;
        let known = engine.lock().client.boot();
        let is_void = SessionTerms { ledger: attached.attachment.ledger, boot }.is_void();
        let is_going_on = self.begun.as_ref().is_some_and(|begun| begun.is_at(boot));
        let has_losses = boot != known && self.given_up != Some(boot) && (is_void || is_going_on);
        let journal = engine.journal.as_ref().filter(|journal| has_losses && journal.is_whole());
        let Some(journal) = journal else { return ConnectionUse::Use(Box::new(attached)) };
        engine.is_replaying.store(true, Ordering::Relaxed);
        let used = self.replay(engine, journal, attached);
        engine.is_replaying.store(false, Ordering::Relaxed);
        used
    }

    fn replay(&mut self, engine: &Shared, journal: &Journal, attached: Attached) -> ConnectionUse {
        let boot = attached.attachment.boot;
        let begun = self.begun.get_or_insert_with(|| {
            engine
                .drive(|state, _| ReplayState::new(state.client.begin_redo(), state.client.answered_below()))
        });
        match journal.redo(attached, begun) {
            Ok(redone) => {
                self.begun = None;
                if !journal.turn(boot) {
                    engine.drive(|state, _| engine.journal_stops(state));
                }
                engine.drive(|state, now| state.client.redone(now, redone));
                ConnectionUse::DialNow
            }
            Err(stays) if stays.may_pass() => {
                if begun.has_sent() {
                    engine.drive(|state, now| state.client.redo_broke(now));
                }
                ConnectionUse::DialLater
            }
            Err(stays) => {
                (self.begun, self.given_up) = (None, Some(boot));
                if let Err(why) = journal.keep_all(&stays) {
                    // It stays in place, to be examined later; from now on changes wait for the server.
                    journal.fail(&why.to_string());
                    engine.drive(|state, now| state.client.journal_failed(now));
                }
                engine.drive(|state, now| state.client.not_redone(now));
                ConnectionUse::DialNow
            }
        }
    }
}
