//! The journal of a mount that lives, whose server's machine was started again: what that has lost is done again, and told to the core.
//!
//! As for a mount that died ([`super::recover`]), but that the journal goes on, and that the core is told which objects have other ids now
//! and what became of the changes that it waits for.

use super::left::Left;
use super::pump::Pump;
use super::quarantine::Quarantine;
use super::recover::{Stays, keep_aside};
use super::{Journal, again, decided, tell};
use crate::handshake::Attached;
use std::path::PathBuf;
use wirefs_client::{Again, Redone};
use wirefs_journal::{
    ChangeFate, Delivery, Header, ReplayReport, SessionTerms, SuspendedReplay, Undeliverable,
};
use wirefs_op::message::version::BootId;

/// Doing changes again, over as many connections as it takes.
pub(crate) struct Begun {
    /// The number behind the last change that is in the journal.
    pub(crate) end: u64,
    /// The core waits for replies to changes from this number on.
    pub(crate) answered: u64,
    decided: Option<SuspendedReplay>,
}

impl Begun {
    pub(crate) fn new(end: u64, answered: u64) -> Begun {
        Begun { end, answered, decided: None }
    }

    /// Whether some of it may be done, at whichever server.
    pub(crate) fn has_sent(&self) -> bool {
        self.decided.is_some()
    }

    /// Whether some of it may be done at the server with this boot id.
    pub(crate) fn is_at(&self, boot: BootId) -> bool {
        self.decided.as_ref().is_some_and(|decided| decided.is_at(boot))
    }
}

impl Journal {
    /// Whether changes can be read from it.
    pub(crate) fn is_whole(&self) -> bool {
        self.failure().is_none() && self.writer().is_some()
    }

    /// Does again what the server's machine has lost, over this connection of the session, which ends with it. All of the journal is on the
    /// server's disk then.
    ///
    /// # Errors
    /// Where that is no [`Stays::is_passing`], nothing was sent, or not all of it could be.
    pub(crate) fn redo(&self, attached: Attached, begun: &mut Begun) -> Result<Redone, Stays> {
        let (header, dir) = self.place()?;
        if attached.attachment.read_only {
            attached.carrier.closer.close();
            return Err(Stays::ReadOnly);
        }
        // What goes while it is read would be missed.
        self.group.tidy();
        let left = Left::own(&dir)?;
        let terms = SessionTerms { ledger: attached.attachment.ledger, boot: attached.attachment.boot };
        let mut pump = Pump::of_living(attached, &left)?;
        let redone = self.pumped(&left, &header, terms, &mut pump, begun);
        match &redone {
            Ok(_) | Err(Stays::Unfit(_)) => pump.rest(),
            Err(_) => {}
        }
        pump.close();
        redone
    }

    fn pumped(
        &self,
        left: &Left,
        header: &Header,
        terms: SessionTerms,
        pump: &mut Pump,
        begun: &mut Begun,
    ) -> Result<Redone, Stays> {
        let (at, elsewhere) = match begun.decided.take() {
            Some(decided) if decided.is_at(terms.boot) => (Some(decided), None),
            elsewhere => (None, elsewhere),
        };
        let mut bring = match at {
            Some(decided) => Delivery::continue_replay(decided, terms)?,
            None => {
                let mut redo = again::learned(left, header.root, begun.end)?;
                if let Some(elsewhere) = &elsewhere {
                    elsewhere.hand_over_to(&mut redo);
                }
                Delivery::replay_all(redo, left.survey.latest_time, terms, Some(begun.answered))?
            }
        };
        let mut quarantine = self.quarantine(header);
        let outcome = match pump.run(&mut bring, &mut quarantine) {
            Ok(outcome) => outcome,
            Err(stays) => {
                begun.decided = bring.suspend().or(elsewhere);
                return Err(stays);
            }
        };
        keep_aside(left, &mut quarantine, None)?;
        quarantine.settle()?;
        tell(&format!(
            "the server's machine was started again: {} changes out of the journal were sent to it once more, {} it had",
            outcome.sent, outcome.skipped
        ));
        if quarantine.count() > 0 {
            let (count, dir) = (quarantine.count(), quarantine.dir().display());
            tell(&format!("{count} changes were NOT carried out again; they are kept in {dir}"));
        }
        let became =
            bring.take_report().ok_or_else(|| Stays::Unreadable("nobody waits for it".to_owned()))?;
        Ok(redone(terms.boot, became))
    }

    /// What follows is for the server with this boot id, whose disk has all that went before; false: the journal fails now.
    pub(crate) fn turn(&self, boot: BootId) -> bool {
        let is_turned = self.with(|writer, group| writer.turn(boot, group));
        if let Ok((_, dir)) = self.place() {
            decided::forget(&dir);
        }
        is_turned
    }

    /// It cannot be told what the server's machine has lost: all that its disk may not have is kept.
    pub(crate) fn keep_all(&self, stays: &Stays) -> Result<(), Stays> {
        let (header, dir) = self.place()?;
        self.group.tidy();
        let mut quarantine = self.quarantine(&header);
        let unfit = match stays {
            Stays::Unfit(unfit) => *unfit,
            _ => Undeliverable::Unknown,
        };
        keep_aside(&Left::own(&dir)?, &mut quarantine, Some(unfit))?;
        quarantine.settle()?;
        decided::forget(&dir);
        let (count, dir) = (quarantine.count(), quarantine.dir().display());
        tell(&format!(
            "the server's machine was started again, and what it has lost is NOT carried out again: {stays}; {count} changes that its disk \
             may not have are kept in {dir}"
        ));
        Ok(())
    }

    pub(super) fn place(&self) -> Result<(Header, PathBuf), Stays> {
        let writer = self.writer();
        let whole = writer.as_ref().ok_or_else(|| Stays::Unreadable("it has ended".to_owned()))?;
        let (header, dir) = whole.header();
        Ok((header.clone(), dir.to_path_buf()))
    }

    /// Where what this mount's server refuses is kept, for another thread than the one that hears so.
    fn quarantine(&self, header: &Header) -> Quarantine {
        Quarantine::new(self.refused().dir().to_path_buf(), header.source.clone())
    }
}

fn redone(boot: BootId, became: ReplayReport) -> Redone {
    let ReplayReport { next, made, fates } = became;
    let again = |fate: ChangeFate| match fate {
        ChangeFate::Answered(reply) => Again::Answered(reply),
        ChangeFate::Done(stat) => Again::Done(stat),
    };
    Redone {
        boot,
        next,
        made,
        again: fates.into_iter().map(|(number, fate)| (number, again(fate))).collect(),
    }
}
