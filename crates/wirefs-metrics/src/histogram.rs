//! A histogram of durations with log-linear buckets.
//!
//! Eight buckets share each power of two, from 1.024 µs to 68.7 s, so a quantile is at most 1/8 too large.

#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The binary logarithm of the first bucket's end, in nanoseconds.
const FIRST_BITS: u32 = 10;
/// The binary logarithm of the last finite bucket's end, in nanoseconds.
const LAST_BITS: u32 = 36;
/// The binary logarithm of the number of buckets of each power of two.
const STEP_BITS: u32 = 3;
/// The number of buckets: one below, one above.
const BUCKETS: usize = ((LAST_BITS - FIRST_BITS) << STEP_BITS) as usize + 2;

/// A histogram that several threads may add to at once.
#[derive(Debug)]
pub struct Histogram {
    buckets: [AtomicU64; BUCKETS],
    sum_nanos: AtomicU64,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram { buckets: [const { AtomicU64::new(0) }; BUCKETS], sum_nanos: AtomicU64::new(0) }
    }
}

/// Returns the bucket of a duration.
fn bucket_of(nanos: u64) -> usize {
    let bits = u64::BITS - nanos.leading_zeros();
    if bits <= FIRST_BITS {
        return 0;
    }
    if bits > LAST_BITS {
        return BUCKETS - 1;
    }
    // `nanos` has its highest one at `bits - 1`; the next STEP_BITS bits select the step.
    let step = (nanos >> (bits - 1 - STEP_BITS)) & ((1 << STEP_BITS) - 1);
    1 + (((bits - 1 - FIRST_BITS) as usize) << STEP_BITS) + step as usize
}

/// Returns the exclusive end of a finite bucket, in nanoseconds.
fn end_of(bucket: usize) -> u64 {
    let (octave, step) = match bucket.checked_sub(1) {
        None => return 1 << FIRST_BITS,
        Some(above) => (above >> STEP_BITS, above as u64 & ((1 << STEP_BITS) - 1)),
    };
    let begin = 1_u64 << (FIRST_BITS as usize + octave);
    begin + (begin >> STEP_BITS) * (step + 1)
}

impl Histogram {
    /// Adds a duration.
    ///
    /// # Cost
    /// Two atomic additions.
    pub fn add(&self, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        if let Some(bucket) = self.buckets.get(bucket_of(nanos)) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
        self.sum_nanos.fetch_add(nanos, Ordering::Relaxed);
    }

    /// Returns the counts at this moment.
    pub fn counts(&self) -> Counts {
        Counts {
            buckets: self.buckets.iter().map(|bucket| bucket.load(Ordering::Relaxed)).collect(),
            sum: Duration::from_nanos(self.sum_nanos.load(Ordering::Relaxed)),
        }
    }
}

/// The counts of a histogram at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    buckets: Vec<u64>,
    sum: Duration,
}

impl Counts {
    /// Returns the number of values.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// Returns the sum of the values.
    pub fn sum(&self) -> Duration {
        self.sum
    }

    /// Returns the values that were added after `earlier`.
    pub fn since(&self, earlier: &Counts) -> Counts {
        let before = earlier.buckets.iter().copied().chain(std::iter::repeat(0));
        Counts {
            buckets: self.buckets.iter().zip(before).map(|(now, then)| now.saturating_sub(then)).collect(),
            sum: self.sum.saturating_sub(earlier.sum),
        }
    }

    /// Returns an upper bound of the quantile `share` (0 to 1), at most 1/8 too large; `None` without values.
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        let count = self.count();
        if count == 0 {
            return None;
        }
        let rank = ((count as f64 * share).ceil() as u64).clamp(1, count);
        let mut below = 0;
        let bucket = self.buckets.iter().position(|bucket| {
            below += bucket;
            below >= rank
        })?;
        Some(Duration::from_nanos(end_of(bucket.min(BUCKETS - 2))))
    }

    /// Returns the cumulative counts, with the upper bounds of every second power of two. The last count is of all
    /// finite bounds; [`count`](Counts::count) is that of infinity.
    pub fn cumulative(&self) -> Vec<(Duration, u64)> {
        let mut below = 0;
        let mut cumulative = Vec::new();
        for bucket in 0..BUCKETS - 1 {
            below += self.buckets.get(bucket).copied().unwrap_or_default();
            let end = end_of(bucket);
            if end.is_power_of_two() && end.trailing_zeros().is_multiple_of(2) {
                cumulative.push((Duration::from_nanos(end), below));
            }
        }
        cumulative
    }
}
