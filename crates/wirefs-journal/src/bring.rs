//! Bringing a journal's changes to the server over one connection, as a machine: changes and messages in, frames out.
//!
//! ```text
//!  as they are     changes ──> Replay ──> Done
//!  again           looks at names ──> decide ──> looks at objects ──> changes ──> Redo ──> Replay ──> Done
//!                                                                     a client that lives: looks at what became of them ──┘
//! ```
//! A connection that breaks ends it. What was decided by then goes on over another one ([`Bring::broken`]).

mod became;
mod course;
mod learned;
mod looks;
mod search;

pub use became::{Became, Fate};
pub use course::Course;
pub use looks::nanos;

use crate::decision::Decision;
use crate::entry::Record;
use crate::redo::{Found, Redo, Redone, Touched, Unlike};
use crate::replay::{Action, Event, Outcome, Refused, Replay, Terms, Unfit};
use became::Heard;
use bytes::Bytes;
use looks::Looks;
use search::Search;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use wirefs_op::message::number::Tnumber;
use wirefs_op::message::version::BootId;
use wirefs_op::wire::Malformed;
use wirefs_op::{Errno, Frame, NOTAG, Request, TreePath};

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// Put this frame on the wire, in order.
    Send(Frame),
    /// Note what the server was found to have, beside the journal, before anything that follows is sent.
    Decided(Box<Decision>),
    /// Note behind it that the server may forget its replies to changes below this number, before anything that follows is sent.
    Answered(u64),
    /// Keep this change aside, for this reason: the server does not have it, and will not get it.
    Keep(Record, String),
    /// All are answered, and the server's disk has them.
    Done(Outcome),
    /// All are answered, and the server cannot bring them to its disk.
    Unsafe(Errno),
}

/// Why it does not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The server breaks the protocol, or a record is no message.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// Nothing may be sent.
    #[error(transparent)]
    Unfit(#[from] Unfit),
    /// The server cannot tell what it has.
    #[error("what the server has cannot be looked at: {0}")]
    Unseen(Errno),
}

/// What is to be sent again to the server with one boot id, and what was heard of it.
#[derive(Debug)]
pub struct Decided {
    boot: BootId,
    redo: Redo,
    heard: Option<Heard>,
    /// The server knows its replies to changes from this number on.
    answered: u64,
    noted: Option<Noted>,
}

/// What was done of what another process had decided.
#[derive(Debug)]
struct Noted {
    /// Gives the same numbers as the other.
    redo: Redo,
    touched: Touched,
    seen: u64,
}

impl Decided {
    /// What another process had decided, and died: `redo` gives numbers from [`Decision::next`] on, and has learned all changes.
    ///
    /// # Errors
    /// It was about another journal.
    pub fn noted(decision: &Decision, mut redo: Redo) -> Result<Decided, Unlike> {
        redo.decide(&decision.names)?;
        redo.compare(&decision.objects, decision.seen);
        let noted = Noted { redo: redo.clone(), touched: Touched::default(), seen: decision.seen };
        let (boot, answered) = (decision.boot, decision.answered);
        Ok(Decided { boot, redo, heard: None, answered, noted: Some(noted) })
    }

    /// Takes the changes that another process was doing again once more, in their order, with what the server's ledger says.
    ///
    /// # Errors
    /// It was about another journal.
    pub fn take(&mut self, record: &Record, terms: Terms) -> Result<(), Unlike> {
        match &mut self.noted {
            Some(Noted { redo, touched, .. }) => {
                redo.is_done_below(record, terms.ledger.unwrap_or_default(), touched)
            }
            None => Ok(()),
        }
    }

    /// The machine was started once more in the midst of it: `redo`, which has learned the same changes, begins anew with what is known
    /// from this one.
    pub fn precedes(&self, redo: &mut Redo) {
        let made = self.heard.as_ref().map(|heard| &heard.made);
        redo.begins_anew_after(&self.redo, made.unwrap_or(&BTreeMap::new()));
    }

