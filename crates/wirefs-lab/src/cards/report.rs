//! The table.

use super::{Over, Plan, Sample};
use crate::bench::Section;

/// The table as a section of a page; `conditions` is what one must know to read it.
pub fn to_section(plan: &Plan, samples: &[Sample], conditions: &str) -> Section {
    let [first, second] = plan.rates_bits.map(|bits| bits / 1_000_000);
    let rates = if first == second { first.to_string() } else { format!("{first} and {second}") };
    let heading = format!("{} MiB from a node over TLS, cards of {rates} Mbit/s", plan.bytes >> 20);
    let mut text = format!(
        "{conditions}\n\n| | s, median (least, most) | MB/s | × one card | over the second card |\n|---|---|---|---|---|\n"
    );
    let one = median(&spans(samples, Over::One));
    for over in Over::ALL {
        let spans = spans(samples, over);
        let (Some(span), Some(least), Some(most)) = (median(&spans), spans.first(), spans.last()) else {
            continue;
        };
        let rate = plan.bytes as f64 / span / 1e6;
        let gain = one.map_or("–".to_owned(), |one| format!("{:.2}", one / span));
        let of = samples.iter().filter(|sample| sample.over == over);
        let (first, second) = of.fold((0, 0), |(first, second), sample| {
            let [over_first, over_second] = sample.came;
            (first + over_first, second + over_second)
        });
        let share = second as f64 * 100.0 / (first + second).max(1) as f64;
        let name = over.name();
        text.push_str(&format!(
            "| {name} | {span:.2} ({least:.2}, {most:.2}) | {rate:.1} | {gain} | {share:.0} % |\n"
        ));
    }
    Section { heading, text }
}

/// In seconds, from the least to the greatest.
fn spans(samples: &[Sample], over: Over) -> Vec<f64> {
    let of = samples.iter().filter(|sample| sample.over == over);
    let mut spans: Vec<f64> = of.map(|sample| sample.span.as_secs_f64()).collect();
    spans.sort_by(f64::total_cmp);
    spans
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
    fn the_table_has_medians_and_how_much_they_are_of_one_card() {
        let plan = Plan {
            rates_bits: [200_000_000, 200_000_000],
            bytes: 64 << 20,
            runs: 3,
            wirefs: PathBuf::new(),
            scratch: PathBuf::new(),
            stop: Arc::default(),
        };
        let sample = |over, ms, came| Sample { over, span: Duration::from_millis(ms), came };
        let samples = [
            sample(Over::One, 2_800, [100, 0]),
            sample(Over::Both, 1_600, [40, 60]),
            sample(Over::Both, 1_400, [50, 50]),
            sample(Over::Both, 1_300, [60, 40]),
        ];
        let section = to_section(&plan, &samples, "So.");
        assert_eq!(section.heading, "64 MiB from a node over TLS, cards of 200 Mbit/s");
        let unequal = Plan { rates_bits: [200_000_000, 50_000_000], ..plan };
        assert!(to_section(&unequal, &samples, "").heading.ends_with(" cards of 200 and 50 Mbit/s"));
        assert!(section.text.starts_with("So.\n\n| |"), "{}", section.text);
        assert!(section.text.contains("| one card | 2.80 (2.80, 2.80) | 24.0 | 1.00 | 0 % |"));
        assert!(section.text.contains("| two cards | 1.40 (1.30, 1.60) | 47.9 | 2.00 | 50 % |"));
    }
}
