//! A client's disk, and its end and beginning with what is on it.

use super::{Event, Kernel, World};
use bytes::Bytes;
use std::time::Duration;
use wirefs_cache::CachePiece;
use wirefs_client::{Client, Config, Loaded};
use wirefs_op::FileId;
use wirefs_virtual::TwoLanes;

/// The longest that a disk takes, in microseconds.
const DISK_MAX: u64 = 30_000;
/// One of so many pieces is damaged.
const DAMAGED: u64 = 8;

impl World {
    /// From now on the seat's client has a disk.
    pub(crate) fn use_store(&mut self, seat: usize) {
        self.seats[seat].client.use_store();
    }

    /// A client wants a piece from its disk, which takes its time and has faults.
    pub(super) fn load(&mut self, seat: usize, piece: CachePiece) {
        let takes = self.dice.below(DISK_MAX);
        self.after(Duration::from_micros(takes), Event::Loaded(seat, piece));
    }

    pub(super) fn loaded(&mut self, seat: usize, piece: CachePiece) {
        let is_damaged = self.damages && self.dice.below(DAMAGED) == 0;
        let chair = &mut self.seats[seat];
        let is_of_it = |other: &CachePiece| (other.file, other.version) == (piece.file, piece.version);
        let loaded = match chair.disk.get(&piece) {
            Some(data) if !is_damaged => Loaded::Data(data.clone()),
            Some(_) => Loaded::Missing,
            None if chair.disk.keys().any(is_of_it) => Loaded::Missing,
            None => Loaded::Nothing,
        };
        chair.client.loaded(self.now, piece, loaded);
        self.outputs(seat);
    }

    /// The client's process ends in order; hands back what it leaves.
    pub(crate) fn leave(&mut self, seat: usize) -> Vec<(FileId, Bytes)> {
        let chair = &mut self.seats[seat];
        chair.client.lost(self.now);
        while chair.client.poll().is_some() {}
        let listings = chair.client.export();
        let pieces: Vec<_> = chair.client.pieces().collect();
        chair.disk.extend(pieces);
        chair.notices.clear();
        self.cut(seat, Duration::ZERO, true);
        self.events.retain(|event| !matches!(event, Event::Restore(..) | Event::Noticed(_)));
        listings
    }

    /// Another one begins with that.
    pub(crate) fn come_back(&mut self, seat: usize, config: Config, listings: Vec<(FileId, Bytes)>) {
        let joined = self.join(self.seats[seat].session, &config);
        let (now, root) = (self.now, self.root());
        let chair = &mut self.seats[seat];
        chair.connection = Some(joined.connection);
        (chair.up, chair.down, chair.noticed) = (TwoLanes::default(), TwoLanes::default(), now);
        chair.kernel = Kernel::new(root);
        chair.client = Client::new(config, joined.attachment, now);
        chair.client.use_store();
        chair.client.import(listings);
        self.tell(joined.connection, joined.told);
        self.outputs(seat);
    }

    /// Both, at once.
    pub(crate) fn remount(&mut self, seat: usize, config: Config) {
        let listings = self.leave(seat);
        self.come_back(seat, config, listings);
    }
}