    /// Whether it is for the server with this boot id.
    pub fn is_at(&self, boot: BootId) -> bool {
        self.boot == boot
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Which names the server's disk has is looked at.
    Names,
    /// Files that lost the names by which they were changed are searched for.
    Others,
    /// When their objects were changed is looked at.
    Objects,
    /// The same, of what another process has decided.
    ObjectsAgain,
    /// Changes go out.
    Moves,
    /// All of them are on the server's disk; what became of their objects is looked at.
    Afterwards(Outcome),
    Ended,
}

/// The machine.
#[derive(Debug)]
pub struct Bring {
    boot: BootId,
    phase: Phase,
    replay: Replay,
    /// What becomes of each change, where they are done again; the same before the first; under which number each was sent.
    redo: Option<Redo>,
    decided: Option<Redo>,
    renumbered: BTreeMap<u64, u64>,
    /// Those whose programs know that they are refused.
    refused: BTreeSet<u64>,
    /// Those that need not be sent.
    done: u64,
    /// The latest time of change that the server has told.
    seen: u64,
    looks: Looks,
    search: Search,
    /// What the names were found to be.
    names: BTreeMap<TreePath, Found>,
    /// What was done already by another process.
    done_before: Option<Noted>,
    /// It is noted that the server may have forgotten its replies to changes below this number.
    noted: u64,
    /// What is told to a client that lives.
    heard: Option<Heard>,
    became: Option<Became>,
    acts: VecDeque<Act>,
}

impl Bring {
    fn new(boot: BootId, replay: Replay, phase: Phase) -> Bring {
        Bring {
            boot,
            phase,
            replay,
            redo: None,
            decided: None,
            renumbered: BTreeMap::new(),
            refused: BTreeSet::new(),
            done: 0,
            seen: 0,
            looks: Looks::default(),
            search: Search::default(),
            names: BTreeMap::new(),
            done_before: None,
            noted: 0,
            heard: None,
            became: None,
            acts: VecDeque::new(),
        }
    }

    /// Sends the changes as they are. What was `refused` already, and told, is not kept aside when the server says so again.
    pub fn as_they_are(terms: Terms, replay: Replay, refused: BTreeSet<u64>) -> Bring {
        Bring { refused, ..Bring::new(terms.boot, replay, Phase::Moves) }
    }

    /// Does again what the server's machine has lost: `redo` has learned all changes, and `seen` is the latest time of change that the
    /// server has told. A client that lives waits for replies from the change `waits_from` on.
    ///
    /// # Errors
    /// Nothing may be sent.
    pub fn again(redo: Redo, seen: u64, terms: Terms, waits_from: Option<u64>) -> Result<Bring, Fault> {
        let replay = Replay::new(terms, false, waits_from.map(|_| 0))?;
        let mut bring = Bring::new(terms.boot, replay, Phase::Names);
        bring.seen = seen;
        bring.heard = waits_from.map(Heard::from);
        bring.looks.begin(redo.probes().map_err(Unfit::Unlike)?);
        bring.redo = Some(redo);
        bring.look_on()?;
        Ok(bring)
    }

    /// Goes on with what was decided over an earlier connection.
    ///
    /// # Errors
    /// Nothing may be sent.
    pub fn go_on(decided: Decided, terms: Terms) -> Result<Bring, Fault> {
        let Decided { redo, heard, answered, noted, .. } = decided;
        // What was heard of is not sent again, and what was not has its reply in the server's ledger.
        let floor = heard.as_ref().map_or(answered, |heard| heard.floor);
        let replay = Replay::new(terms, false, Some(floor))?;
        let mut bring = Bring::new(terms.boot, replay, Phase::Moves);
        bring.noted = answered;
        if noted.is_some() {
            (bring.phase, bring.done_before) = (Phase::ObjectsAgain, noted);
            bring.looks.begin(redo.looks_again());
            bring.redo = Some(redo);
            bring.look_on()?;
            return Ok(bring);
        }
        (bring.decided, bring.redo, bring.heard) = (Some(redo.clone()), Some(redo), heard);
        Ok(bring)
    }

