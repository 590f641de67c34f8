//! What a client that lives is told of changes that were done again: which objects have other ids now, and what became of the changes
//! that it waits for.

use crate::redo::Redo;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use wirefs_op::message::error::Rerror;
use wirefs_op::message::put::Rput;
use wirefs_op::wire::Malformed;
use wirefs_op::{Errno, FileId, NOTAG, Reply, Stat, Tag, TreePath};

/// What became of a change whose reply was lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It was sent again, and this is what the server said.
    Answered(Box<Reply>),
    /// It was done already, or is of no use any more. What its object is now, where it has a name.
    Done(Option<Stat>),
}

/// What all of it has led to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Became {
    /// Above all numbers under which changes were sent.
    pub next: u64,
    /// Objects that were made again, and what they are now, by the ids that they had.
    pub made: BTreeMap<FileId, Stat>,
    /// What became of the changes that are waited for, by their numbers.
    pub fates: BTreeMap<u64, Fate>,
}

/// What the server has said of the changes, and what became of the others.
#[derive(Debug, Default)]
pub(super) struct Heard {
    /// Replies are kept of the changes from this number on.
    from: u64,
    /// By the numbers that the changes have in the journal.
    replies: BTreeMap<u64, Reply>,
    /// What each of them has made.
    pub(super) made: BTreeMap<u64, FileId>,
    /// Those that are kept aside.
    pub(super) aside: BTreeSet<u64>,
    /// All changes that were sent under lower numbers than this are answered, and that is heard.
    pub(super) floor: u64,
}

impl Heard {
    /// For a client that waits for replies to changes from a number on.
    pub(super) fn from(from: u64) -> Heard {
        Heard { from, ..Heard::default() }
    }

    /// Takes a message; `number_of` tells which change of the journal a tag stands for.
    pub(super) fn hear(
        &mut self,
        body: &Bytes,
        number_of: impl Fn(Tag) -> Option<u64>,
    ) -> Result<(), Malformed> {
        let (tag, reply) = Reply::decode(body.clone())?;
        let Some(number) = number_of(tag).filter(|_| tag != NOTAG) else { return Ok(()) };
        if let Reply::Put(Rput { stat: Some(stat), .. }) = &reply {
            self.made.insert(number, stat.id);
        }
        if number >= self.from {
            self.replies.insert(number, reply);
        }
        Ok(())
    }

    /// Where the objects are of which the client is told something.
    pub(super) fn paths(&self, redo: &Redo) -> BTreeSet<TreePath> {
        let numbers = self.made.keys().copied().chain(redo.known_from(self.from)).chain(redo.renewed());
        numbers.filter_map(|number| redo.path_of(number)).collect()
    }

    /// What it is told; `stats` is what has these paths.
    pub(super) fn became(&self, redo: &Redo, stats: &BTreeMap<TreePath, Stat>) -> Became {
        Became { next: redo.end(), made: self.made_again(redo, stats), fates: self.fates(redo, stats) }
    }

    fn made_again(&self, redo: &Redo, stats: &BTreeMap<TreePath, Stat>) -> BTreeMap<FileId, Stat> {
        let mut made = BTreeMap::new();
        let told = self.made.iter().map(|(number, id)| (*number, Some(*id)));
        let others = redo.known_from(self.from).chain(redo.renewed());
        for (number, id) in others.map(|number| (number, redo.id_of(number))).chain(told) {
            let found = redo.path_of(number).and_then(|path| stats.get(&path));
            let Some(stat) = found.filter(|stat| Some(stat.id) == id) else { continue };
            let unleased = stat.unleased();
            made.extend(redo.known_as(number).into_iter().map(|known| (known, unleased)));
        }
        made
    }

    fn fates(&self, redo: &Redo, stats: &BTreeMap<TreePath, Stat>) -> BTreeMap<u64, Fate> {
        let stat = |number: u64| {
            let id = redo.id_of(number);
            let found = redo.path_of(number).and_then(|path| stats.get(&path));
            found.filter(|stat| id.is_none_or(|id| id == stat.id)).map(|stat| stat.unleased())
        };
        let done = redo.known_from(self.from).map(|number| (number, Fate::Done(stat(number))));
        let mut fates: BTreeMap<u64, Fate> = done.collect();
        let aside = self.aside.iter().copied().filter(|number| *number >= self.from);
        let refused = || Fate::Answered(Box::new(Reply::Error(Rerror::from(Errno::Io))));
        fates.extend(aside.map(|number| (number, refused())));
        let replies = self.replies.iter();
        fates.extend(replies.map(|(number, reply)| (*number, Fate::Answered(Box::new(reply.clone())))));
        fates
    }
}
