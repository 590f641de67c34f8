//! The kernel's cache: names, also absent ones, and attributes, for as long as it may trust them; and the pages of
//! files whose attributes it believes. Under leases that must be how things are at each moment.

use super::World;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use wirefs_cache::CachedRanges;
use wirefs_client::call::{Answer, Call, CallId, Entry, Invalidate, PageCache, ROOT, TreeNodeId};
use wirefs_op::{FileId, Stat, Time, Timestamp};

/// A name in a directory.
type Place = (TreeNodeId, Vec<u8>);

/// The part of a call that its answer changes in a kernel.
#[derive(Clone, Debug)]
pub(super) enum Matter {
    /// An entry, or none.
    Name(TreeNodeId, Vec<u8>),
    /// Attributes.
    Node(TreeNodeId),
    /// A listing.
    Directory(TreeNodeId),
    /// Contents, from there on.
    Contents(TreeNodeId, u64),
    /// Whether to keep contents.
    Open(TreeNodeId),
    /// Own changes: of names in these directories, of these nodes' attributes.
    Change { names: Vec<(TreeNodeId, Vec<u8>)>, nodes: Vec<TreeNodeId>, made: Option<(TreeNodeId, Vec<u8>)> },
    /// A rename, which takes what is believed of the old name to the new one.
    Rename { from: (TreeNodeId, Vec<u8>), to: (TreeNodeId, Vec<u8>), is_exchange: bool },
}

#[derive(Debug)]
struct Asked {
    matter: Matter,
    since: u64,
    /// Names that were forgotten meanwhile: who forgets them waits for lookups and listings of their directory.
    forgotten: BTreeSet<(TreeNodeId, Vec<u8>)>,
    /// Nodes that were forgotten behind one of those.
    forgotten_behind: BTreeSet<TreeNodeId>,
    /// Something changes names in the directory at the same time, which a kernel's lock of the directory does not let happen: nothing
    /// follows from what it believes then.
    is_impossible: bool,
}

#[derive(Clone, Copy, Debug)]
struct Believed<T> {
    what: T,
    until: Time,
}

/// One kernel.
#[derive(Debug, Default)]
pub(crate) struct Kernel {
    ids: BTreeMap<TreeNodeId, FileId>,
    names: BTreeMap<(TreeNodeId, Vec<u8>), Believed<Option<TreeNodeId>>>,
    attributes: BTreeMap<TreeNodeId, Believed<Stat>>,
    pages: BTreeMap<TreeNodeId, CachedRanges>,
    /// The time of change and the size that the pages are of, as far as it was told.
    told: BTreeMap<TreeNodeId, (Timestamp, u64)>,
    asked: BTreeMap<CallId, Asked>,
    /// Counts what is forgotten.
    clock: u64,
    forgotten: BTreeMap<TreeNodeId, u64>,
    /// When a name was moved to these places by the kernel itself.
    moved: BTreeMap<(TreeNodeId, Vec<u8>), Time>,
}

fn matter(call: &Call<'_>) -> Option<Matter> {
    let name = |parent: TreeNodeId, name: &[u8]| (parent, name.to_vec());
    let change = |names: Vec<(TreeNodeId, Vec<u8>)>, nodes: Vec<TreeNodeId>| Matter::Change {
        names,
        nodes,
        made: None,
    };
    let makes = |place: (TreeNodeId, Vec<u8>), nodes: Vec<TreeNodeId>| Matter::Change {
        names: vec![place.clone()],
        nodes,
        made: Some(place),
    };
    Some(match *call {
        Call::Lookup { parent, name } => Matter::Name(parent, name.to_vec()),
        Call::Getattr { node, .. } => Matter::Node(node),
        Call::Readdir { node, .. } => Matter::Directory(node),
        Call::Read { node, offset, .. } => Matter::Contents(node, offset),
        Call::Open { node, .. } => Matter::Open(node),
        Call::Setattr { node, .. } | Call::Write { node, .. } => change(vec![], vec![node]),
        Call::Create { parent, name: of, .. }
        | Call::Mkdir { parent, name: of, .. }
        | Call::Symlink { parent, name: of, .. } => makes(name(parent, of), vec![parent]),
        Call::Link { node, parent, name: of } => makes(name(parent, of), vec![parent, node]),
        Call::Unlink { parent, name: of } | Call::Rmdir { parent, name: of } => {
            change(vec![name(parent, of)], vec![parent])
        }
        Call::Rename { parent, name: of, to_parent, to_name, flags } => Matter::Rename {
            from: name(parent, of),
            to: name(to_parent, to_name),
            is_exchange: flags & 2 != 0,
        },
        _ => return None,
    })
}

