//! Looks up the objects at many paths, with one request each.

use super::DeliveryFault;
use crate::replay::ObjectStat;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use wirefs_op::message::get::{GetMode, Tget};
use wirefs_op::message::target::Target;
use wirefs_op::wire::Malformed;
use wirefs_op::{Errno, Frame, NOTAG, Reply, Request, Stat, Tag, Timestamp, TreePath};

/// Requests in flight.
const LOOKUPS_MAX: u16 = 512;

#[derive(Debug, Default)]
pub(super) struct Lookups {
    left: BTreeSet<TreePath>,
    free: Vec<Tag>,
    in_flight: BTreeMap<Tag, TreePath>,
    stats: BTreeMap<TreePath, Stat>,
}

impl Lookups {
    /// Starts lookups of these paths.
    pub(super) fn begin(&mut self, paths: BTreeSet<TreePath>) {
        let free = (0..LOOKUPS_MAX).map(Tag).collect();
        *self = Lookups { left: paths, free, ..Lookups::default() };
    }

    /// Returns the requests to send now.
    pub(super) fn ask(&mut self) -> Vec<Frame> {
        let mut frames = Vec::new();
        while let Some(path) = self.left.pop_first() {
            let Some(tag) = self.free.pop() else {
                self.left.insert(path);
                break;
            };
            let target = Target::at(path.clone());
            let get = Tget { target, mode: GetMode::STAT, nmsgs: 1, offset: 0, count: 0 };
            frames.push(Request::Get(get).encode(tag));
            self.in_flight.insert(tag, path);
        }
        frames
    }

    pub(super) fn received(&mut self, body: Bytes) -> Result<(), DeliveryFault> {
        let (tag, reply) = Reply::decode(body)?;
        if tag == NOTAG {
            return Ok(());
        }
        let path = self.in_flight.remove(&tag).ok_or(Malformed { what: "a reply to no request", at: 1 })?;
        self.free.push(tag);
        match reply {
            Reply::Get(got) => {
                let stat = got.stat.ok_or(Malformed { what: "no attributes", at: 0 })?;
                self.stats.insert(path, stat);
            }
            Reply::Error(error) if matches!(error.errno, Errno::NotFound | Errno::NotDirectory) => {}
            Reply::Error(error) => return Err(DeliveryFault::LookupFailed(error.errno)),
            _ => return Err(Malformed { what: "no answer to Tget", at: 0 }.into()),
        }
        Ok(())
    }

    /// Returns whether all lookups are answered.
    pub(super) fn is_done(&self) -> bool {
        self.left.is_empty() && self.in_flight.is_empty()
    }

    pub(super) fn stats(&self) -> &BTreeMap<TreePath, Stat> {
        &self.stats
    }

    pub(super) fn found(&self) -> BTreeMap<TreePath, ObjectStat> {
        self.stats.iter().map(|(path, stat)| (path.clone(), ObjectStat::from(stat))).collect()
    }
}

impl From<&Stat> for ObjectStat {
    fn from(stat: &Stat) -> ObjectStat {
        let (changed, modified) = (nanos(stat.ctime), nanos(stat.mtime));
        ObjectStat { id: stat.id, changed, modified, size: stat.size }
    }
}

/// Converts a time to nanoseconds since 1970, as the journal stores it. Earlier times become 0.
pub fn nanos(at: Timestamp) -> u64 {
    let secs = u64::try_from(at.secs).unwrap_or_default();
    secs.saturating_mul(1_000_000_000).saturating_add(u64::from(at.nanos))
}
