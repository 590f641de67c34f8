//! Replay after a power loss of the server's machine: determines which changes of a journal its disk has, and how to repeat each of the
//! others.
//!
//! ```text
//!  learn(record)*  ──>  probes: which objects have these paths?  ──>  decide  ──>  step(record)*: send as it is, send changed, or skip
//! ```
//! File systems bring changes of names to the disk in order: after a power loss the names are those of some *position* in the journal. The
//! journal gives the object of each name at each position; the server gives the present objects. If one position fits, the changes of names
//! before it are done and those after it are not. If none fits, another program has changed names, and all changes go to the quarantine.
//! Data and attributes reach the disk in any order; repeating all of them in order leaves the result of the last one.
//!
//! INVARIANT: if several positions fit and all of them bind the same names to the same objects, the last one counts. Otherwise the first one
//! counts, and only if the names differ in nothing but files that later changes remove, and files that were created in their place since.

mod effect;
mod foreign;
mod names;
mod position;
mod restarted;
mod results;
mod resumed;

use crate::change;
use crate::entry::Record;
use crate::outcome::ChangeOutcome;
use effect::Effect;
use names::{Inode, Key, Namespace};
use position::Position;
pub use resumed::TouchedObjects;
use std::collections::{BTreeMap, BTreeSet};
use wirefs_op::message::put::{PutMode, Tput};
use wirefs_op::message::target::{NOFD, Target};
use wirefs_op::message::xattr::XattrAction;
use wirefs_op::wire::{Data, Malformed};
use wirefs_op::{Errno, FileId, Kind, Request, SetStat, TreePath};

/// The reason for a quarantined change whose object or name another program may have changed.
const CHANGED_LATER: &str = "the server's machine was started again, and what it has there was changed later";

/// The reason for a quarantined copy whose source is not what it was then.
const COPIED_LATER: &str = "the server's machine lost power, and what was copied was changed later";

/// The reason why the position of the server's disk cannot be determined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplayFault {
    /// The changes contradict each other: other clients changed the same names between them.
    #[error("the changes are not those of a client that was alone")]
    Contradiction,
    /// No position fits the server's names.
    #[error("what the server has there now is not what any of the changes left")]
    Server,
    /// The session was not exclusive.
    #[error("the mount was not the only one that changed something")]
    OtherClients,
    /// Several different positions fit.
    #[error(
        "it cannot be told which of the changes the server has: of those that it has not answered, several have left the same names"
    )]
    Ambiguous,
    /// Too many names in too many moved directories, or too many positions that fit.
    #[error("too many names were changed")]
    TooLarge,
    /// A record is no message.
    #[error("a change cannot be read: {0}")]
    Record(Malformed),
}

impl From<Malformed> for ReplayFault {
    fn from(error: Malformed) -> ReplayFault {
        ReplayFault::Record(error)
    }
}

/// The object that the server has at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectStat {
    /// The object's id.
    pub id: FileId,
    /// Its change time, in nanoseconds since 1970.
    pub changed: u64,
    /// The time of the last change of its contents, in nanoseconds since 1970.
    pub modified: u64,
    /// Its size in bytes.
    pub size: u64,
}

/// The treatment of one change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplayStep {
    /// The change is done, or useless now.
    Skip,
    /// Send this request under this number.
    Send(u64, Box<Request>),
    /// Repeating the change may not have the same result. Quarantine it for this reason.
    Quarantine(&'static str),
}

/// A replay. After a lost connection, a copy from after [`Replay::decide`] gives the same changes the same numbers, and the server's ledger
/// shows which of them are applied.
#[derive(Clone, Debug)]
pub struct Replay {
    names: Namespace,
    effects: BTreeMap<u64, LearnedChange>,
    position: Option<Position>,
    /// Objects that another program has changed.
    foreign: BTreeSet<Inode>,
    /// Names whose objects changed after the latest time that the client knows, and objects whose unanswered changes may explain that.
    changed_later: BTreeSet<Key>,
    unsure: BTreeSet<Inode>,
    /// The number of the next change that is sent.
    next: u64,
    /// Objects that were created again, with the number of the change that creates them.
    recreated_as: BTreeMap<Inode, u64>,
    /// Objects that may have been created again over lost connections.
    maybe_recreated: BTreeSet<Inode>,
    /// Objects that were created again before the latest restart, with the ids by which the client knows them.
    recreated_before: BTreeMap<Inode, Option<FileId>>,
    /// The number of name changes that the disk had at the last restart.
    position_min: usize,
    /// The files whose contents the disk has, as the changes below these numbers left them.
    synced: BTreeMap<FileId, u64>,
}

