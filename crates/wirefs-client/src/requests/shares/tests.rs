mod played;

use super::*;

const MB: u64 = 1 << 20;

fn ms(count: u64) -> Time {
    Time(count * 1_000_000)
}

/// The share of each connection, a megabyte at a time, if all are asked at once.
fn shares(rates: [Rate; 3], requests: usize) -> [u64; 3] {
    let mut to_come = [0; 3];
    for _ in 0..requests {
        let all = (0..3).map(|index| (index, to_come[index], rates[index]));
        to_come[soonest(all, MB).unwrap()] += MB;
    }
    to_come.map(|bytes| bytes / MB)
}

#[test]
fn each_connection_is_asked_for_what_it_brings_in_the_same_time() {
    assert_eq!(shares([10, 20, 30].map(|rate| Rate::Measured(rate * MB)), 60), [10, 20, 30]);
    assert_eq!(shares([1, 1000, 1000].map(|rate| Rate::Measured(rate * MB)), 20), [0, 10, 10]);
}

#[test]
fn a_connection_of_which_nothing_is_known_counts_as_the_fastest_and_is_asked_for_one_thing() {
    assert_eq!(shares([Rate::Unknown; 3], 3), [1; 3]);
    assert_eq!(shares([Rate::Unknown; 3], 6), [4, 1, 1], "nothing else is known of the first one, either");
    assert_eq!(shares([Rate::Measured(20 * MB), Rate::Unknown, Rate::Measured(10 * MB)], 7), [4, 1, 2]);
}

#[test]
fn a_connection_that_brought_something_is_asked_for_what_would_come_within_a_span() {
    let fast = Rate::Measured(30 * MB);
    assert_eq!(shares([fast, Rate::Presumed(30 * MB), Rate::Presumed(20 * MB)], 30), [25, 3, 2]);
    assert_eq!(shares([fast, Rate::Presumed(MB), Rate::Presumed(30 * MB)], 3), [2, 0, 1]);
}

#[test]
fn the_rate_is_that_of_the_time_in_which_something_was_to_come() {
    let mut share = Share::default();
    share.asks(ms(5_000), 0);
    share.asks(ms(5_050), MB);
    share.brings(ms(5_099), 1_000);
    assert_eq!(share.rate(ms(5_099)), Rate::Unknown);
    share.brings(ms(5_100), 1_000);
    assert_eq!(share.rate(ms(5_100)), Rate::Measured(20_000));
    // Nothing was asked for a second.
    share.asks(ms(6_100), 0);
    share.brings(ms(6_200), 1_000);
    assert_eq!(share.rate(ms(6_200)), Rate::Measured(15_000));
    assert_eq!(share.rate(ms(16_201)), Rate::Unknown, "it is tried again");
}

#[test]
fn what_comes_while_nothing_was_to_come_tells_nothing() {
    let mut share = Share::default();
    share.asks(ms(0), 0);
    share.brings(ms(100), 100_000);
    share.rests();
    for second in 1..5 {
        share.brings(ms(second * 1_000), 1_000);
    }
    assert_eq!(share.rate(ms(4_000)), Rate::Measured(1_000_000));
    // What was sent without regard to shares is still to come.
    share.asks(ms(5_000), MB);
    share.brings(ms(5_100), 100_000);
    assert_eq!(share.rate(ms(5_100)), Rate::Measured(1_000_000));
}

#[test]
fn the_first_rate_is_that_of_the_first_bytes_until_a_span_has_passed() {
    let first = FIRST_BYTES as usize;
    let mut share = Share::default();
    share.asks(ms(0), 0);
    share.brings(ms(10), first);
    assert_eq!(share.rate(ms(10)), Rate::Presumed(100 * FIRST_BYTES));
    // It had nothing to bring in between.
    share.asks(ms(50), 0);
    share.brings(ms(60), 1_000);
    assert_eq!(share.rate(ms(60)), Rate::Presumed(100 * FIRST_BYTES));
    share.brings(ms(70), first - 1_000);
    assert_eq!(share.rate(ms(70)), Rate::Presumed(50 * FIRST_BYTES));
    share.brings(ms(150), first);
    assert_eq!(share.rate(ms(150)), Rate::Measured(20 * FIRST_BYTES), "the burst does not count");
}
