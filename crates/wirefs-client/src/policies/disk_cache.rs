//! The disk cache of contents, as the core uses it: the core requests a piece from disk before it requests it from the
//! server, and hands out fetched pieces to be stored.
//!
//! ```text
//!   contents unknown     ->  Output::Load(piece)  ->  Client::loaded: the bytes  ->  used like fetched bytes
//!                                                     none                       ->  the server is asked
//!   a piece was fetched  ->  Output::Keep(piece, bytes)
//! ```
//!
//! Each piece belongs to one version of a file, and is requested only while that is the known version. The validity of
//! the version is decided as for contents in memory: the disk cache saves the transfer of data, never a validation.

use crate::call::{CallId, Handle};
use crate::output::{Output, Outputs};
use crate::requests::Requests;
use crate::view::View;
use crate::view::disk_cache::{Awaited, Loading, Parked};
use crate::view::prefetch::window::Joined;
use bytes::Bytes;
use std::time::Duration;
use wirefs_cache::{CachePiece, PIECE_BYTES, TreeNodeId};

/// On a wire with shorter round trips the server is as fast as a disk: only small files are kept, which cost one each.
const WORTH_RTT: Duration = Duration::from_millis(1);

impl View {
    pub(crate) fn take_stored(
        &mut self,
        outputs: &mut Outputs,
        node: TreeNodeId,
        piece: &CachePiece,
        data: &Bytes,
    ) {
        let known = self.names.node(node).filter(|known| known.stat.version == piece.version);
        let Some(known) = known.and_then(|known| known.freshness) else { return };
        if self.files.is_writing(node) || self.files.contents(node).is_locked {
            return;
        }
        if !self.files.is_of(node, piece.version) {
            let coherency = self.coherency();
            if self.files.observe(node, piece.version, known, &coherency) {
                outputs.invalidate_pages(node);
            }
        }
        if self.files.is_of(node, piece.version) {
            self.files.remember_stored(node, piece.offset, data);
            outputs.counters.stored_hits += 1;
            outputs.counters.stored_bytes += data.len() as u64;
        }
    }

    /// The piece of the present version of a node's contents at `offset`, if it may be on disk.
    fn wanted_piece(&self, node: TreeNodeId, offset: u64) -> Option<CachePiece> {
        let is_locked = self.files.known(node).is_some_and(|contents| contents.is_locked);
        let may_load = self.disk_cache.is_on && !is_locked && !self.files.is_writing(node);
        let known = self.names.node(node).filter(|_| may_load)?;
        let piece = CachePiece::at(known.stat.id, known.stat.version, known.stat.size, offset)?;
        (!self.disk_cache.lacks(node, &piece)).then_some(piece)
    }

    /// Whether contents from `offset` on may be on disk.
    pub(crate) fn may_be_stored(&self, node: TreeNodeId, offset: u64) -> bool {
        self.wanted_piece(node, offset).is_some()
    }

    fn load(&mut self, outputs: &mut Outputs, piece: CachePiece) -> &mut Loading {
        if !self.disk_cache.loading.contains_key(&piece) {
            outputs.push(Output::Load(piece));
        }
        self.disk_cache.loading.entry(piece).or_default()
    }

    /// Requests unknown contents from `start` on from the disk cache. Returns the end of the requested range; `None` if
    /// the server must be asked.
    pub(crate) fn load_ahead(
        &mut self,
        outputs: &mut Outputs,
        node: TreeNodeId,
        handle: Handle,
        start: u64,
        end: u64,
    ) -> Option<u64> {
        let piece = self.wanted_piece(node, start)?;
        if !self.files.is_of(node, piece.version) {
            return None;
        }
        // One piece tells whether there is anything.
        let end = if self.disk_cache.has_any(node, piece.version) { end.min(piece.end()) } else { end };
        let contents = self.files.contents(node);
        let epoch = contents.epoch;
        contents.fetching.push((start, end, epoch));
        self.names.hold(node);
        self.load(outputs, piece).awaited.push(Awaited { node, handle, start, end, epoch });
        Some(end)
    }

    /// Whether the first contents of a file that is being opened to be read are looked for on disk; it goes on when that is known.
    pub(crate) fn opens_stored(&mut self, outputs: &mut Outputs, opening: Joined) -> bool {
        let piece = self.wanted_piece(opening.node, 0).filter(|_| !self.has_first_piece(opening.node));
        let Some(piece) = piece else { return false };
        self.load(outputs, piece).parked.push(Parked::Open(opening));
        true
    }

    /// The same of a link's target.
    pub(crate) fn reads_stored_link(
        &mut self,
        outputs: &mut Outputs,
        call: CallId,
        node: TreeNodeId,
    ) -> bool {
        let piece = self.wanted_piece(node, 0).filter(|_| !self.has_first_piece(node));
        let Some(piece) = piece else { return false };
        self.load(outputs, piece).parked.push(Parked::Readlink { call, node });
        true
    }

    /// Whether the data that an open would bring is cached, or requested by another open; with a disk cache, an open brings one piece
    /// brings.
    pub(crate) fn has_first_piece(&self, node: TreeNodeId) -> bool {
        let Some(size) = self.names.node(node).map(|known| known.stat.size) else { return false };
        let first = if self.disk_cache.is_on { size.min(PIECE_BYTES) } else { size };
        size == 0 || self.files.known(node).is_some_and(|contents| contents.next_gap(0, first).is_none())
    }

    /// Hands out pieces that are complete since something was read.
    pub(crate) fn keep_read(&mut self, requests: &Requests, outputs: &mut Outputs) {
        for (node, start, end) in self.files.take_read() {
            let mut at = start;
            while at < end {
                at = match self.complete_piece(requests, node, at) {
                    Some((piece, data)) => {
                        outputs.push(Output::Keep(piece, data));
                        piece.end()
                    }
                    None => at - at % PIECE_BYTES + PIECE_BYTES,
                };
            }
        }
    }

    /// The piece of a node's contents at `offset`, if all of it is known and of a version that the server told.
    pub(crate) fn complete_piece(
        &self,
        requests: &Requests,
        node: TreeNodeId,
        offset: u64,
    ) -> Option<(CachePiece, Bytes)> {
        let known = self.names.node(node)?;
        let (stat, is_far) = (known.stat, requests.incoming.rtt().is_some_and(|rtt| rtt >= WORTH_RTT));
        if !self.files.is_of(node, stat.version) || (stat.size > PIECE_BYTES && !is_far) {
            return None;
        }
        let piece = CachePiece::at(stat.id, stat.version, stat.size, offset)?;
        let data = self.files.known(node)?.ranges.read(piece.offset, piece.end())?;
        Some((piece, data))
    }
}
