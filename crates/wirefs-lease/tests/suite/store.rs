//! The true state: the directories and files of the server.

use std::collections::BTreeMap;
use wirefs_op::FileId;

/// The names in use; few, so that clients conflict.
pub(crate) const NAMES: [&str; 4] = ["a", "b", "c", "d"];
/// The directories, which always exist.
pub(crate) const DIRECTORIES: [u64; 3] = [1, 2, 3];

/// A fact that a client can cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fact {
    /// The attributes of an object.
    Attributes(u64),
    /// The object of a name in a directory.
    Name(u64, &'static str),
}

/// The value of a fact: a version or an object; `None` if the name does not exist.
pub(crate) type Value = Option<u64>;

#[derive(Default)]
pub(crate) struct Store {
    versions: BTreeMap<u64, u64>,
    names: BTreeMap<(u64, &'static str), u64>,
    clock: u64,
}

pub(crate) fn id(ino: u64) -> FileId {
    FileId { fs: 0, ino, generation: 1 }
}

impl Store {
    pub(crate) fn new() -> Store {
        let mut store = Store { clock: 1000, ..Store::default() };
        for directory in DIRECTORIES {
            store.change(directory);
            for name in &NAMES[..2] {
                store.create(directory, name);
            }
        }
        store
    }

    pub(crate) fn value(&self, fact: Fact) -> Value {
        match fact {
            Fact::Attributes(object) => self.version(object),
            Fact::Name(directory, name) => self.name(directory, name),
        }
    }

    pub(crate) fn version(&self, object: u64) -> Option<u64> {
        self.versions.get(&object).copied()
    }

    pub(crate) fn name(&self, directory: u64, name: &'static str) -> Option<u64> {
        self.names.get(&(directory, name)).copied()
    }

    /// Gives the object a new version.
    pub(crate) fn change(&mut self, object: u64) {
        self.clock += 1;
        self.versions.insert(object, self.clock);
    }

    pub(crate) fn create(&mut self, directory: u64, name: &'static str) {
        self.clock += 1;
        let object = self.clock;
        self.change(object);
        self.bind(directory, name, Some(object));
    }

    /// Sets the object of a name. The directory, and the objects that lose or gain the name, get new
    /// versions.
    pub(crate) fn bind(&mut self, directory: u64, name: &'static str, object: Option<u64>) {
        let before = match object {
            Some(object) => self.names.insert((directory, name), object),
            None => self.names.remove(&(directory, name)),
        };
        self.change(directory);
        for object in before.into_iter().chain(object) {
            self.change(object);
        }
    }
}
