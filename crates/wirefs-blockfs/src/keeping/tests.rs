use super::*;
use wirefs_blocks::id::NodeId;

fn secs(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn block(counter: u64) -> Option<BlockId> {
    BlockId::new(counter, NodeId(0))
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
    sweep.swept(block(256), 4);
    assert_eq!(sweep.next(secs(251), 4), Some(block(256)));
    // The sweep itself asks for what is lost.
    sweep.swept(None, 9);
    assert!((252..2_000).all(|now| sweep.next(secs(now), 9).is_none()), "it was swept once");
    assert_eq!(sweep.next(secs(2_000), 10), None);
    assert_eq!(sweep.next(secs(2_150), 10), Some(None));
}
