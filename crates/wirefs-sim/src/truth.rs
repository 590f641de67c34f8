//! The true state at each time: every name and object of the tree, with all former states and their authors.

mod observer;

pub(crate) use observer::{Object, Observer};

use observer::Snapshot;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use wirefs_model::ModelTree;
use wirefs_op::{FileId, Time};

/// The author of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    /// The initial state, or the server itself.
    Nobody,
    /// A client: an index into [`Truth::changes`].
    Client(usize),
    /// A program at the server.
    Outside,
}

/// A change that the server applied for a client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change {
    pub(crate) host: usize,
    /// The start of the client.
    pub(crate) life: u64,
    /// The time when the client had the reply.
    pub(crate) answered: Option<Time>,
}

/// A state of a name or an object.
#[derive(Clone, Debug)]
pub(crate) struct Step<T> {
    pub(crate) at: Time,
    /// The number of the tree's state.
    pub(crate) state: u64,
    pub(crate) by: By,
    pub(crate) value: T,
}

/// A changed thing: a name in a directory, or an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fact {
    Name(FileId, Vec<u8>),
    Object(FileId),
}

type Chain<T> = Vec<Step<T>>;

/// An observation: its period and its client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Observation {
    pub(crate) host: usize,
    pub(crate) life: u64,
    pub(crate) from: Time,
    pub(crate) to: Time,
    /// Own changes of the client that were not answered by then may be unknown to it.
    pub(crate) answered_by: Time,
    /// Whether it keeps cached data while an own change is pending.
    pub(crate) takes_leases: bool,
    /// The time for which changes by programs at the server may stay hidden.
    pub(crate) outside: Duration,
    /// The time of a lock grant: all earlier changes by others are known.
    pub(crate) locked: Option<Time>,
}

/// The tree at all times.
pub(crate) struct Truth {
    names: BTreeMap<(FileId, Vec<u8>), Chain<Option<FileId>>>,
    objects: BTreeMap<FileId, Chain<Arc<Object>>>,
    pub(crate) changes: Vec<Change>,
    /// The directories in which an object ever had a name.
    places: BTreeMap<FileId, BTreeSet<FileId>>,
    /// Objects that have lost a name.
    moved: BTreeSet<FileId>,
    now: Snapshot,
    observer: Observer,
    state: u64,
    /// No observations are checked, so no history is kept.
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

    /// Returns the present tree.
    pub(crate) fn present(&self) -> &Snapshot {
        &self.now
    }

    /// Records changes of the tree. Returns the differences.
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

    /// Returns whether an object, or a directory on a path to it, was ever moved or removed: its path may not lead to it.
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

    /// Returns the possible meanings of a name in an observation.
    pub(crate) fn meanings(
        &self,
        observation: &Observation,
        dir: FileId,
        name: &[u8],
    ) -> Vec<Option<FileId>> {
        let Some(chain) = self.names.get(&(dir, name.to_vec())) else { return vec![None] };
        let (first, believed) = self.span(observation, chain);
        let mut found: Vec<Option<FileId>> =
            chain.get(first.unwrap_or(0)..believed).into_iter().flatten().map(|step| step.value).collect();
        if first.is_none() {
            found.push(None);
        }
        found
    }

    /// Returns the same without the client's own changes since then.
    pub(crate) fn meanings_by_others(
        &self,
        observation: &Observation,
        dir: FileId,
        name: &[u8],
        since: Time,
    ) -> Vec<Option<FileId>> {
        let Some(chain) = self.names.get(&(dir, name.to_vec())) else { return vec![None] };
        let (first, believed) = self.span(observation, chain);
        let others = chain.get(first.unwrap_or(0)..believed).into_iter().flatten();
        let others = others.filter(|step| step.at < since || !self.is_by(observation, step.by));
        others.map(|step| step.value).chain(first.is_none().then_some(None)).collect()
    }

