use super::*;

fn ms(count: u64) -> Time {
    Time(count * 1_000_000)
}

#[test]
fn clock_advances_while_the_driver_calls() {
    let mut clock = Clock::default();
    for step in 10..100 {
        assert_eq!(clock.advance(ms(step * 100)), ms(step * 100));
    }
}

#[test]
fn stopped_driver_stops_the_clock() {
    let mut clock = Clock::default();
    clock.advance(ms(0));
    assert_eq!(clock.advance(ms(3_600_000)), ms(500));
    assert_eq!(clock.advance(ms(3_600_100)), ms(600));
    assert_eq!(clock.driver_time(ms(700)), ms(3_600_200));
}

#[test]
fn driver_clock_that_goes_back_stops_the_store_clock() {
    let mut clock = Clock::default();
    clock.advance(ms(400));
    assert_eq!(clock.advance(ms(300)), ms(400));
}