impl Matter {
    fn changes_names_in(&self) -> Vec<TreeNodeId> {
        match self {
            Matter::Change { names, .. } => names.iter().map(|(dir, _)| *dir).collect(),
            Matter::Rename { from, to, .. } => vec![from.0, to.0],
            Matter::Name(..)
            | Matter::Node(_)
            | Matter::Directory(_)
            | Matter::Contents(..)
            | Matter::Open(_) => vec![],
        }
    }
}

impl Kernel {
    pub(super) fn new(root: FileId) -> Kernel {
        Kernel { ids: BTreeMap::from([(ROOT, root)]), ..Kernel::default() }
    }

    pub(super) fn asks(&mut self, id: CallId, call: &Call<'_>) {
        if let Call::Forget { node, .. } = *call {
            self.drop_node(node);
        }
        self.changes_pages(call);
        let Some(matter) = matter(call) else { return };
        let changes = matter.changes_names_in();
        let looked = |matter: &Matter| match matter {
            Matter::Name(dir, _) | Matter::Directory(dir) => Some(*dir),
            Matter::Node(_)
            | Matter::Contents(..)
            | Matter::Open(_)
            | Matter::Change { .. }
            | Matter::Rename { .. } => None,
        };
        let others = self.asked.values().flat_map(|asked| asked.matter.changes_names_in());
        let is_impossible = looked(&matter).is_some_and(|dir| others.into_iter().any(|other| other == dir));
        for asked in self.asked.values_mut() {
            asked.is_impossible |= looked(&asked.matter).is_some_and(|dir| changes.contains(&dir));
        }
        let asked = Asked {
            matter,
            is_impossible,
            since: self.clock,
            forgotten: BTreeSet::new(),
            forgotten_behind: BTreeSet::new(),
        };
        self.asked.insert(id, asked);
    }

    /// An own change of contents is in the pages at once. Pages that are being read then are not kept.
    fn changes_pages(&mut self, call: &Call<'_>) {
        let node = match *call {
            Call::Write { node, offset, data, .. } => {
                self.pages.entry(node).or_default().insert(offset, data.to_bytes());
                node
            }
            Call::Setattr { node, set, .. } => {
                let pages = self.pages.entry(node).or_default();
                set.size.into_iter().for_each(|size| pages.truncate(size));
                node
            }
            _ => return,
        };
        self.reads_in_vain(node);
        self.invalidate_attributes(node);
    }

    /// Pages of the node that are being read are not kept: they are locked, and dropped when they arrive.
    fn reads_in_vain(&mut self, node: TreeNodeId) {
        for asked in self.asked.values_mut() {
            asked.is_impossible |= matches!(asked.matter, Matter::Contents(read, _) if read == node);
        }
    }

    fn drop_node(&mut self, node: TreeNodeId) {
        self.ids.remove(&node);
        self.pages.remove(&node);
        self.told.remove(&node);
        self.attributes.remove(&node);
        self.names.retain(|(parent, _), believed| *parent != node && believed.what != Some(node));
    }

    fn invalidate_attributes(&mut self, node: TreeNodeId) {
        self.clock += 1;
        self.attributes.remove(&node);
        self.forgotten.insert(node, self.clock);
    }

    pub(super) fn forgets(&mut self, what: &Invalidate) {
        match what {
            Invalidate::Node { node, offset, .. } => {
                if *offset >= 0 {
                    self.pages.remove(node);
                    self.reads_in_vain(*node);
                }
                // Of a node that is not there nothing is forgotten.
                if self.ids.contains_key(node) {
                    self.invalidate_attributes(*node);
                }
                for asked in self.asked.values_mut().filter(|asked| !asked.forgotten.is_empty()) {
                    asked.forgotten_behind.insert(*node);
                }
            }
            Invalidate::Listing { node } => self.invalidate_attributes(*node),
            Invalidate::Entry { parent, name, .. } => {
                let place = (*parent, name.clone());
                self.names.remove(&place);
                for asked in self.asked.values_mut() {
                    let is_waited_for = match &asked.matter {
                        Matter::Name(dir, _) | Matter::Directory(dir) => dir == parent,
                        Matter::Change { names, .. } => names.iter().any(|(dir, _)| dir == parent),
                        Matter::Rename { from, to, .. } => from.0 == *parent || to.0 == *parent,
                        Matter::Node(_) | Matter::Contents(..) | Matter::Open(_) => false,
                    };
                    if is_waited_for {
                        asked.forgotten.insert(place.clone());
                    }
                }
            }
        }
    }

