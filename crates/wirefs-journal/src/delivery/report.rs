//! The result of a replay for a live mount: objects that have another id now, and the results of the changes that the mount waits for.

use crate::replay::Replay;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use wirefs_op::message::error::Rerror;
use wirefs_op::message::put::Rput;
use wirefs_op::wire::Malformed;
use wirefs_op::{Errno, FileId, NOTAG, Reply, Stat, Tag, TreePath};

/// The result of a change whose reply was lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeFate {
    /// It was sent again, and this is the reply.
    Answered(Box<Reply>),
    /// It was done already, or is useless now. Has the current attributes of its object, if that has a name.
    Done(Option<Stat>),
}

/// The result of a replay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayReport {
    /// A number above all numbers under which changes were sent.
    pub next: u64,
    /// The current attributes of objects that were created again, by their former ids.
    pub made: BTreeMap<FileId, Stat>,
    /// The results of the changes that the mount waits for, by number.
    pub fates: BTreeMap<u64, ChangeFate>,
}

/// Collects replies during a replay.
#[derive(Debug, Default)]
pub(super) struct ReplyCollector {
    /// Replies are stored for changes from this number on.
    from: u64,
    /// Replies by the changes' numbers in the journal.
    replies: BTreeMap<u64, Reply>,
    /// The object that each change created.
    pub(super) made: BTreeMap<u64, FileId>,
    /// Changes in the quarantine.
    pub(super) quarantined: BTreeSet<u64>,
    /// All changes that were sent under lower numbers are answered.
    pub(super) floor: u64,
}

impl ReplyCollector {
    /// For a mount that waits for the replies to changes from a number on.
    pub(super) fn from(from: u64) -> ReplyCollector {
        ReplyCollector { from, ..ReplyCollector::default() }
    }

    /// Stores a reply; `number_of` maps a tag to the number of a change in the journal.
    pub(super) fn collect_reply(
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

    /// Returns the paths of the objects in the report.
    pub(super) fn paths(&self, replay: &Replay) -> BTreeSet<TreePath> {
        let numbers =
            self.made.keys().copied().chain(replay.learned_from(self.from)).chain(replay.recreated_before());
        numbers.filter_map(|number| replay.path_of(number)).collect()
    }

    /// Builds the report; `stats` has the objects at [`ReplyCollector::paths`].
    pub(super) fn report(&self, replay: &Replay, stats: &BTreeMap<TreePath, Stat>) -> ReplayReport {
        ReplayReport {
            next: replay.end(),
            made: self.recreated(replay, stats),
            fates: self.fates(replay, stats),
        }
    }

    fn recreated(&self, replay: &Replay, stats: &BTreeMap<TreePath, Stat>) -> BTreeMap<FileId, Stat> {
        let mut made = BTreeMap::new();
        let replies = self.made.iter().map(|(number, id)| (*number, Some(*id)));
        let others = replay.learned_from(self.from).chain(replay.recreated_before());
        for (number, id) in others.map(|number| (number, replay.id_of(number))).chain(replies) {
            let found = replay.path_of(number).and_then(|path| stats.get(&path));
            let Some(stat) = found.filter(|stat| Some(stat.id) == id) else { continue };
            let unleased = stat.unleased();
            made.extend(replay.former_ids(number).into_iter().map(|known| (known, unleased)));
        }
        made
    }

    fn fates(&self, replay: &Replay, stats: &BTreeMap<TreePath, Stat>) -> BTreeMap<u64, ChangeFate> {
        let stat = |number: u64| {
            let id = replay.id_of(number);
            let found = replay.path_of(number).and_then(|path| stats.get(&path));
            found.filter(|stat| id.is_none_or(|id| id == stat.id)).map(|stat| stat.unleased())
        };
        let done = replay.learned_from(self.from).map(|number| (number, ChangeFate::Done(stat(number))));
        let mut fates: BTreeMap<u64, ChangeFate> = done.collect();
        let quarantined = self.quarantined.iter().copied().filter(|number| *number >= self.from);
        let rejected = || ChangeFate::Answered(Box::new(Reply::Error(Rerror::from(Errno::Io))));
        fates.extend(quarantined.map(|number| (number, rejected())));
        let replies = self.replies.iter();
        fates.extend(replies.map(|(number, reply)| (*number, ChangeFate::Answered(Box::new(reply.clone())))));
        fates
    }
}
