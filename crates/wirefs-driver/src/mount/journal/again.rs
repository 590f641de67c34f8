//! The journal of a mount whose server's machine was started again since: what its disk has is looked at, so that the rest
//! is sent again.

use super::left::Left;
use super::nanos;
use super::pump::Pump;
use super::recover::Stays;
use std::collections::{BTreeMap, BTreeSet};
use wirefs_journal::{Found, Redo, Unfit, Unlike};
use wirefs_op::message::get::{GetMode, Tget};
use wirefs_op::message::target::Target;
use wirefs_op::wire::Malformed;
use wirefs_op::{Errno, FileId, NOTAG, Reply, Request, Stat, Tag, TreePath};

/// Looks under way, at most.
const LOOKS_MAX: u16 = 512;

/// Finds out which changes the server's disk has. Those that are sent again get numbers above `end`.
///
/// # Errors
/// That cannot be told, or the connection breaks.
///
/// # Cost
/// A request for each name that was changed, beside each other.
pub(super) fn plan(left: &Left, root: FileId, end: u64, pump: &mut Pump) -> Result<Redo, Stays> {
    let survey = &left.survey;
    // One number is left out, so that the server's ledger tells the first that was done again from the last that was not.
    let mut redo = Redo::new(root, end + 1);
    let unlike = |unlike: Unlike| Stays::Unfit(Unfit::Unlike(unlike));
    if !survey.is_of_one_alone() {
        return Err(unlike(Unlike::Others));
    }
    let mut segments = left.segments()?;
    while let Some(taken) = segments.next()? {
        for record in taken.records.iter().filter(|record| record.number >= survey.forget) {
            redo.learn(record, survey.told(record.number)).map_err(unlike)?;
        }
    }
    let found = found(&look(redo.probes().map_err(unlike)?, pump)?);
    redo.decide(&found).map_err(unlike)?;
    let found = self::found(&look(redo.targets(), pump)?);
    redo.compare(&found, survey.seen);
    Ok(redo)
}

fn found(stats: &BTreeMap<TreePath, Stat>) -> BTreeMap<TreePath, Found> {
    let found = |stat: &Stat| Found { id: stat.id, changed: nanos(stat.ctime) };
    stats.iter().map(|(path, stat)| (path.clone(), found(stat))).collect()
}

/// What is at each path.
pub(super) fn look(paths: BTreeSet<TreePath>, pump: &mut Pump) -> Result<BTreeMap<TreePath, Stat>, Stays> {
    let mut left = paths.into_iter();
    let mut free: Vec<Tag> = (0..LOOKS_MAX).map(Tag).collect();
    let mut under_way: BTreeMap<Tag, TreePath> = BTreeMap::new();
    let mut found = BTreeMap::new();
    loop {
        while let Some(tag) = free.pop() {
            let Some(path) = left.next() else { break };
            let target = Target::at(path.clone());
            let get = Tget { target, mode: GetMode::STAT, nmsgs: 1, offset: 0, count: 0 };
            pump.send(Request::Get(get).encode(tag));
            under_way.insert(tag, path);
        }
        if under_way.is_empty() {
            return Ok(found);
        }
        let body = pump.receive()?;
        let (tag, reply) = Reply::decode(body)?;
        if tag == NOTAG {
            continue;
        }
        let path = under_way.remove(&tag).ok_or(Malformed { what: "a reply to no request", at: 1 })?;
        free.push(tag);
        match reply {
            Reply::Get(got) => {
                let stat = got.stat.ok_or(Malformed { what: "no attributes", at: 0 })?;
                found.insert(path, stat);
            }
            Reply::Error(error) if matches!(error.errno, Errno::NotFound | Errno::NotDirectory) => {}
            Reply::Error(error) => return Err(Stays::Unseen(error.errno)),
            _ => return Err(Malformed { what: "no answer to Tget", at: 0 }.into()),
        }
    }
}