    /// Takes in an answer at `now`; tells which names and nodes it is about.
    pub(super) fn takes(&mut self, now: Time, id: CallId, answer: &Answer) {
        let Some(asked) = self.asked.remove(&id) else { return };
        let failed = matches!(answer, Answer::Fail(_));
        match &asked.matter {
            Matter::Name(parent, name) => match answer {
                Answer::Entry(entry) => self.entry(now, &asked, (*parent, name.clone()), entry),
                Answer::NoEntry(ttl) => self.name(now, &asked, (*parent, name.clone()), None, *ttl),
                _ => {
                    self.names.remove(&(*parent, name.clone()));
                }
            },
            Matter::Node(node) => {
                if let Answer::Attr(stat, ttl) = answer {
                    self.attribute(now, &asked, *node, stat, *ttl);
                }
            }
            Matter::Contents(node, offset) => {
                if let (Answer::Data(data), false) = (answer, asked.is_impossible) {
                    self.pages.entry(*node).or_default().insert(*offset, data.clone());
                }
            }
            Matter::Open(node) => {
                if !matches!(answer, Answer::Opened(_, PageCache::Keep | PageCache::Quiet)) {
                    self.pages.remove(node);
                    self.reads_in_vain(*node);
                }
            }
            Matter::Directory(dir) => {
                let Answer::Listing(listed) = answer else { return };
                for listed in listed {
                    if let Some(entry) = &listed.entry {
                        self.entry(now, &asked, (*dir, listed.name.clone()), entry);
                    }
                }
            }
            Matter::Change { names, nodes, made } => {
                self.changed(now, &asked, (names, nodes, made.as_ref()), answer);
            }
            Matter::Rename { from, to, is_exchange } if !failed => {
                let (moved, other) = (self.names.remove(from), self.names.remove(to));
                let nodes = [moved, other].map(|name| name.and_then(|name| name.what));
                for node in [Some(from.0), Some(to.0)].into_iter().chain(nodes).flatten() {
                    self.invalidate_attributes(node);
                }
                if let Some(moved) = moved.filter(|_| !asked.forgotten.contains(to)) {
                    self.names.insert(to.clone(), moved);
                    self.moved.insert(to.clone(), now);
                }
                if let Some(other) = other.filter(|_| *is_exchange && !asked.forgotten.contains(from)) {
                    self.names.insert(from.clone(), other);
                    self.moved.insert(from.clone(), now);
                }
            }
            Matter::Rename { .. } => {}
        }
    }

    fn changed(
        &mut self,
        now: Time,
        asked: &Asked,
        (names, nodes, made): (&[Place], &[TreeNodeId], Option<&Place>),
        answer: &Answer,
    ) {
        let failed = matches!(answer, Answer::Fail(_));
        for name in names {
            // What loses a name changes.
            if let Some(node) = self.names.remove(name).and_then(|name| name.what).filter(|_| !failed) {
                self.invalidate_attributes(node);
            }
        }
        for node in nodes {
            self.invalidate_attributes(*node);
            // What was not written does not stay in the pages.
            if failed {
                self.pages.remove(node);
            }
        }
        // What is made is there when the answer comes: its own attributes are of then.
        if let (Answer::Entry(entry) | Answer::Created(entry, ..), Some(place)) = (answer, made) {
            self.entry(now, asked, place.clone(), entry);
        }
        if let (Answer::Attr(stat, ttl), [node]) = (answer, nodes) {
            // A change of its own: the kernel compares the size alone.
            self.compare(*node, stat, |told| told.1 != stat.size);
            self.believe(now, *node, stat, *ttl);
        }
    }

    fn entry(&mut self, now: Time, asked: &Asked, place: (TreeNodeId, Vec<u8>), entry: &Entry) {
        let is_new = self.ids.insert(entry.node, entry.stat.id).is_none();
        self.name(now, asked, place, Some(entry.node), entry.entry_ttl);
        let is_behind = asked.forgotten_behind.contains(&entry.node);
        if is_behind {
            self.attributes.remove(&entry.node);
        } else if is_new {
            self.compare(entry.node, &entry.stat, |_| false);
            self.believe(now, entry.node, &entry.stat, entry.attr_ttl);
        } else {
            self.attribute(now, asked, entry.node, &entry.stat, entry.attr_ttl);
        }
    }

