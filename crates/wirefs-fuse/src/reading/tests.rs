use super::*;

const SOON: Duration = Duration::from_micros(40);
const LATE: Duration = Duration::from_millis(3);

/// A program that asks anew so long after each answer, so many times. How often it was looked for, and found.
fn play(looking: &mut Looking, gaps: impl Iterator<Item = Duration>) -> (usize, usize) {
    let (mut looked, mut found) = (0, 0);
    for gap in gaps {
        if !looking.is_worth_it() {
            looking.slept(gap);
            continue;
        }
        looked += 1;
        if gap < LOOK {
            looking.found();
            found += 1;
        } else {
            looking.was_in_vain();
        }
    }
    (looked, found)
}

#[test]
fn a_program_that_asks_on_at_once_is_looked_for_from_its_second_request_on() {
    assert_eq!(play(&mut Looking::new(), std::iter::repeat_n(SOON, 1000)), (999, 999));
}

#[test]
fn one_that_takes_its_time_is_never_looked_for() {
    assert_eq!(play(&mut Looking::new(), std::iter::repeat_n(LATE, 1000)), (0, 0));
}

#[test]
fn one_whose_requests_come_shortly_and_never_soon_enough_is_looked_for_ever_more_seldom() {
    let gaps = std::iter::repeat_n(SHORTLY, 100_000);
    let mut looking = Looking::new();
    let (looked, found) = play(&mut looking, gaps);
    assert_eq!(found, 0);
    assert!(looked < 110, "11 times until it waits for {WAITS_MAX}, and once for so many since: {looked}");
    let more = std::iter::repeat_n(SHORTLY, 100 * (WAITS_MAX as usize + 1));
    assert_eq!(play(&mut looking, more).0, 100);
}

#[test]
fn one_that_took_its_time_for_once_is_looked_for_again_after_one_more() {
    let gaps = std::iter::repeat_n(SOON, 10).chain([LATE]).chain(std::iter::repeat_n(SOON, 10));
    assert_eq!(play(&mut Looking::new(), gaps), (9 + 1 + 9, 9 + 9));
}

#[test]
fn who_waits_for_something_else_is_not_looked_for() {
    let mut looking = Looking::new();
    play(&mut looking, std::iter::repeat_n(SOON, 10));
    assert!(looking.is_worth_it());
    looking.was_handed_over();
    assert!(!looking.is_worth_it());
    assert_eq!(play(&mut looking, std::iter::repeat_n(SOON, 10)), (9, 9), "this cost one that came shortly");
}

#[test]
fn who_says_that_it_waits_lets_another_read_once_for_each_request() {
    let turns = Arc::new(Turns::new());
    let begin = || {
        let (turn, _) = turns.begin(None);
        HELD.set(Some((Arc::clone(&turns), turn)));
        turn
    };
    before_waiting();
    let first = begin();
    assert!(!turns.lock().is_free());
    before_waiting();
    assert!(turns.lock().is_free());
    // Another thread has the turn meanwhile.
    let (second, _) = std::thread::scope(|scope| scope.spawn(|| turns.begin(None)).join().unwrap());
    assert_ne!(first, second);
    before_waiting();
    assert_eq!(turns.lock().turn, Some(second), "it is not this thread's to give away");
}
