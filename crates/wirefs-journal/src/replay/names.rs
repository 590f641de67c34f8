//! The names that a journal's changes are about: their objects before the first change, and after each change.

use super::ReplayFault;
use std::collections::{BTreeMap, BTreeSet};
use wirefs_op::{FileId, TreePath};

/// An object of the replayed tree, known by its place in [`Namespace`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Inode(pub(super) usize);

/// The mounted directory.
pub(super) const ROOT: Inode = Inode(0);

/// A name in a directory.
pub(super) type Key = (Inode, Vec<u8>);

/// The meaning of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Binding {
    /// No change mentions it.
    Unknown,
    Absent,
    Object(Inode),
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Object {
    /// Its id at the server, as far as it was reported.
    pub(super) id: Option<FileId>,
    /// The change that created it, or that opened it where it may have existed before.
    pub(super) made: Option<u64>,
    /// Whether it did not exist before that change.
    pub(super) is_new: bool,
    /// Whether a change that creates or removes it says that it is a directory.
    pub(super) is_directory: bool,
    /// The object that this one turned out to be.
    same: Option<Inode>,
}

/// The names after some of the changes.
#[derive(Clone, Debug, Default)]
pub(super) struct NameTable {
    names: BTreeMap<Key, Binding>,
    places: BTreeMap<Inode, BTreeSet<Key>>,
}

impl NameTable {
    pub(super) fn binding(&self, key: &Key) -> Binding {
        self.names.get(key).copied().unwrap_or(Binding::Unknown)
    }

    pub(super) fn set(&mut self, key: Key, binding: Binding) {
        if let Some(Binding::Object(before)) = self.names.insert(key.clone(), binding)
            && let Some(places) = self.places.get_mut(&before)
        {
            places.remove(&key);
        }
        if let Binding::Object(inode) = binding {
            self.places.entry(inode).or_default().insert(key);
        }
    }

    /// Gives all names of one object to another.
    fn merge(&mut self, inode: Inode, into: Inode) {
        let places = self.places.remove(&inode).unwrap_or_default();
        self.names.extend(places.iter().map(|key| (key.clone(), Binding::Object(into))));
        self.places.entry(into).or_default().extend(places);
    }

    /// Returns whether a directory is known to have entries.
    pub(super) fn has_names_in(&self, dir: Inode) -> bool {
        let mut names = self.names.range((dir, Vec::new())..).take_while(|((of, _), _)| *of == dir);
        names.any(|(_, binding)| matches!(binding, Binding::Object(_)))
    }

    /// Returns a path of the object; `None` if it has no name.
    pub(super) fn path(&self, inode: Inode) -> Option<TreePath> {
        let (mut at, mut names) = (inode, Vec::new());
        while at != ROOT {
            // Changes that contradict each other may have made a circle.
            if names.len() > self.names.len() {
                return None;
            }
            let (dir, name) = self.places.get(&at)?.first()?;
            names.push(name.as_slice());
            at = *dir;
        }
        TreePath::from_names(names.into_iter().rev())
    }
}

/// All names in all changes.
#[derive(Clone, Debug, Default)]
pub(super) struct Namespace {
    objects: Vec<Object>,
    by_number: BTreeMap<u64, Inode>,
    by_id: BTreeMap<FileId, Inode>,
    /// Objects that a change before the journal's first one created.
    pub(super) made_before_journal: Vec<Inode>,
    /// The number of the first change.
    first_number: Option<u64>,
    /// The names before the first change.
    pub(super) first: NameTable,
    /// The names after the last learned change.
    pub(super) now: NameTable,
    /// Directories, on whose names other paths depend.
    pub(super) directories: BTreeSet<Inode>,
}

impl Namespace {
    pub(super) fn new(root: FileId) -> Namespace {
        let mut names = Namespace::default();
        let inode = names.object(Some(root), None);
        names.directories.insert(inode);
        names
    }

    pub(super) fn object(&mut self, id: Option<FileId>, made: Option<u64>) -> Inode {
        let inode = Inode(self.objects.len());
        self.objects.push(Object { made, ..Object::default() });
        if let Some(made) = made {
            self.by_number.insert(made, inode);
        }
        if let Some(id) = id {
            self.learn(inode, id);
        }
        inode
    }

    pub(super) fn is_new(&mut self, inode: Inode) {
        if let Some(object) = self.objects.get_mut(inode.0) {
            object.is_new = true;
        }
    }

    /// Records that the object is a directory.
    pub(super) fn is_directory(&mut self, inode: Inode) {
        let inode = self.same(inode);
        if let Some(object) = self.objects.get_mut(inode.0) {
            object.is_directory = true;
        }
    }

    fn learn(&mut self, inode: Inode, id: FileId) {
        if let Some(object) = self.objects.get_mut(inode.0) {
            object.id = Some(id);
            self.by_id.insert(id, inode);
        }
    }

    /// Sets the id of an object that was created again, if known. Its former id in changes still means this object.
    pub(super) fn renew(&mut self, inode: Inode, id: Option<FileId>) {
        let inode = self.same(inode);
        if let Some(object) = self.objects.get_mut(inode.0) {
            (object.id, object.is_new) = (id, true);
        }
        self.by_id.extend(id.map(|id| (id, inode)));
    }

    /// Returns the object that two merged objects have become.
    pub(super) fn same(&self, inode: Inode) -> Inode {
        let mut at = inode;
        while let Some(same) = self.objects.get(at.0).and_then(|object| object.same) {
            at = same;
        }
        at
    }

    pub(super) fn of(&self, inode: Inode) -> Object {
        self.objects.get(self.same(inode).0).copied().unwrap_or_default()
    }

