//! Both directions of a link as one state machine.

use wirefs_op::Time;

use crate::counters::LinkCounters;
use crate::lane::Lane;
use crate::profile::LinkProfile;

/// A direction of a link between host A, named first, and host B.
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

/// A link: two directions that decide independently, from one seed.
#[derive(Debug)]
pub struct Link {
    a_to_b: Lane,
    b_to_a: Lane,
    mtu: u32,
    seed: u64,
    refused: u64,
}

impl Link {
    /// Makes an idle link. The profile is taken as it is; [`LinkProfile::check`] it before.
    pub fn new(profile: LinkProfile) -> Link {
        Link {
            a_to_b: Lane::new(profile.a_to_b, profile.seed),
            // The other half of the seeds, so that the two directions lose different frames.
            b_to_a: Lane::new(profile.b_to_a, !profile.seed),
            mtu: profile.mtu,
            seed: profile.seed,
            refused: 0,
        }
    }

    /// Takes a frame that a host sent at `now`.
    pub fn push(&mut self, now: Time, direction: Direction, frame: Vec<u8>) {
        self.lane_mut(direction).push(now, frame);
    }

    /// Gives the next frame that is due in this direction at `now`.
    pub fn poll(&mut self, now: Time, direction: Direction) -> Option<Vec<u8>> {
        self.lane_mut(direction).poll(now)
    }

    /// When the next frame leaves in either direction; none when nothing is under way.
    pub fn deadline(&self) -> Option<Time> {
        match (self.a_to_b.deadline(), self.b_to_a.deadline()) {
            (Some(a_to_b), Some(b_to_a)) => Some(a_to_b.min(b_to_a)),
            (a_to_b, b_to_a) => a_to_b.or(b_to_a),
        }
    }

    /// How long and how bad it is now.
    pub fn profile(&self) -> LinkProfile {
        LinkProfile {
            a_to_b: self.a_to_b.profile().clone(),
            b_to_a: self.b_to_a.profile().clone(),
            mtu: self.mtu,
            seed: self.seed,
        }
    }

    /// Replaces both directions' profiles; MTU and seed stay as they were made.
    pub fn set_profile(&mut self, profile: LinkProfile) {
        self.a_to_b.set_profile(profile.a_to_b);
        self.b_to_a.set_profile(profile.b_to_a);
    }

    /// Cuts one direction: what is under way there vanishes, and what is sent until it heals.
    pub fn cut(&mut self, direction: Direction) {
        self.lane_mut(direction).cut();
    }

    /// Heals one direction.
    pub fn heal(&mut self, direction: Direction) {
        self.lane_mut(direction).heal();
    }

    /// Counts frames that a host's device did not take.
    pub fn count_refused(&mut self, frames: u64) {
        self.refused += frames;
    }

    /// What was counted since the link was made.
    pub fn counters(&self) -> LinkCounters {
        LinkCounters {
            a_to_b: *self.a_to_b.counters(),
            b_to_a: *self.b_to_a.counters(),
            refused: self.refused,
        }
    }

    fn lane_mut(&mut self, direction: Direction) -> &mut Lane {
        match direction {
            Direction::AToB => &mut self.a_to_b,
            Direction::BToA => &mut self.b_to_a,
        }
    }
}

#[cfg(test)]
mod tests;
