//! The table of the measurement.

use super::{CardUse, CardsPlan, CardsSample};
use crate::bench::PageSection;

/// Formats the table as a section of a page, below its `conditions`.
pub fn to_section(plan: &CardsPlan, samples: &[CardsSample], conditions: &str) -> PageSection {
    let [first, second] = plan.rates_bits.map(|bits| bits / 1_000_000);
    let rates = if first == second { first.to_string() } else { format!("{first} and {second}") };
    let heading = format!("{} MiB from a node over TLS, cards of {rates} Mbit/s", plan.bytes >> 20);
    let mut text = format!(
        "{conditions}\n\n| | s, median (least, most) | MB/s | × one card | over the second card |\n|---|---|---|---|---|\n"
    );
    let one = median(&elapsed_times(samples, CardUse::One));
    for card_use in CardUse::ALL {
        let elapsed_times = elapsed_times(samples, card_use);
        let (Some(elapsed), Some(least), Some(most)) =
            (median(&elapsed_times), elapsed_times.first(), elapsed_times.last())
        else {
            continue;
        };
        let rate = plan.bytes as f64 / elapsed / 1e6;
        let gain = one.map_or("–".to_owned(), |one| format!("{:.2}", one / elapsed));
        let of = samples.iter().filter(|sample| sample.card_use == card_use);
        let (first, second) = of.fold((0, 0), |(first, second), sample| {
            let [over_first, over_second] = sample.received_bytes;
            (first + over_first, second + over_second)
        });
        let share = second as f64 * 100.0 / (first + second).max(1) as f64;
        let name = card_use.name();
        text.push_str(&format!(
            "| {name} | {elapsed:.2} ({least:.2}, {most:.2}) | {rate:.1} | {gain} | {share:.0} % |\n"
        ));
    }
    PageSection { heading, text }
}

/// Returns the elapsed seconds in ascending order.
fn elapsed_times(samples: &[CardsSample], card_use: CardUse) -> Vec<f64> {
    let of = samples.iter().filter(|sample| sample.card_use == card_use);
    let mut elapsed_times: Vec<f64> = of.map(|sample| sample.elapsed.as_secs_f64()).collect();
    elapsed_times.sort_by(f64::total_cmp);
    elapsed_times
}

fn median(sorted: &[f64]) -> Option<f64> {
    sorted.get(sorted.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;
    use std::sync::Arc;
    use std::time::Duration;

    #[test]
    fn table_has_medians_and_their_ratio_to_one_card() {
        let plan = CardsPlan {
            rates_bits: [200_000_000, 200_000_000],
            bytes: 64 << 20,
            runs: 3,
            wirefs: PathBuf::new(),
            scratch: PathBuf::new(),
            stop: Arc::default(),
        };
        let sample = |card_use, ms, received_bytes| CardsSample {
            card_use,
            elapsed: Duration::from_millis(ms),
            received_bytes,
        };
        let samples = [
            sample(CardUse::One, 2_800, [100, 0]),
            sample(CardUse::Both, 1_600, [40, 60]),
            sample(CardUse::Both, 1_400, [50, 50]),
            sample(CardUse::Both, 1_300, [60, 40]),
        ];
        let section = to_section(&plan, &samples, "So.");
        assert_eq!(section.heading, "64 MiB from a node over TLS, cards of 200 Mbit/s");
        let unequal = CardsPlan { rates_bits: [200_000_000, 50_000_000], ..plan };
        assert!(to_section(&unequal, &samples, "").heading.ends_with(" cards of 200 and 50 Mbit/s"));
        assert!(section.text.starts_with("So.\n\n| |"), "{}", section.text);
        assert!(section.text.contains("| one card | 2.80 (2.80, 2.80) | 24.0 | 1.00 | 0 % |"));
        assert!(section.text.contains("| two cards | 1.40 (1.30, 1.60) | 47.9 | 2.00 | 50 % |"));
    }
}
