use clap::Parser;

use super::*;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    options: LinkOptions,
}

fn parse(line: &str) -> LinkOptions {
    Line::try_parse_from(std::iter::once("test").chain(line.split_whitespace())).unwrap().options
}

#[test]
fn options_change_only_the_given_fields() {
    let first = parse("--rtt 85ms --loss 1% --rate 100mbit --rate-up 10mbit --mtu 9000 --seed 7").profile();
    assert_eq!(first.a_to_b.delay, Duration::from_micros(42_500));
    assert_eq!((first.a_to_b.rate_bits, first.b_to_a.rate_bits), (Some(100_000_000), Some(10_000_000)));
    assert_eq!((first.mtu, first.seed), (9_000, 7));
    let second = parse("--rtt 10 --jitter 2ms").apply(first.clone());
    assert_eq!(second.b_to_a.delay, Duration::from_millis(5));
    assert_eq!((second.b_to_a.loss, second.b_to_a.rate_bits), (Probability::percent(1), Some(10_000_000)));
    assert_eq!(parse("").apply(first.clone()), first);
}

#[test]
fn invalid_option_reports_the_valid_form() {
    let error = Line::try_parse_from(["test", "--loss", "101%"]).err().map(|error| error.to_string());
    assert!(error.is_some_and(|text| text.contains("between 0 and 1")));
}
