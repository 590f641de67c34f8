use super::*;

fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

#[test]
fn steady_times_are_met_exactly_and_do_not_stray() {
    let mut lap = Lap::default();
    for step in 0..400 {
        lap.note(Time::default() + ms(10) * step, ms(85));
    }
    assert_eq!(lap.smoothed(), Some(ms(85)));
    assert!(lap.strays() < Duration::from_micros(10), "{:?}", lap.strays());
}

#[test]
fn thousands_of_packets_a_lap_do_not_make_it_jump() {
    let mut lap = Lap::default();
    lap.note(Time::default(), ms(100));
    for step in 0..1_000 {
        lap.note(Time::default() + Duration::from_micros(step), ms(200));
    }
    assert_eq!(lap.smoothed(), Some(ms(100)), "a thousandth of a lap is no time to learn");
}

#[test]
fn shortest_is_remembered_for_minutes_and_then_forgotten() {
    let mut lap = Lap::default();
    lap.note(Time::default(), ms(5));
    for second in 1..150 {
        lap.note(Time::default() + Duration::from_secs(second), ms(9));
    }
    assert_eq!(lap.shortest(), Some(ms(5)));
    for second in 150..301 {
        lap.note(Time::default() + Duration::from_secs(second), ms(9));
    }
    assert_eq!(lap.shortest(), Some(ms(9)));
    lap.forget_shortest();
    assert_eq!(lap.shortest(), None);
}