    /// Whether it waits for [`Event::Record`], or [`Event::End`]: from the first change of the journal on, in their order.
    pub fn wants_record(&self) -> bool {
        self.phase == Phase::Moves && self.replay.has_room()
    }

    /// Whether some of what the server's machine has lost may have been sent again.
    pub fn is_decided(&self) -> bool {
        self.decided.is_some()
    }

    /// What became of the changes so far: how many of them it is done with.
    pub fn progress(&self) -> u64 {
        let outcome = self.replay.outcome();
        self.done + outcome.sent + outcome.skipped + outcome.refused + outcome.dropped
    }

    /// The connection broke, or the server's disk failed: what is to go on over another one; `None`: it begins anew there.
    pub fn broken(self) -> Option<Decided> {
        let answered = self.noted.max(self.replay.told());
        let (mut redo, sent) = (self.decided?, self.redo);
        sent.iter().for_each(|sent| redo.is_broken(sent));
        Some(Decided { boot: self.boot, redo, heard: self.heard, answered, noted: None })
    }

    /// What a client that lives is told, once all is done.
    pub fn take_became(&mut self) -> Option<Became> {
        self.became.take()
    }

    /// Hands out what is to be done, in order.
    pub fn poll(&mut self) -> Option<Act> {
        self.acts.pop_front()
    }

    /// Takes an event.
    ///
    /// # Errors
    /// It cannot go on over this connection.
    pub fn handle(&mut self, event: Event) -> Result<(), Fault> {
        match (event, self.phase) {
            (Event::Record(record), _) => self.give(record)?,
            (Event::End, _) => {
                self.tells_where_it_is();
                self.replay.handle(Event::End)?;
            }
            (Event::Received(body), Phase::Moves) => {
                self.hear(&body)?;
                self.replay.handle(Event::Received(body))?;
                if let Some(heard) = &mut self.heard {
                    heard.floor = heard.floor.max(self.replay.answered_below());
                }
            }
            (
                Event::Received(body),
                Phase::Names | Phase::Objects | Phase::ObjectsAgain | Phase::Afterwards(_),
            ) => {
                self.looks.received(body)?;
                self.look_on()?;
            }
            (Event::Received(body), Phase::Others) => {
                self.search.received(body)?;
                self.look_on()?;
            }
            (Event::Received(_), Phase::Ended) => {}
        }
        self.follow()
    }

    /// Where nothing was to be sent again, a server that was started again knows no number of the session; and a client that lives goes on
    /// with the numbers that it has.
    fn tells_where_it_is(&mut self) {
        if let (Some(redo), Some(_), true) = (&self.redo, &self.heard, self.renumbered.is_empty()) {
            let told = Tnumber { number: redo.end(), answered: redo.end() };
            self.acts.push_back(Act::Send(Request::Number(told).encode(NOTAG)));
        }
    }

