//! Parsers of times, rates, sizes and probabilities on the command line.

use std::time::Duration;

use crate::profile::Probability;

/// Parses a time: `85` or `85ms` are milliseconds; `us`, `s` and `min` work too.
///
/// # Errors
/// A message for the user.
pub fn duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = number_and_unit(text)?;
    let seconds_per_unit = match unit.as_str() {
        "" | "ms" => 1e-3,
        "us" => 1e-6,
        "s" => 1.0,
        "min" => 60.0,
        other => return Err(format!("`{other}` is no unit of time; write us, ms, s or min")),
    };
    Duration::try_from_secs_f64(number * seconds_per_unit).map_err(|error| error.to_string())
}

/// Parses a rate in bits per second: `100mbit`, `1gbit`, `64kbit`, or a plain number of bits.
///
/// # Errors
/// A message for the user.
pub fn rate_bits(text: &str) -> Result<u64, String> {
    let (number, unit) = number_and_unit(text)?;
    let bits_per_unit = match unit.trim_end_matches("/s") {
        "" | "bit" => 1.0,
        "kbit" => 1e3,
        "mbit" => 1e6,
        "gbit" => 1e9,
        other => return Err(format!("`{other}` is no unit of rate; write kbit, mbit or gbit")),
    };
    whole(number * bits_per_unit, "a rate is at least one bit per second")
}

/// Parses a size in bytes: `64k`, `1m`, `256MiB` (powers of 1024), or a plain number.
///
/// # Errors
/// A message for the user.
pub fn bytes(text: &str) -> Result<u64, String> {
    let (number, unit) = number_and_unit(text)?;
    let bytes_per_unit = match unit.trim_end_matches('b').trim_end_matches('i') {
        "" => 1.0,
        "k" => 1024.0,
        "m" => 1024.0 * 1024.0,
        "g" => 1024.0 * 1024.0 * 1024.0,
        other => return Err(format!("`{other}` is no unit of size; write k, m or g")),
    };
    whole(number * bytes_per_unit, "a size is at least one byte")
}

/// Parses a probability: `1%`, `0.01`.
///
/// # Errors
/// A message for the user.
pub fn probability(text: &str) -> Result<Probability, String> {
    let (number, unit) = number_and_unit(text)?;
    let value = match unit.as_str() {
        "" => number,
        "%" => number / 100.0,
        other => return Err(format!("`{other}` is no unit of probability; write 1% or 0.01")),
    };
    Probability::new(value).ok_or_else(|| "a probability lies between 0 and 1, or 0% and 100%".to_owned())
}

fn whole(number: f64, too_small: &str) -> Result<u64, String> {
    if number < 1.0 {
        return Err(too_small.to_owned());
    }
    if number >= u64::MAX as f64 {
        return Err("too large".to_owned());
    }
    Ok(number as u64)
}

/// Splits `12.5MBIT` into 12.5 and `mbit`.
fn number_and_unit(text: &str) -> Result<(f64, String), String> {
    let text = text.trim();
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let number = number.parse().map_err(|_| format!("`{text}` does not begin with a number"))?;
    Ok((number, unit.trim().to_ascii_lowercase()))
}

#[cfg(test)]
mod tests;
