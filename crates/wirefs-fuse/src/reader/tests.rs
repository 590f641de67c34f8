use super::*;

const SOON: Duration = Duration::from_micros(40);
const LATE: Duration = Duration::from_millis(3);

/// Simulates a program with these gaps between answer and next request. Returns the numbers of polls and of
/// successful ones.
fn simulate(poll: &mut BusyPoll, gaps: impl Iterator<Item = Duration>) -> (usize, usize) {
    let (mut looked, mut found) = (0, 0);
    for gap in gaps {
        if !poll.is_worth_it() {
            poll.slept(gap);
            continue;
        }
        looked += 1;
        if gap < POLL_MAX {
            poll.found();
            found += 1;
        } else {
            poll.failed();
        }
    }
    (looked, found)
}

#[test]
fn sequential_requests_are_polled_from_the_second_one_on() {
    assert_eq!(simulate(&mut BusyPoll::new(), std::iter::repeat_n(SOON, 1000)), (999, 999));
}

#[test]
fn a_slow_program_is_never_polled() {
    assert_eq!(simulate(&mut BusyPoll::new(), std::iter::repeat_n(LATE, 1000)), (0, 0));
}

#[test]
fn polls_become_rarer_with_each_failure() {
    let gaps = std::iter::repeat_n(SHORT_GAP, 100_000);
    let mut poll = BusyPoll::new();
    let (looked, found) = simulate(&mut poll, gaps);
    assert_eq!(found, 0);
    assert!(looked < 110, "11 times until it waits for {SKIPS_MAX}, and once for so many since: {looked}");
    let more = std::iter::repeat_n(SHORT_GAP, 100 * (SKIPS_MAX as usize + 1));
    assert_eq!(simulate(&mut poll, more).0, 100);
}

#[test]
fn one_slow_request_skips_one_poll() {
    let gaps = std::iter::repeat_n(SOON, 10).chain([LATE]).chain(std::iter::repeat_n(SOON, 10));
    assert_eq!(simulate(&mut BusyPoll::new(), gaps), (9 + 1 + 9, 9 + 9));
}

#[test]
fn a_handed_over_request_is_not_followed_by_a_poll() {
    let mut poll = BusyPoll::new();
    simulate(&mut poll, std::iter::repeat_n(SOON, 10));
    assert!(poll.is_worth_it());
    poll.handed_over();
    assert!(!poll.is_worth_it());
    assert_eq!(simulate(&mut poll, std::iter::repeat_n(SOON, 10)), (9, 9), "this cost one that came shortly");
}

#[test]
fn before_blocking_hands_over_once_per_request() {
    let election = Arc::new(ReaderElection::new());
    let begin = || {
        let (turn, _) = election.begin(None);
        HELD.set(Some((Arc::clone(&election), turn)));
        turn
    };
    before_blocking();
    let first = begin();
    assert!(!election.lock().is_free());
    before_blocking();
    assert!(election.lock().is_free());
    // Another thread is the reader meanwhile.
    let (second, _) = std::thread::scope(|scope| scope.spawn(|| election.begin(None)).join().unwrap());
    assert_ne!(first, second);
    before_blocking();
    assert_eq!(election.lock().turn, Some(second), "it is not this thread's to give away");
}
