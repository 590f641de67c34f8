//! What a server's machine lost when its power was cut, sent again: which changes out of a journal its disk has, and what is to become of
//! each of them.
//!
//! ```text
//!  learn(record)*  ──>  probes: what has these paths now?  ──>  decide  ──>  redo(record)*: send it, as it is or elsewhere, or not at all
//! ```
//! File systems bring changes of names to the disk in their order: after a power cut the names are those after *some* change. The journal
//! tells what all names that its changes are about were after each of them, and the server what they are now. Where one moment fits,
//! the changes of names up to there are done and those behind it are not; where none fits, somebody else was at work, nothing is sent,
//! and all of it is kept. Data and attributes reach the disk in any order, and doing them again in order leaves what the last one made.
//!
//! INVARIANT: of several moments that fit, the last is taken if all of them give the same names to the same objects. Else the first is taken if
//! the names differ only by files that later changes remove, and by those that were made in their place since.

mod afterwards;
mod cut;
mod deed;
mod names;
mod restarted;
mod resumed;

use crate::change;
use crate::entry::Record;
use crate::told::Told;
use cut::Cut;
use deed::Deed;
use names::{Holder, Key, Names, Node};
pub use resumed::Touched;
use std::collections::{BTreeMap, BTreeSet};
use wirefs_op::message::put::{PutMode, Tput};
use wirefs_op::message::target::{NOFD, Target};
use wirefs_op::message::xattr::XattrAction;
use wirefs_op::wire::{Data, Malformed};
use wirefs_op::{Errno, FileId, Kind, Request, SetStat, TreePath};

/// Why a change is kept aside whose object, or whose name, somebody else may have used since.
const CHANGED_LATER: &str = "the server's machine was started again, and what it has there was changed later";

/// Why a copy is kept aside whose source is not what it was then.
const COPIED_LATER: &str = "the server's machine lost power, and what was copied was changed later";

/// Why it cannot be told what the server's disk has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unlike {
    /// The changes contradict each other: others changed the same names between them.
    #[error("the changes are not those of a client that was alone")]
    Journal,
    /// Nothing that the changes did explains what is there.
    #[error("what the server has there now is not what any of the changes left")]
    Server,
    /// Others were there.
    #[error("the mount was not the only one that changed something")]
    Others,
    /// Several moments explain it.
    #[error(
        "it cannot be told which of the changes the server has: of those that it has not answered, several have left the same names"
    )]
    Several,
    /// Too many directories were moved with too many names in them, or too many changes leave the same names.
    #[error("too many names were changed")]
    Large,
    /// A record is no message.
    #[error("a change cannot be read: {0}")]
    Record(Malformed),
}

impl From<Malformed> for Unlike {
    fn from(error: Malformed) -> Unlike {
        Unlike::Record(error)
    }
}

/// What the server has at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Which object.
    pub id: FileId,
    /// When it was changed last, in nanoseconds since 1970.
    pub changed: u64,
}

/// What is to become of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Redone {
    /// It is done, or of no use any more.
    Nothing,
    /// Send this under this number.
    Send(u64, Box<Request>),
    /// It cannot be told whether doing it again does the same. Keep it, for this reason.
    Aside(&'static str),
}

/// The machine. Where a connection breaks after [`Redo::decide`], a copy of it sends the same under the same numbers over another one,
/// and the server's ledger knows which of it is done.
#[derive(Clone, Debug)]
pub struct Redo {
    names: Names,
    deeds: BTreeMap<u64, Known>,
    cut: Option<Cut>,
    /// What somebody else has changed since.
    foreign: BTreeSet<Node>,
    /// Names of what was changed later than the client ever heard, and the objects of which changes of its own may be the reason.
    later: BTreeSet<Key>,
    unsure: BTreeSet<Node>,
    /// The number of the next change that is sent.
    next: u64,
    /// What was made again, by the number under which.
    again: BTreeMap<Node, u64>,
    /// Objects that may have been made again over connections that broke.
    remade: BTreeSet<Node>,
    /// Objects that were made again before the machine was started once more, and the ids that the client knows them by.
    renewed: BTreeMap<Node, Option<FileId>>,
    /// So many changes of names the disk had then.
    least: usize,
    /// The files whose contents the disk has, as the changes below these numbers left them.
    synced: BTreeMap<FileId, u64>,
}

/// What is known of one change.
#[derive(Clone, Debug)]
struct Known {
    deed: Deed,
    told: Told,
    /// How many changes of names come before it.
    step: usize,
}

