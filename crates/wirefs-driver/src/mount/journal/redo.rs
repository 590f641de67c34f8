//! The journal of a mount that lives, whose server's machine was started again: what that has lost is done again, and told to the core.
//!
//! As for a mount that died ([`super::recover`]), but that the journal goes on, and that the core is told which objects have other ids now
//! and what became of the changes that it waits for.

use super::left::Left;
use super::pump::{Heard, Pump};
use super::quarantine::Quarantine;
use super::recover::{Stays, keep_aside};
use super::{Journal, again, tell};
use crate::mount::handshake::Attached;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use wirefs_client::{Again, Redone};
use wirefs_journal::{Header, Redo, Replay, Terms, Unfit};
use wirefs_op::message::error::Rerror;
use wirefs_op::message::version::BootId;
use wirefs_op::{Errno, FileId, Reply, Stat, TreePath};

/// Doing changes again, over as many connections as it takes.
pub(in crate::mount) struct Begun {
    /// The number behind the last change that is in the journal.
    pub(in crate::mount) end: u64,
    /// The core waits for replies to changes from this number on.
    pub(in crate::mount) answered: u64,
    decided: Option<Decided>,
}

/// What is to be sent to the server of one boot id.
struct Decided {
    boot: BootId,
    redo: Redo,
    heard: Heard,
}

impl Begun {
    pub(in crate::mount) fn new(end: u64, answered: u64) -> Begun {
        Begun { end, answered, decided: None }
    }

    /// Whether some of it may be done at the server with this boot id.
    pub(in crate::mount) fn is_at(&self, boot: BootId) -> bool {
        self.decided.as_ref().is_some_and(|decided| decided.boot == boot)
    }
}

impl Journal {
    /// Whether changes can be read from it.
    pub(in crate::mount) fn is_whole(&self) -> bool {
        self.failed().is_none() && self.writer().is_some()
    }

    /// Does again what the server's machine has lost, over this connection of the session, which ends with it. All of the journal is on the
    /// server's disk then.
    ///
    /// # Errors
    /// Where that is no [`Stays::is_passing`], nothing was sent, or not all of it could be.
    pub(in crate::mount) fn redo(&self, attached: Attached, begun: &mut Begun) -> Result<Redone, Stays> {
        let (header, dir) = self.place()?;
        if attached.attachment.read_only {
            attached.carrier.closer.close();
            return Err(Stays::ReadOnly);
        }
        let left = Left::own(&dir)?;
        let terms = Terms { ledger: attached.attachment.ledger, boot: attached.attachment.boot };
        let (of, _) = left.survey.needed_from(0);
        let mut pump = Pump::new(attached.carrier, left.segments()?, |_| {}, of)?;
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
        terms: Terms,
        pump: &mut Pump,
        begun: &mut Begun,
    ) -> Result<Redone, Stays> {
        let Decided { redo, heard, .. } = match begun.decided.take().filter(|it| it.boot == terms.boot) {
            Some(decided) => decided,
            None => Decided {
                boot: terms.boot,
                redo: again::plan(left, header.root, begun.end, pump)?,
                heard: Heard { from: begun.answered, ..Heard::default() },
            },
        };
        let mut quarantine = self.quarantine(header);
        // What was heard of is not sent again, and what was not has its reply in the server's ledger.
        let replay = Replay::new(terms, false, Some(heard.floor)).map_err(Stays::Unfit)?;
        pump.remember(heard);
        let ended = pump.run(replay, Some(redo.clone()), &mut quarantine);
        let heard = pump.take_heard();
        let outcome = match ended {
            Ok(outcome) => outcome,
            Err(stays) => {
                begun.decided = Some(Decided { boot: terms.boot, redo, heard });
                return Err(stays);
            }
        };
        let redo = pump.take_redo().unwrap_or(redo);
        let stats = again::look(paths(&redo, &heard), pump)?;
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
        Ok(Redone {
            boot: terms.boot,
            next: redo.end(),
            made: made(&redo, &heard, &stats),
            again: fates(&redo, heard, &stats),
        })
    }

    /// It cannot be told what the server's machine has lost: all that its disk may not have is kept.
    pub(in crate::mount) fn keep_all(&self, stays: &Stays) -> Result<(), Stays> {
        let (header, dir) = self.place()?;
        let mut quarantine = self.quarantine(&header);
        let unfit = match stays {
            Stays::Unfit(unfit) => *unfit,
            _ => Unfit::Unknown,
        };
        keep_aside(&Left::own(&dir)?, &mut quarantine, Some(unfit))?;
        quarantine.settle()?;
        let (count, dir) = (quarantine.count(), quarantine.dir().display());
        tell(&format!(
            "the server's machine was started again, and what it has lost is NOT carried out again: {stays}; {count} changes that its disk \
             may not have are kept in {dir}"
        ));
        Ok(())
    }

    fn place(&self) -> Result<(Header, PathBuf), Stays> {
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

/// Where the objects are of which the core is told something.
fn paths(redo: &Redo, heard: &Heard) -> BTreeSet<TreePath> {
    let numbers = heard.made.keys().copied().chain(redo.known_from(heard.from));
    numbers.filter_map(|number| redo.path_of(number)).collect()
}

/// The objects that have other ids by now.
fn made(redo: &Redo, heard: &Heard, stats: &BTreeMap<wirefs_op::TreePath, Stat>) -> BTreeMap<FileId, Stat> {
    let mut made = BTreeMap::new();
    let told = heard.made.iter().map(|(number, id)| (*number, Some(*id)));
    let waited_for = redo.known_from(heard.from).map(|number| (number, redo.id_of(number)));
    for (number, id) in waited_for.chain(told) {
        let found = redo.path_of(number).and_then(|path| stats.get(&path));
        let Some(stat) = found.filter(|stat| Some(stat.id) == id) else { continue };
        let unleased = stat.unleased();
        made.extend(redo.known_as(number).into_iter().map(|known| (known, unleased)));
    }
    made
}

fn fates(redo: &Redo, heard: Heard, stats: &BTreeMap<wirefs_op::TreePath, Stat>) -> BTreeMap<u64, Again> {
    let stat = |number: u64| {
        let id = redo.id_of(number);
        let found = redo.path_of(number).and_then(|path| stats.get(&path));
        found.filter(|stat| id.is_none_or(|id| id == stat.id)).map(|stat| stat.unleased())
    };
    let done = redo.known_from(heard.from).map(|number| (number, Again::Done(stat(number))));
    let mut fates: BTreeMap<u64, Again> = done.collect();
    let aside = heard.aside.into_iter().filter(|number| *number >= heard.from);
    let refused = || Again::Answered(Box::new(Reply::Error(Rerror::from(Errno::Io))));
    fates.extend(aside.map(|number| (number, refused())));
    fates.extend(heard.replies.into_iter().map(|(number, reply)| (number, Again::Answered(Box::new(reply)))));
    fates
}