    fn name(
        &mut self,
        now: Time,
        asked: &Asked,
        place: (TreeNodeId, Vec<u8>),
        what: Option<TreeNodeId>,
        ttl: Duration,
    ) {
        if asked.is_impossible || ttl.is_zero() || asked.forgotten.contains(&place) {
            self.names.remove(&place);
        } else {
            self.names.insert(place, Believed { what, until: now + ttl });
        }
    }

    /// Attributes from before the node was forgotten do not count.
    fn attribute(&mut self, now: Time, asked: &Asked, node: TreeNodeId, stat: &Stat, ttl: Duration) {
        if self.forgotten.get(&node).is_none_or(|at| *at <= asked.since) {
            self.compare(node, stat, |told| told != (stat.mtime, stat.size));
            self.believe(now, node, stat, ttl);
        }
    }

    /// Takes in what a file is; its pages go if they are not of that.
    fn compare(&mut self, node: TreeNodeId, stat: &Stat, differs: impl Fn((Timestamp, u64)) -> bool) {
        let told = self.told.insert(node, (stat.mtime, stat.size));
        if told.is_some_and(differs) {
            self.pages.remove(&node);
            self.reads_in_vain(node);
        }
    }

    fn believe(&mut self, now: Time, node: TreeNodeId, stat: &Stat, ttl: Duration) {
        if ttl.is_zero() {
            self.attributes.remove(&node);
        } else {
            self.attributes.insert(node, Believed { what: *stat, until: now + ttl });
        }
    }
}

impl World {
    /// The cache of each kernel with leases is correct.
    pub(super) fn check_kernels(&self) {
        for seat in 0..self.seats.len() {
            self.check_kernel(seat);
        }
    }

    pub(super) fn check_kernel(&self, seat: usize) {
        if !self.records || !self.seats[seat].takes_leases {
            return;
        }
        let kernel = &self.seats[seat].kernel;
        let last = self.history.0.len() - 1;
        // Until then, what the client had an answer to has reached its kernel.
        let known = Time(self.now.0.saturating_sub(self.delays.kernel.1 * 1000));
        for ((parent, name), believed) in &kernel.names {
            let Some(dir) = kernel.ids.get(parent).filter(|_| self.now < believed.until) else { continue };
            // The answer to a rename brings no time for which the name is to be believed: where others moved it on before that answer, the
            // kernel is told right behind it, since it holds both directories until then (`fs/fuse/dir.c`, `fuse_reverse_inval_entry`).
            if kernel.moved.get(&(*parent, name.clone())).is_some_and(|at| *at >= known) {
                continue;
            }
            let what = believed.what.and_then(|node| kernel.ids.get(&node)).copied();
            let meant = |state: usize| self.history.0[state].1.name(*dir, name);
            let mut states = self.without_own(seat, known, last..last + 1, |a, b| meant(a) == meant(b));
            assert!(
                states.any(|state| meant(state) == what),
                "{} seat {seat}'s kernel believes that {:?} in {dir:?} is {what:?}, and it is {:?}",
                self.now.0 / 1000,
                String::from_utf8_lossy(name),
                meant(last)
            );
        }
        for (node, believed) in &kernel.attributes {
            if self.now >= believed.until {
                continue;
            }
            let stat = believed.what;
            let version = |state: usize| {
                self.history.0[state].1.objects.get(&stat.id).map(|object| object.stat.version)
            };
            // Of what it changed itself it knows that it did.
            let mut states = self.without_own(seat, Time(0), last..last + 1, |a, b| version(a) == version(b));
            let pages = kernel.pages.get(node);
            let is_kept = |state: usize| {
                let object = self.history.0[state].1.objects.get(&stat.id);
                object.zip(pages).is_none_or(|(object, pages)| holds(pages, &object.data))
            };
            assert!(
                states.any(|state| version(state) == Some(stat.version) && is_kept(state)),
                "{} seat {seat}'s kernel believes {stat:?} with {pages:?}, and its version is {:?}",
                self.now.0 / 1000,
                version(last)
            );
        }
    }
}

/// Whether these pages are of this file.
fn holds(pages: &CachedRanges, data: &[u8]) -> bool {
    let mut at = 0;
    while let Some((from, to)) = pages.first_gap(at, data.len() as u64) {
        if pages.read(at, from).as_deref() != data.get(at as usize..from as usize) {
            return false;
        }
        at = to;
    }
    pages.read(at, data.len() as u64).as_deref() == data.get(at as usize..)
}