    /// What was looked at is known, or more is asked for.
    fn look_on(&mut self) -> Result<(), Fault> {
        self.look_more();
        while self.looks.is_done()
            && self.search.is_done()
            && let Some(redo) = &mut self.redo
        {
            match self.phase {
                Phase::Names => {
                    self.names = self.looks.found();
                    redo.decide(&self.names).map_err(Unfit::Unlike)?;
                    self.search.begin(redo.lost());
                    self.phase = Phase::Others;
                }
                Phase::Others => {
                    let others = self.search.found();
                    self.looks.begin(redo.targets().into_iter().chain(others).collect());
                    self.phase = Phase::Objects;
                }
                Phase::Objects => {
                    let (names, objects) = (std::mem::take(&mut self.names), self.looks.found());
                    redo.compare(&objects, self.seen);
                    let (boot, next, seen) = (self.boot, redo.end(), self.seen);
                    let decision = Decision { boot, next, seen, names, objects, answered: 0 };
                    self.acts.push_back(Act::Decided(Box::new(decision)));
                    self.decided = Some(redo.clone());
                    self.phase = Phase::Moves;
                }
                Phase::ObjectsAgain => {
                    if let Some(Noted { touched, seen, .. }) = self.done_before.take() {
                        redo.refresh(&self.looks.found(), seen, &touched);
                    }
                    self.decided = Some(redo.clone());
                    self.phase = Phase::Moves;
                }
                Phase::Afterwards(outcome) => {
                    self.became = self.heard.as_ref().map(|heard| heard.became(redo, self.looks.stats()));
                    self.end(outcome);
                }
                Phase::Moves | Phase::Ended => break,
            }
            self.look_more();
        }
        Ok(())
    }

    fn look_more(&mut self) {
        let frames = self.looks.ask().into_iter().chain(self.search.ask());
        self.acts.extend(frames.map(Act::Send));
    }

    fn end(&mut self, outcome: Outcome) {
        self.phase = Phase::Ended;
        self.acts.push_back(Act::Done(Outcome { skipped: outcome.skipped + self.done, ..outcome }));
    }

    /// A change, as it is to be sent.
    fn give(&mut self, record: Record) -> Result<(), Fault> {
        let Some(redo) = &mut self.redo else { return Ok(self.replay.handle(Event::Record(record))?) };
        match redo.redo(&record).map_err(Unfit::Unlike)? {
            Redone::Nothing => self.done += 1,
            Redone::Aside(why) => {
                if let Some(heard) = &mut self.heard {
                    heard.aside.insert(record.number);
                }
                self.acts.push_back(Act::Keep(record, why.to_owned()));
            }
            Redone::Send(number, request) => {
                self.renumbered.insert(number, record.number);
                let body = request.encode(NOTAG).to_body();
                self.replay.handle(Event::Record(Record { number, body }))?;
            }
        }
        Ok(())
    }

    fn hear(&mut self, body: &Bytes) -> Result<(), Malformed> {
        match &mut self.heard {
            Some(heard) => {
                let number = |tag| self.renumbered.get(&self.replay.number_of(tag)?).copied();
                heard.hear(body, number)
            }
            None => Ok(()),
        }
    }

    fn follow(&mut self) -> Result<(), Fault> {
        let told = self.replay.told();
        if self.redo.is_some() && told > self.noted {
            self.noted = told;
            self.acts.push_back(Act::Answered(told));
        }
        while let Some(action) = self.replay.poll() {
            match action {
                Action::Send(frame) => self.acts.push_back(Act::Send(frame)),
                Action::Refused(refused) => self.refused(refused)?,
                Action::Unsafe(errno) => self.acts.push_back(Act::Unsafe(errno)),
                Action::Done(outcome) => match (&self.heard, &self.redo) {
                    (Some(heard), Some(redo)) => {
                        self.looks.begin(heard.paths(redo));
                        self.phase = Phase::Afterwards(outcome);
                        self.look_on()?;
                    }
                    _ => self.end(outcome),
                },
            }
        }
        Ok(())
    }

    fn refused(&mut self, refused: Refused) -> Result<(), Malformed> {
        let Refused { record, errno, text } = refused;
        if self.refused.contains(&record.number) {
            return Ok(());
        }
        if self.redo.is_some() && Redo::is_done(&Request::decode(record.body.clone())?.1, errno) {
            return Ok(());
        }
        let number = self.renumbered.get(&record.number).copied().unwrap_or(record.number);
        let why = format!("the server refused it: {text} ({errno})");
        self.acts.push_back(Act::Keep(Record { number, ..record }, why));
        Ok(())
    }
}

#[cfg(test)]
mod tests;
