//! A connection to a server whose machine was started again, with a mount that has a journal: what that machine has lost is done again
//! before anything else goes over a connection.

use crate::mount::engine::Shared;
use crate::mount::handshake::Attached;
use crate::mount::journal::{Begun, Journal};
use std::sync::atomic::Ordering;
use wirefs_journal::SessionTerms;
use wirefs_op::message::version::BootId;

/// What becomes of a connection.
pub(super) enum Met {
    /// It is taken into use.
    Use(Box<Attached>),
    /// It was used up. Another one is tried at once.
    DialNow,
    /// The same, a little later.
    DialLater,
}

/// What is known of it from one connection to the next.
#[derive(Default)]
pub(super) struct LostPower {
    begun: Option<Begun>,
    /// What a server with this boot id has lost cannot be told.
    given_up: Option<BootId>,
}

impl LostPower {
    /// There is a connection, with the tree that was mounted.
    pub(super) fn met(&mut self, engine: &Shared, attached: Attached) -> Met {
        let boot = attached.attachment.boot;
        let known = engine.lock().client.boot();
        let is_void = SessionTerms { ledger: attached.attachment.ledger, boot }.is_void();
        let is_going_on = self.begun.as_ref().is_some_and(|begun| begun.is_at(boot));
        let has_lost = boot != known && self.given_up != Some(boot) && (is_void || is_going_on);
        let journal = engine.journal.as_ref().filter(|journal| has_lost && journal.is_whole());
        let Some(journal) = journal else { return Met::Use(Box::new(attached)) };
        engine.redoes.store(true, Ordering::Relaxed);
        let met = self.redo(engine, journal, attached);
        engine.redoes.store(false, Ordering::Relaxed);
        met
    }

    fn redo(&mut self, engine: &Shared, journal: &Journal, attached: Attached) -> Met {
        let boot = attached.attachment.boot;
        let begun = self.begun.get_or_insert_with(|| {
            engine.drive(|state, _| Begun::new(state.client.begin_redo(), state.client.answered_below()))
        });
        match journal.redo(attached, begun) {
            Ok(redone) => {
                self.begun = None;
                if !journal.turn(boot) {
                    engine.drive(|state, _| engine.journal_stops(state));
                }
                engine.drive(|state, now| state.client.redone(now, redone));
                Met::DialNow
            }
            Err(stays) if stays.may_pass() => {
                if begun.has_sent() {
                    engine.drive(|state, now| state.client.redo_broke(now));
                }
                Met::DialLater
            }
            Err(stays) => {
                (self.begun, self.given_up) = (None, Some(boot));
                if let Err(why) = journal.keep_all(&stays) {
                    // It stays where it is, for who looks at it later; changes wait for the server from now on.
                    journal.fails(&why.to_string());
                    engine.drive(|state, now| state.client.journal_failed(now));
                }
                engine.drive(|state, now| state.client.not_redone(now));
                Met::DialNow
            }
        }
    }
}
