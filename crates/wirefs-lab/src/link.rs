//! Both directions of a link as one state machine.

use wirefs_op::Time;

use crate::counters::LinkCounters;
use crate::lane::EmulatedLane;
use crate::profile::LinkProfile;

/// A direction of a link between host A, the first, and host B.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the first host to the second.
    AToB,
    /// From the second host to the first.
    BToA,
}

impl Direction {
    /// Both directions.
    pub const BOTH: [Direction; 2] = [Direction::AToB, Direction::BToA];
}

/// A link: two independent directions with one seed.
#[derive(Debug)]
pub struct Link {
    a_to_b: EmulatedLane,
    b_to_a: EmulatedLane,
    mtu: u32,
    seed: u64,
    refused: u64,
}

impl Link {
    /// Creates an idle link. The caller must have validated the profile with [`LinkProfile::check`].
    pub fn new(profile: LinkProfile) -> Link {
        Link {
            a_to_b: EmulatedLane::new(profile.a_to_b, profile.seed),
            // The complement of the seed, so that the two directions lose different frames.
            b_to_a: EmulatedLane::new(profile.b_to_a, !profile.seed),
            mtu: profile.mtu,
            seed: profile.seed,
            refused: 0,
        }
    }

    /// Accepts a frame sent at `now`.
    pub fn push(&mut self, now: Time, direction: Direction, frame: Vec<u8>) {
        self.lane_mut(direction).push(now, frame);
    }

    /// Returns the next frame due in this direction at `now`.
    pub fn poll(&mut self, now: Time, direction: Direction) -> Option<Vec<u8>> {
        self.lane_mut(direction).poll(now)
    }

    /// Returns the next departure of either direction, `None` if no frame is in flight.
    pub fn deadline(&self) -> Option<Time> {
        match (self.a_to_b.deadline(), self.b_to_a.deadline()) {
            (Some(a_to_b), Some(b_to_a)) => Some(a_to_b.min(b_to_a)),
            (a_to_b, b_to_a) => a_to_b.or(b_to_a),
        }
    }

    /// Returns the current profile.
    pub fn profile(&self) -> LinkProfile {
        LinkProfile {
            a_to_b: self.a_to_b.profile().clone(),
            b_to_a: self.b_to_a.profile().clone(),
            mtu: self.mtu,
            seed: self.seed,
        }
    }

    /// Replaces both directions' profiles; MTU and seed are fixed.
    pub fn set_profile(&mut self, profile: LinkProfile) {
        self.a_to_b.set_profile(profile.a_to_b);
        self.b_to_a.set_profile(profile.b_to_a);
    }

    /// Cuts one direction: drops its frames in flight, and all frames until it is restored.
    pub fn cut(&mut self, direction: Direction) {
        self.lane_mut(direction).cut();
    }

    /// Restores one direction.
    pub fn heal(&mut self, direction: Direction) {
        self.lane_mut(direction).heal();
    }

    /// Counts frames that a receiving device rejected.
    pub fn count_refused(&mut self, frames: u64) {
        self.refused += frames;
    }

    /// Returns the counters since creation.
    pub fn counters(&self) -> LinkCounters {
        LinkCounters {
            a_to_b: *self.a_to_b.counters(),
            b_to_a: *self.b_to_a.counters(),
            refused: self.refused,
        }
    }

    fn lane_mut(&mut self, direction: Direction) -> &mut EmulatedLane {
        match direction {
            Direction::AToB => &mut self.a_to_b,
            Direction::BToA => &mut self.b_to_a,
        }
    }
}

#[cfg(test)]
mod tests;
