//! A link profile as command-line options.

use std::time::Duration;

use clap::Args;

use crate::profile::{LinkProfile, Probability};
use crate::units;

/// Changes of a link profile; omitted options keep their values.
#[derive(Args, Clone, Debug, Default, PartialEq)]
pub struct LinkOptions {
    /// Round-trip time, half of it in each direction (85 = 85ms; us, ms, s).
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    pub rtt: Option<Duration>,
    /// Maximum random delay added to each frame, in each direction.
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    pub jitter: Option<Duration>,
    /// Fraction of lost frames (1% or 0.01).
    #[arg(long, value_name = "PART", value_parser = units::probability)]
    pub loss: Option<Probability>,
    /// Fraction of duplicated frames.
    #[arg(long, value_name = "PART", value_parser = units::probability)]
    pub duplicate: Option<Probability>,
    /// Fraction of frames that later ones overtake.
    #[arg(long, value_name = "PART", value_parser = units::probability)]
    pub reorder: Option<Probability>,
    /// Fraction of frames with one flipped bit.
    #[arg(long, value_name = "PART", value_parser = units::probability)]
    pub corrupt: Option<Probability>,
    /// Bits per second in each direction (100mbit).
    #[arg(long, value_name = "RATE", value_parser = units::rate_bits)]
    pub rate: Option<u64>,
    /// Bits per second from the client to the server, if different.
    #[arg(long, value_name = "RATE", value_parser = units::rate_bits)]
    pub rate_up: Option<u64>,
    /// Queue size at the rate limit, in bytes (64k, 1m); default: twice rate × delay.
    #[arg(long, value_name = "SIZE", value_parser = units::bytes)]
    pub queue: Option<u64>,
    /// Largest IP packet, in bytes; only at creation of the link.
    #[arg(long, value_name = "BYTES")]
    pub mtu: Option<u32>,
    /// Seed of all random decisions; only at creation of the link.
    #[arg(long, value_name = "NUMBER")]
    pub seed: Option<u64>,
}

impl LinkOptions {
    /// Returns `profile` with the given options applied; its first host is the server.
    #[must_use]
    pub fn apply(&self, profile: LinkProfile) -> LinkProfile {
        let mut changed = profile.with(|lane| {
            lane.delay = self.rtt.map_or(lane.delay, |rtt| rtt / 2);
            lane.jitter = self.jitter.unwrap_or(lane.jitter);
            lane.loss = self.loss.unwrap_or(lane.loss);
            lane.duplicate = self.duplicate.unwrap_or(lane.duplicate);
            lane.reorder = self.reorder.unwrap_or(lane.reorder);
            lane.corrupt = self.corrupt.unwrap_or(lane.corrupt);
            lane.rate_bits = self.rate.or(lane.rate_bits);
            lane.queue_bytes = self.queue.or(lane.queue_bytes);
        });
        changed.b_to_a.rate_bits = self.rate_up.or(changed.b_to_a.rate_bits);
        changed.mtu = self.mtu.unwrap_or(changed.mtu);
        changed.seed = self.seed.unwrap_or(changed.seed);
        changed
    }

    /// Returns a perfect link with the given options applied.
    pub fn profile(&self) -> LinkProfile {
        self.apply(LinkProfile::default())
    }
}

#[cfg(test)]
mod tests;
