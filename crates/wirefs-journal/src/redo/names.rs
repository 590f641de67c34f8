//! The names that a journal's changes are about, as far as the changes tell: who had them before, who has them after each.

use super::Unlike;
use std::collections::{BTreeMap, BTreeSet};
use wirefs_op::{FileId, TreePath};

/// An object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Node(pub(super) usize);

/// The directory that was mounted.
pub(super) const ROOT: Node = Node(0);

/// A name in a directory.
pub(super) type Key = (Node, Vec<u8>);

/// Who has a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holder {
    /// Nobody knows.
    Unknown,
    Nobody,
    Object(Node),
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Object {
    /// Its number at the server, as far as it was told.
    pub(super) id: Option<FileId>,
    /// The change that made it, or opened it where it may have been there before.
    pub(super) made: Option<u64>,
    /// It was not there before that.
    pub(super) is_new: bool,
    /// A change that makes or removes it says that it is a directory.
    pub(super) is_directory: bool,
    /// The object that this one turned out to be.
    same: Option<Node>,
}

/// The names after some of the changes.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    names: BTreeMap<Key, Holder>,
    places: BTreeMap<Node, BTreeSet<Key>>,
}

impl State {
    pub(super) fn holder(&self, key: &Key) -> Holder {
        self.names.get(key).copied().unwrap_or(Holder::Unknown)
    }

    pub(super) fn set(&mut self, key: Key, holder: Holder) {
        if let Some(Holder::Object(before)) = self.names.insert(key.clone(), holder)
            && let Some(places) = self.places.get_mut(&before)
        {
            places.remove(&key);
        }
        if let Holder::Object(node) = holder {
            self.places.entry(node).or_default().insert(key);
        }
    }

    /// All names of an object are another's from now on.
    fn merge(&mut self, node: Node, into: Node) {
        let places = self.places.remove(&node).unwrap_or_default();
        self.names.extend(places.iter().map(|key| (key.clone(), Holder::Object(into))));
        self.places.entry(into).or_default().extend(places);
    }

    /// Whether a directory is known to have something in it.
    pub(super) fn has_names_in(&self, dir: Node) -> bool {
        let mut names = self.names.range((dir, Vec::new())..).take_while(|((of, _), _)| *of == dir);
        names.any(|(_, holder)| matches!(holder, Holder::Object(_)))
    }

    /// A path of the object; `None`: it has no name.
    pub(super) fn path(&self, node: Node) -> Option<TreePath> {
        let (mut at, mut names) = (node, Vec::new());
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

/// All that the changes tell of names.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    objects: Vec<Object>,
    by_number: BTreeMap<u64, Node>,
    by_id: BTreeMap<FileId, Node>,
    /// Objects that were made by changes before the first.
    pub(super) forgotten: Vec<Node>,
    /// The number of the first change.
    first_number: Option<u64>,
    /// Before the first change.
    pub(super) first: State,
    /// After the last one that was looked at.
    pub(super) now: State,
    /// Directories: whose places other paths depend on.
    pub(super) directories: BTreeSet<Node>,
}

impl Names {
    pub(super) fn new(root: FileId) -> Names {
        let mut names = Names::default();
        let node = names.object(Some(root), None);
        names.directories.insert(node);
        names
    }

    pub(super) fn object(&mut self, id: Option<FileId>, made: Option<u64>) -> Node {
        let node = Node(self.objects.len());
        self.objects.push(Object { made, ..Object::default() });
        if let Some(made) = made {
            self.by_number.insert(made, node);
        }
        if let Some(id) = id {
            self.learn(node, id);
        }
        node
    }

    pub(super) fn is_new(&mut self, node: Node) {
        if let Some(object) = self.objects.get_mut(node.0) {
            object.is_new = true;
        }
    }

    pub(super) fn is_directory(&mut self, node: Node) {
        let node = self.same(node);
        if let Some(object) = self.objects.get_mut(node.0) {
            object.is_directory = true;
        }
    }

    fn learn(&mut self, node: Node, id: FileId) {
        if let Some(object) = self.objects.get_mut(node.0) {
            object.id = Some(id);
            self.by_id.insert(id, node);
        }
    }

    /// The object was made again, and has this id if that is known. What the changes call by the former one is still this object.
    pub(super) fn renew(&mut self, node: Node, id: Option<FileId>) {
        let node = self.same(node);
        if let Some(object) = self.objects.get_mut(node.0) {
            (object.id, object.is_new) = (id, true);
        }
        self.by_id.extend(id.map(|id| (id, node)));
    }

    /// The object that a node stands for, once two of them turned out to be one file.
    pub(super) fn same(&self, node: Node) -> Node {
        let mut at = node;
        while let Some(same) = self.objects.get(at.0).and_then(|object| object.same) {
            at = same;
        }
        at
    }

    pub(super) fn of(&self, node: Node) -> Object {
        self.objects.get(self.same(node).0).copied().unwrap_or_default()
    }

    /// The number that the object has if it is there.
    pub(super) fn id(&self, node: Node) -> Option<FileId> {
        self.of(node).id
    }

