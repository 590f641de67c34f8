//! Time as a value: the core never reads a clock; callers pass the time.

#[cfg(test)]
mod tests;

use std::ops::{Add, Sub};
use std::time::Duration;

/// A point in time on the driver's monotonic clock, in nanoseconds since the driver started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

impl Time {
    /// Returns the time elapsed since `earlier`; zero if `earlier` is later.
    pub fn since(self, earlier: Time) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Time {
    type Output = Time;
    fn add(self, span: Duration) -> Time {
        Time(self.0.saturating_add(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl Sub<Time> for Time {
    type Output = Duration;
    fn sub(self, earlier: Time) -> Duration {
        self.since(earlier)
    }
}

/// The wall-clock time of a file, as in POSIX: seconds since 1970 (may be negative) and nanoseconds below
/// 10⁹.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    /// Seconds since 1970-01-01 00:00 UTC.
    pub secs: i64,
    /// Nanoseconds within the second, `0..1_000_000_000`.
    pub nanos: u32,
}

impl Timestamp {
    /// Returns the timestamp one nanosecond later; saturates.
    #[must_use]
    pub fn next(self) -> Timestamp {
        if self.nanos < 999_999_999 {
            return Timestamp { nanos: self.nanos + 1, ..self };
        }
        self.secs.checked_add(1).map_or(self, |secs| Timestamp { secs, nanos: 0 })
    }

    /// Returns the timestamp later by `passed`; saturates.
    #[must_use]
    pub fn after(self, passed: Duration) -> Timestamp {
        let nanos = self.nanos + passed.subsec_nanos();
        let secs = passed.as_secs() + u64::from(nanos / 1_000_000_000);
        let secs = self.secs.saturating_add(i64::try_from(secs).unwrap_or(i64::MAX));
        Timestamp { secs, nanos: nanos % 1_000_000_000 }
    }

    /// Formats the time in UTC, to the second, in the basic format of ISO 8601: `20231114T221320Z`.
    ///
    /// # Source
    /// H. Hinnant, "chrono-compatible low-level date algorithms", `civil_from_days`.
    pub fn in_utc(self) -> String {
        let (days, second) = (self.secs.div_euclid(86_400), self.secs.rem_euclid(86_400));
        // Years begin in March, so that the leap day is the last day; 400 years are an era.
        let shifted = days + 719_468;
        let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
        let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
        let year = year_of_era + era * 400 + i64::from(month <= 2);
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
    }
}
