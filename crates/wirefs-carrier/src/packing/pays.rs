//! Whether packing pays.

use std::time::Duration;

/// Assumed until it is measured: bytes per second of the compressor, and how much is left of the data.
const SPEED: f64 = 300e6;
const RATIO: f64 = 0.5;
/// Data of which more is left do not shrink.
const RATIO_MAX: f64 = 0.9;
/// After that many plain bytes, packing is tried again; up to the second number if it does not pay.
const SKIP_MIN: usize = 1 << 20;
const SKIP_MAX: usize = 64 << 20;

/// Weighs the time of the compressor against the time that the line saves. Data that do not shrink are sent plain,
/// except for a sample now and then.
#[derive(Debug)]
pub(super) struct Pays {
    speed: f64,
    ratio: f64,
    /// Plain bytes until the next sample.
    until_sample: usize,
    skip: usize,
}

impl Pays {
    pub(super) fn new() -> Pays {
        Pays { speed: SPEED, ratio: RATIO, until_sample: 0, skip: SKIP_MIN }
    }

    /// Returns whether data should be packed for a line of this rate, in bytes per second.
    ///
    /// Plain data take 1 / line a byte; packed ones at most 1 / speed + ratio / line.
    pub(super) fn pays(&self, line: f64) -> bool {
        self.until_sample == 0 && line < self.speed * (1.0 - self.ratio)
    }

    /// Counts bytes that were sent plain.
    pub(super) fn skipped(&mut self, bytes: usize) {
        if self.until_sample > 0 {
            self.until_sample = self.until_sample.saturating_sub(bytes);
            // The next data may be others, and the machine less busy.
            (self.speed, self.ratio) = (SPEED, RATIO);
        }
    }

    /// Takes in what a packing brought and took.
    pub(super) fn packed(&mut self, plain: usize, packed: usize, time: Duration, line: f64) {
        let (plain, packed) = (plain.max(1) as f64, packed as f64);
        self.ratio = packed / plain;
        self.speed += (plain / time.as_secs_f64().max(1e-9) - self.speed) / 8.0;
        if self.pays(line) && self.ratio < RATIO_MAX {
            self.skip = SKIP_MIN;
        } else {
            self.until_sample = self.skip;
            self.skip = (self.skip * 2).min(SKIP_MAX);
        }
    }
}

#[cfg(test)]
mod tests;
