use super::*;
use wirefs_blocks::id::WriterId;

fn secs(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn block(counter: u64) -> Option<BlockId> {
    BlockId::new(counter, WriterId(0))
}

fn part(next: Option<BlockId>, lost: u64, has_delayed: bool) -> SweepResult {
    SweepResult { next, lost, has_delayed }
}

#[test]
fn no_sweep_without_a_loss() {
    let mut sweep = Sweep::default();
    assert!((0..10_000).all(|now| sweep.next(secs(now), 0).is_none()));
}

#[test]
fn sweep_starts_after_its_delay_and_covers_all_blocks() {
    let mut sweep = Sweep::default();
    assert_eq!(sweep.next(secs(10), 3), None);
    // A later loss extends the delay.
    assert_eq!(sweep.next(secs(100), 4), None);
    assert_eq!(sweep.next(secs(249), 4), None);
    assert_eq!(sweep.next(secs(250), 4), Some(None));
    sweep.record(secs(250), part(block(256), 0, false));
    assert_eq!(sweep.next(secs(251), 4), Some(block(256)));
    // These losses were found by the sweep itself.
    sweep.record(secs(251), part(None, 5, false));
    assert!((252..2_000).all(|now| sweep.next(secs(now), 9).is_none()), "the sweep was repeated");
    assert_eq!(sweep.next(secs(2_000), 10), None);
    assert_eq!(sweep.next(secs(2_150), 10), Some(None));
}

#[test]
fn loss_during_a_sweep_schedules_another() {
    let mut sweep = Sweep::default();
    assert_eq!(sweep.next(secs(0), 1), None);
    assert_eq!(sweep.next(secs(150), 1), Some(None));
    // Two losses of the sweep and one of another reader.
    sweep.record(secs(150), part(block(256), 2, false));
    assert_eq!(sweep.next(secs(151), 4), Some(block(256)));
    sweep.record(secs(151), part(None, 0, false));
    assert_eq!(sweep.next(secs(152), 4), None);
    assert_eq!(sweep.next(secs(302), 4), Some(None));
}

#[test]
fn delayed_blocks_cause_a_bounded_number_of_sweeps() {
    let mut sweep = Sweep::default();
    assert_eq!(sweep.next(secs(0), 1), None);
    let mut begun = Vec::new();
    for now in 0..10_000 {
        if let Some(from) = sweep.next(secs(now), 1) {
            // The delayed blocks are in the first of two parts.
            if from.is_none() {
                begun.push(now);
                sweep.record(secs(now), part(block(256), 0, true));
            } else {
                sweep.record(secs(now), part(None, 0, false));
            }
        }
    }
    assert_eq!(begun, [150, 301, 452, 603]);
}

#[test]
fn shared_tree_is_swept_periodically() {
    let mut sweep = Sweep::for_shared_tree();
    assert_eq!(sweep.next(SWEEP_DELAY - Duration::from_secs(1), 0), None);
    for round in 0..3 {
        let now = SWEEP_DELAY + SWEEP_INTERVAL * round;
        assert_eq!(sweep.next(now, 0), Some(None), "round {round}");
        sweep.record(now, SweepResult { next: None, lost: 0, has_delayed: false });
        assert_eq!(sweep.next(now + SWEEP_INTERVAL / 2, 0), None);
    }
}
