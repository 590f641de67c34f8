//! What was so at each moment: every name and object of the tree, with all that it ever was and who changed it.

mod observer;

pub(crate) use observer::{Object, Observer};

use observer::Snapshot;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use wirefs_model::ModelTree;
use wirefs_op::{FileId, Time};

/// Who changed something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    /// It was so from the beginning, or the server did it by itself.
    Nobody,
    /// A client: which of [`Truth::changes`].
    Client(usize),
    /// A program at the server.
    Outside,
}

/// A change that the server carried out for a client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change {
    pub(crate) seat: usize,
    /// Which life of the client.
    pub(crate) life: u64,
    /// When the client knew of it.
    pub(crate) answered: Option<Time>,
}

/// What something became.
#[derive(Clone, Debug)]
pub(crate) struct Step<T> {
    pub(crate) at: Time,
    /// Counts all changes of the tree.
    pub(crate) state: u64,
    pub(crate) by: By,
    pub(crate) value: T,
}

/// Something that changed: a name in a directory, or an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fact {
    Name(FileId, Vec<u8>),
    Object(FileId),
}

type Chain<T> = Vec<Step<T>>;

/// From when to when something was seen, and by whom.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Glance {
    pub(crate) seat: usize,
    pub(crate) life: u64,
    pub(crate) from: Time,
    pub(crate) to: Time,
    /// What the client itself changed and was not told by then it may not know.
    pub(crate) told_by: Time,
    /// Whether it goes on to believe what it knew while an own change is under way.
    pub(crate) takes_leases: bool,
    /// For how long what programs at the server did may be hidden.
    pub(crate) outside: Duration,
    /// When a lock was granted under which it was seen: all that others had changed by then is known.
    pub(crate) locked: Option<Time>,
}

/// The tree at all times.
pub(crate) struct Truth {
    names: BTreeMap<(FileId, Vec<u8>), Chain<Option<FileId>>>,
    objects: BTreeMap<FileId, Chain<Arc<Object>>>,
    pub(crate) changes: Vec<Change>,
    /// The directories that an object ever had a name in.
    places: BTreeMap<FileId, BTreeSet<FileId>>,
    /// Objects that lost a name once.
    moved: BTreeSet<FileId>,
    now: Snapshot,
    observer: Observer,
    state: u64,
    /// Nobody asks: what is there is not what may be seen.
    pub(crate) is_blind: bool,
}

impl Truth {
    pub(crate) fn new(tree: &ModelTree) -> Truth {
        let mut truth = Truth {
            names: BTreeMap::new(),
            objects: BTreeMap::new(),
            changes: Vec::new(),
            places: BTreeMap::new(),
            moved: BTreeSet::new(),
            now: Snapshot::default(),
            observer: Observer::new(tree),
            state: 0,
            is_blind: false,
        };
        truth.look(tree, Time(0), By::Nobody);
        truth
    }

    pub(crate) fn root(&self) -> FileId {
        self.observer.root()
    }

    pub(crate) fn state(&self) -> u64 {
        self.state
    }

    /// The tree as it is.
    pub(crate) fn present(&self) -> &Snapshot {
        &self.now
    }

    /// Takes in what somebody may have changed; tells what is different.
    pub(crate) fn look(&mut self, tree: &ModelTree, at: Time, by: By) -> Vec<Fact> {
        if self.is_blind {
            return Vec::new();
        }
        let next = self.observer.observe(tree);
        let before = std::mem::replace(&mut self.now, next);
        self.state += 1;
        let mut facts = Vec::new();
        for (id, object) in &self.now.objects {
            if before.objects.get(id).is_none_or(|old| old.stat.version != object.stat.version) {
                let step = Step { at, state: self.state, by, value: Arc::clone(object) };
                self.objects.entry(*id).or_default().push(step);
                facts.push(Fact::Object(*id));
            }
        }
        let directories: BTreeSet<FileId> =
            before.names.keys().chain(self.now.names.keys()).copied().collect();
        for dir in directories {
            for (name, value) in different(before.names.get(&dir), self.now.names.get(&dir)) {
                if let Some(lost) = before.name(dir, &name) {
                    self.moved.insert(lost);
                }
                if let Some(found) = value {
                    self.places.entry(found).or_default().insert(dir);
                }
                let step = Step { at, state: self.state, by, value };
                self.names.entry((dir, name.clone())).or_default().push(step);
                facts.push(Fact::Name(dir, name));
            }
        }
        facts
    }

    /// Whether an object, or a directory on a way to it, was ever moved or removed: it may not be found by its path.
    pub(crate) fn is_unsteady(&self, id: FileId) -> bool {
        let mut seen = BTreeSet::new();
        let mut left = vec![id];
        while let Some(id) = left.pop() {
            if self.moved.contains(&id) {
                return true;
            }
            if seen.insert(id) {
                left.extend(self.places.get(&id).into_iter().flatten());
            }
        }
        false
    }