/// A change of the journal.
#[derive(Clone, Debug)]
struct LearnedChange {
    effect: Effect,
    outcome: ChangeOutcome,
    /// The size to which it truncates or extends a file.
    resizes_to: Option<u64>,
    /// The number of name changes before it.
    step: usize,
}

impl Replay {
    /// Starts a replay for a mount of `root`. Changes are sent under numbers from `next` on.
    pub fn new(root: FileId, next: u64) -> Replay {
        Replay {
            names: Namespace::new(root),
            effects: BTreeMap::new(),
            position: None,
            foreign: BTreeSet::new(),
            changed_later: BTreeSet::new(),
            unsure: BTreeSet::new(),
            next,
            recreated_as: BTreeMap::new(),
            maybe_recreated: BTreeSet::new(),
            recreated_before: BTreeMap::new(),
            position_min: 0,
            synced: BTreeMap::new(),
        }
    }

    /// Adds the files whose contents the server's disk has, as the changes below these numbers left them.
    #[must_use]
    pub fn with_synced(self, synced: BTreeMap<FileId, u64>) -> Replay {
        Replay { synced, ..self }
    }

    /// Learns the next change, in order, with its outcome.
    ///
    /// # Errors
    /// Fails if the change contradicts earlier ones.
    pub fn learn(&mut self, record: &Record, outcome: ChangeOutcome) -> Result<(), ReplayFault> {
        self.names.begin_at(record.number);
        if outcome.is_rejected {
            return Ok(());
        }
        let (_, request) = Request::decode(record.body.clone())?;
        let Some(request) = change::replayed(request) else { return Ok(()) };
        let effect = match effect::read(&mut self.names, record.number, &request, outcome.made) {
            // The server would have rejected it, and the reply was lost.
            Err(ReplayFault::Contradiction) if !outcome.is_answered => return Ok(()),
            effect => effect?,
        };
        for (key, binding) in &effect.names {
            self.names.now.set(key.clone(), *binding);
        }
        let step = self.effects.values().next_back().map_or(0, |last| last.step + last.steps());
        let resizes_to = foreign::new_size(&request);
        self.effects.insert(record.number, LearnedChange { effect, outcome, resizes_to, step });
        Ok(())
    }

    /// Returns the paths to look up.
    ///
    /// # Errors
    /// Fails if there are too many.
    ///
    /// # Cost
    /// One step for each name and each move of a directory.
    pub fn probes(&self) -> Result<BTreeSet<TreePath>, ReplayFault> {
        position::probes(&self.names, &self.steps())
    }

    fn steps(&self) -> Vec<&Effect> {
        self.effects.values().filter(|known| known.steps() > 0).map(|known| &known.effect).collect()
    }

    /// Determines the position. `found` has the objects at [`Replay::probes`]; a missing path has none.
    ///
    /// # Errors
    /// Fails if no position fits, or several different ones.
    ///
    /// # Cost
    /// As [`Replay::probes`].
    pub fn decide(&mut self, found: &BTreeMap<TreePath, ObjectStat>) -> Result<(), ReplayFault> {
        self.effects.values_mut().for_each(|known| known.effect.settle(&self.names));
        let position = position::find(&self.names, &self.steps(), found, self.position_min)?;
        self.position = Some(position);
        Ok(())
    }

    /// Returns the paths of the objects whose contents or attributes changes modify, after [`Replay::decide`].
    pub fn targets(&self) -> BTreeSet<TreePath> {
        let made_before_journal = self.made_before_journal().into_iter().map(|(_, path)| path);
        self.concerned().map(|(_, path)| path).chain(made_before_journal).collect()
    }

    /// Returns the files whose contents were changed under names that are gone. They may have other names that no change mentions.
    pub fn unreachable(&self) -> BTreeSet<FileId> {
        let Some(position) = &self.position else { return BTreeSet::new() };
        let done = self.effects.values().filter(|known| known.is_before(position)).map(|known| &known.effect);
        let inodes = done.flat_map(|effect| effect.of.or(effect.makes).into_iter().chain(effect.reads));
        let inodes = inodes
            .filter(|inode| !self.names.of(*inode).is_new && position.path(&self.names, *inode).is_none());
        inodes.filter_map(|inode| self.names.id(inode)).collect()
    }

    /// Returns the objects that a change before the journal's first one created. The server's machine restarted, so it knows them by id only.
    fn made_before_journal(&self) -> Vec<(Inode, TreePath)> {
        let inodes = self.names.made_before_journal.iter().map(|inode| self.names.same(*inode));
        let inodes = inodes.filter(|inode| self.names.id(*inode).is_none());
        inodes.filter_map(|inode| Some((inode, self.position.as_ref()?.path(&self.names, inode)?))).collect()
    }