    /// Returns the id of the object at the server, if it is known.
    pub(super) fn id(&self, inode: Inode) -> Option<FileId> {
        self.of(inode).id
    }

    /// Returns the object that the client means by an id.
    pub(super) fn by_id(&self, id: FileId) -> Option<Inode> {
        let inode = match id.provisional_number() {
            Some(number) => self.by_number.get(&number),
            None => self.by_id.get(&id),
        };
        inode.map(|inode| self.same(*inode))
    }

    /// Returns whether an object may have this id: it is the object's own, or both the object and the one with the id existed before the first
    /// change. Such a file may have several names.
    pub(super) fn may_be(&self, inode: Inode, id: FileId) -> bool {
        // An object that was created again no longer has its former id; another one may have it.
        let has_it = self.by_id(id).filter(|known| self.id(*known) == Some(id));
        match (self.id(inode), has_it) {
            (Some(known), _) => known == id,
            (None, None) => true,
            (None, Some(known)) => self.may_be_one(inode, known),
        }
    }

    /// Returns whether two objects may be one file with several names that existed before the first change.
    pub(super) fn may_be_one(&self, one: Inode, other: Inode) -> bool {
        let may_be = |inode: Inode| !self.of(inode).is_new && !self.directories.contains(&inode);
        one == other || may_be(one) && may_be(other)
    }

    /// Merges an object of which only names are known into one with an id: a file with several names.
    fn merge(&mut self, inode: Inode, into: Inode) -> Result<(), ReplayFault> {
        let Object { id, made, .. } = self.of(inode);
        if id.is_some() || !self.may_be_one(inode, into) {
            return Err(ReplayFault::Contradiction);
        }
        self.first.merge(inode, into);
        self.now.merge(inode, into);
        if let Some(object) = self.objects.get_mut(into.0) {
            object.made = object.made.or(made);
        }
        if let Some(object) = self.objects.get_mut(inode.0) {
            object.same = Some(into);
        }
        Ok(())
    }

    /// Sets the number of the first change, once.
    pub(super) fn begin_at(&mut self, number: u64) {
        self.first_number.get_or_insert(number);
    }

    fn is_before_journal(&self, number: u64) -> bool {
        self.first_number.is_some_and(|first| number < first) && !self.by_number.contains_key(&number)
    }

    /// Records that a change gives this id for the object.
    pub(super) fn confirm_id(&mut self, inode: Inode, id: Option<FileId>) -> Result<(), ReplayFault> {
        let Some(id) = id else { return Ok(()) };
        let (object, known) = (self.of(inode), self.by_id(id));
        match (id.provisional_number(), known) {
            (_, Some(known)) if known == inode => Ok(()),
            (_, Some(known)) => self.merge(inode, known),
            // A change before the journal's first one created it: the server's disk has it, and it is known by path.
            (Some(number), None) if self.is_before_journal(number) && !object.is_new => {
                if let Some(object) = self.objects.get_mut(inode.0) {
                    object.made = object.made.or(Some(number));
                }
                self.by_number.insert(number, inode);
                self.made_before_journal.push(inode);
                Ok(())
            }
            (None, None) if object.id.is_none() => {
                self.learn(inode, id);
                Ok(())
            }
            _ => Err(ReplayFault::Contradiction),
        }
    }

    /// Records the meaning of a name before the first change, which was unknown.
    pub(super) fn bound_at_start(&mut self, key: &Key, binding: Binding) {
        self.first.set(key.clone(), binding);
        self.now.set(key.clone(), binding);
    }

    /// Returns the object at a path now. An unknown name existed before the first change.
    pub(super) fn walk(&mut self, path: &TreePath) -> Result<Inode, ReplayFault> {
        let mut at = ROOT;
        for name in path.names() {
            self.directories.insert(at);
            let key = (at, name.to_vec());
            at = match self.now.binding(&key) {
                Binding::Object(inode) => inode,
                Binding::Absent => return Err(ReplayFault::Contradiction),
                Binding::Unknown => {
                    let inode = self.object(None, None);
                    self.bound_at_start(&key, Binding::Object(inode));
                    inode
                }
            };
        }
        Ok(at)
    }

    /// Returns the object at a path now, which the client knows by this id. If it has another name and existed before the first change, it had
    /// this name too.
    pub(super) fn walk_to(&mut self, path: &TreePath, id: Option<FileId>) -> Result<Inode, ReplayFault> {
        if let (Some((parent, name)), Some(inode)) = (path.split_last(), id.and_then(|id| self.old(id))) {
            let parent = self.walk(&parent)?;
            let key = (parent, name.to_vec());
            if self.now.binding(&key) == Binding::Unknown && !self.directories.contains(&inode) {
                self.directories.insert(parent);
                self.bound_at_start(&key, Binding::Object(inode));
            }
        }
        let inode = self.walk(path)?;
        self.confirm_id(inode, id)?;
        Ok(self.same(inode))
    }

    /// Returns the object that the client means by an id, if it may have existed before the first change.
    pub(super) fn old(&self, id: FileId) -> Option<Inode> {
        self.by_id(id).filter(|inode| !self.of(*inode).is_new)
    }

    /// Returns the name at a path whose directory the client knows by this id.
    pub(super) fn key(&mut self, path: &TreePath, dir: Option<FileId>) -> Result<Key, ReplayFault> {
        let (parent, name) = path.split_last().ok_or(ReplayFault::Contradiction)?;
        let parent = self.walk(&parent)?;
        self.directories.insert(parent);
        self.confirm_id(parent, dir)?;
        Ok((parent, name.to_vec()))
    }
}