    fn is_by(&self, observation: &Observation, by: By) -> bool {
        let By::Client(change) = by else { return false };
        let change = self.changes.get(change);
        change.is_some_and(|change| (change.host, change.life) == (observation.host, observation.life))
    }

    /// Returns the possible states of an object in an observation.
    pub(crate) fn forms(&self, observation: &Observation, id: FileId) -> &[Step<Arc<Object>>] {
        let Some(chain) = self.objects.get(&id) else { return &[] };
        let (first, believed) = self.span(observation, chain);
        chain.get(first.unwrap_or(0)..believed).unwrap_or_default()
    }

    /// Returns the states during an observation: the first one (`None` if it may be from before all of them), and the end.
    fn span<T>(&self, observation: &Observation, chain: &Chain<T>) -> (Option<usize>, usize) {
        let believed = chain.partition_point(|step| step.at <= observation.to);
        let mut first = chain.partition_point(|step| step.at < observation.from).checked_sub(1);
        while let Some(at) = first
            && chain.get(at).is_some_and(|step| self.may_be_unknown(observation, step.by, step.at))
        {
            first = at.checked_sub(1);
        }
        (first.max(self.known_when_locked(observation, chain)), believed)
    }

    /// Returns the last state that a holder of the lock must know.
    fn known_when_locked<T>(&self, observation: &Observation, chain: &Chain<T>) -> Option<usize> {
        let locked = observation.locked?;
        let before = chain.partition_point(|step| step.at < locked);
        (0..before).rev().find(|at| {
            let is_unknown =
                |step: &Step<T>| step.by != By::Outside && self.may_be_unknown(observation, step.by, step.at);
            chain.get(*at).is_some_and(|step| !is_unknown(step))
        })
    }

    fn may_be_unknown(&self, observation: &Observation, by: By, at: Time) -> bool {
        match by {
            By::Nobody => false,
            By::Outside => observation.from < at + observation.outside,
            By::Client(change) => {
                let answered = self.changes.get(change).and_then(|change| change.answered);
                self.is_by(observation, by)
                    && observation.takes_leases
                    && answered.is_none_or(|answered| answered > observation.answered_by)
            }
        }
    }

    /// Returns the author and time of the last change of a name.
    pub(crate) fn last_change(&self, dir: FileId, name: &[u8]) -> Option<(Time, By)> {
        self.names.get(&(dir, name.to_vec()))?.last().map(|step| (step.at, step.by))
    }

    /// Records that a client knows the outcome of a change, or never will.
    pub(crate) fn outcome_known(&mut self, change: usize, at: Time) {
        if let Some(change) = self.changes.get_mut(change) {
            change.answered.get_or_insert(at);
        }
    }

    /// Records when this start of a client knows the outcome of changes with lost replies.
    pub(crate) fn outcomes_known_at(&mut self, host: usize, life: u64, at: Time) {
        for change in self.changes.iter_mut().filter(|change| (change.host, change.life) == (host, life)) {
            change.answered.get_or_insert(at);
        }
    }

    /// Records a lost connection: outcomes that were under way on it arrive over the next one.
    pub(crate) fn outcomes_lost_of(&mut self, host: usize, life: u64, now: Time) {
        for change in self.changes.iter_mut().filter(|change| (change.host, change.life) == (host, life)) {
            change.answered.take_if(|answered| *answered > now);
        }
    }
}

type Names = BTreeMap<Vec<u8>, FileId>;

/// Returns the names that mean another object now.
fn different(before: Option<&Names>, now: Option<&Names>) -> Vec<(Vec<u8>, Option<FileId>)> {
    let (none, other) = (Names::new(), Names::new());
    let (before, now) = (before.unwrap_or(&none), now.unwrap_or(&other));
    let all: BTreeSet<&Vec<u8>> = before.keys().chain(now.keys()).collect();
    let changed = all.into_iter().filter(|name| before.get(*name) != now.get(*name));
    changed.map(|name| (name.clone(), now.get(name).copied())).collect()
}