impl Redo {
    /// For the changes of a mount of this directory; what is sent has numbers from `next` on.
    pub fn new(root: FileId, next: u64) -> Redo {
        Redo {
            names: Names::new(root),
            deeds: BTreeMap::new(),
            cut: None,
            foreign: BTreeSet::new(),
            later: BTreeSet::new(),
            unsure: BTreeSet::new(),
            next,
            again: BTreeMap::new(),
            remade: BTreeSet::new(),
            renewed: BTreeMap::new(),
            least: 0,
            synced: BTreeMap::new(),
        }
    }

    /// The server's disk has the contents of these files, as the changes below these numbers left them.
    #[must_use]
    pub fn with_synced(self, synced: BTreeMap<FileId, u64>) -> Redo {
        Redo { synced, ..self }
    }

    /// Takes the next change, in their order, and what the client was told of it.
    ///
    /// # Errors
    /// It cannot be followed.
    pub fn learn(&mut self, record: &Record, told: Told) -> Result<(), Unlike> {
        self.names.tells(record.number);
        if told.is_refused {
            return Ok(());
        }
        let (_, request) = Request::decode(record.body.clone())?;
        let Some(request) = change::replayed(request) else { return Ok(()) };
        let deed = match deed::read(&mut self.names, record.number, &request, told.made) {
            // The server would have refused it, and nobody heard so.
            Err(Unlike::Journal) if !told.is_answered => return Ok(()),
            deed => deed?,
        };
        for (key, holder) in &deed.names {
            self.names.now.set(key.clone(), *holder);
        }
        let step = self.deeds.values().next_back().map_or(0, |last| last.step + last.steps());
        self.deeds.insert(record.number, Known { deed, told, step });
        Ok(())
    }

    /// The paths that the server is to be asked about.
    ///
    /// # Errors
    /// They are too many.
    ///
    /// # Cost
    /// A step for each name and each time that a directory was moved.
    pub fn probes(&self) -> Result<BTreeSet<TreePath>, Unlike> {
        cut::probes(&self.names, &self.steps())
    }

    fn steps(&self) -> Vec<&Deed> {
        self.deeds.values().filter(|known| known.steps() > 0).map(|known| &known.deed).collect()
    }

    /// What the server has at these paths: the others of [`Redo::probes`] have nothing.
    ///
    /// # Errors
    /// No moment fits.
    ///
    /// # Cost
    /// As [`Redo::probes`].
    pub fn decide(&mut self, found: &BTreeMap<TreePath, Found>) -> Result<(), Unlike> {
        self.deeds.values_mut().for_each(|known| known.deed.settle(&self.names));
        let cut = cut::find(&self.names, &self.steps(), found, self.least)?;
        self.cut = Some(cut);
        Ok(())
    }

    /// The paths of the objects whose contents or attributes are concerned, after [`Redo::decide`].
    pub fn targets(&self) -> BTreeSet<TreePath> {
        let forgotten = self.forgotten().into_iter().map(|(_, path)| path);
        self.concerned().map(|(_, path)| path).chain(forgotten).collect()
    }

    /// The files, by their ids, whose contents were changed by names that are gone: they may have other names, of which no change speaks.
    pub fn lost(&self) -> BTreeSet<FileId> {
        let Some(cut) = &self.cut else { return BTreeSet::new() };
        let done = self.deeds.values().filter(|known| known.is_before(cut)).map(|known| &known.deed);
        let nodes = done.flat_map(|deed| deed.of.or(deed.makes).into_iter().chain(deed.reads));
        let nodes =
            nodes.filter(|node| !self.names.of(*node).is_new && cut.path(&self.names, *node).is_none());
        nodes.filter_map(|node| self.names.id(node)).collect()
    }

    /// Objects that changes name by the number of one that is forgotten: a server that was started again knows them by theirs alone.
    fn forgotten(&self) -> Vec<(Node, TreePath)> {
        let nodes = self.names.forgotten.iter().map(|node| self.names.same(*node));
        let nodes = nodes.filter(|node| self.names.id(*node).is_none());
        nodes.filter_map(|node| Some((node, self.cut.as_ref()?.path(&self.names, node)?))).collect()
    }

