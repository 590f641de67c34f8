//! Contents that were loaded from the disk cache, and listings that outlive the mount.

use crate::core::Client;
use crate::operation::{fetch, open, readlink};
use crate::pending::Pending;
use crate::settling::waiting;
use crate::view::disk_cache::{Awaited, Loaded, Loading, Parked};
use crate::view::prefetch::window::Joined;
use bytes::Bytes;
use std::collections::BTreeSet;
use wirefs_cache::{CachePiece, Freshness, PIECE_BYTES, PackedListing};
use wirefs_metrics::Cause;
use wirefs_op::message::ping::Tping;
use wirefs_op::{Errno, FileId, Request, Time};

impl Client {
    /// There is a store: [`Output::Load`] and [`Output::Keep`] come from now on.
    pub fn use_store(&mut self) {
        self.view.disk_cache.is_on = true;
        self.view.files.note_read();
    }

    /// Takes in a piece that [`Output::Load`] requested.
    pub fn loaded(&mut self, now: Time, piece: CachePiece, loaded: Loaded) {
        self.view.mount.now = now;
        self.requests.begin_input(self.view.mount.now, Cause::CacheDisk, None);
        let Some(Loading { awaited, parked }) = self.view.disk_cache.loading.remove(&piece) else { return };
        if let Some(node) = self.view.names.of_file(piece.file) {
            let is_short = matches!(&loaded, Loaded::Data(data) if data.len() != piece.length as usize);
            let loaded = if is_short { Loaded::Missing } else { loaded };
            self.view.disk_cache.note(node, &piece, &loaded);
            if let Loaded::Data(data) = loaded {
                self.view.take_stored(&mut self.outputs, node, &piece, &data);
            }
        }
        for stretch in awaited {
            self.go_on(stretch);
        }
        for parked in parked {
            self.restart(parked);
        }
    }

    /// A stretch waits for nothing from disk any more.
    fn go_on(&mut self, stretch: Awaited) {
        let Awaited { node, handle, start, end, epoch } = stretch;
        let fetching = &mut self.view.files.contents(node).fetching;
        if let Some(index) = fetching.iter().position(|other| *other == (start, end, epoch)) {
            fetching.swap_remove(index);
        }
        self.view.names.release(node);
        waiting::serve_readers(self, node);
        // The missing part was wanted ahead of a reader, which meets errors itself.
        if self.view.files.contents(node).epoch == epoch && self.view.files.open(handle).is_some() {
            let _ahead = fetch::ask(&mut self.sender(), node, handle, (start, end), false);
        }
        self.view.drop_if_gone(node);
    }

    pub(crate) fn restart(&mut self, parked: Parked) {
        let call = match &parked {
            Parked::Open(joined) => joined.call,
            Parked::Readlink { call, .. } => *call,
        };
        if !self.calls.is_waiting(call) {
            return self.answerer().fail(call, Errno::Interrupted);
        }
        let started = match parked {
            Parked::Open(Joined { caller, node, how, .. }) => open::start(self, call, caller, node, how),
            Parked::Readlink { node, .. } => readlink::start(self, call, node),
        };
        if let Err(errno) = started {
            self.answerer().fail(call, errno);
        }
    }

    /// All pieces in memory that are worth keeping: what was written is among them.
    pub fn pieces(&self) -> impl Iterator<Item = (CachePiece, Bytes)> {
        self.view.files.known_nodes().flat_map(move |node| {
            // By what is known, since a file of any size may be a hole.
            let stretches =
                self.view.files.known(node).into_iter().flat_map(|contents| contents.ranges.extents());
            let first = |start: u64| start - start % PIECE_BYTES;
            let pieces = stretches.flat_map(|(start, end)| (first(start)..end).step_by(PIECE_BYTES as usize));
            let pieces: BTreeSet<u64> = pieces.collect();
            pieces.into_iter().filter_map(move |at| self.view.complete_piece(&self.requests, node, at))
        })
    }
}

impl Client {
    /// Takes in the listings that an earlier mount of the same directory exported, whose session this is. Call it before anything
    /// else. Tells whether they are of use: the server has kept the session's leases.
    ///
    /// # Cost
    /// 1 round trip in the background before they are used.
    pub fn import(&mut self, listings: impl IntoIterator<Item = (FileId, Bytes)>) -> bool {
        let is_kept = self.view.mount.attachment.leases.as_ref().is_some_and(|leases| leases.kept);
        if !is_kept || !self.view.leases.are_agreed() {
            return false;
        }
        // Later than what is not leased any more, and earlier than anything that is recalled.
        let at = Time(self.view.leases.leased_since().0 + 1);
        let root = self.view.mount.attachment.root;
        self.sender().learn(&root, Freshness { at, leased: root.leased });
        for (dir, data) in listings {
            self.view.inactive.put(dir, PackedListing::from_data(data, at));
        }
        if !self.view.inactive.is_empty() {
            self.view.leases.hold_some();
            self.view.prefetch.remembers();
            self.sender().send(Request::Ping(Tping {}), Pending::IGNORE);
        }
        true
    }

    /// Hands out all complete listings that are leased. Call it last: when the connection is gone, so that nothing is recalled after.
    pub fn export(&mut self) -> Vec<(FileId, Bytes)> {
        for node in self.view.directories.cached() {
            self.view.deactivate(&self.calls, node);
        }
        let data = |(dir, packed): (FileId, PackedListing)| Some((dir, packed.into_data()?));
        self.view.inactive.drain().filter_map(data).collect()
    }
}