    /// What the client meant by an id.
    pub(super) fn by_id(&self, id: FileId) -> Option<Node> {
        let node = match id.provisional_number() {
            Some(number) => self.by_number.get(&number),
            None => self.by_id.get(&id),
        };
        node.map(|node| self.same(*node))
    }

    /// Whether an object may have this id at the server: it has, or it is older than the changes and so is what is known by the id.
    /// A file may have had several names before the first change.
    pub(super) fn may_be(&self, node: Node, id: FileId) -> bool {
        // What was made again does not have its former id any more, and something else may have it.
        let has_it = self.by_id(id).filter(|known| self.id(*known) == Some(id));
        match (self.id(node), has_it) {
            (Some(known), _) => known == id,
            (None, None) => true,
            (None, Some(known)) => self.may_be_one(node, known),
        }
    }

    /// Whether two objects may be one file with several names, all older than the changes.
    pub(super) fn may_be_one(&self, one: Node, other: Node) -> bool {
        let may_be = |node: Node| !self.of(node).is_new && !self.directories.contains(&node);
        one == other || may_be(one) && may_be(other)
    }

    /// An object of which only names are known turned out to be another one, which has an id: a file with several names.
    fn merge(&mut self, node: Node, into: Node) -> Result<(), Unlike> {
        let Object { id, made, .. } = self.of(node);
        if id.is_some() || !self.may_be_one(node, into) {
            return Err(Unlike::Journal);
        }
        self.first.merge(node, into);
        self.now.merge(node, into);
        if let Some(object) = self.objects.get_mut(into.0) {
            object.made = object.made.or(made);
        }
        if let Some(object) = self.objects.get_mut(node.0) {
            object.same = Some(into);
        }
        Ok(())
    }

    /// Changes from this number on are told, in their order.
    pub(super) fn tells(&mut self, number: u64) {
        self.first_number.get_or_insert(number);
    }

    fn is_forgotten(&self, number: u64) -> bool {
        self.first_number.is_some_and(|first| number < first) && !self.by_number.contains_key(&number)
    }

    /// A change says that the object has this id.
    pub(super) fn is_called(&mut self, node: Node, id: Option<FileId>) -> Result<(), Unlike> {
        let Some(id) = id else { return Ok(()) };
        let (object, known) = (self.of(node), self.by_id(id));
        match (id.provisional_number(), known) {
            (_, Some(known)) if known == node => Ok(()),
            (_, Some(known)) => self.merge(node, known),
            // The change that made it is forgotten: it is on the server's disk, and known by its path.
            (Some(number), None) if self.is_forgotten(number) && !object.is_new => {
                if let Some(object) = self.objects.get_mut(node.0) {
                    object.made = object.made.or(Some(number));
                }
                self.by_number.insert(number, node);
                self.forgotten.push(node);
                Ok(())
            }
            (None, None) if object.id.is_none() => {
                self.learn(node, id);
                Ok(())
            }
            _ => Err(Unlike::Journal),
        }
    }

    /// The name was held so before the first change, of which nothing was known.
    pub(super) fn begins(&mut self, key: &Key, holder: Holder) {
        self.first.set(key.clone(), holder);
        self.now.set(key.clone(), holder);
    }

    /// Who is at a path now; what was not spoken of before was there before the first change.
    pub(super) fn walk(&mut self, path: &TreePath) -> Result<Node, Unlike> {
        let mut at = ROOT;
        for name in path.names() {
            self.directories.insert(at);
            let key = (at, name.to_vec());
            at = match self.now.holder(&key) {
                Holder::Object(node) => node,
                Holder::Nobody => return Err(Unlike::Journal),
                Holder::Unknown => {
                    let node = self.object(None, None);
                    self.begins(&key, Holder::Object(node));
                    node
                }
            };
        }
        Ok(at)
    }

    /// Who is at a path now, which the client knows by this id. What has another name already, and is older than the changes, had this one
    /// as well before the first of them.
    pub(super) fn walk_to(&mut self, path: &TreePath, id: Option<FileId>) -> Result<Node, Unlike> {
        if let (Some((parent, name)), Some(node)) = (path.split_last(), id.and_then(|id| self.old(id))) {
            let parent = self.walk(&parent)?;
            let key = (parent, name.to_vec());
            if self.now.holder(&key) == Holder::Unknown && !self.directories.contains(&node) {
                self.directories.insert(parent);
                self.begins(&key, Holder::Object(node));
            }
        }
        let node = self.walk(path)?;
        self.is_called(node, id)?;
        Ok(self.same(node))
    }

    /// What the client meant by an id, if that may have been there before the first change.
    pub(super) fn old(&self, id: FileId) -> Option<Node> {
        self.by_id(id).filter(|node| !self.of(*node).is_new)
    }

    /// A name in a directory, which the client knows by this id.
    pub(super) fn key(&mut self, path: &TreePath, dir: Option<FileId>) -> Result<Key, Unlike> {
        let (parent, name) = path.split_last().ok_or(Unlike::Journal)?;
        let parent = self.walk(&parent)?;
        self.directories.insert(parent);
        self.is_called(parent, dir)?;
        Ok((parent, name.to_vec()))
    }
}
