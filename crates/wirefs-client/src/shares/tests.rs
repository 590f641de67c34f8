use super::*;

const MB: u64 = 1 << 20;

fn ms(count: u64) -> Time {
    Time(count * 1_000_000)
}

/// What each of these gets, a megabyte at a time, if all are asked at once.
fn shares(rates: [Option<u64>; 3], requests: usize) -> [u64; 3] {
    let mut to_come = [0; 3];
    for _ in 0..requests {
        let all = (0..3).map(|index| (index, to_come[index], rates[index]));
        to_come[soonest(all, MB).unwrap()] += MB;
    }
    to_come.map(|bytes| bytes / MB)
}

#[test]
fn each_connection_is_asked_for_what_it_brings_in_the_same_time() {
    assert_eq!(shares([Some(10 * MB), Some(20 * MB), Some(30 * MB)], 60), [10, 20, 30]);
    assert_eq!(shares([Some(MB), Some(1000 * MB), Some(1000 * MB)], 20), [0, 10, 10]);
}

#[test]
fn connections_that_were_not_measured_count_as_the_fastest() {
    assert_eq!(shares([None; 3], 6), [2; 3]);
    assert_eq!(shares([Some(20 * MB), None, Some(10 * MB)], 10), [4, 4, 2]);
}

#[test]
fn the_rate_is_that_of_the_time_in_which_something_was_to_come() {
    let mut share = Share::default();
    share.asks(ms(5_000), 0);
    share.asks(ms(5_050), MB);
    share.brings(ms(5_099), 1_000);
    assert_eq!(share.rate(ms(5_099)), None);
    share.brings(ms(5_100), 1_000);
    assert_eq!(share.rate(ms(5_100)), Some(20_000));
    // Nothing was asked for a second.
    share.asks(ms(6_100), 0);
    share.brings(ms(6_200), 1_000);
    assert_eq!(share.rate(ms(6_200)), Some(15_000));
    assert_eq!(share.rate(ms(16_201)), None, "it is tried again");
}
