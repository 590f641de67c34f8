//! Finds objects of which only the ids are known: lists directories, many at a time, until all are found.

use super::DeliveryFault;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use wirefs_op::limits::LISTING_BYTES_MAX;
use wirefs_op::listing::entries;
use wirefs_op::message::get::{GetMode, GotMode, Rget, Tget};
use wirefs_op::message::target::Target;
use wirefs_op::wire::Malformed;
use wirefs_op::{FileId, Frame, Kind, NOTAG, Reply, Request, Tag, TreePath};

/// Requests in flight.
const LISTINGS_MAX: u16 = 64;

#[derive(Debug, Default)]
pub(super) struct Search {
    wanted: BTreeSet<FileId>,
    /// Directories to list, and the position in each.
    left: Vec<(TreePath, u64)>,
    free: Vec<Tag>,
    in_flight: BTreeMap<Tag, TreePath>,
    found: BTreeSet<TreePath>,
}

impl Search {
    /// Starts a search of the whole tree for these objects.
    ///
    /// # Cost
    /// At most a request for each directory; none if `wanted` is empty.
    pub(super) fn begin(&mut self, wanted: BTreeSet<FileId>) {
        let free = (0..LISTINGS_MAX).map(Tag).collect();
        let left = if wanted.is_empty() { Vec::new() } else { vec![(TreePath::root(), 0)] };
        *self = Search { wanted, left, free, ..Search::default() };
    }

    /// Returns the requests to send now.
    pub(super) fn ask(&mut self) -> Vec<Frame> {
        let mut frames = Vec::new();
        while let Some(tag) = self.free.pop() {
            let Some((path, offset)) = self.left.pop() else {
                self.free.push(tag);
                break;
            };
            let target = Target::at(path.clone());
            let count = LISTING_BYTES_MAX as u32;
            frames.push(
                Request::Get(Tget { target, mode: GetMode::DATA, nmsgs: 1, offset, count }).encode(tag),
            );
            self.in_flight.insert(tag, path);
        }
        frames
    }

    /// Takes a message. Skips a directory that cannot be listed.
    pub(super) fn received(&mut self, body: Bytes) -> Result<(), DeliveryFault> {
        let (tag, reply) = Reply::decode(body)?;
        if tag == NOTAG {
            return Ok(());
        }
        let dir = self.in_flight.remove(&tag).ok_or(Malformed { what: "a reply to no request", at: 1 })?;
        self.free.push(tag);
        match reply {
            Reply::Get(got) => self.listed(&dir, got)?,
            Reply::Error(_) => {}
            _ => return Err(Malformed { what: "no answer to Tget", at: 0 }.into()),
        }
        if self.wanted.is_empty() {
            self.left.clear();
        }
        Ok(())
    }

    fn listed(&mut self, dir: &TreePath, got: Rget) -> Result<(), Malformed> {
        let mut last = None;
        for entry in entries(got.data.0)? {
            last = Some(entry.next);
            let Some(path) = dir.join(&entry.name) else { continue };
            if self.wanted.remove(&entry.stat.id) {
                self.found.insert(path.clone());
            }
            if entry.stat.kind == Kind::Directory {
                self.left.push((path, 0));
            }
        }
        let goes_on = last.filter(|_| got.mode.has(GotMode::MORE));
        self.left.extend(goes_on.map(|offset| (dir.clone(), offset)));
        Ok(())
    }

    /// Returns whether all objects are found, or the whole tree is searched.
    pub(super) fn is_done(&self) -> bool {
        self.left.is_empty() && self.in_flight.is_empty()
    }

    /// Returns a path of each object that was found.
    pub(super) fn found(&mut self) -> BTreeSet<TreePath> {
        std::mem::take(&mut self.found)
    }
}
