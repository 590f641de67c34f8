//! Lines for the person who runs wirefs: on standard error, with the time where that is a log file.

use std::fmt::{self, Arguments, Display};
use std::io::{Write, stderr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

const DAY_S: u64 = 24 * 60 * 60;

/// Whether standard error is a log file.
static HAS_TIME: AtomicBool = AtomicBool::new(false);

/// Begins each further line with the time: standard error has become a log file.
pub fn begin_file() {
    HAS_TIME.store(true, Ordering::Relaxed);
}

/// Returns the time for the beginning of a line; empty where standard error is no log file.
pub fn time() -> impl Display {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    HAS_TIME.load(Ordering::Relaxed).then_some(Moment(now)).map_or_else(String::new, |now| format!("{now} "))
}

/// Writes one line. Nothing happens if nobody reads standard error any more.
pub fn line(text: Arguments<'_>) {
    let _unheard = writeln!(stderr(), "{}wirefs: {text}", time());
}

/// Seconds since 1970, shown as UTC in the format of RFC 3339.
struct Moment(u64);

impl Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (days, second) = (self.0 / DAY_S, self.0 % DAY_S);
        let (year, month, day) = date(days);
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        write!(f, "{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    }
}

/// Returns year, month and day of a number of days since 1970.
///
/// # Source
/// The Gregorian calendar counted in eras of 400 years, each beginning in March.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let (day, month) =
        (day_of_year - (153 * shifted + 2) / 5 + 1, if shifted < 10 { shifted + 3 } else { shifted - 9 });
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_shown_in_utc() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_251_199, "2024-02-29T23:59:59Z"),
            (4_102_444_800, "2100-01-01T00:00:00Z"),
        ] {
            assert_eq!(Moment(seconds).to_string(), text);
        }
    }
}
