//! Counters of a link.

/// The counters of one direction, since the creation of the link.
///
/// `offered + duplicated = delivered + dropped_by_queue + dropped_by_loss + dropped_by_cut + in flight`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneCounters {
    /// Frames sent into this direction.
    pub offered_frames: u64,
    /// Bytes of these frames, Ethernet headers included.
    pub offered_bytes: u64,
    /// Delivered frames.
    pub delivered_frames: u64,
    /// Bytes of these frames, Ethernet headers included.
    pub delivered_bytes: u64,
    /// Frames dropped at a full queue.
    pub dropped_by_queue: u64,
    /// Frames dropped by the profile's loss.
    pub dropped_by_loss: u64,
    /// Frames dropped because the link was cut.
    pub dropped_by_cut: u64,
    /// Frames with a flipped bit.
    pub corrupted: u64,
    /// Duplicated frames.
    pub duplicated: u64,
    /// Frames delayed so that later ones overtook them.
    pub reordered: u64,
}

/// One counter: its name, its getter and its mutable accessor.
type Column = (&'static str, fn(&LaneCounters) -> u64, fn(&mut LaneCounters) -> &mut u64);

const COLUMNS: [Column; 10] = [
    ("offered_frames", |lane| lane.offered_frames, |lane| &mut lane.offered_frames),
    ("offered_bytes", |lane| lane.offered_bytes, |lane| &mut lane.offered_bytes),
    ("delivered_frames", |lane| lane.delivered_frames, |lane| &mut lane.delivered_frames),
    ("delivered_bytes", |lane| lane.delivered_bytes, |lane| &mut lane.delivered_bytes),
    ("dropped_by_queue", |lane| lane.dropped_by_queue, |lane| &mut lane.dropped_by_queue),
    ("dropped_by_loss", |lane| lane.dropped_by_loss, |lane| &mut lane.dropped_by_loss),
    ("dropped_by_cut", |lane| lane.dropped_by_cut, |lane| &mut lane.dropped_by_cut),
    ("corrupted", |lane| lane.corrupted, |lane| &mut lane.corrupted),
    ("duplicated", |lane| lane.duplicated, |lane| &mut lane.duplicated),
    ("reordered", |lane| lane.reordered, |lane| &mut lane.reordered),
];

impl LaneCounters {
    /// Returns the difference to `earlier`, a former copy of the same counters.
    pub fn since(&self, earlier: &LaneCounters) -> LaneCounters {
        let mut difference = LaneCounters::default();
        for (_, read, reach) in COLUMNS {
            *reach(&mut difference) = read(self).saturating_sub(read(earlier));
        }
        difference
    }

    /// Returns the counters by name, in the order of their declaration.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, u64)> {
        COLUMNS.into_iter().map(|(name, read, _)| (name, read(self)))
    }

    /// Returns the counters as a JSON object.
    pub fn to_json(&self) -> String {
        let fields: Vec<String> = self.named().map(|(name, count)| format!("\"{name}\":{count}")).collect();
        format!("{{{}}}", fields.join(","))
    }
}

/// The counters of both directions, since the creation of the link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// The direction from the first host to the second.
    pub a_to_b: LaneCounters,
    /// The direction from the second host to the first.
    pub b_to_a: LaneCounters,
    /// Frames rejected by the receiving device (which was down).
    pub refused: u64,
}

impl LinkCounters {
    /// Returns the difference to `earlier`, a former copy of the same counters.
    pub fn since(&self, earlier: &LinkCounters) -> LinkCounters {
        LinkCounters {
            a_to_b: self.a_to_b.since(&earlier.a_to_b),
            b_to_a: self.b_to_a.since(&earlier.b_to_a),
            refused: self.refused.saturating_sub(earlier.refused),
        }
    }

    /// Returns the frames sent in both directions.
    pub fn offered_frames(&self) -> u64 {
        self.a_to_b.offered_frames + self.b_to_a.offered_frames
    }

    /// Returns the bytes sent in both directions.
    pub fn offered_bytes(&self) -> u64 {
        self.a_to_b.offered_bytes + self.b_to_a.offered_bytes
    }

    /// Returns the counters as a JSON object.
    pub fn to_json(&self) -> String {
        format!(
            "{{\"a_to_b\":{},\"b_to_a\":{},\"refused\":{}}}",
            self.a_to_b.to_json(),
            self.b_to_a.to_json(),
            self.refused
        )
    }
}
