use super::*;
use wirefs_blocks::id::NodeId;

fn secs(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn block(counter: u64) -> Option<BlockId> {
    BlockId::new(counter, NodeId(0))
}

fn part(next: Option<BlockId>, lost: u64, has_late: bool) -> Swept {
    Swept { next, lost, has_late }
}

#[test]
fn nothing_is_swept_where_nothing_was_lost() {
    let mut sweep = Sweep::default();
    assert!((0..10_000).all(|now| sweep.next(secs(now), 0).is_none()));
}

#[test]
fn sweep_comes_when_what_is_missing_is_gone_goes_through_all_and_ends() {
    let mut sweep = Sweep::default();
    assert_eq!(sweep.next(secs(10), 3), None);
    // More is lost later: it is waited for that too.
    assert_eq!(sweep.next(secs(100), 4), None);
    assert_eq!(sweep.next(secs(249), 4), None);
    assert_eq!(sweep.next(secs(250), 4), Some(None));
    sweep.swept(secs(250), part(block(256), 0, false));
    assert_eq!(sweep.next(secs(251), 4), Some(block(256)));
    // The sweep itself asks for what is lost.
    sweep.swept(secs(251), part(None, 5, false));
    assert!((252..2_000).all(|now| sweep.next(secs(now), 9).is_none()), "it was swept once");
    assert_eq!(sweep.next(secs(2_000), 10), None);
    assert_eq!(sweep.next(secs(2_150), 10), Some(None));
}

#[test]
fn what_others_miss_while_it_is_swept_is_swept_later() {
    let mut sweep = Sweep::default();
    assert_eq!(sweep.next(secs(0), 1), None);
    assert_eq!(sweep.next(secs(150), 1), Some(None));
    // The part lost two, and somebody else one.
    sweep.swept(secs(150), part(block(256), 2, false));
    assert_eq!(sweep.next(secs(151), 4), Some(block(256)));
    sweep.swept(secs(151), part(None, 0, false));
    assert_eq!(sweep.next(secs(152), 4), None);
    assert_eq!(sweep.next(secs(302), 4), Some(None));
}

#[test]
fn as_long_as_something_is_late_it_is_swept_again_a_few_times() {
    let mut sweep = Sweep::default();
    assert_eq!(sweep.next(secs(0), 1), None);
    let mut begun = Vec::new();
    for now in 0..10_000 {
        if let Some(from) = sweep.next(secs(now), 1) {
            // What is late is in the first of two parts.
            if from.is_none() {
                begun.push(now);
                sweep.swept(secs(now), part(block(256), 0, true));
            } else {
                sweep.swept(secs(now), part(None, 0, false));
            }
        }
    }
    assert_eq!(begun, [150, 301, 452, 603]);
}

#[test]
fn tree_of_several_nodes_is_swept_now_and_then() {
    let mut sweep = Sweep::of_common();
    assert_eq!(sweep.next(SWEEP_AFTER - Duration::from_secs(1), 0), None);
    for round in 0..3 {
        let now = SWEEP_AFTER + SWEEP_EACH * round;
        assert_eq!(sweep.next(now, 0), Some(None), "round {round}");
        sweep.swept(now, Swept { next: None, lost: 0, has_late: false });
        assert_eq!(sweep.next(now + SWEEP_EACH / 2, 0), None);
    }
}