    fn concerned(&self) -> impl Iterator<Item = (Node, TreePath)> + '_ {
        let nodes = self.deeds.values().filter_map(|known| known.deed.of.or(known.deed.makes));
        nodes.filter_map(|node| Some((node, self.cut.as_ref()?.path(&self.names, node)?)))
    }

    /// What is at [`Redo::targets`], and when it was changed last. What was changed later than the client ever heard was changed by
    /// somebody else, or is whole: it is left alone.
    pub fn compare(&mut self, found: &BTreeMap<TreePath, Found>, seen: u64) {
        if let Some(cut) = &mut self.cut {
            cut.found_at(found);
        }
        let forgotten = self.forgotten();
        for (node, path) in &forgotten {
            if let (Some(cut), Some(found)) = (&mut self.cut, found.get(path)) {
                cut.learn(*node, found.id);
            }
        }
        let known = |node: Node| self.cut.as_ref().and_then(|cut| cut.id(node)).or(self.names.id(node));
        let is_own = |(node, path): &(Node, TreePath)| {
            let found = found.get(path).filter(|found| found.changed <= seen);
            found.is_some_and(|found| known(*node).is_none_or(|id| id == found.id))
        };
        let foreign: Vec<Node> = self.concerned().filter(|one| !is_own(one)).map(|(node, _)| node).collect();
        self.foreign.extend(foreign);
        self.later.extend(self.cut.as_ref().map(|cut| cut.changed_after(seen)).unwrap_or_default());
        let unanswered = self.deeds.values().filter(|known| !known.told.is_answered);
        self.unsure = unanswered.filter_map(|known| known.deed.of.or(known.deed.makes)).collect();
    }

    /// Whether a change takes a name from what somebody else may have changed since, or has put there. What is given another name is
    /// not lost: there it is enough that it is what the client meant, by its number, or may be what the client made itself.
    fn takes_later(&self, cut: &Cut, deed: &Deed) -> bool {
        let is_moved = |key: &Key| match cut.state.holder(key) {
            Holder::Object(node) => {
                let is_named = deed.names.iter().any(|(_, holder)| *holder == Holder::Object(node));
                is_named && (self.names.id(node).is_some() || self.unsure.contains(&node))
            }
            Holder::Nobody | Holder::Unknown => false,
        };
        deed.names.iter().any(|(key, _)| self.later.contains(key) && !is_moved(key))
    }

    /// What is to become of a change. Changes come in their order, once each, after [`Redo::decide`].
    ///
    /// # Errors
    /// It is none that was learned.
    pub fn redo(&mut self, record: &Record) -> Result<Redone, Unlike> {
        let (Some(cut), Some(known)) = (&self.cut, self.deeds.get(&record.number)) else {
            // Refused, or of no use without its holder.
            return Ok(Redone::Nothing);
        };
        let (_, request) = Request::decode(record.body.clone())?;
        let Some(request) = change::replayed(request) else { return Ok(Redone::Nothing) };
        let is_gone = known.deed.of.or(known.deed.makes).is_some_and(|node| cut.is_gone(node));
        if known.deed.is_void || is_gone {
            return Ok(Redone::Nothing);
        }
        let request =
            if self.is_synced(cut, record.number, known) { unsynced(request) } else { Some(request) };
        let Some(request) = request else { return Ok(Redone::Nothing) };
        // Nobody's data, so nothing to keep.
        let of = known.deed.of.filter(|_| matches!(&request, Request::Put(put) if put.is_barrier()));
        if of.is_some_and(|node| self.foreign.contains(&node)) {
            return Ok(Redone::Nothing);
        }
        if let Some(why) = self.doubt(cut, record.number, known, &request) {
            return Ok(Redone::Aside(why));
        }
        let request = at_its_offset(request, &known.told);
        let is_before = known.is_before(cut);
        let (request, ids) = if is_before {
            let Some(done) = rest(cut, &self.names, known, request) else { return Ok(Redone::Nothing) };
            done
        } else {
            (without_flags(request), known.deed.ids)
        };
        let changes = known.deed.of.or(known.deed.makes);
        if !is_before && self.takes_later(cut, &known.deed) {
            // What it was to make is not there: those behind it mean something else.
            self.foreign.extend(known.deed.makes);
            return Ok(Redone::Aside(CHANGED_LATER));
        }
        if changes.is_some_and(|node| self.foreign.contains(&node)) {
            return Ok(Redone::Aside(CHANGED_LATER));
        }
        if !is_before {
            known.deed.names.iter().for_each(|(key, _)| {
                self.later.remove(key);
            });
        }
        let makes = known.deed.makes.filter(|_| is_create(&request));
        let number = self.next;
        let request = self.named(cut, request, ids);
        if let Some(node) = makes {
            self.again.insert(node, number);
        }
        self.next += 1;
        Ok(Redone::Send(number, Box::new(request)))
    }

    /// Whether a sync has acknowledged the contents that a change left in a file.
    fn is_synced(&self, cut: &Cut, number: u64, known: &Known) -> bool {
        known.deed.of.or(known.deed.makes).is_some_and(|node| {
            let below = self.names.id(node).and_then(|id| self.synced.get(&id));
            below.is_some_and(|below| number < *below) && (cut.is_there(node) || !self.names.of(node).is_new)
        })
    }

    /// Whether the server's answer says that there was nothing left to be done.
    pub fn is_done(request: &Request, errno: Errno) -> bool {
        matches!(request, Request::Xattr(xattr) if xattr.action == XattrAction::Remove)
            && errno == Errno::NoData
    }

    /// Whether doing it again may be something else.
    fn doubt(&self, cut: &Cut, number: u64, known: &Known, request: &Request) -> Option<&'static str> {
        let is_rebuilt = |node: Node| self.names.of(node).is_new && !cut.is_there(node);
        match request {
            Request::Put(put) if put.mode.has(PutMode::APPEND) && put.mode.has(PutMode::DATA) => {
                let node = known.deed.of.or(known.deed.makes)?;
                let is_known = known.told.offset.is_some() || is_rebuilt(node);
                (!is_known)
                    .then_some("the server's machine lost power, and nobody knows where the append went")
            }
            Request::Copy(_) => {
                let from = known.deed.reads.filter(|node| !is_rebuilt(*node))?;
                if cut.is_gone(from) {
                    return Some(COPIED_LATER);
                }
                let mut later = self.deeds.range(number + 1..).map(|(_, known)| known.deed.of);
                later.any(|of| of == Some(from)).then_some(COPIED_LATER)
            }
            _ => None,
        }
    }

    /// The request with the ids that its objects have, or will have been given by then.
    fn named(&self, cut: &Cut, mut request: Request, nodes: [Option<Node>; 2]) -> Request {
        let ids = request.ids_mut();
        for (id, node) in ids.into_iter().zip(nodes) {
            let (Some(id), Some(node)) = (id, node) else { continue };
            *id = match (self.again.get(&node), cut.id(node)) {
                (Some(number), _) => FileId::provisional(*number),
                (None, Some(found)) => found,
                (None, None) => self.names.id(node).unwrap_or(*id),
            };
        }
        request
    }
}