    fn concerned(&self) -> impl Iterator<Item = (Inode, TreePath)> + '_ {
        let inodes = self.effects.values().filter_map(|known| known.effect.of.or(known.effect.makes));
        inodes.filter_map(|inode| Some((inode, self.position.as_ref()?.path(&self.names, inode)?)))
    }

    /// Returns the treatment of the next change. Takes each change once, in order, after [`Replay::decide`].
    ///
    /// # Errors
    /// Fails if the record is no message.
    pub fn step(&mut self, record: &Record) -> Result<ReplayStep, ReplayFault> {
        let (Some(position), Some(known)) = (&self.position, self.effects.get(&record.number)) else {
            // Rejected, or useless without its program.
            return Ok(ReplayStep::Skip);
        };
        let (_, request) = Request::decode(record.body.clone())?;
        let Some(request) = change::replayed(request) else { return Ok(ReplayStep::Skip) };
        let is_gone = known.effect.of.or(known.effect.makes).is_some_and(|inode| position.is_gone(inode));
        if known.effect.is_void || is_gone {
            return Ok(ReplayStep::Skip);
        }
        let request =
            if self.is_synced(position, record.number, known) { unsynced(request) } else { Some(request) };
        let Some(request) = request else { return Ok(ReplayStep::Skip) };
        // A barrier has no data to keep.
        let of = known.effect.of.filter(|_| matches!(&request, Request::Put(put) if put.is_barrier()));
        if of.is_some_and(|inode| self.foreign.contains(&inode)) {
            return Ok(ReplayStep::Skip);
        }
        if let Some(why) = self.reason_to_quarantine(position, record.number, known, &request) {
            return Ok(ReplayStep::Quarantine(why));
        }
        let request = at_its_offset(request, &known.outcome);
        let is_before = known.is_before(position);
        let (request, ids) = if is_before {
            let Some(done) = rest(position, &self.names, known, request) else { return Ok(ReplayStep::Skip) };
            done
        } else {
            (without_flags(request), known.effect.ids)
        };
        let changes = known.effect.of.or(known.effect.makes);
        if !is_before && self.overwrites_later_change(position, &known.effect) {
            // The object to create is missing, so later changes to it would change another one.
            self.foreign.extend(known.effect.makes);
            return Ok(ReplayStep::Quarantine(CHANGED_LATER));
        }
        if changes.is_some_and(|inode| self.foreign.contains(&inode)) {
            return Ok(ReplayStep::Quarantine(CHANGED_LATER));
        }
        if !is_before {
            known.effect.names.iter().for_each(|(key, _)| {
                self.changed_later.remove(key);
            });
        }
        let makes = known.effect.makes.filter(|_| is_create(&request));
        let number = self.next;
        let request = self.named(position, request, ids);
        if let Some(inode) = makes {
            self.recreated_as.insert(inode, number);
        }
        self.next += 1;
        Ok(ReplayStep::Send(number, Box::new(request)))
    }

    /// Returns whether an acknowledged sync covers the contents that a change left in a file.
    fn is_synced(&self, position: &Position, number: u64, known: &LearnedChange) -> bool {
        known.effect.of.or(known.effect.makes).is_some_and(|inode| {
            let below = self.names.id(inode).and_then(|id| self.synced.get(&id));
            let is_there = position.is_there(inode) || !self.names.of(inode).is_new;
            is_there && below.is_some_and(|below| number < *below)
        })
    }

    /// Returns whether a rejection says that the change is done already.
    pub fn is_done(request: &Request, errno: Errno) -> bool {
        matches!(request, Request::Xattr(xattr) if xattr.action == XattrAction::Remove)
            && errno == Errno::NoData
    }

    /// Returns a reason if repeating the change may have another result.
    fn reason_to_quarantine(
        &self,
        position: &Position,
        number: u64,
        known: &LearnedChange,
        request: &Request,
    ) -> Option<&'static str> {
        let is_rebuilt = |inode: Inode| self.names.of(inode).is_new && !position.is_there(inode);
        match request {
            Request::Put(put) if put.mode.has(PutMode::APPEND) && put.mode.has(PutMode::DATA) => {
                let inode = known.effect.of.or(known.effect.makes)?;
                let is_known = known.outcome.offset.is_some() || is_rebuilt(inode);
                (!is_known)
                    .then_some("the server's machine lost power, and nobody knows where the append went")
            }
            Request::Copy(_) => {
                let from = known.effect.reads.filter(|inode| !is_rebuilt(*inode))?;
                if position.is_gone(from) {
                    return Some(COPIED_LATER);
                }
                let mut changed_later = self.effects.range(number + 1..).map(|(_, known)| known.effect.of);
                changed_later.any(|of| of == Some(from)).then_some(COPIED_LATER)
            }
            _ => None,
        }
    }

    /// Replaces the ids in a request by those that the objects have now, or will have by then.
    fn named(&self, position: &Position, mut request: Request, inodes: [Option<Inode>; 2]) -> Request {
        let ids = request.ids_mut();
        for (id, inode) in ids.into_iter().zip(inodes) {
            let (Some(id), Some(inode)) = (id, inode) else { continue };
            *id = match (self.recreated_as.get(&inode), position.id(inode)) {
                (Some(number), _) => FileId::provisional(*number),
                (None, Some(found)) => found,
                (None, None) => self.names.id(inode).unwrap_or(*id),
            };
        }
        request
    }
}