    /// What a name may have been seen to mean.
    pub(crate) fn meanings(&self, glance: &Glance, dir: FileId, name: &[u8]) -> Vec<Option<FileId>> {
        let Some(chain) = self.names.get(&(dir, name.to_vec())) else { return vec![None] };
        let (first, past) = self.span(glance, chain);
        let mut found: Vec<Option<FileId>> =
            chain.get(first.unwrap_or(0)..past).into_iter().flatten().map(|step| step.value).collect();
        if first.is_none() {
            found.push(None);
        }
        found
    }

    /// The same, but for what this client itself did since then.
    pub(crate) fn meanings_by_others(
        &self,
        glance: &Glance,
        dir: FileId,
        name: &[u8],
        since: Time,
    ) -> Vec<Option<FileId>> {
        let Some(chain) = self.names.get(&(dir, name.to_vec())) else { return vec![None] };
        let (first, past) = self.span(glance, chain);
        let others = chain.get(first.unwrap_or(0)..past).into_iter().flatten();
        let others = others.filter(|step| step.at < since || !self.is_by(glance, step.by));
        others.map(|step| step.value).chain(first.is_none().then_some(None)).collect()
    }

    fn is_by(&self, glance: &Glance, by: By) -> bool {
        let By::Client(change) = by else { return false };
        let change = self.changes.get(change);
        change.is_some_and(|change| (change.seat, change.life) == (glance.seat, glance.life))
    }

    /// What an object may have been seen to be.
    pub(crate) fn forms(&self, glance: &Glance, id: FileId) -> &[Step<Arc<Object>>] {
        let Some(chain) = self.objects.get(&id) else { return &[] };
        let (first, past) = self.span(glance, chain);
        chain.get(first.unwrap_or(0)..past).unwrap_or_default()
    }

    /// Which steps were so at some time of a glance: from the first, none where it may be from before all of them, to behind the
    /// last.
    fn span<T>(&self, glance: &Glance, chain: &Chain<T>) -> (Option<usize>, usize) {
        let past = chain.partition_point(|step| step.at <= glance.to);
        let mut first = chain.partition_point(|step| step.at < glance.from).checked_sub(1);
        while let Some(at) = first
            && chain.get(at).is_some_and(|step| self.may_be_unknown(glance, step.by, step.at))
        {
            first = at.checked_sub(1);
        }
        (first.max(self.known_when_locked(glance, chain)), past)
    }

    /// The last step that whoever got a lock then must know.
    fn known_when_locked<T>(&self, glance: &Glance, chain: &Chain<T>) -> Option<usize> {
        let locked = glance.locked?;
        let before = chain.partition_point(|step| step.at < locked);
        (0..before).rev().find(|at| {
            let is_unknown =
                |step: &Step<T>| step.by != By::Outside && self.may_be_unknown(glance, step.by, step.at);
            chain.get(*at).is_some_and(|step| !is_unknown(step))
        })
    }

    fn may_be_unknown(&self, glance: &Glance, by: By, at: Time) -> bool {
        match by {
            By::Nobody => false,
            By::Outside => glance.from < at + glance.outside,
            By::Client(change) => {
                let answered = self.changes.get(change).and_then(|change| change.answered);
                self.is_by(glance, by)
                    && glance.takes_leases
                    && answered.is_none_or(|answered| answered > glance.told_by)
            }
        }
    }

    /// Who changed a name last, and when.
    pub(crate) fn last_change(&self, dir: FileId, name: &[u8]) -> Option<(Time, By)> {
        self.names.get(&(dir, name.to_vec()))?.last().map(|step| (step.at, step.by))
    }

    /// A change that a client knew of, or its end: it is not told any more.
    pub(crate) fn told(&mut self, change: usize, at: Time) {
        if let Some(change) = self.changes.get_mut(change) {
            change.answered.get_or_insert(at);
        }
    }

    /// What this life of a client changed and was not told of it will have heard of by then.
    pub(crate) fn tells_lost(&mut self, seat: usize, life: u64, at: Time) {
        for change in self.changes.iter_mut().filter(|change| (change.seat, change.life) == (seat, life)) {
            change.answered.get_or_insert(at);
        }
    }

    /// This life of a client lost its connection: what it was still to hear of over that one it will hear of over the next.
    pub(crate) fn tells_nothing(&mut self, seat: usize, life: u64, now: Time) {
        for change in self.changes.iter_mut().filter(|change| (change.seat, change.life) == (seat, life)) {
            change.answered.take_if(|answered| *answered > now);
        }
    }
}

type Names = BTreeMap<Vec<u8>, FileId>;

/// Names that mean something else now, and what.
fn different(before: Option<&Names>, now: Option<&Names>) -> Vec<(Vec<u8>, Option<FileId>)> {
    let (none, other) = (Names::new(), Names::new());
    let (before, now) = (before.unwrap_or(&none), now.unwrap_or(&other));
    let all: BTreeSet<&Vec<u8>> = before.keys().chain(now.keys()).collect();
    let changed = all.into_iter().filter(|name| before.get(*name) != now.get(*name));
    changed.map(|name| (name.clone(), now.get(name).copied())).collect()
}
