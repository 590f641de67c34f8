//! The delay, loss and rate of a link.

use std::time::Duration;

use crate::error::LabError;

/// The maximum one-way delay, jitter or reorder delay.
pub const DELAY_MAX: Duration = Duration::from_secs(60);
/// The minimum MTU of a link, in bytes, as required by IPv4.
pub const MTU_MIN: u32 = 576;
/// The maximum MTU of a link, in bytes, as supported by TAP devices.
pub const MTU_MAX: u32 = 65_521;
/// The MTU of Ethernet, in bytes.
pub const MTU_ETHERNET: u32 = 1_500;
/// The minimum of the default queue size, in bytes: a hundred full frames.
pub const QUEUE_BYTES_FLOOR: u64 = 150_000;

/// A probability between 0 and 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Probability(f64);

impl Probability {
    /// Probability 0.
    pub const NEVER: Probability = Probability(0.0);
    /// Probability 1.
    pub const ALWAYS: Probability = Probability(1.0);

    /// Returns the probability, `None` if the number is not between 0 and 1.
    pub fn new(value: f64) -> Option<Probability> {
        (0.0..=1.0).contains(&value).then_some(Probability(value))
    }

    /// Returns the probability of `hundredths` percent; values above 100 count as 100.
    pub fn percent(hundredths: u8) -> Probability {
        Probability(f64::from(hundredths.min(100)) / 100.0)
    }

    /// Returns the number between 0 and 1.
    pub fn value(self) -> f64 {
        self.0
    }
}

/// The properties of one direction of a link.
#[derive(Clone, Debug, PartialEq)]
pub struct LaneProfile {
    /// The time from the end of sending a frame to its arrival; no frame is faster.
    pub delay: Duration,
    /// The maximum random addition to each delay, uniformly distributed. Frames keep their order.
    pub jitter: Duration,
    /// The fraction of lost frames. Lost frames still consume the rate.
    pub loss: Probability,
    /// The fraction of duplicated frames.
    pub duplicate: Probability,
    /// The fraction of frames delayed by [`reorder_delay`](Self::reorder_delay), so that later ones overtake.
    pub reorder: Probability,
    /// The additional delay of a reordered frame.
    pub reorder_delay: Duration,
    /// The fraction of frames with one flipped bit after the Ethernet header.
    pub corrupt: Probability,
    /// Bits per second of whole frames (Ethernet header included, preamble and checksum not); `None`: unlimited.
    pub rate_bits: Option<u64>,
    /// The queue size at the rate limit, in bytes; more is dropped. `None`: twice rate × delay, at least
    /// [`QUEUE_BYTES_FLOOR`].
    pub queue_bytes: Option<u64>,
}

impl Default for LaneProfile {
    fn default() -> LaneProfile {
        LaneProfile {
            delay: Duration::ZERO,
            jitter: Duration::ZERO,
            loss: Probability::NEVER,
            duplicate: Probability::NEVER,
            reorder: Probability::NEVER,
            reorder_delay: Duration::from_millis(5),
            corrupt: Probability::NEVER,
            rate_bits: None,
            queue_bytes: None,
        }
    }
}

impl LaneProfile {
    /// Returns the queue size for a rate of `rate_bits` per second, in bytes.
    pub fn queue_bytes_for(&self, rate_bits: u64) -> u64 {
        let product = u128::from(rate_bits) * self.delay.as_nanos() * 2 / 8 / 1_000_000_000;
        self.queue_bytes.unwrap_or_else(|| u64::try_from(product).unwrap_or(u64::MAX).max(QUEUE_BYTES_FLOOR))
    }

    fn check(&self) -> Result<(), LabError> {
        let spans = [("delay", self.delay), ("jitter", self.jitter), ("reorder_delay", self.reorder_delay)];
        for (field, span) in spans {
            if span > DELAY_MAX {
                return Err(LabError::Profile {
                    field,
                    problem: format!("is {span:?}, more than {DELAY_MAX:?}"),
                });
            }
        }
        if self.rate_bits == Some(0) {
            let problem = "is zero, which passes nothing for ever; cut the link instead".to_owned();
            return Err(LabError::Profile { field: "rate_bits", problem });
        }
        Ok(())
    }
}

/// The properties of a link: both directions, MTU and seed.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkProfile {
    /// The direction from the first host to the second.
    pub a_to_b: LaneProfile,
    /// The direction from the second host to the first.
    pub b_to_a: LaneProfile,
    /// The largest IP packet, in bytes. Fixed at creation.
    pub mtu: u32,
    /// The seed of all random decisions. Fixed at creation.
    pub seed: u64,
}

impl Default for LinkProfile {
    fn default() -> LinkProfile {
        LinkProfile::symmetric(LaneProfile::default())
    }
}

impl LinkProfile {
    /// Returns the same lane in both directions, with the MTU of Ethernet and seed 1.
    pub fn symmetric(lane: LaneProfile) -> LinkProfile {
        LinkProfile { a_to_b: lane.clone(), b_to_a: lane, mtu: MTU_ETHERNET, seed: 1 }
    }

    /// Returns a perfect link with this round-trip time, half of it in each direction.
    pub fn rtt(rtt: Duration) -> LinkProfile {
        LinkProfile::symmetric(LaneProfile { delay: rtt / 2, ..LaneProfile::default() })
    }

    /// Returns the profile with both directions changed.
    #[must_use]
    pub fn with(mut self, change: impl Fn(&mut LaneProfile)) -> LinkProfile {
        change(&mut self.a_to_b);
        change(&mut self.b_to_a);
        self
    }

    /// Validates the profile.
    ///
    /// # Errors
    /// [`LabError::Profile`], naming the field.
    pub fn check(&self) -> Result<(), LabError> {
        self.a_to_b.check()?;
        self.b_to_a.check()?;
        if !(MTU_MIN..=MTU_MAX).contains(&self.mtu) {
            let problem = format!("is {}, not in {MTU_MIN}..={MTU_MAX}", self.mtu);
            return Err(LabError::Profile { field: "mtu", problem });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