impl LearnedChange {
    /// Returns whether the change comes before the position of the server's disk.
    fn is_before(&self, position: &Position) -> bool {
        self.step < position.step || self.step == position.step && self.steps() == 0
    }

    fn steps(&self) -> usize {
        usize::from(!self.effect.names.is_empty())
    }
}

/// Returns the rest of a change whose contents the disk has. Sent again, they would bring back older contents until the later changes follow.
fn unsynced(request: Request) -> Option<Request> {
    match request {
        Request::Put(put) => {
            let set = SetStat { size: None, ..put.set };
            let is_set = set != SetStat::default();
            let dropped = PutMode::DATA.and(PutMode::APPEND).and_if(!is_set, PutMode::STAT);
            let mode = put.mode.without(dropped);
            (mode != PutMode::NONE).then(|| Request::Put(Tput { mode, set, data: Data::default(), ..put }))
        }
        Request::Allocate(_) | Request::Copy(_) => None,
        other => Some(other),
    }
}

fn is_create(request: &Request) -> bool {
    matches!(request, Request::Put(put) if put.mode.has(PutMode::CREATE))
}

/// Turns an append into a write at the offset that it had.
fn at_its_offset(request: Request, outcome: &ChangeOutcome) -> Request {
    match (request, outcome.offset) {
        (Request::Put(put), Some(offset)) if put.mode.has(PutMode::APPEND) => {
            Request::Put(Tput { mode: put.mode.without(PutMode::APPEND), offset, ..put })
        }
        (request, _) => request,
    }
}

/// Sets an extended attribute whether it exists or not.
fn without_flags(request: Request) -> Request {
    match request {
        Request::Xattr(mut xattr) if xattr.action == XattrAction::Set => {
            xattr.flags = 0;
            Request::Xattr(xattr)
        }
        other => other,
    }
}

/// Returns the rest of a change before the position, which has the names already: contents and attributes, at the present path of the
/// object. Returns also the objects that the request names.
fn rest(
    position: &Position,
    names: &Namespace,
    known: &LearnedChange,
    request: Request,
) -> Option<(Request, [Option<Inode>; 2])> {
    let at = |inode: Inode| position.path(names, inode);
    let moved = |target: Target, inode: Inode| Some(Target { path: at(inode)?, fd: NOFD, ..target });
    let Effect { of, makes, ids, .. } = &known.effect;
    match request {
        Request::Put(put) if put.mode.has(PutMode::NAMELESS) => {
            let is_named = makes.is_some_and(|inode| at(inode).is_some());
            (!is_named).then(|| (Request::Put(put), *ids))
        }
        Request::Put(put) => {
            let inode = of.or(*makes)?;
            let is_made = put.create.as_ref().is_some_and(|create| create.kind != Kind::File);
            let dropped = PutMode::CREATE.and(PutMode::EXCLUSIVE).and(PutMode::REMOVE);
            let dropped = dropped.and_if(is_made, PutMode::DATA);
            let mode = put.mode.without(dropped);
            if mode == PutMode::NONE {
                return None;
            }
            // Names the object by its id, whether or not the original did.
            let id = position.id(inode).or_else(|| names.id(inode));
            let target = Target { id, ..moved(put.target.clone(), inode)? };
            Some((Request::Put(Tput { target, mode, create: None, ..put }), [Some(inode), None]))
        }
        Request::Allocate(mut allocate) => {
            allocate.target = moved(allocate.target, (*of)?)?;
            Some((Request::Allocate(allocate), *ids))
        }
        Request::Xattr(mut xattr) => {
            xattr.target = moved(xattr.target, (*of)?)?;
            Some((without_flags(Request::Xattr(xattr)), *ids))
        }
        Request::Copy(mut copy) => {
            (copy.from, copy.to) = (moved(copy.from, known.effect.reads?)?, moved(copy.to, (*of)?)?);
            Some((Request::Copy(copy), *ids))
        }
        // Only names.
        _ => None,
    }
}