impl Known {
    /// Whether it comes before the moment that the server's disk has.
    fn is_before(&self, cut: &Cut) -> bool {
        self.step < cut.step || self.step == cut.step && self.steps() == 0
    }

    fn steps(&self) -> usize {
        usize::from(!self.deed.names.is_empty())
    }
}

/// The rest of a change whose contents the disk has: they would bring older ones back until those behind them are sent.
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

/// An append, at the place where it went.
fn at_its_offset(request: Request, told: &Told) -> Request {
    match (request, told.offset) {
        (Request::Put(put), Some(offset)) if put.mode.has(PutMode::APPEND) => {
            Request::Put(Tput { mode: put.mode.without(PutMode::APPEND), offset, ..put })
        }
        (request, _) => request,
    }
}

/// Attributes are set whether they are there or not.
fn without_flags(request: Request) -> Request {
    match request {
        Request::Xattr(mut xattr) if xattr.action == XattrAction::Set => {
            xattr.flags = 0;
            Request::Xattr(xattr)
        }
        other => other,
    }
}

/// What remains of a change up to the cut: what it did to contents and attributes, where its object is by now; and the objects that it
/// names.
fn rest(cut: &Cut, names: &Names, known: &Known, request: Request) -> Option<(Request, [Option<Node>; 2])> {
    let at = |node: Node| cut.path(names, node);
    let moved = |target: Target, node: Node| Some(Target { path: at(node)?, fd: NOFD, ..target });
    let Deed { of, makes, ids, .. } = &known.deed;
    match request {
        Request::Put(put) if put.mode.has(PutMode::NAMELESS) => {
            let is_named = makes.is_some_and(|node| at(node).is_some());
            (!is_named).then(|| (Request::Put(put), *ids))
        }
        Request::Put(put) => {
            let node = of.or(*makes)?;
            let is_made = put.create.as_ref().is_some_and(|create| create.kind != Kind::File);
            let dropped = PutMode::CREATE.and(PutMode::EXCLUSIVE).and(PutMode::REMOVE);
            let dropped = dropped.and_if(is_made, PutMode::DATA);
            let mode = put.mode.without(dropped);
            if mode == PutMode::NONE {
                return None;
            }
            // It names the object by its id, whatever it did before.
            let id = cut.id(node).or_else(|| names.id(node));
            let target = Target { id, ..moved(put.target.clone(), node)? };
            Some((Request::Put(Tput { target, mode, create: None, ..put }), [Some(node), None]))
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
            (copy.from, copy.to) = (moved(copy.from, known.deed.reads?)?, moved(copy.to, (*of)?)?);
            Some((Request::Copy(copy), *ids))
        }
        // Names, and nothing else.
        _ => None,
    }
}
